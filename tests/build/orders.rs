//! Documents are put in order by a build and by a merge, and ranked by their PageRank.

use crate::support::run_path;
use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Documents of one word in common and some of their own, named as pages of a few sites.
fn documents() -> String {
    let line = |number: u32| {
        let host = ["b.example.org", "www.example.com", "a.example.org"][number as usize % 3];
        let own = (0..number * 7 % 13).map(|n| format!(" word{n}")).collect::<String>();
        let mill = " mill".repeat(1 + number as usize * 5 % 4);
        format!("{{\"id\": \"http://{host}/{number:03}\", \"contents\": \"river{mill}{own}\"}}\n")
    };
    (0..90).map(line).collect()
}

/// Names and scores of the answers to a query, best first.
fn ask(index: &Path, more: &[&str]) -> Vec<(String, String)> {
    let job = millrace(args!["query", "--quiet", "--index", index, "--format", "tsv", "-k", "200"]);
    let outcome = job.args(more).stdin("river mill word3\n").ok();
    let fields = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[2].to_string(), fields[4].to_string())
    };
    outcome.text().lines().map(fields).collect()
}

fn sorted(mut answers: Vec<(String, String)>) -> Vec<(String, String)> {
    answers.sort();
    answers
}

/// A PageRank for each document.
fn ranks() -> String {
    let line = |number: usize| {
        let host = ["b.example.org", "www.example.com", "a.example.org"][number % 3];
        format!("http://{host}/{number:03}\t{}\n", (number * 31 % 17) as f32 / 40.0)
    };
    (0..90).map(line).collect()
}

#[test]
fn an_index_is_answered_on_the_scale_of_its_order() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", documents());
    let ranks = scratch.write("ranks.tsv", ranks());
    let mut answers = Vec::new();
    for scale in ["greatest", "log", "rank"] {
        let order = args!["--order", "global", "--static-scale", scale, "--pagerank", ranks];
        let index = scratch.path(scale);
        millrace(args!["build", "--quiet", "--index", index]).args(&order).arg(&input).ok();
        millrace(args!["check", "--quiet", "--index", index]).ok();
        let merged = scratch.path("merged");
        build(&merged, args![input]);
        millrace(args!["merge", "--quiet", "--index", merged]).args(&order).ok();
        let scores = |index: &Path| std::fs::read(run_path(index, 0, "scores")).unwrap();
        assert!(scores(&index) == scores(&merged), "{scale}");
        std::fs::remove_dir_all(&merged).unwrap();
        // What was always there has no name, so that its bytes stay.
        let told = (scale != "greatest").then_some(scale);
        assert_eq!(info(&index)["order"]["global"]["static_scale"].as_str(), told);
        let wang = ["--score", "wang", "--mode", "and", "--static-scale", scale];
        let found = ask(&index, &wang);
        for algorithm in ["exhaustive", "galloping", "wang"] {
            assert_eq!(found, ask(&index, &[&wang[..], &["--algorithm", algorithm]].concat()));
        }
        answers.push(found);
    }
    assert!(answers[0] != answers[1] && answers[1] != answers[2] && answers[0] != answers[2]);
    let job = args!["query", "--index", scratch.path("rank"), "--score", "wang", "--mode", "and"];
    let refused = millrace(job).args(["--algorithm", "wang"]).run().expect_status(1);
    refused.says("in global order for static-scale rank, and greatest is asked for");
}

#[test]
fn a_build_and_a_merge_give_the_same_order() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", documents());
    let ranks = ranks();
    let ranks = scratch.write("ranks.tsv", ranks);
    let plain = scratch.path("plain");
    let built = scratch.path("built");
    build(&plain, args![input]);
    let bm25 = sorted(ask(&plain, &[]));
    let order = args!["--order", "global", "--pagerank", ranks, "--alpha", "0.4"];
    millrace(args!["build", "--quiet", "--index", built]).args(&order).arg(&input).ok();
    let merge = millrace(args!["merge", "--quiet", "--index", plain]).args(&order);
    merge.ok();
    let files = |index: &Path| {
        let kinds = ["lexicon", "postings", "lengths", "names", "locations", "scores"];
        kinds.map(|kind| std::fs::read(run_path(index, 0, kind)).unwrap())
    };
    assert!(files(&plain) == files(&built));
    for index in [&plain, &built] {
        millrace(args!["check", "--quiet", "--index", index]).ok();
        assert_eq!(info(index)["order"]["name"], "global");
        assert_eq!(info(index)["order"]["global"]["alpha"], 0.4);
        assert_eq!(sorted(ask(index, &[])), bm25);
    }
    let wang = ["--score", "wang", "--alpha", "0.4", "--mode", "and"];
    let exhaustive = [&wang[..], &["--algorithm", "exhaustive"]].concat();
    let found = ask(&plain, &wang);
    assert!(found.len() > 20 && found != ask(&plain, &["--mode", "and"]));
    assert_eq!(found, ask(&plain, &exhaustive));
    for model in ["inter", "docp-ui", "docp-pi", "fgqp"] {
        let rounds = ["--algorithm", "wang", "--parallelism", model];
        assert_eq!(found, ask(&plain, &[&wang[..], &rounds].concat()), "{model}");
    }
    // One that is not in the order that the query asks for is known by its parameter.
    let refused = |more: &[&str], text: &str| {
        let job = args!["query", "--index", plain, "--score", "wang", "--algorithm", "wang"];
        let outcome = millrace(job).args(["--mode", "and"]).args(more).run().expect_status(1);
        assert!(outcome.stderr.contains(text), "{outcome:?}");
    };
    refused(&[], "documents are in global order for alpha 0.4, and 0.3 is asked for");
    refused(&["--alpha", "0.4", "--b", "0.5"], "in global order for b 0.75, and 0.5 is asked for");
    for order in ["url", "name", "length", "topic", "input"] {
        millrace(args!["merge", "--quiet", "--index", plain, "--order", order]).ok();
        assert_eq!(sorted(ask(&plain, &wang)), sorted(found.clone()), "{order}");
    }
    assert_eq!(info(&plain)["order"], Value::Null);
    refused(&["--alpha", "0.4"], "documents are not in global order: merge with the order global");
    let first = millrace(args!["dump", "--index", plain, "documents"]).ok().json_lines().remove(0);
    assert_eq!(first["name"], "http://b.example.org/000");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", documents());
    let index = scratch.path("index");
    build(&index, args![input]);
    let usage = |job: &[&str], text: &str| {
        let outcome = millrace(job).run().expect_status(2);
        assert!(outcome.stderr.contains(text), "{job:?}: {outcome:?}");
    };
    let at = index.to_str().unwrap();
    let query = ["query", "--index", at];
    usage(&[&query[..], &["--alpha", "0.3"]].concat(), "--alpha does not go with --score bm25");
    let scale = ["--static-scale", "log"];
    usage(&[&query[..], &scale].concat(), "--static-scale does not go with --score bm25");
    let merge = ["merge", "--index", at];
    usage(&[&merge[..], &scale].concat(), "--static-scale goes with --order global");
    let wang = [&query[..], &["--score", "wang"]].concat();
    usage(
        &[&wang[..], &["--alpha", "2"]].concat(),
        "alpha: expected a number from 0 to 1, found 2",
    );
    // Devices have this score only in an engine of its own.
    let job = millrace([&wang[..], &["--device", "gpu"]].concat()).stdin("mill\n");
    job.ok().says("the score wang is computed by the CPU alone: no GPU is used");
    usage(&[&wang[..], &["-n", "2"]].concat(), "--score wang does not go with several processes");
    let rounds = [&query[..], &["--algorithm", "wang", "--mode", "and"]].concat();
    usage(&rounds, "--algorithm wang goes with --mode and, and with --score wang");
    usage(&["merge", "--index", at, "--k1", "2"], "--k1 goes with --order global");
    let apart = ["build", "--index", at, "--no-merge", "--order", "name", input.to_str().unwrap()];
    usage(&apart, "an order of documents and PageRanks are for an index of one run");

    // Without PageRanks all documents have the same, and both jobs say so.
    let merge = millrace(args!["merge", "--index", index, "--order", "global"]);
    merge.ok().says("no PageRanks were given: all documents have the same");
    build(&index, args![input]);
    let job = millrace(args!["query", "--index", index, "--score", "wang"]).stdin("mill\n");
    job.ok().says("no PageRanks: all documents have the same");
    let bad = scratch.write("bad.tsv", "http://a.example.org/002\t1\nnothing\n");
    let outcome =
        millrace(args!["merge", "--index", index, "--pagerank", bad]).run().expect_status(1);
    let text = "bad.tsv: byte 27: expected a name, a tab and a number from 0 on, found nothing";
    assert!(outcome.stderr.contains(text), "{outcome:?}");
}

/// Stop words and PageRanks are read as queries are: compressed or not, in any encoding.
#[test]
fn lists_are_unpacked_and_decoded() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", documents());
    let words = "river\nword3\n";
    let ranks = ranks();
    let index = |name: &str, words: &[u8], ranks: &[u8]| {
        let index = scratch.path(name);
        let words = scratch.write("words", words);
        let ranks = scratch.write("ranks", ranks);
        let lists = args!["--stopwords", words, "--pagerank", ranks, "--order", "global", input];
        build(&index, lists);
        index
    };
    let plain = index("plain", words.as_bytes(), ranks.as_bytes());
    let text = "river word3 word4";
    let tokens = millrace(args!["show", "--index", plain, "--analyze", text]).ok();
    assert_eq!(tokens.text().matches("(stop word)").count(), 2, "{tokens:?}");
    let wang = ["--score", "wang", "--alpha", "1"];
    let found = ask(&plain, &wang);
    let best = |name: &str| found[..5].iter().any(|(known, _)| known.ends_with(name));
    assert!(["/006", "/023", "/040", "/057", "/074"].into_iter().all(best), "{found:?}");
    for ((name, words), (_, ranks)) in packed(words).iter().zip(packed(&ranks)) {
        assert_same_index(&plain, &index(name, words, &ranks), &[]);
    }
    let wide = |text: &str| -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect()
    };
    assert_same_index(&plain, &index("wide", &wide(words), &wide(&ranks)), &[]);
    let bare = scratch.write("words", &wide(words)[2..]);
    let job = args!["build", "--index", scratch.path("bare"), "--stopwords", bare, input];
    millrace(job).run().says("UTF-16 or UTF-32 text without a byte order mark");
    assert!(!scratch.path("bare").join("current").exists());
}

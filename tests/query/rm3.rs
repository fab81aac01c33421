//! `--rm3` expands queries as its formula says, in every engine, and says so where it cannot. The
//! formula stands here once more, over what `dump` prints, so that texts which are read again are
//! compared with what was indexed.

use super::scores::Facts;
use crate::support::*;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

/// What `--rm3` makes of a query, and the scores of all documents for it.
fn expected(
    facts: &Facts,
    score: &[&str],
    query: &str,
    (documents, terms, weight): (usize, usize, f64),
) -> (BTreeMap<String, f64>, BTreeMap<usize, f64>) {
    let mut first: Vec<(usize, f64)> = facts.scores(score, query).into_iter().collect();
    first.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    first.truncate(documents);
    let mut model: Vec<(&str, f64)> = Vec::new();
    for (term, list) in &facts.postings {
        let parts = first.iter().map(|(docid, score)| {
            score * list.get(docid).copied().unwrap_or(0.0) / facts.lengths[*docid]
        });
        model.push((term, parts.sum()));
    }
    model.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    model.truncate(terms);
    let sum: f64 = model.iter().map(|(_, p)| p).sum();
    let words: Vec<&str> = query.split_whitespace().collect();
    let mut weights = BTreeMap::new();
    for word in &words {
        *weights.entry(word.to_string()).or_default() += weight / words.len() as f64;
    }
    for (term, p) in model {
        *weights.entry(term.to_string()).or_default() += (1.0 - weight) * p / sum;
    }
    let mut scores = BTreeMap::new();
    for (term, weight) in &weights {
        for (&docid, &tf) in facts.postings.get(term).into_iter().flatten() {
            let part = facts.posting(score, term, (tf, facts.lengths[docid]));
            *scores.entry(docid).or_default() += weight * part;
        }
    }
    (weights, scores)
}

#[test]
fn oracle_formula_in_every_engine() {
    let scratch = Scratch::new();
    let collection = Collection::new(51, 300, 40);
    let input = scratch.write("c.jsonl.gz", gzip(&collection.jsonl(), 2));
    let index = scratch.path("index");
    build(&index, args!["--stemmer", "none", "--stopwords", "none", input]);
    let facts = Facts::of(&index);
    let mut random = Random::new(9);
    let mut queries: Vec<String> =
        (1..4).map(|count| collection.words.phrase(&mut random, count).to_lowercase()).collect();
    queries.push(format!("{0} {0} {1}", queries[0], queries[1]));
    for (score, rm3) in [(&["bm25"][..], (5, 8, 0.4)), (&["ql", "--mu", "50"], (3, 20, 0.7))] {
        let given = format!("{},{},{}", rm3.0, rm3.1, rm3.2);
        let ask = |algorithm: &str, format: &str| {
            let job = millrace(args!["query", "--quiet", "--index", index, "-k", "400"]);
            let job = job.args(["--rm3", &*given, "--algorithm", algorithm, "--format", format]);
            job.arg("--score").args(score).stdin(queries.join("\n")).ok()
        };
        let answers = ask("exhaustive", "jsonl").json_lines();
        for (query, answer) in queries.iter().zip(&answers) {
            let (weights, scores) = expected(&facts, score, query, rm3);
            let shown = answer["query"].as_str().unwrap().split(' ');
            let shown: BTreeMap<String, f64> = shown
                .map(|term| term.rsplit_once('^').unwrap())
                .map(|(term, weight)| (term.to_string(), weight.parse().unwrap()))
                .collect();
            assert!(shown.keys().eq(weights.keys()), "{query}: {shown:?} {weights:?}");
            for (found, expected) in shown.values().zip(weights.values()) {
                assert!((found - expected).abs() < 1e-6, "{query}: {shown:?} {weights:?}");
            }
            let hits = answer["hits"].as_array().unwrap();
            let found: BTreeMap<usize, f64> = hits
                .iter()
                .map(|hit| {
                    (hit["docid"].as_u64().unwrap() as usize, hit["score"].as_f64().unwrap())
                })
                .collect();
            assert!(found.keys().eq(scores.keys()), "{query}");
            for ((docid, found), expected) in found.iter().zip(scores.values()) {
                assert!((found - expected).abs() < 1e-5, "{query} {docid}: {found} {expected}");
            }
        }
        let all = ask("exhaustive", "tsv");
        for algorithm in ["maxscore", "blocks", "wand", "bmw"] {
            assert!(ask(algorithm, "tsv").text() == all.text(), "{score:?} {algorithm}");
        }
    }
}

#[test]
fn threads_expand_in_order_and_as_queries_come() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let documents = Collection::new(5, 60, 20).jsonl();
    build(&index, args![scratch.write("in.jsonl", &documents)]);
    let text = String::from_utf8_lossy(&documents).into_owned();
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 3).collect();
    let queries: Vec<String> = words.chunks(2).take(150).map(|two| two.join(" ")).collect();
    let answers = |workers: &str| {
        let job = millrace(args![
            "query", "--quiet", "--index", index, "--rm3", "5,5,0.3", "-w", workers
        ]);
        job.args(["--format", "tsv"]).stdin(queries.join("\n")).ok().stdout
    };
    let one = answers("1");
    assert!(!one.is_empty() && one == answers("4"));
    // Each is answered before the next one is there.
    let mut job = millrace(args![
        "query", "--quiet", "--index", index, "--rm3", "5,5,0.3", "--format", "jsonl"
    ]);
    let mut child = job.spawn();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().try_for_each(|line| tell.send(line.unwrap()))
    });
    for query in &queries[..3] {
        writeln!(stdin, "{query}").unwrap();
        let answer =
            told.recv_timeout(Duration::from_secs(60)).expect("an answer while the pipe is open");
        assert!(answer.contains("\"hits\""), "{answer}");
    }
    drop(stdin);
    assert_eq!(wait(&mut child, "query"), Some(0));
}

/// A job that expands a query of an index.
fn expand(index: &Path) -> Job {
    millrace(args!["query", "--index", index, "--rm3", "2,3,0.5"]).stdin("mill\n")
}

#[test]
fn texts_that_are_gone_are_named() {
    let scratch = Scratch::new();
    let text = "id,Note,text\na,x,\"the mill, by the river\"\nb,y,a mill\n";
    let input = scratch.write("c.csv", text);
    let index = scratch.path("index");
    build(&index, args!["--text-field", "Note", "--text-field", "text", &input]);
    expand(&index).ok();
    // The names of the fields are stored with the index: all terms are found again.
    std::fs::write(&input, text.replace("a mill", "a pond")).unwrap();
    expand(&index).ok();
    std::fs::write(&input, text.replace("a mill", "a   mi")).unwrap();
    expand(&index).ok();
    std::fs::write(&input, text.replace("a mill", "mi,mil")).unwrap();
    expand(&index).fails(1).says("c.csv").says("has changed since");
    std::fs::write(&input, text.replace("b,y,a mill", "b,y,m i ll")).unwrap();
    let failed = expand(&index).fails(1);
    failed
        .says("query 1: ")
        .says("c.csv: byte 42: expected the 2 terms of `b`, found 4: the file has changed since");
    std::fs::remove_file(&input).unwrap();
    expand(&index).fails(1).says("fetching the text of `").says("No such file");
}

#[test]
fn an_index_without_texts_and_wrong_options_are_refused() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let job = millrace(args!["build", "--quiet", "--index", index, "--format", "plaintext", "-"]);
    job.stdin("a the mill\nb a pond\n").ok();
    expand(&index).fails(1).says("--rm3: ").says("standard input, which is not kept");
    let ciff = scratch.path("index.ciff");
    millrace(args!["export", "--index", index, "--quiet", &ciff]).ok();
    let imported = scratch.path("imported");
    millrace(args!["import", "--index", imported, "--quiet", &ciff]).ok();
    expand(&imported).fails(1).says("--rm3: ").says("was imported, without the texts");
    for wrong in ["10", "10,10", "0,10,0.5", "10,10,2"] {
        let job = millrace(args!["query", "--index", index, "--rm3", wrong]);
        job.stdin("").fails(2).says("give documents,terms,weight");
    }
}

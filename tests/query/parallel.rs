//! All models of parallelism give the answers of one worker, to the byte.

use crate::support::*;
use std::path::{Path, PathBuf};

/// An index of some runs, and queries with many equal scores among their answers.
struct Fixture {
    scratch: Scratch,
    index: PathBuf,
    texts: Vec<String>,
    queries: PathBuf,
}

impl Fixture {
    fn new(seed: u64, documents: usize, runs: bool) -> Self {
        let scratch = Scratch::new();
        let mut collection = Collection::new(seed, documents, 60);
        // Copies of documents have equal scores, far from each other.
        let copies: Vec<Doc> = collection.docs.iter().step_by(3).cloned().collect();
        let names = copies
            .into_iter()
            .zip(0..)
            .map(|(doc, number)| Doc { name: Some(format!("copy-{number}")), ..doc });
        collection.docs.extend(names);
        let index = scratch.path("index");
        let input = scratch.write("c.jsonl", collection.jsonl());
        let job = millrace(args!["build", "--quiet", "--index", index, input]);
        if runs {
            job.env("MILLRACE_RUN_LIMIT", "1").arg("--no-merge").ok();
            assert!(info(&index)["runs"].as_u64().unwrap() > 2);
        } else {
            job.ok();
        }
        let mut random = Random::new(seed);
        let texts: Vec<String> = (0..80)
            .map(|number| {
                let count = 1 + random.below(5);
                let phrase = collection.words.phrase(&mut random, count);
                match number % 10 {
                    0 => format!("{phrase} {phrase}"),
                    1 => format!("{phrase} zzzunheardof"),
                    2 => "zzzunheardof".to_string(),
                    3 => "?!".to_string(),
                    _ => phrase,
                }
            })
            .collect();
        let queries = scratch.write("queries", texts.join("\n"));
        Self { scratch, index, texts, queries }
    }

    /// A file of all queries in each of these modes, with each k, by each algorithm. A name says
    /// the query, its mode and its k.
    fn asked(&self, ks: &[usize], algorithms: &[&str]) -> PathBuf {
        let mut lines = String::new();
        for (&algorithm, mode) in algorithms.iter().flat_map(|a| MODES.map(|mode| (a, mode))) {
            for (k, (number, query)) in
                ks.iter().flat_map(|k| self.texts.iter().enumerate().map(move |text| (k, text)))
            {
                let qid = format!("{number}-{mode}-{k}");
                let line = serde_json::json!({"qid": qid, "query": query, "k": k, "mode": mode,
                                              "algorithm": algorithm});
                lines += &format!("{line}\n");
            }
        }
        self.scratch.write(format!("{}.jsonl", algorithms.join("-")), lines)
    }

    fn answers(&self, more: &[&str]) -> String {
        answers(&self.index, &self.queries, more)
    }
}

const MODES: [&str; 3] = ["or", "and", "and-or"];

fn answers(index: &Path, queries: &Path, more: &[&str]) -> String {
    let job = millrace(args!["query", "--quiet", "--format", "tsv", "--index", index, queries]);
    job.args(more).ok().text().to_string()
}

/// Every model, and fgqp with all queries cut, none, and some.
const MODELS: [&[&str]; 10] = [
    &["--parallelism", "inter"],
    &["--parallelism", "docp-ui"],
    &["--parallelism", "docp-pi"],
    &["--parallelism", "docp-ui", "--barrier"],
    &["--parallelism", "docp-pi", "--barrier"],
    &["--parallelism", "fgqp"],
    &["--parallelism", "fgqp", "--cut-us", "0", "--delta", "0", "--spin-us", "0"],
    &["--parallelism", "fgqp", "--cut-us", "0", "--delta", "5"],
    &["--parallelism", "fgqp", "--cut-us", "5", "--delta", "150", "--spin-us", "3000"],
    &["--parallelism", "fgqp", "--cut-us", "4000000000"],
];

fn oracle_models(fixture: &Fixture, algorithms: &[&str]) {
    let queries = fixture.asked(&[1, 10, 1000], &["auto"]);
    let expected = answers(&fixture.index, &queries, &["-w", "1"]);
    for mode in MODES {
        assert!(expected.contains(&format!("-{mode}-1000\t900\t")), "{mode} finds few");
    }
    for model in MODELS {
        // One worker is a case of its own for the models that hand queries on.
        for workers in ["1", "2", "5"] {
            let more = [model, &["-w", workers]].concat();
            assert!(answers(&fixture.index, &queries, &more) == expected, "{more:?}");
        }
    }
    // One k is enough for the models of each algorithm.
    let queries = fixture.asked(&[10], algorithms);
    let expected = answers(&fixture.index, &fixture.asked(&[10], &["auto"]), &["-w", "1"]);
    let expected = expected.repeat(algorithms.len());
    for model in &MODELS[1..8] {
        let more = [model, &["-w", "3"][..]].concat();
        assert!(answers(&fixture.index, &queries, &more) == expected, "{more:?}");
    }
}

const ALGORITHMS: [&str; 7] =
    ["exhaustive", "maxscore", "blocks", "wand", "bmw", "galloping", "small-adaptive"];

#[test]
fn oracle_models_answer_as_one_worker() {
    oracle_models(&Fixture::new(71, 6000, false), &ALGORITHMS);
}

// Only debug builds have what makes runs small.
#[cfg(debug_assertions)]
#[test]
fn oracle_models_answer_as_one_worker_over_runs() {
    oracle_models(&Fixture::new(72, 9000, true), &ALGORITHMS[1..4]);
}

/// A range of docids leaves what is left of all answers, no matter which worker finds them, and
/// ranges that follow each other share out the documents.
#[test]
fn oracle_ranges_of_docids() {
    let fixture = Fixture::new(74, 3000, false);
    let all = fixture.answers(&["-k", "100000", "--algorithm", "exhaustive"]);
    let documents = info(&fixture.index)["documents"].as_u64().unwrap();
    for (range, docids) in [
        ("..", 0..documents),
        ("1000..1100", 1000..1100),
        ("..700", 0..700),
        ("2500..", 2500..documents),
        ("500..500", 500..500),
        ("99999999..", 0..0),
    ] {
        // qid, rank, name, docid, score: ranks are counted again.
        let mut expected = String::new();
        let mut qid = "";
        let mut rank = 0;
        for line in all.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            if !docids.contains(&columns[3].parse().unwrap()) {
                continue;
            }
            rank = if columns[0] == qid { rank + 1 } else { 1 };
            qid = columns[0];
            if rank <= 20 {
                let [_, _, name, docid, score] = columns[..] else { panic!("{line}") };
                expected += &format!("{qid}\t{rank}\t{name}\t{docid}\t{score}\n");
            }
        }
        for model in MODELS {
            for workers in ["1", "3"] {
                let more = [model, &["-k", "20", "-w", workers, "--docids", range]].concat();
                assert!(fixture.answers(&more) == expected, "{more:?}");
            }
        }
    }
    for wrong in ["7", "a..b", "9..3", "1..2..3", "-1..", "..4294967296"] {
        let docids = format!("--docids={wrong}");
        millrace(args!["query", "--index", fixture.index, docids]).fails(2).says("docids");
    }
}

#[test]
fn queries_that_come_slowly_are_answered_at_once() {
    use std::io::{BufRead, BufReader, Write};
    let fixture = Fixture::new(73, 500, false);
    let queries = std::fs::read_to_string(&fixture.queries).unwrap();
    for model in MODELS {
        let job =
            millrace(args!["query", "--quiet", "--format", "jsonl", "--index", fixture.index]);
        let mut job = job.args(model).args(["-w", "3", "--delay-ms", "0"]);
        let mut child = job.spawn();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        for query in queries.lines().take(20) {
            writeln!(input, "{query}").unwrap();
            let answer: serde_json::Value =
                serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
            assert_eq!(answer["query"], query);
        }
        drop(input);
        assert!(output.next().is_none());
        assert_eq!(wait(&mut child, "query"), Some(0));
    }
}

#[test]
fn an_index_without_documents() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args!["--allow-empty", scratch.write("c.jsonl", "")]);
    let queries = scratch.write("queries", "mill\nrace\n");
    for model in MODELS {
        assert_eq!(answers(&index, &queries, &[model, &["-w", "4"]].concat()), "");
    }
}

#[test]
fn what_is_not_supported_is_wrong_usage() {
    let ask = |more: &[&str]| {
        let job = millrace(["query", "--index", "nowhere", "nothing"]).args(more);
        job.fails(2)
    };
    ask(&["--barrier"]).says("--barrier goes with --parallelism docp-ui or docp-pi");
    ask(&["--parallelism", "fgqp", "--barrier"]).says("--barrier goes with");
    ask(&["--delta", "5"]).says("--delta goes with --parallelism fgqp");
    ask(&["--parallelism", "docp-ui", "--cut-us", "5"]).says("--cut-us goes with");
    ask(&["--spin-us", "5"]).says("--spin-us goes with");
    ask(&["--parallelism", "none"]).says("--parallelism");
}

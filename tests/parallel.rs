//! Do all models of parallelism give the answers of one worker, to the byte?

use crate::util::*;
use std::path::{Path, PathBuf};

/// An index of some runs, and queries with many equal scores among their answers.
struct Fixture {
    _scratch: Scratch,
    index: PathBuf,
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
        let lines: String = (0..120)
            .map(|number| {
                let count = 1 + random.below(5);
                let phrase = collection.words.phrase(&mut random, count);
                match number % 10 {
                    0 => format!("{phrase} {phrase}\n"),
                    1 => format!("{phrase} zzzunheardof\n"),
                    2 => "zzzunheardof\n".to_string(),
                    3 => "?!\n".to_string(),
                    _ => phrase + "\n",
                }
            })
            .collect();
        let queries = scratch.write("queries", lines);
        Self { _scratch: scratch, index, queries }
    }

    fn answers(&self, more: &[&str]) -> String {
        answers(&self.index, &self.queries, more)
    }
}

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
    for mode in ["or", "and", "and-or"] {
        for k in ["1", "10", "1000"] {
            let setting = ["--mode", mode, "-k", k];
            let expected = fixture.answers(&[&setting[..], &["-w", "1"]].concat());
            assert!(!expected.is_empty());
            for model in MODELS {
                for workers in ["2", "5"] {
                    let more = [&setting[..], model, &["-w", workers]].concat();
                    assert!(fixture.answers(&more) == expected, "{more:?}");
                }
            }
            // One k is enough for the models of each algorithm.
            let algorithms = if k == "10" { algorithms } else { &[] };
            for algorithm in algorithms {
                for model in &MODELS[1..8] {
                    let more =
                        [&setting[..], model, &["-w", "3", "--algorithm", algorithm]].concat();
                    assert!(fixture.answers(&more) == expected, "{more:?}");
                }
            }
        }
    }
    // One worker is a case of its own for the models that hand queries on.
    for model in MODELS {
        let expected = fixture.answers(&["-w", "1"]);
        assert!(fixture.answers(&[model, &["-w", "1"]].concat()) == expected, "{model:?}");
    }
}

const ALGORITHMS: [&str; 6] =
    ["exhaustive", "maxscore", "wand", "bmw", "galloping", "small-adaptive"];

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

/// A range of docids leaves what is left of all answers, whoever finds them, and ranges that follow
/// each other share out the documents.
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
        // qid, rank, name, docid, score: ranks are counted anew.
        let mut expected = String::new();
        let (mut qid, mut rank) = ("", 0);
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

//! What may stand in a line of queries, and what happens to a line that is none.

use crate::support::fixture::Fixture;
use crate::support::{Scratch, args, build, millrace};
use serde_json::{Value, json};

const MODELS: [&[&str]; 6] = [
    &["--parallelism", "inter"],
    &["--parallelism", "docp-ui"],
    &["--parallelism", "docp-ui", "--barrier"],
    &["--parallelism", "docp-pi"],
    &["--parallelism", "fgqp"],
    &["--parallelism", "fgqp", "--cut-us", "0", "--delta", "1"],
];

/// Every way to ask, one query after the other; each with what to give for it alone.
fn mixed(texts: &[String]) -> Vec<(String, Vec<String>)> {
    let modes = ["or", "and", "and-or"];
    let algorithms =
        ["auto", "exhaustive", "maxscore", "blocks", "wand", "bmw", "galloping", "small-adaptive"];
    let line = |(number, text): (usize, &String)| {
        let k = [10, 1, 1000, 2][number % 4];
        let mode = modes[number % 3];
        let algorithm = algorithms[number % 7];
        let object = json!({"qid": number, "query": text, "k": k, "mode": mode,
                            "algorithm": algorithm});
        let alone = ["-k", &k.to_string(), "--mode", mode, "--algorithm", algorithm];
        (object.to_string(), alone.map(str::to_string).to_vec())
    };
    texts.iter().enumerate().map(line).collect()
}

fn hits(answers: &[Value]) -> Vec<&Value> {
    answers.iter().map(|answer| &answer["hits"]).collect()
}

/// One stream holds AND and OR, few and many hits, and every query has the answer that it has
/// alone.
#[test]
fn oracle_mixed_queries_are_answered_as_alone() {
    let fixture = Fixture::new(81, 1500);
    let mixed = mixed(&fixture.queries(811, 42));
    let mut expected = Vec::new();
    for (object, alone) in &mixed {
        let text: Value = serde_json::from_str(object).unwrap();
        let alone: Vec<&str> = alone.iter().map(String::as_str).collect();
        let job = fixture.query(&[&alone[..], &["--format", "jsonl"]].concat());
        expected.extend(job.stdin(text["query"].as_str().unwrap()).ok().json_lines());
    }
    assert!(hits(&expected).iter().any(|hits| hits.as_array().unwrap().len() > 100));
    let lines: Vec<&str> = mixed.iter().map(|(object, _)| object.as_str()).collect();
    for model in MODELS {
        let job = fixture.query(&[model, &["--format", "jsonl", "-w", "3"]].concat());
        let found = job.stdin(lines.join("\n")).ok().json_lines();
        assert!(hits(&found) == hits(&expected), "{model:?}");
        let qids: Vec<_> = (0..mixed.len()).map(|n| n.to_string()).collect();
        assert!(found.iter().map(|answer| &answer["qid"]).eq(&qids));
    }
}

/// A query that says nothing is asked as the command line says.
#[test]
fn the_three_forms_of_a_line_stand_side_by_side() {
    let fixture = Fixture::new(82, 400);
    let text = &fixture.queries(821, 1)[0];
    let lines = format!("{text}\nname\t{text}\n{{\"query\": \"{text}\"}}\n");
    let answers = fixture.query(&["--format", "jsonl", "-k", "7"]).stdin(lines).ok().json_lines();
    let qids: Vec<_> = answers.iter().map(|answer| answer["qid"].as_str().unwrap()).collect();
    assert_eq!(qids, ["1", "name", "3"]);
    assert!(!answers[0]["hits"].as_array().unwrap().is_empty());
    assert!(hits(&answers).iter().all(|hits| *hits == &answers[0]["hits"]));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_query() {
    let fixture = Fixture::new(83, 200);
    let text = &fixture.queries(831, 1)[0];
    for line in [format!("q1\t{text}"), format!("{{\"qid\": \"q1\", \"query\": \"{text}\"}}")] {
        let file = fixture.scratch.write("marked", format!("\u{feff}{line}\n"));
        let job = fixture.query(&["--format", "jsonl", file.to_str().unwrap()]);
        let answers = job.ok().json_lines();
        assert_eq!(answers[0]["qid"], "q1");
        assert_eq!(answers[0]["query"], text.as_str());
    }
}

/// Lines that are none are named, and every query before and behind them is answered.
#[test]
fn a_line_that_is_no_query_ends_nothing() {
    let fixture = Fixture::new(84, 300);
    let queries = fixture.queries(841, 200);
    let expected = fixture.query(&["--format", "tsv"]).stdin(queries.join("\n")).ok();
    for model in MODELS {
        for format in ["tsv", "jsonl"] {
            let mut lines = String::new();
            for (number, query) in (1..).zip(&queries) {
                match number {
                    128 => lines += &("x".repeat(1 << 20) + "\n"),
                    150 => lines += "{\"query\": 3}\n",
                    _ => {}
                }
                lines += &format!("{number}\t{query}\n");
            }
            lines += "{ the last line";
            let job = fixture.query(&[model, &["--format", format, "-w", "2"]].concat());
            let outcome = job.stdin(lines).run().expect_status(1);
            let outcome = outcome
                .says("line 128 of the queries (byte ")
                .says("1048577 bytes; a line has fewer than 1048576")
                .says("line 151 of the queries")
                .says("line 203 of the queries")
                .says("3 lines were not queries; all others are answered");
            if format == "tsv" {
                assert_eq!(outcome.text(), expected.text(), "{model:?}");
                continue;
            }
            let answers = outcome.json_lines();
            assert_eq!(answers.len(), 203);
            for (place, answer) in answers.iter().enumerate() {
                let refused = [127, 150, 202].contains(&place);
                assert_eq!(answer["error"].is_string(), refused, "{place}: {answer}");
                assert_eq!(answer["hits"].is_array(), !refused);
            }
            assert_eq!(answers[127]["qid"], "128");
        }
    }
}

/// Each term had a decoded block in every engine, 70 kB of memory.
#[test]
fn a_query_of_very_many_terms_takes_little_memory_and_one_of_too_many_is_refused_alone() {
    let scratch = Scratch::new();
    let words = |from: usize, to: usize| -> String {
        (from..to).map(|word| format!("w{word}x ")).collect()
    };
    let documents: Vec<String> = (0..500)
        .map(|n| json!({"id": n, "text": words(40 * n, 40 * n + 60)}).to_string())
        .collect();
    let index = scratch.path("index");
    let input = scratch.write("a.jsonl", documents.join("\n"));
    build(&index, args!["-w", "2", input]);
    let report = scratch.path("report.json");
    let lines = format!("a\t{}\n\nb\t{}\nc\tw1x\n", words(0, 20_000), words(0, 65_537));
    for model in MODELS {
        let job = millrace(args!["query", "--index", &index, "-w", "2", "--format", "jsonl"]);
        let job = job.args(model).args(args!["--report", &report]).stdin(lines.clone());
        let outcome = job.run().expect_status(1);
        let place = format!("line 3 of the queries (byte {})", lines.find("\nb").unwrap() + 1);
        let outcome = outcome.says(place).says("the query b has more than 65536 different terms");
        let answers = outcome.json_lines();
        let qids: Vec<&Value> = answers.iter().map(|answer| &answer["qid"]).collect();
        assert_eq!(qids, ["a", "2", "c"], "{model:?}");
        let found = |answer: &Value| answer["hits"].as_array().map_or(0, Vec::len);
        assert_eq!([0, 2].map(|at| found(&answers[at])), [10, 1]);
        assert_eq!(found(&answers[1]), 0);
        let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        let peak = report["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak < 96 << 20, "{model:?}: {peak} bytes");
    }
}

//! Learned vectors become postings whose impacts are the weights times a factor, by any number of
//! workers, from any files.

use crate::support::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

const LOCATIONS: &str = "runs/000000.locations";

/// Vectors by the names of their documents.
type Vectors = Vec<(String, BTreeMap<String, f64>)>;

/// Terms of all kinds, with weights that are of a few hundredths to some hundreds.
fn vectors(seed: u64, count: usize) -> Vectors {
    let mut random = Random::new(seed);
    let term = |number: usize| match number % 5 {
        0 => format!("##T{number}"),
        1 => format!("É^{number}"),
        2 => format!("{number}{}", "long".repeat(1 + number % 60)),
        3 => "quoted \"\\\u{1f600}".repeat(1 + number % 3) + &number.to_string(),
        _ => format!("t{number}"),
    };
    let vector = |n: usize| {
        let terms = if n % 17 == 3 { 0 } else { random.below(90) };
        let weights = (0..terms).map(|_| {
            let far = random.below(20) == 0;
            (term(random.below(700)), random.share() * if far { 700.0 } else { 3.0 })
        });
        (format!("d{n}"), weights.collect())
    };
    (0..count).map(vector).collect()
}

fn lines(vectors: &Vectors) -> String {
    let line = |(n, (name, vector)): (usize, &(String, BTreeMap<String, f64>))| match n % 3 {
        0 => json!({"id": name, "vector": vector}).to_string() + "\n",
        1 => {
            json!({"docid": name, "contents": "for people", "vector": vector}).to_string() + "\r\n"
        }
        _ => json!({"vector": vector, "_id": name, "other": [{"vector": 1}]}).to_string() + "\n\n",
    };
    vectors.iter().enumerate().map(line).collect()
}

fn vector_build(index: &Path, more: &[std::ffi::OsString]) -> Job {
    millrace(args!["build", "--format", "vectors", "--index", index]).args(more)
}

/// Documents and postings, as `dump` prints them.
fn dumped(index: &Path, what: &str) -> Vec<Value> {
    millrace(args!["dump", "--index", index, what]).ok().json_lines()
}

#[test]
fn impacts_are_weights_times_the_factor_however_they_come() {
    let scratch = Scratch::new();
    let vectors = vectors(5, 900);
    let text = lines(&vectors);
    let whole = scratch.write("a.jsonl", &text);
    let one = scratch.path("one");
    vector_build(&one, &args!["-w", "1", whole]).ok().says("weights times 100");
    let mut expected: BTreeMap<&str, Vec<(usize, u64)>> = BTreeMap::new();
    let mut lengths = vec![0; vectors.len()];
    for (docid, (_, vector)) in vectors.iter().enumerate() {
        for (term, &weight) in vector {
            let impact = (f64::from(weight as f32) * 100.0).round() as u64;
            lengths[docid] += impact;
            if impact > 0 {
                expected.entry(term).or_default().push((docid, impact));
            }
        }
    }
    let lists = dumped(&one, "postings");
    let found: BTreeMap<&str, Vec<(usize, u64)>> = lists
        .iter()
        .map(|row| {
            let list = serde_json::from_value(row["postings"].clone()).unwrap();
            (row["term"].as_str().unwrap(), list)
        })
        .collect();
    assert!(found == expected);
    for (docid, row) in dumped(&one, "documents").iter().enumerate() {
        assert_eq!(row["name"], *vectors[docid].0);
        assert_eq!(row["tokens"], lengths[docid]);
    }
    assert_eq!(info(&one)["settings"]["impact_factor"], "100");
    millrace(args!["check", "--quiet", "--index", one]).ok();

    let cut = text.match_indices('\n').nth(700).unwrap().0 + 1;
    let first = scratch.write("1.jsonl.gz", gzip(&text.as_bytes()[..cut], 3));
    let second = scratch.write("2.zst", zstd(&text.as_bytes()[cut..], 2));
    let other = scratch.path("other");
    let inputs: [&[std::ffi::OsString]; 3] =
        [&args!["-w", "2", whole], &args!["-w", "3", first, second], &args!["-w", "5", "-"]];
    for (inputs, locations) in inputs.into_iter().zip([&[][..], &[LOCATIONS], &[]]) {
        vector_build(&other, inputs).stdin(text.clone()).ok();
        assert_same_index(&one, &other, locations);
    }
    let import = args!["import", "--format", "vectors", "--index", other, "-w", "2", "--memory"];
    millrace(import).args(args!["64M", whole]).ok().says("weights times 100");
    assert_same_index(&one, &other, &[]);
    // Many runs, which are merged.
    #[cfg(debug_assertions)]
    {
        let small = vector_build(&other, &args!["-w", "2", whole]);
        small.env("MILLRACE_RUN_LIMIT", "20000").ok();
        assert_same_index(&one, &other, &[]);
    }
}

#[test]
fn bad_vectors_are_skipped_and_named_or_refused() {
    let scratch = Scratch::new();
    let long = "x".repeat(256);
    let good = "{\"id\":\"good\",\"vector\":{\"a\":1,\"b\":-0.0,\"c\":2}}";
    let bad = [
        ("{\"id\":1,\"vector\":{\"a\":NaN}}".to_string(), "byte 23 of the line: expected a weight"),
        ("{\"id\":1,\"vector\":{\"a\":-1}}".into(), "a number of 0 or more, found `-`"),
        ("{\"id\":1,\"vector\":{\"a\":1e39}}".into(), "expected a weight"),
        ("{\"id\":1,\"vector\":{\"a\":4294967296}}".into(), "impacts below 2^32"),
        ("{\"id\":1,\"vector\":{\"a\":4000000000,\"b\":4000000000}}".into(), "smaller factor"),
        ("{\"id\":1,\"vector\":{\"a\":\"1\"}}".into(), "found `\"`"),
        ("{\"id\":1,\"vector\":{\"a\":[1]}}".into(), "found `[`"),
        ("{\"id\":1,\"vector\":{\"a\":null}}".into(), "found `n`"),
        ("{\"id\":1,\"vector\":[1,2]}".into(), "one object of terms and weights, found `[`"),
        ("{\"id\":1,\"vector\":\"a\"}".into(), "one object of terms and weights"),
        ("{\"id\":1,\"vector\":{},\"vector\":{}}".into(), "one object of terms and weights"),
        ("{\"id\":1,\"contents\":\"none\"}".into(), "a field `vector`"),
        ("{\"id\":1,\"vector\":{\"a\":1,\"b\":2,\"\\u0061\":3}}".into(), "each term once"),
        ("{\"id\":1,\"vector\":{\"\":1}}".into(), "a term of 1 to 255 bytes"),
        (format!("{{\"id\":1,\"vector\":{{\"{long}\":1}}}}"), "a term of 1 to 255 bytes"),
        ("{\"id\":1,\"vector\":{\"a\":01}}".into(), "bad JSON"),
        ("{\"id\":1,\"vector\":{\"a\":1,}}".into(), "bad JSON"),
        ("{\"id\":1,\"vector\":{\"a\":1}".into(), "bad JSON"),
        ("[1]".into(), "not a JSON object"),
    ];
    for (line, says) in &bad {
        let index = scratch.path("index");
        let file = scratch.write("a.jsonl", format!("{good}\n{line}\n{good}\n"));
        let said = vector_build(&index, &args!["-w", "2", file]).ok().says("1 skipped");
        let place = format!("a.jsonl: byte {} (line 2): ", good.len() + 1);
        said.says("2 documents, 2 terms, 4 postings").says(place).says(says);
        vector_build(&index, &args!["--strict", file]).fails(1).says("(line 2): ").says(says);
    }
    // A term that is no UTF-8.
    let mut bytes = format!("{good}\n{{\"id\":1,\"vector\":{{\"a").into_bytes();
    bytes.extend_from_slice(b"\xff\":1}}\n");
    let file = scratch.write("a.jsonl", bytes);
    let index = scratch.path("index");
    vector_build(&index, &args![file]).ok().says("1 skipped").says("terms in UTF-8");
    let file = scratch
        .write("a.jsonl", format!("{{\"vector\":{{}}}}\n{{\"vector\":{{\"a\":0}}}}\n{good}"));
    vector_build(&index, &args![file]).ok().says("3 documents, 2 terms").says("2 empty");
}

#[test]
fn the_first_weights_tell_the_factor_and_fractions_behind_whole_numbers_end_the_build() {
    let scratch = Scratch::new();
    let whole = "{\"id\":1,\"vector\":{\"a\":3,\"b\":350}}\n";
    let fraction = "{\"id\":2,\"vector\":{\"a\":1.25}}\n";
    let far = whole.repeat(20_000);
    let late = format!("{far}{fraction}{fraction}");
    let file = scratch.write("late.jsonl", &late);
    let index = scratch.path("index");
    vector_build(&index, &args![scratch.write("w.jsonl", whole)]).ok().says("weights times 1\n");
    let before = files(&index);
    let place = format!("late.jsonl: byte {} (line 20001): a weight is no whole number", far.len());
    for workers in ["1", "3"] {
        vector_build(&index, &args!["-w", workers, file]).fails(1).says(&place);
        vector_build(&index, &args!["-w", workers, "-"]).stdin(late.clone()).fails(1).says("20001");
    }
    assert!(files(&index) == before, "what was live stays");
    vector_build(&index, &args!["--factor", "8", file]).ok().says("weights times 8");
    let lists = dumped(&index, "postings");
    assert_eq!(lists[0]["postings"][20_001], json!([20_001, 10]));
    for early in [format!("{whole}{fraction}{far}"), format!("{{}}\n{fraction}")] {
        let file = scratch.write("early.jsonl.gz", gzip(early.as_bytes(), 1));
        vector_build(&index, &args![file]).ok().says("weights times 100");
        vector_build(&index, &args!["-"]).stdin(early).ok().says("weights times 100");
    }
    for factor in ["0", "-1", "1e10", "NaN"] {
        vector_build(&index, &args![format!("--factor={factor}"), file]).fails(2).says("--factor");
    }
    let text = scratch.write("t.jsonl", "{\"id\":1,\"text\":\"mill\"}\n");
    build(&index, args![text]);
    let factor = millrace(args!["build", "--index", index, "--factor", "3", text]);
    factor.fails(2).says("--factor").says("there are no vectors");
}

#[test]
fn weights_that_a_factor_makes_0_are_counted_and_all_of_them_refused() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let line = |n: usize| {
        let weights = json!({"a": n % 10, "b": 0.004, "c": 0.0, "d": 0.06});
        json!({"id": n, "vector": weights}).to_string() + "\n"
    };
    let file = scratch.write("a.jsonl", (0..1000).map(line).collect::<String>());
    // The default factor is 100, by which b is 0.4, and c was 0 before.
    for workers in ["1", "3"] {
        let told = vector_build(&index, &args!["-w", workers, file]).ok();
        told.says("1,000 weights are 0 when multiplied and rounded, and left out");
    }
    let told = vector_build(&index, &args!["--factor", "1000", file]).ok();
    assert!(!told.stderr.contains("0 when multiplied"), "{told:?}");
    vector_build(&index, &args!["--factor", "1e9", file]).ok().says("500 skipped");
    let before = files(&index);
    let none =
        scratch.write("b.jsonl", "{\"id\":1,\"vector\":{}}\n{\"id\":2,\"vector\":{\"a\":0}}\n");
    let import = args!["import", "--format", "vectors", "--index", index];
    for told in [
        vector_build(&index, &args!["--factor", "0.01", file]).fails(1),
        vector_build(&index, &args!["--allow-empty", none]).fails(1),
        millrace(&import).args(args!["--factor", "0.01", file]).fails(1),
        millrace(&import).arg(&none).fails(1),
    ] {
        told.says("no text in any of ").says("a greater --factor").says("was read as vectors");
    }
    assert!(files(&index) == before, "what was live stays");
    // An empty one among others is a document.
    let one =
        scratch.write("c.jsonl", "{\"id\":1,\"vector\":{}}\n{\"id\":2,\"vector\":{\"a\":1}}\n");
    vector_build(&index, &args![one]).ok().says("2 documents, 1 term").says("1 empty");
}

#[test]
fn a_pipe_tells_the_factor_too() {
    let scratch = Scratch::new();
    let pipe = scratch.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let index = scratch.path("index");
    let mut job = vector_build(&index, &args!["-w", "2", pipe]);
    let mut child = job.spawn();
    let all = lines(&vectors(8, 3000));
    std::fs::write(&pipe, &all).unwrap();
    assert_eq!(wait(&mut child, "the build"), Some(0));
    assert_eq!(info(&index)["settings"]["impact_factor"], "100");
    let plain = scratch.path("plain");
    vector_build(&plain, &args![scratch.write("plain.jsonl", all)]).ok();
    assert_same_index(&index, &plain, &[]);
}

#[test]
fn vectors_are_as_long_as_documents_may_be() {
    let scratch = Scratch::new();
    let huge: BTreeMap<String, usize> =
        (0..200_000).map(|n| (format!("term{n}"), n % 350)).collect();
    let line = json!({"id": "huge", "contents": "x".repeat(1 << 20), "vector": huge}).to_string();
    assert!(line.len() > 3 << 20);
    let small = "{\"id\":\"small\",\"vector\":{\"term7\":2}}\n";
    let file = scratch.write("a.jsonl", format!("{small}{line}\n{small}"));
    let index = scratch.path("index");
    vector_build(&index, &args!["-w", "2", file]).ok().says("3 documents, 199,428 terms");
    let shown = millrace(args!["show", "--index", index, "--docid", "1"]).ok();
    assert!(shown.text().contains(&"x".repeat(1 << 20)));
    let limited = vector_build(&index, &args!["--max-document", "1M", file]);
    limited.ok().says("2 documents, 1 term,").says("the most is 1048576");
}

#[test]
fn texts_stay_texts_and_who_indexes_vectors_is_said() {
    let scratch = Scratch::new();
    let line =
        |n: usize| json!({"id": n, "contents": "mill race", "vector": {"mill": n}}).to_string();
    let all: String = (0..50).map(|n| line(n) + "\n").collect();
    let file = scratch.write("a.jsonl", all);
    let index = scratch.path("index");
    let said = millrace(args!["build", "--index", index, "-w", "2", file]).ok();
    let remark = "have learned vectors, which were left out";
    assert_eq!(said.stderr.matches(remark).count(), 1, "{said:?}");
    assert!(!said.stderr.contains("weights times"), "{said:?}");
    vector_build(&index, &args!["--indexer", "wei11", file]).fails(2).says("and no vectors");
    let gpu = vector_build(&index, &args!["--indexer", "gpu", file]).ok();
    assert_eq!(gpu.stderr.matches("vectors are indexed by the CPU").count(), 1, "{gpu:?}");
    let text = scratch.write("b.tsv", "1\ttext\n");
    let list = scratch.write("c.jsonl", "{\"id\":1,\"vector\":{\"a\":1}}\n");
    build(&index, args![text]);
    let ciff = millrace(args!["import", "--index", index, "--strict", list]);
    ciff.fails(2).says("go with --format vectors");
}

//! Learned vectors: `blocks` and `auto` return what `exhaustive` returns, to the bit, in an index
//! of one run and after documents were deleted and runs merged; and only where bounds pay are they
//! written.

use crate::support::*;
use crate::support::{files, run_path};
use serde_json::json;
use std::path::Path;

const DOCUMENTS: u32 = 6000;

/// Vectors of this many terms with impacts above 255 and many equal ones, of the topic that each
/// has.
fn vectors(seed: u32, terms: u32, topic_of: impl Fn(u32) -> u32) -> String {
    let hash = |a: u32, b: u32| {
        let mixed = (a ^ b.rotate_left(16) ^ seed).wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77) >> 8
    };
    let mut lines = String::new();
    for docid in 0..DOCUMENTS {
        let topic = topic_of(docid);
        let mut vector = serde_json::Map::new();
        for term in 0..terms {
            let is_of_topic = term % 12 == topic;
            if hash(docid, term) % if is_of_topic { 2 } else { 9 } == 0 {
                let most = if is_of_topic { 350 } else { 40 };
                let impact = 1 + hash(docid, term + 100) % most;
                vector.insert(format!("t{term}"), impact.into());
            }
        }
        lines += &format!("{}\n", json!({"id": format!("d{docid}"), "vector": vector}));
    }
    lines
}

fn queries() -> String {
    let mut lines = String::new();
    for qid in 0..12u32 {
        let terms = (0..40).filter(|term| term % (1 + qid % 4) == 0 || term % 12 == qid);
        let weighted: Vec<_> =
            terms.map(|term| format!("t{term}^{}.{}", 1 + (term + qid) % 9, term % 10)).collect();
        lines += &format!("{qid}\t{}\n", weighted.join(" "));
    }
    lines
}

fn compare(index: &Path) {
    for k in ["1", "5", "100", "1000", "7000"] {
        let answers = ["exhaustive", "blocks", "auto"].map(|algorithm| {
            let job = args![
                "query",
                "--quiet",
                "--index",
                index,
                "--score",
                "impact",
                "-k",
                k,
                "--algorithm",
                algorithm
            ];
            let job = millrace(job).stdin(queries()).ok();
            job.text().to_string()
        });
        assert!(answers[0].lines().count() >= 12, "{k}");
        assert!(answers[0] == answers[1], "k {k}: blocks");
        assert!(answers[0] == answers[2], "k {k}: auto");
    }
}

#[test]
fn blocks_find_what_exhaustive_finds() {
    let scratch = Scratch::new();
    let file = scratch.path("vectors.jsonl");
    let index = scratch.path("index");
    std::fs::write(&file, vectors(7, 40, |docid| docid / 500)).unwrap();
    millrace(args!["import", "--quiet", "--index", index, "--format", "vectors", file]).ok();
    let bounds = || std::fs::read(run_path(&index, 0, "bounds")).unwrap();
    let first = bounds();
    assert!(first.len() > 64 + 1024);
    compare(&index);
    millrace(args!["check", "--quiet", "--index", index]).ok();
    // Merged again, the same lists have the same bounds, if they are coded as before.
    for codec in ["newpfd", "bp128"] {
        millrace(args!["merge", "--quiet", "--index", index, "--codec", codec]).ok();
        assert!(!bounds().is_empty());
        compare(&index);
        millrace(args!["check", "--quiet", "--index", index]).ok();
    }
    assert!(bounds() == first);
}

/// One of twelve topics, that of any document.
fn anywhere(docid: u32) -> u32 {
    (docid.wrapping_mul(0x9e37_79b1) >> 8) % 12
}

#[test]
fn bounds_are_written_where_documents_of_a_topic_stand_together() {
    let scratch = Scratch::new();
    type TopicOf = fn(u32) -> u32;
    let orders: [(&str, bool, TopicOf); 4] = [
        ("together", true, |docid| docid / 500),
        ("together at the end", true, |docid| docid.saturating_sub(1500) / 400),
        ("anywhere", false, anywhere),
        ("of no topic", false, |_| 99),
    ];
    for (name, expected, topic_of) in orders {
        let file = scratch.path(format!("{name}.jsonl"));
        let index = scratch.path(name);
        std::fs::write(&file, vectors(3, 40, |docid| topic_of(docid) % 100)).unwrap();
        millrace(args!["import", "--quiet", "--index", index, "--format", "vectors", file]).ok();
        let has_bounds = || files(&index).contains_key("runs/000000.bounds");
        assert_eq!(has_bounds(), expected, "{name}");
        millrace(args!["merge", "--quiet", "--index", index, "--codec", "rice"]).ok();
        assert_eq!(has_bounds(), expected, "{name}, merged");
        millrace(args!["check", "--quiet", "--index", index]).ok();
        compare(&index);
    }
}

#[test]
fn an_order_by_topic_brings_documents_of_a_topic_together() {
    let scratch = Scratch::new();
    let file = scratch.path("vectors.jsonl");
    let [built, merged] = ["built", "merged"].map(|name| scratch.path(name));
    std::fs::write(&file, vectors(3, 240, anywhere)).unwrap();
    let by_topic = ["--order", "topic", "-w"];
    let build = millrace(args!["build", "--quiet", "--format", "vectors", "--index", built]);
    build.args(by_topic).args(args!["1", file]).ok();
    millrace(args!["import", "--quiet", "--index", merged, "--format", "vectors", file]).ok();
    let bounds = |index: &Path| files(index).remove("runs/000000.bounds");
    assert!(bounds(&merged).is_none());
    let found = |index: &Path| {
        let job = args!["query", "--quiet", "--score", "impact", "-k", "7000", "--index", index];
        let answers = millrace(job).stdin(queries()).ok();
        // Qid, name and score: documents of one score come in another order.
        let columns = |line: &str| {
            let columns: Vec<&str> = line.split([' ', '\t']).collect();
            [columns[0], columns[2], columns[4]].map(String::from)
        };
        let mut found: Vec<_> = answers.text().lines().map(columns).collect();
        found.sort();
        found
    };
    let before = found(&merged);
    millrace(args!["merge", "--quiet", "--index", merged]).args(by_topic).arg("3").ok();
    assert!(bounds(&built).unwrap() == bounds(&merged).unwrap());
    for index in [&built, &merged] {
        millrace(args!["check", "--quiet", "--index", index]).ok();
        compare(index);
        assert!(found(index) == before);
    }
}

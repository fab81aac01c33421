//! Do indexes of every codec hold the same, answer alike, and turn into one another?

use crate::queries::Fixture;
use crate::util::*;
use std::path::{Path, PathBuf};

const CODECS: [&str; 3] = ["bp128", "newpfd", "vbyte"];

/// Everything that queries of every mode and algorithm print.
fn answers(index: &Path, queries: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for more in [
        &["--mode", "or"][..],
        &["--mode", "or", "--algorithm", "exhaustive", "-k", "1000"],
        &["--mode", "and", "-k", "100"],
        &["--mode", "and-or", "-k", "20"],
    ] {
        let job = millrace(args!["query", "--index", index, "--verify"]).args(more);
        found.push(job.arg(queries).ok().text().to_string());
    }
    found
}

fn check(index: &Path, codec: &str) {
    millrace(args!["check", "--index", index]).ok();
    assert_eq!(info(index)["codec"], codec);
    assert!(millrace(args!["info", "--index", index]).ok().text().contains(codec));
}

#[test]
fn every_codec_answers_alike_and_turns_into_the_others() {
    let fixture = Fixture::new(41, 3000);
    let scratch = Scratch::new();
    let input = fixture.scratch.path("c.jsonl");
    let queries = scratch.write("q", fixture.queries(410, 60).join("\n"));
    let mut indexes: Vec<PathBuf> = Vec::new();
    for codec in CODECS {
        let index = scratch.path(codec);
        build(&index, args!["--codec", codec, &input]);
        check(&index, codec);
        indexes.push(index);
    }
    let expected = answers(&indexes[0], &queries);
    assert!(expected.iter().all(|text| !text.is_empty()));
    for index in &indexes[1..] {
        assert_eq!(answers(index, &queries), expected, "{}", index.display());
    }
    for from in CODECS {
        for (to, other) in CODECS.into_iter().zip(&indexes) {
            let index = scratch.path(format!("{from}-{to}"));
            build(&index, args!["--codec", from, &input]);
            millrace(args!["merge", "--index", index, "--codec", to]).ok();
            check(&index, to);
            assert_same_index(&index, other, &[]);
        }
    }
    millrace(args!["merge", "--index", indexes[0], "--codec", "gzip"]).fails(2).says("gzip");
}

//! Indexes of every codec hold the same, answer alike, and turn into one another.

use crate::support::fixture::Fixture;
use crate::support::*;
use std::path::{Path, PathBuf};

/// Codecs and their block sizes.
const FORMS: [(&str, &str); 14] = [
    ("bp128", "128"),
    ("bp128", "64"),
    ("bp128", "512"),
    ("newpfd", "64"),
    ("newpfd", "128"),
    ("vbyte", "64"),
    ("vbyte", "128"),
    ("vbyte", "512"),
    ("rice", "64"),
    ("rice", "128"),
    ("rice", "512"),
    ("pfor", "64"),
    ("pfor", "128"),
    ("pfor", "512"),
];

/// What queries of every mode and algorithm print, in several settings.
fn answers(index: &Path, queries: &Path, all: bool) -> Vec<String> {
    let settings: [&[&str]; 8] = [
        &["--mode", "or", "--algorithm", "exhaustive", "-k", "1000"],
        &["--mode", "or", "--algorithm", "maxscore", "-k", "1000"],
        &["--mode", "and", "-k", "100"],
        &["--mode", "and-or", "-k", "20"],
        &["--mode", "or"],
        &["--mode", "or", "--algorithm", "wand"],
        &["--mode", "or", "--algorithm", "bmw", "-k", "3"],
        &["--mode", "and", "--algorithm", "small-adaptive", "-k", "100"],
    ];
    let settings = if all { &settings[..] } else { &settings[1..3] };
    let asked = settings.iter().map(|more| {
        let job = millrace(args!["query", "--index", index, "--verify"]).args(*more);
        job.arg(queries).ok().text().to_string()
    });
    asked.collect()
}

fn check(index: &Path, (codec, block_size): (&str, &str)) {
    millrace(args!["check", "--index", index]).ok();
    assert_eq!(info(index)["codec"], codec);
    assert_eq!(info(index)["block_size"].to_string(), block_size);
    let shown = millrace(args!["info", "--index", index]).ok();
    assert!(shown.text().contains(&format!("{codec}, blocks of {block_size}")));
}

/// The job that builds an index in some form.
fn build_as(index: &Path, (codec, block_size): (&str, &str), input: &Path) {
    build(index, args!["--codec", codec, "--block-size", block_size, input]);
}

#[test]
fn every_codec_and_block_size_answers_alike() {
    let fixture = Fixture::new(41, 3000);
    let scratch = Scratch::new();
    let input = fixture.scratch.path("c.jsonl");
    let queries = scratch.write("q", fixture.queries(410, 60).join("\n"));
    let mut indexes: Vec<PathBuf> = Vec::new();
    for form in FORMS {
        let index = scratch.path(format!("{}-{}", form.0, form.1));
        build_as(&index, form, &input);
        check(&index, form);
        indexes.push(index);
    }
    let expected = answers(&indexes[0], &queries, true);
    assert!(expected.iter().all(|text| !text.is_empty()));
    assert_eq!(expected[0], expected[1]);
    for index in &indexes[1..] {
        assert_eq!(answers(index, &queries, true), expected, "{}", index.display());
    }
    // Each turns into the next, and the last into the first.
    let moved = scratch.path("moved");
    build_as(&moved, FORMS[0], &input);
    for number in (1..FORMS.len()).chain([0]) {
        let (codec, block_size) = FORMS[number];
        let merge = args!["merge", "--index", moved, "--codec", codec, "--block-size", block_size];
        millrace(merge).ok();
        check(&moved, FORMS[number]);
        assert_same_index(&moved, &indexes[number], &[]);
    }
}

#[test]
fn runs_of_a_codec_with_segments_are_merged_in_little_memory() {
    let fixture = Fixture::new(42, 6000);
    let scratch = Scratch::new();
    let input = fixture.scratch.path("c.jsonl");
    let queries = scratch.write("q", fixture.queries(420, 30).join("\n"));
    for form in [("rice", "64"), ("pfor", "128"), ("pfor", "512")] {
        let one = scratch.path(format!("one-{}{}", form.0, form.1));
        let many = scratch.path("many");
        build_as(&one, form, &input);
        let job = millrace(args!["build", "--quiet", "--index", many, "--no-merge", input]);
        let job = job.args(["--codec", form.0, "--block-size", form.1]);
        job.env("MILLRACE_RUN_LIMIT", "1").ok();
        assert!(info(&many)["runs"].as_u64() > Some(1));
        check(&many, form);
        assert_eq!(answers(&many, &queries, false), answers(&one, &queries, false));
        millrace(args!["merge", "--index", many, "--memory", "64M"]).ok();
        check(&many, form);
        assert_same_index(&many, &one, &[]);
    }
}

#[test]
fn a_codec_without_the_block_size_is_wrong_usage() {
    let fixture = Fixture::new(43, 300);
    let scratch = Scratch::new();
    let input = fixture.scratch.path("c.jsonl");
    let index = scratch.path("index");
    let says = "newpfd has no blocks of 512: its block sizes are 64, 128";
    let job =
        millrace(args!["build", "--index", index, "--codec", "newpfd", "--block-size", "512"]);
    job.arg(&input).fails(2).says(says);
    let job = millrace(args!["build", "--index", index, "--block-size", "100", input]);
    job.fails(2).says("64, 128, 512");
    millrace(args!["build", "--index", index, "--codec", "gzip", input])
        .fails(2)
        .says("rice or pfor");
    build_as(&index, ("rice", "512"), &input);
    let before = info(&index);
    let merge = |more: &[&str]| millrace(args!["merge", "--index", index]).args(more);
    merge(&["--codec", "newpfd"]).fails(2).says(says);
    merge(&["--codec", "gzip"]).fails(2).says("gzip");
    assert_eq!(info(&index), before);
    merge(&["--codec", "newpfd", "--block-size", "64"]).ok();
    check(&index, ("newpfd", "64"));
    merge(&["--block-size", "128"]).ok();
    check(&index, ("newpfd", "128"));
}

//! A job holds to its memory, whatever the input is.

use crate::support::*;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Bytes of each body once it is inflated.
const BODY_BYTES: usize = 24 << 20;

/// Small files, each with a page that inflates to a thousand times its size.
fn bombs(scratch: &Scratch, files: usize) {
    for number in 0..files {
        let gzip = flate2::Compression::fast();
        let mut body = flate2::write::GzEncoder::new(Vec::new(), gzip);
        write!(body, "<p>word{number}<!--").unwrap();
        body.write_all(&vec![b'x'; BODY_BYTES]).unwrap();
        body.write_all(b"-->end").unwrap();
        let body = body.finish().unwrap();
        let mut http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec();
        http.extend_from_slice(&body);
        let mut record = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/{number}\r\nContent-Length: {}\r\n\r\n",
            http.len()
        )
        .into_bytes();
        record.extend_from_slice(&http);
        record.extend_from_slice(b"\r\n\r\n");
        scratch.write(format!("input/{number}.warc"), record);
    }
}

/// A build of one input at 64M with this many workers; `more` are further arguments.
fn small(index: &Path, workers: &str, memory: &str, input: &Path, more: &[&str]) -> Job {
    let build = millrace(args!["build", "--index", index, "--memory", memory, "-w", workers]);
    build.args(args!["--gpus", "none", input]).args(more)
}

/// Checks that a document is refused for want of memory, and that the memory which the message
/// names is enough and is held to.
fn needs_what_it_names(input: &Path, said: &[&str], more: &[&str], documents: u64) {
    for workers in ["1", "4"] {
        let scratch = Scratch::new();
        let index = scratch.path("index");
        let refused = small(&index, workers, "64M", input, more).run().expect_status(1);
        let message = refused.stderr.clone();
        for said in said.iter().chain(&["--max-document", "nothing was published"]) {
            assert!(message.contains(said), "{message}");
        }
        assert!(!index.join("CURRENT").exists());
        let (_, memory) = message.split_once("(--memory ").unwrap();
        let memory = memory.split_once("M,").unwrap().0;
        let report = scratch.path("report.json");
        let built = small(&index, workers, &format!("{memory}M"), input, more);
        built.args(args!["--report", &report]).ok();
        assert_eq!(info(&index)["documents"], documents);
        let most = most(memory.parse::<u64>().unwrap() << 20);
        assert!(peak(&report) <= most, "{} bytes are more than {most}", peak(&report));
    }
}

/// Each of four workers inflated a body of its own before one waited for the other: 145 MB.
#[test]
fn bodies_that_the_memory_cannot_hold_end_the_build() {
    let scratch = Scratch::new();
    bombs(&scratch, 6);
    // Any of them is met first by one of four workers.
    let said = [".warc: byte 0: ", "http://x/", " has 25165"];
    needs_what_it_names(&scratch.path("input"), &said, &[], 6);
}

/// Each of four workers held a line of its own: 170 MB.
#[test]
fn records_that_the_memory_cannot_hold_end_the_build() {
    const LINE_BYTES: usize = 48 << 20;
    let scratch = Scratch::new();
    let mut lines = Vec::new();
    for name in ["a", "b", "c"] {
        write!(lines, "{{\"id\": \"{name}\", \"text\": \"mill\", \"other\": \"").unwrap();
        lines.resize(lines.len() + LINE_BYTES, b'x');
        lines.extend_from_slice(b"\"}\n");
    }
    let input = scratch.write("long.jsonl", &lines);
    needs_what_it_names(&input, &["long.jsonl: byte 0: ", "50331"], &[], 3);
    // A record that is longer than a document may be is skipped in any memory, and not held.
    let report = scratch.path("report.json");
    let index = scratch.path("index");
    lines.extend_from_slice(b"{\"id\": \"d\", \"text\": \"mill\"}\n");
    let input = scratch.write("long.jsonl", lines);
    let built = small(&index, "4", "64M", &input, &["--max-document", "8M"]);
    built.args(args!["--report", &report]).ok().says("the most is 8388608");
    assert_eq!(info(&index)["documents"], 1);
    assert!(peak(&report) <= most(64 << 20), "{}", peak(&report));
}

/// What is no document is passed over as it comes in, whatever its length.
#[test]
fn long_records_that_are_no_documents_need_no_memory() {
    let scratch = Scratch::new();
    let record = |kind: &str, content: &[u8]| {
        let length = content.len();
        let head = format!("WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
        [head.as_bytes(), content, b"\r\n\r\n"].concat()
    };
    let film = |status: &str, kind: &str| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\r\n");
        [head.as_bytes(), &vec![b'x'; 30 << 20]].concat()
    };
    let input = [
        [&vec![b'y'; 30 << 20][..], b"\n"].concat(),
        record("response", &film("200 OK", "video/mp4")),
        record("response", &film("404 Gone", "text/html")),
        record("resource", &film("200 OK", "text/html")),
        record("conversion", b"water mill"),
        record("conversion", b"river"),
    ];
    let input = scratch.write("films.warc", input.concat());
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    let built = small(&index, "4", "64M", &input, &[]).args(args!["--report", &report]).ok();
    built.says("content type video/mp4").says("HTTP status 404").says("skipped 31457281 bytes");
    assert_eq!(info(&index)["documents"], 2);
    assert!(peak(&report) <= most(64 << 20), "{}", peak(&report));
}

/// Each was kept with its place and message until all pieces before it had come.
#[test]
fn skipped_records_take_no_memory() {
    let junk = "WARC/1.0\nContent-Length:0\n\n\n\nx\n".repeat(400_000);
    let page = "WARC/1.0\nWARC-Type: conversion\nContent-Length: 4\n\nmill\n\n";
    for (name, good, bad, reason) in [
        ("a.jsonl", "{\"text\": \"mill\"}\n", "{\n".repeat(3_000_000), "bad JSON"),
        ("a.tsv", "name\tmill\n", "x\n".repeat(3_000_000), "no tab"),
        ("a.warc", page, junk, "broken WARC record"),
    ] {
        let scratch = Scratch::new();
        let input = scratch.write(name, format!("{good}{bad}"));
        let index = scratch.path("index");
        let report = scratch.path("report.json");
        let built = small(&index, "4", "64M", &input, &[]).args(args!["--report", &report]).ok();
        built.says(reason);
        let skipped = reported(&report)["skipped"][reason].as_u64().unwrap();
        assert_eq!(skipped, if name == "a.warc" { 400_000 } else { 3_000_000 });
        assert!(peak(&report) <= most(64 << 20), "{name}: {}", peak(&report));
    }
}

/// A reader of a long line waits for all that comes before it, and so did an indexer of tokens that
/// had gathered some of that, for more: for ever.
#[test]
fn long_lines_do_not_stop_an_indexer_of_tokens() {
    let scratch = Scratch::new();
    let long = "mill ".repeat(800_000);
    let mut lines = String::new();
    for n in 0..6 {
        writeln!(lines, "{{\"id\": \"{n}\", \"text\": \"river\"}}").unwrap();
        writeln!(lines, "{{\"id\": \"long{n}\", \"text\": \"{long}\"}}").unwrap();
    }
    let input = scratch.write("a.jsonl", lines);
    let report = scratch.path("report.json");
    for workers in ["2", "4"] {
        let index = scratch.path(workers);
        let built = small(&index, workers, "64M", &input, &["--indexer", "wei11"]);
        built.args(args!["--report", &report]).ok();
        assert_eq!(info(&index)["documents"], 12);
        assert!(peak(&report) <= most(64 << 20), "{workers}: {}", peak(&report));
    }
}

/// A dictionary of 64 MiB: cut off at 64M and whole at 1G.
#[test]
fn a_dictionary_that_the_memory_cannot_hold_is_no_damage() {
    let scratch = Scratch::new();
    let lines = "name\twater mill\n".repeat(20_000);
    let mut packer = liblzma::write::XzEncoder::new(Vec::new(), 9);
    packer.write_all(lines.as_bytes()).unwrap();
    let input = scratch.write("a.tsv.xz", packer.finish().unwrap());
    for allowed in [&["--allow-cut"][..], &[]] {
        let index = scratch.path(format!("index{}", allowed.len()));
        let refused = small(&index, "2", "64M", &input, allowed).run().expect_status(1);
        let refused = refused.says("needs a window of 65 MiB");
        assert!(!index.join("CURRENT").exists());
        let (_, memory) = refused.stderr.split_once("a memory of ").unwrap();
        let memory = memory.split_once(' ').unwrap().0;
        small(&index, "2", memory, &input, allowed).ok();
        assert_eq!(info(&index)["documents"], 20_000);
    }
}

/// What a job may take with so much memory: that and a tenth. Of a debug build, which tests run, so
/// much more code is mapped than `--memory` counts.
fn most(memory: u64) -> u64 {
    let code = if cfg!(debug_assertions) { 12 << 20 } else { 0 };
    memory * 11 / 10 + code
}

/// The peak that a job reports, in bytes.
fn peak(report: &Path) -> u64 {
    reported(report)["peak_memory_bytes"].as_u64().unwrap()
}

fn reported(report: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap()
}

/// Text of `documents` lines, each of so many words that no other has.
fn new_words(documents: usize, words: usize) -> String {
    let mut text = String::new();
    for document in 0..documents {
        write!(text, "{document}\t").unwrap();
        for word in 0..words {
            // Letters one after the other, so that the words lie in many trie collections.
            let number = (document * words + word + 1) as u64;
            let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
            write!(text, "{} ", base_26(mixed << 24 | number)).unwrap();
        }
        text.push('\n');
    }
    text
}

/// A number in letters.
fn base_26(mut number: u64) -> String {
    let mut letters = String::new();
    while number > 0 {
        letters.push((b'a' + (number % 26) as u8) as char);
        number /= 26;
    }
    letters
}

/// Of the words of a document that no other has, each takes memory too.
#[test]
fn words_that_the_memory_cannot_hold_end_the_build() {
    let scratch = Scratch::new();
    let input = scratch.write("words.tsv", new_words(1, 250_000));
    let more = ["--stemmer", "none"];
    needs_what_it_names(&input, &["words.tsv: byte 0: ", "document 0 has"], &more, 1);
}

/// Each of four parsers of `wei11` kept what the largest piece had needed: 88 MB.
#[test]
fn words_of_ordinary_documents_are_indexed_within_the_memory() {
    let scratch = Scratch::new();
    let mut text = String::new();
    for document in 0..20_000u64 {
        write!(text, "{document}\t").unwrap();
        for word in 0..100 {
            // Multiplied by an odd number that is no multiple of 13: no word comes twice.
            let number = (document * 100 + word) * 0x3504_f333 % 26u64.pow(6);
            write!(text, "{} ", base_26(26u64.pow(6) + number)).unwrap();
        }
        text.push('\n');
    }
    let input = scratch.write("words.tsv", text);
    let report = scratch.path("report.json");
    for (indexer, workers) in [("fast", "4"), ("wei11", "3"), ("wei11", "4")] {
        let index = scratch.path("index");
        let more = ["--indexer", indexer, "--stemmer", "none"];
        small(&index, workers, "64M", &input, &more).args(args!["--report", &report]).ok();
        assert_eq!(info(&index)["terms"], 2_000_000);
        let most = most(64 << 20);
        assert!(peak(&report) <= most, "{indexer} -w {workers}: {}", peak(&report));
    }
}

/// The queue of a merge counted lists and not the terms: 279 MB at 128M, and 424 MB for the merge
/// alone.
#[test]
#[ignore = "takes long: make campaign"]
fn campaign_terms_of_one_document_each() {
    let scratch = Scratch::new();
    let input = scratch.write("words.tsv", new_words(400_000, 12));
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    let build = |more: &[&str]| {
        let build = millrace(args!["build", "--index", &index, "--memory", "128M", "-w", "2"]);
        build.args(more).args(args!["--gpus", "none", "--quiet", "--report", &report, input]).ok();
        println!("build {more:?}: {} bytes", peak(&report));
        assert!(peak(&report) <= most(128 << 20), "{}", peak(&report));
    };
    build(&[]);
    build(&["--no-merge"]);
    assert!(info(&index)["runs"].as_u64() > Some(1));
    let merge = millrace(args!["merge", "--index", &index, "--memory", "128M", "-w", "2"]);
    merge.args(args!["--quiet", "--report", &report]).ok();
    println!("merge: {} bytes", peak(&report));
    assert!(peak(&report) <= most(128 << 20), "{}", peak(&report));
}

/// The list of the files took 1.1 KB for each: 308 MB.
#[test]
#[ignore = "takes long: make campaign"]
fn campaign_many_small_files() {
    let scratch = Scratch::new();
    for number in 0..100_000 {
        scratch
            .write(format!("input/{:03}/{number:06}.txt", number / 1000), format!("mill {number}"));
    }
    // Second names make the list three times as long.
    let more = ["a", "b"].map(|name| scratch.path(name));
    for folder in &more {
        for part in std::fs::read_dir(scratch.path("input")).unwrap() {
            let part = part.unwrap();
            std::fs::create_dir_all(folder.join(part.file_name())).unwrap();
            for file in std::fs::read_dir(part.path()).unwrap() {
                let file = file.unwrap().path();
                let name = file.strip_prefix(scratch.path("input")).unwrap();
                std::fs::hard_link(&file, folder.join(name)).unwrap();
            }
        }
    }
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    // The second build looks at what the first has made.
    for _ in 0..2 {
        let build = millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "2"]);
        let inputs = args![scratch.path("input"), &more[0], &more[1]];
        let build = build.args(args!["--gpus", "none", "--quiet", "--report", &report]);
        // On a disk that is busy.
        build.args(inputs).within(Duration::from_secs(900)).ok();
        assert_eq!(info(&index)["documents"], 300_000);
        println!("300,000 files at 64M: {} bytes", peak(&report));
        assert!(peak(&report) <= most(64 << 20), "{} bytes", peak(&report));
    }
}

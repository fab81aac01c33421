//! A job holds to its memory, whatever the input is.

use crate::support::*;
use std::fmt::Write as _;
use std::io::Write as _;
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

/// Each of four workers inflated a body of its own before one waited for the other: 145 MB.
#[test]
fn bodies_that_inflate_take_turns() {
    let scratch = Scratch::new();
    bombs(&scratch, 6);
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    let build = millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "4"]);
    build.args(args!["--gpus", "none", "--report", &report, scratch.path("input")]).ok();
    assert_eq!(info(&index)["documents"], 6);
    // One body with its text.
    let most = most(64 << 20) + 2 * BODY_BYTES as u64;
    assert!(peak(&report) <= most, "{} bytes are more than {most}", peak(&report));
}

/// Each of four workers held a line of its own: 170 MB.
#[test]
fn long_records_of_a_file_that_all_read_come_one_after_the_other() {
    const LINE_BYTES: usize = 48 << 20;
    let scratch = Scratch::new();
    let mut lines = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        write!(lines, "{{\"id\": \"{name}\", \"text\": \"mill\", \"other\": \"").unwrap();
        lines.resize(lines.len() + LINE_BYTES, b'x');
        lines.extend_from_slice(b"\"}\n");
    }
    let input = scratch.write("long.jsonl", lines);
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    let build = millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "4"]);
    build.args(args!["--gpus", "none", "--report", &report, input]).ok();
    assert_eq!(info(&index)["documents"], 6);
    let most = most(64 << 20) + LINE_BYTES as u64;
    assert!(peak(&report) <= most, "{} bytes are more than {most}", peak(&report));
}

/// What a job may take with so much memory: that and a tenth. Of a debug build, which tests run, so
/// much more code is mapped than `--memory` counts.
fn most(memory: u64) -> u64 {
    let code = if cfg!(debug_assertions) { 12 << 20 } else { 0 };
    memory * 11 / 10 + code
}

/// The peak that a job reports, in bytes.
fn peak(report: &std::path::Path) -> u64 {
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    report["peak_memory_bytes"].as_u64().unwrap()
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

/// A document is parsed whole: docs/build.md says what it takes at most, by its size and its
/// different words.
#[test]
fn a_long_document_takes_what_the_docs_say() {
    const WORDS: usize = 250_000;
    let scratch = Scratch::new();
    let text = new_words(1, WORDS);
    let input = scratch.write("long.tsv", &text);
    let index = scratch.path("index");
    let report = scratch.path("report.json");
    let build = millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "1"]);
    build.args(args!["--gpus", "none", "--stemmer", "none", "--report", &report, input]).ok();
    assert_eq!(info(&index)["terms"], WORDS);
    let bound = most(64 << 20) + 4 * text.len() as u64 + 300 * WORDS as u64;
    assert!(peak(&report) <= bound, "{} bytes are more than {bound}", peak(&report));
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

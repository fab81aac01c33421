//! A job ends well when one of its operators does not, when it is asked to end, and when its input
//! or its reader is silent.

use crate::support::sound::{OldAndNew, ends_soon, fails_soon, signal};
use crate::support::{Scratch, args, millrace};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const OF_BUILD: [&str; 7] =
    ["Read", "Parse", "Index", "Documents", "WriteDocuments", "Encode", "Flush"];
/// With input that one worker has to read from first to last.
const OF_STREAMS: [&str; 2] = ["Read", "Decompress"];
/// With an indexer that takes tokens.
const OF_WEI11: [&str; 3] = ["Parse", "IndexTokens", "Encode"];
const OF_QUERY: [&str; 3] = ["Batch", "Answer", "Collect"];

#[test]
fn an_operator_that_fails_ends_the_build_and_leaves_the_live_generation() {
    let set = OldAndNew::new(60, 20, 4);
    set.build(&set.old).ok();
    let old = set.answers();
    let live = std::fs::read(set.index().join("CURRENT")).unwrap();
    let scratch = Scratch::new();
    let streamed = scratch.path("streamed.jsonl.gz");
    let mut gzip = GzEncoder::new(std::fs::File::create(&streamed).unwrap(), Compression::fast());
    gzip.write_all(&std::fs::read(set.new.join("000.jsonl")).unwrap()).unwrap();
    gzip.finish().unwrap();
    for workers in ["1", "2", "4"] {
        let fast = OF_BUILD.iter().map(|operator| ("fast", operator));
        let wei11 = OF_WEI11.iter().map(|operator| ("wei11", operator));
        let streams = OF_STREAMS.iter().map(|operator| ("fast", operator));
        for (indexer, operator) in fast.chain(wei11).chain(streams) {
            for kind in ["panic", "error"] {
                let fault = format!("{kind}:{operator}");
                let input = if OF_STREAMS.contains(operator) { &streamed } else { &set.new };
                let build = set.build_with(workers, &set.index(), input);
                let build = build.args(["--indexer", indexer]);
                let build = build.env("MILLRACE_RUN_LIMIT", "1").env("MILLRACE_FAULT", &fault);
                let outcome = fails_soon(build).says(format!("injected {kind} in {operator}"));
                match kind {
                    "panic" => outcome.says("src/fault.rs:").says("please report it"),
                    _ => outcome.says(" failed: "),
                };
                assert_eq!(std::fs::read(set.index().join("CURRENT")).unwrap(), live);
                set.assert_tidy(&fault);
            }
        }
    }
    assert_eq!(set.answers(), old);
}

#[test]
fn an_operator_that_fails_ends_the_query() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    for workers in ["1", "2", "4"] {
        for operator in OF_QUERY {
            for kind in ["panic", "error"] {
                let query = millrace(args!["query", "--index", set.index(), "-w", workers]);
                let query = query.env("MILLRACE_FAULT", format!("{kind}:{operator}"));
                // This many batches are under way that all operators have work.
                let query = query.args(["--batch", "2"]).stdin("one\ntwo\nthree\n".repeat(200));
                let outcome = fails_soon(query).says(format!("injected {kind} in {operator}"));
                match kind {
                    "panic" => outcome.says("src/fault.rs:"),
                    _ => outcome.says(" failed: "),
                };
            }
        }
    }
}

/// Starts a build that reads standard input, sends it some documents, and waits until it has begun.
fn build_from_stdin(set: &OldAndNew, fault: Option<&str>) -> Child {
    let mut build = set.build("-".as_ref()).args(["--format", "jsonl"]);
    if let Some(fault) = fault {
        build = build.env("MILLRACE_FAULT", fault);
    }
    let mut child = build.spawn();
    let part = std::fs::read(set.new.join("000.jsonl")).unwrap();
    child.stdin.as_mut().unwrap().write_all(&part).unwrap();
    let begun = Instant::now();
    let generations = || {
        let entries = std::fs::read_dir(set.index()).unwrap().map(|e| e.unwrap().file_name());
        entries.filter(|name| name.to_str().unwrap().starts_with("gen-")).count()
    };
    while generations() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "the build does not begin");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn the_old_generation_answers_during_a_build_and_after_it_failed() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let old = set.answers();
    let mut child = build_from_stdin(&set, Some("error:Flush"));
    assert_eq!(set.answers(), old);
    let answers = || {
        let queries = set.queries.join("\n") + "\n";
        millrace(args!["query", "--quiet", "--index", set.index()]).stdin(queries).ok().stdout
    };
    let during = answers();
    assert!(!during.is_empty());
    drop(child.stdin.take());
    assert_eq!(ends_soon(&mut child, "a build that fails"), 1);
    assert!(stderr(&mut child).contains("injected error in Flush"));
    assert_eq!(answers(), during);
    assert_eq!(set.answers(), old);
    set.assert_tidy("after the failed build");
}

#[test]
fn two_jobs_do_not_write_one_index() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let mut child = build_from_stdin(&set, None);
    let said = format!("another job (process {}) holds this index", child.id());
    fails_soon(set.build(&set.new)).says(&said);
    let merge = millrace(args!["merge", "--index", set.index()]);
    fails_soon(merge).says(&said);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"id\":\"last\",\"text\":\"unmistakable\"}\n").unwrap();
    drop(stdin);
    assert_eq!(ends_soon(&mut child, "the first build"), 0);
    let query = millrace(args!["query", "--quiet", "--index", set.index()]);
    let answer = query.stdin("unmistakable\n").ok();
    assert!(answer.text().contains(" last 1 "), "{answer:?}");
    set.assert_tidy("after both");
}

#[test]
fn signals_end_a_build_that_waits_for_its_input() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let old = set.answers();
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let mut child = build_from_stdin(&set, None);
        signal(&child, name);
        assert_eq!(ends_soon(&mut child, name), status);
        let message = stderr(&mut child);
        let expected =
            format!("millrace: ended by signal {}; the index is unchanged\n", status - 128);
        assert_eq!(message, expected);
        set.assert_tidy(name);
        assert_eq!(set.answers(), old);
    }
}

#[test]
fn signals_end_a_query_that_waits() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        // For queries: the first was answered, so that the job is under way.
        let mut child = millrace(args!["query", "--quiet", "--index", set.index()]).spawn();
        let query = format!("{}\n", set.queries.join(" "));
        child.stdin.as_mut().unwrap().write_all(query.as_bytes()).unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
        signal(&child, name);
        assert_eq!(ends_soon(&mut child, name), status);
        assert_eq!(stderr(&mut child), format!("millrace: ended by signal {}\n", status - 128));

        // For the reader of its answers: they fill the pipe.
        let mut child = millrace(args!["query", "--quiet", "--index", set.index()]).spawn();
        let mut stdin = child.stdin.take().unwrap();
        let queries = query.repeat(2000);
        let writing = std::thread::spawn(move || stdin.write_all(queries.as_bytes()));
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "the pipe should be full");
        signal(&child, name);
        assert_eq!(ends_soon(&mut child, name), status);
        assert_eq!(stderr(&mut child), format!("millrace: ended by signal {}\n", status - 128));
        drop(child);
        // The job may have left queries unread.
        _ = writing.join().unwrap();
    }
}

#[test]
fn a_slow_reader_loses_nothing_and_one_that_goes_ends_the_job_quietly() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let queries = (set.queries.join("\n") + "\n").repeat(300);
    let query = || millrace(args!["query", "--quiet", "-w", "2", "--index", set.index()]);
    let all = query().stdin(queries.clone()).ok().stdout;
    assert!(all.len() > 200 << 10, "more than a pipe holds");
    let mut child = query().spawn();
    let mut stdin = child.stdin.take().unwrap();
    let writing = std::thread::spawn(move || stdin.write_all(queries.as_bytes()));
    let mut slow = Vec::new();
    let mut part = [0; 16 << 10];
    let mut stdout = child.stdout.take().unwrap();
    loop {
        let n = stdout.read(&mut part).unwrap();
        if n == 0 {
            break;
        }
        slow.extend_from_slice(&part[..n]);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ends_soon(&mut child, "a slow reader"), 0);
    writing.join().unwrap().unwrap();
    assert!(slow == all);

    let mut child = query().spawn();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The job may end before it has read all.
    let write = (set.queries.join("\n") + "\n").repeat(300);
    let writing = std::thread::spawn(move || stdin.write_all(write.as_bytes()));
    assert_eq!(ends_soon(&mut child, "a reader that has gone"), 0);
    _ = writing.join().unwrap();
    assert_eq!(stderr(&mut child), "");
}

#[test]
fn a_pipe_that_is_named_as_a_file_is_read_whole() {
    let scratch = Scratch::new();
    let docs: String =
        (0..20_000).map(|n| format!("{{\"id\":\"d{n}\",\"text\":\"w{n} x\"}}\n")).collect();
    let pipe = scratch.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: named pipes cannot be made here");
    }
    let path = pipe.clone();
    let bytes = docs.into_bytes();
    let writing = std::thread::spawn(move || {
        let mut pipe = std::fs::File::options().write(true).open(path).unwrap();
        for part in bytes.chunks(100_000) {
            pipe.write_all(part).unwrap();
            // The writer of a pipe may take its time.
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let index = scratch.path("index");
    let build = millrace(args!["build", "--quiet", "-w", "2", "--index", index, pipe]);
    build.args(["--format", "jsonl"]).ok();
    writing.join().unwrap();
    assert_eq!(crate::support::info(&index)["documents"], 20_000);
}

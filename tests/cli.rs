//! Does the command line keep its contract: usage, exit status, messages, and what is skipped?

use crate::queries::check_report;
use crate::util::*;
use serde_json::Value;
use std::path::Path;

const JOBS: [&str; 8] = ["build", "query", "demo", "merge", "check", "info", "show", "bench"];

fn build_job(index: &Path) -> Job {
    millrace(args!["build", "--index", index])
}

/// One sound document.
const ONE: &str = "{\"id\": \"one\", \"contents\": \"mill race\"}\n";

#[test]
fn every_job_explains_itself() {
    for job in JOBS {
        let outcome = millrace([job, "--help"]).ok();
        assert!(outcome.text().contains("Usage: millrace"), "{outcome:?}");
        assert_eq!(outcome.stderr, "");
    }
    assert!(JOBS.iter().all(|job| millrace(["--help"]).ok().text().contains(job)));
    millrace(["bench", "queries", "--help"]).ok();
    assert!(millrace(["--version"]).ok().text().starts_with("millrace "));
    // A job's help names what it takes.
    let help = millrace(["build", "--help"]).ok();
    for option in [
        "--format",
        "--indexer",
        "--stemmer",
        "--stopwords",
        "--codec",
        "--block-size",
        "--memory",
        "--max-document",
        "--no-merge",
        "--strict",
        "--gpus",
        "--workers",
        "--processes",
        "--process",
        "--hostfile",
        "--quiet",
        "--report",
        "--index",
    ] {
        assert!(help.text().contains(option), "{option}");
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", ONE);
    let index = scratch.path("index");
    millrace([] as [&str; 0]).fails(2);
    millrace(["conquer"]).fails(2).says("conquer");
    millrace(["build"]).fails(2).says("--index");
    build_job(&index).fails(2).says("INPUT");
    for (more, says) in [
        (&["--unknown"][..], "--unknown"),
        (&["-w", "0"], "0"),
        (&["-w", "many"], "many"),
        (&["-w", "2000"], "1024"),
        (&["-n", "0"], "0"),
        (&["-n", "2"], "--processes"),
        (&["-n", "2", "-p", "1"], "--processes"),
        (&["-p", "1"], "--process 1"),
        (&["-n", "3", "-p", "3"], "--process 3"),
        (&["--hostfile", "hosts"], "--hostfile"),
        (&["--memory", "10M", "-w", "1"], "64M"),
        (&["--memory", "64M", "-w", "64"], "the least is"),
        (&["--memory", "lots"], "lots"),
        (&["--memory", "1.5G"], "1.5G"),
        (&["--memory", ""], "size"),
        (&["--max-document", "5G"], "--max-document"),
        (&["--max-document", "5Q"], "5Q"),
        (&["--format", "xml"], "xml"),
        (&["--stemmer", "klingon"], "klingon"),
        (&["--codec", "zip"], "zip"),
        (&["--block-size", "100"], "100"),
        (&["--indexer", "slow"], "slow"),
        (&["--gpus", "some"], "some"),
        (&["--gpus", "2"], "--gpus 2"),
    ] {
        let outcome = build_job(&index).args(more).arg(&input).fails(2).says(says);
        // Wrong usage touches nothing.
        assert!(!index.exists(), "{outcome:?}");
    }
    build(&index, args![input]);
    let with_index = |job: &str| millrace(args![job, "--index", index]);
    with_index("show").fails(2).says("NAME");
    with_index("show").args(["one", "--docid", "0"]).fails(2).says("--docid");
    with_index("show").args(["--docid", "first"]).fails(2).says("first");
    with_index("info").arg("--xml").fails(2);
    with_index("check").arg("more").fails(2);
    with_index("merge").args(["--memory", "none"]).fails(2);
    // Whether the index is there does not matter.
    millrace(args!["show", "--index", scratch.path("none")]).fails(2);
}

#[test]
fn the_least_memory_that_a_message_names_is_enough() {
    let scratch = Scratch::new();
    let input = scratch.write("c.jsonl", ONE);
    let index = scratch.path("index");
    let job = |memory: &str| build_job(&index).args(["-w", "16", "--memory", memory]).arg(&input);
    let outcome = job("64M").fails(2);
    let least = outcome.stderr.trim().rsplit("the least is ").next().unwrap().to_string();
    job(&least).ok();
    let below = least.trim_end_matches('M').parse::<u64>().unwrap() - 1;
    job(&format!("{below}M")).fails(2).says(&least);
}

#[test]
fn missing_and_empty_input() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let good = scratch.write("good.jsonl", ONE);
    let job = || build_job(&index).arg(&good);
    let missing = scratch.path("missing.jsonl");
    job().arg(&missing).fails(1).says(missing.to_str().unwrap());
    // A folder without a file that is read; hidden files and foreign ones do not count.
    let folder = scratch.path("folder");
    scratch.write("folder/picture.png", "x");
    scratch.write("folder/.hidden.jsonl", ONE);
    job().arg(&folder).fails(1).says(folder.to_str().unwrap()).says(".jsonl");
    // No format can be told.
    let binary = scratch.write("binary", b"\0\x01\x02");
    job().arg(&binary).fails(1).says(binary.to_str().unwrap()).says("--format");
    // Input, but no document.
    for (name, text, says) in [
        ("blank.jsonl", "\n  \n", "no document"),
        ("bad.jsonl", "not json\n[1]\n", "not a JSON object"),
        ("bad.tsv", "no tab\n", "no tab"),
    ] {
        let path = scratch.write(name, text);
        build_job(&index).arg(&path).fails(1).says(says).says(path.to_str().unwrap());
    }
    job().arg("-").arg("-").fails(1).says("standard input");
    let stop_words = scratch.path("no-words");
    job().args(args!["--stopwords", stop_words]).fails(1).says("no-words");
    // None of that made an index.
    millrace(args!["info", "--index", index]).fails(1).says(index.to_str().unwrap());
    for name in ["check", "merge", "show", "info", "query"] {
        let more = if name == "show" { &["one"][..] } else { &[] };
        millrace(args![name, "--index", index]).args(more).fails(1);
    }
    // An empty file is an empty collection.
    build_job(&index).arg(scratch.write("empty.jsonl", "")).ok();
    assert_eq!(info(&index)["documents"], 0);
    millrace(args!["check", "--index", index]).ok();
}

#[test]
fn a_failed_build_leaves_the_live_generation() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![scratch.write("c.jsonl", ONE)]);
    let before = files(&index);
    build_job(&index).arg(scratch.path("missing")).fails(1);
    build_job(&index).arg(scratch.write("bad.jsonl", "{\n")).fails(1);
    build_job(&index).arg("--strict").arg(scratch.write("two.jsonl", ONE.repeat(2))).fails(1);
    assert_eq!(files(&index), before);
    assert_eq!(info(&index)["generation"], 1);
    let left: Vec<_> = std::fs::read_dir(&index).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "CURRENT, LOCK and one generation, not {left:?}");
}

#[test]
fn a_new_generation_replaces_the_old() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&index, args![scratch.write("c.jsonl", ONE)]);
    let old = generation(&index);
    let two = format!("{ONE}{}", ONE.replace("one", "two"));
    build_job(&index).arg(scratch.write("d.jsonl", two)).ok().says("generation 2");
    let new = generation(&index);
    assert!(new != old && !old.exists() && new.exists());
    assert_eq!((&info(&index)["generation"], &info(&index)["documents"]), (&2.into(), &2.into()));
}

#[test]
fn duplicate_names_are_counted_and_strict_refuses_them() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let names = ["a", "b", "a", "c", "b", "a"];
    let docs = names.map(|n| Doc { name: Some(n.into()), text: format!("text of {n}") });
    let input = scratch.write("c.jsonl", jsonl(&docs));
    build_job(&index).arg(&input).ok().says("3 duplicate names");
    let found = info(&index);
    assert_eq!((&found["documents"], &found["duplicate_names"]), (&6.into(), &3.into()));
    // All are kept; a name finds the first.
    let show = millrace(args!["show", "--index", index, "b"]).ok();
    assert!(show.text().starts_with("docid     1\n"), "{show:?}");
    let outcome = build_job(&scratch.path("strict")).arg("--strict").arg(&input).fails(1);
    let outcome = outcome.says("3 documents have the name of an earlier one");
    outcome.says("document 2, named as document 0");
    // Across pieces, workers and runs.
    let mut docs = Collection::new(41, 9000, 60).docs;
    docs[8990].name = docs[17].name.clone();
    let input = scratch.write("d.jsonl", jsonl(&docs));
    let job = build_job(&index).args(["--strict", "-w", "3"]).arg(&input);
    job.env("MILLRACE_RUN_LIMIT", "1").fails(1).says("document 8990, named as document 17");
}

#[test]
fn bad_records_are_skipped_counted_and_named() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let mut docs: Vec<Vec<u8>> =
        Collection::new(42, 12_000, 40).docs.chunks(1).map(jsonl).collect();
    docs[3] = b"{\"id\": \"x\", \"contents\": oops}\n".to_vec();
    docs[5] = b"\n".to_vec();
    docs[8] = b"[\"not an object\"]\n".to_vec();
    docs[9000] = b"{\"id\": \"y\", \"contents\": 7}\n".to_vec();
    docs[9001] = b"{\"id\": \"z\"\n".to_vec();
    let offset = |place: usize| docs[..place].iter().map(Vec::len).sum::<usize>();
    let input = scratch.write("c.jsonl", docs.concat());
    let path = input.display();
    let mut before = None;
    for workers in ["1", "3"] {
        let mut outcome =
            build_job(&index).args(["-w", workers]).arg(&input).ok().says("4 skipped");
        for (place, says) in [
            (3, "expected a value"),
            (8, "not a JSON object"),
            (9000, "not a string"),
            (9001, "bad JSON"),
        ] {
            let place = format!("{path}: byte {} (line {}): ", offset(place), place + 1);
            let line = outcome.stderr.lines().find(|line| line.contains(&place));
            let line =
                line.unwrap_or_else(|| panic!("`{place}` is not in\n{outcome:?}")).to_string();
            assert!(line.contains(says), "{line}");
            outcome = outcome.says(&place);
        }
        let skipped = info(&index)["skipped"].clone();
        let count = |reason: &str| skipped[reason].as_u64();
        assert_eq!(count("bad JSON"), Some(2));
        assert_eq!(count("not a JSON object"), Some(1));
        assert_eq!(count("text is not a string"), Some(1));
        assert_eq!(info(&index)["documents"], 12_000 - 5);
        let now = files(&index);
        assert!(before.replace(now.clone()).is_none_or(|before| before == now));
    }
    let outcome = build_job(&index).arg("--strict").arg(&input).fails(1);
    outcome.says(format!("{path}: byte {} (line 4)", offset(3)));
    // The first few are named, all are counted.
    let many = scratch.write("many.jsonl", format!("{ONE}{}", "bad\n".repeat(50)));
    let outcome = build_job(&index).arg(&many).ok().says("50 records were skipped in all");
    let named = outcome.stderr.matches("many.jsonl: byte").count();
    assert!((1..=10).contains(&named), "{named} named\n{outcome:?}");
}

#[test]
fn a_compressed_stream_cut_short_keeps_what_came_before() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let bytes = Collection::new(43, 3000, 40).jsonl();
    for (name, whole) in [("c.jsonl.gz", gzip(&bytes, 1)), ("c.jsonl.zst", zstd(&bytes, 1))] {
        let cut = scratch.write(name, &whole[..whole.len() / 2]);
        let outcome = build_job(&index).arg(&cut).ok().says(cut.to_str().unwrap());
        outcome.says("cut short").says("skipped");
        let documents = info(&index)["documents"].as_u64().unwrap();
        assert!((1000..2500).contains(&documents), "{documents} documents of {name}");
        build_job(&index).arg("--strict").arg(&cut).fails(1).says(cut.to_str().unwrap());
    }
}

#[test]
fn documents_without_a_name_are_named_for_file_and_line() {
    let scratch = Scratch::new();
    let collection = Collection::new(44, 9000, 50);
    let docs: Vec<Doc> =
        collection.docs.iter().map(|d| Doc { name: None, text: d.text.clone() }).collect();
    // Blank lines count as lines, and lines of earlier pieces do.
    let bytes = [b"\n\n".to_vec(), jsonl(&docs)].concat();
    assert!(bytes.len() > 2 << 20);
    let index = scratch.path("index");
    let has = |name: &str, docid: usize| {
        let outcome = millrace(args!["show", "--index", index, name]).ok();
        assert!(outcome.text().starts_with(&format!("docid     {docid}\n")), "{outcome:?}");
    };
    build(&index, args![scratch.write("c.jsonl", &bytes), "-w", "3"]);
    [0, 1, 4000, 8999].map(|docid| has(&format!("c.jsonl:{}", docid + 3), docid));
    // In a folder by the path below it, without the ending of a compression.
    scratch.write("in/a/d.jsonl.gz", gzip(&bytes, 3));
    scratch.write("in/b.tsv", "\tno name\n\tnor here\n");
    build(&index, args![scratch.path("in")]);
    [0, 8999].map(|docid| has(&format!("a/d.jsonl:{}", docid + 3), docid));
    has("b.tsv:2", 9001);
    let job = millrace(args!["build", "--quiet", "--index", index, "-"]);
    job.stdin(ONE.replace("\"id\"", "\"no\"")).ok();
    has_no_text(&index, "stdin:1");
}

/// Checks that a document of standard input is known, and that its text is not.
fn has_no_text(index: &Path, name: &str) {
    let outcome = millrace(args!["show", "--index", index, name]).run().expect_status(1);
    assert!(outcome.text().starts_with("docid     0\n"), "{outcome:?}");
    outcome.says("standard input");
}

#[test]
fn info_tells_what_the_contract_says() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = "{\"id\": 1, \"contents\": \"mill race mill\"}\n{\"id\": 2}\n";
    build(&index, args![scratch.write("c.jsonl", input), "--memory", "128M"]);
    let found = info(&index);
    for (name, value) in [
        ("documents", Value::from(2)),
        ("terms", 2.into()),
        ("postings", 2.into()),
        ("tokens", 3.into()),
        ("codec", "bp128".into()),
        ("block_size", 128.into()),
        ("runs", 1.into()),
        ("generation", 1.into()),
        ("empty_documents", 1.into()),
    ] {
        assert_eq!(found[name], value, "{name}");
    }
    let settings = &found["settings"];
    assert_eq!(settings["stemmer"], "english");
    assert_eq!(settings["stop_words"]["words"].as_array().unwrap().len(), 33);
    assert_eq!(settings["memory_bytes"], 128 << 20);
    // For people: the same numbers, on standard output.
    let outcome = millrace(args!["info", "--index", index]).ok();
    for word in ["documents", "terms", "postings", "tokens", "codec", "runs", "generation"] {
        assert!(outcome.text().contains(word), "{outcome:?}");
    }
    assert_eq!(outcome.stderr, "");
}

#[test]
fn settings_change_what_is_indexed() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input =
        scratch.write("c.jsonl", "{\"id\": 1, \"contents\": \"The generalizations of Häuser\"}\n");
    let words = scratch.write("words", "# words\nhäuser\nThe\n");
    for (more, hit, miss) in [
        (args!["--stemmer", "english"], "general", "the"),
        (args!["--stemmer", "porter"], "gener", "the"),
        (args!["--stemmer", "none"], "generalizations", "generalization"),
        (args!["--stopwords", "none"], "the", "generous"),
        (args!["--stopwords", words], "of", "häuser"),
        (args!["--stemmer", "german"], "haus", "general"),
    ] {
        build(&index, more.into_iter().chain(args![input]));
        let hits = |text: &str| {
            let job = millrace(args!["query", "--quiet", "--index", index]);
            job.stdin(text).ok().text().lines().count()
        };
        assert_eq!((hits(hit), hits(miss)), (1, 0), "{hit}, {miss}");
    }
}

#[test]
fn builds_report_and_can_be_quiet() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = scratch.write("c.jsonl", Collection::new(45, 5000, 60).jsonl());
    let report = scratch.path("report.json");
    let job = build_job(&index).args(args!["-w", "2", "--report", report, input]);
    let outcome = job.env("MILLRACE_RUN_LIMIT", "1").ok().says("5,000 documents");
    assert_eq!((outcome.stdout.len(), outcome.stderr.lines().count()), (0, 1), "{outcome:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let found = info(&index);
    for name in ["documents", "terms", "postings", "tokens", "generation"] {
        assert_eq!(report[name], found[name], "{name}");
    }
    assert_eq!(report["runs"], 1);
    assert!(report["runs_before_merge"].as_u64() > Some(1));
    assert_eq!(report["uncompressed_bytes"], std::fs::metadata(&input).unwrap().len());
    let bytes: usize = files(&index).values().map(Vec::len).sum();
    assert_eq!(report["index_bytes"], bytes);
    check_report(&report, 2, &["Read", "Decompress", "Parse", "Documents"]);

    for quiet in [
        args!["build", "--index", index, input].to_vec(),
        args!["merge", "--index", index].to_vec(),
        args!["check", "--index", index].to_vec(),
    ] {
        let outcome = millrace(quiet).arg("--quiet").ok();
        assert_eq!((&*outcome.stderr, outcome.text()), ("", ""), "{outcome:?}");
    }
    // Errors still show.
    let outcome = build_job(&index).arg("--quiet").arg(scratch.path("missing")).fails(1);
    outcome.says("missing");
    // A report that cannot be written is an error.
    let job = build_job(&index).args(args!["--report", scratch.path("no/report"), input]);
    job.fails(1).says("no/report");
}

#[test]
fn demo_works_alone_and_on_own_files() {
    let outcome = millrace(["demo"]).ok();
    assert!(!outcome.stdout.is_empty(), "{outcome:?}");
    let scratch = Scratch::new();
    let input = scratch.write("in/c.jsonl", ONE);
    let outcome = millrace(args!["demo", input]).stdin("mill\n").ok();
    assert!(outcome.text().contains("one"), "{outcome:?}");
    millrace(args!["demo", scratch.path("missing")]).fails(1).says("missing");
}

#[test]
fn two_builds_of_one_index_do_not_meet() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = scratch.write("c.jsonl", ONE);
    // A build that waits for its input holds the lock.
    let mut waiting = build_job(&index).args(["--format", "jsonl", "-"]);
    let mut child = waiting.spawn();
    let stdin = child.stdin.take();
    let start = std::time::Instant::now();
    while !index.join("gen-000001").exists() {
        assert!(start.elapsed().as_secs() < 60, "the first build does not begin");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    build_job(&index).arg(&input).fails(1).says(index.to_str().unwrap());
    drop(stdin);
    assert_eq!(wait(&mut child, "the first build"), Some(0));
    build_job(&index).arg(&input).ok();
}

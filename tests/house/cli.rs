//! The command line holds its contract: usage, exit status, messages and reports.

use crate::query::forms::check_report;
use crate::support::*;
use serde_json::Value;
use std::path::Path;

const JOBS: [&str; 20] = [
    "build",
    "query",
    "demo",
    "evaluate",
    "tune",
    "fuse",
    "rebuild",
    "merge",
    "check",
    "rollback",
    "info",
    "show",
    "explain",
    "dump",
    "export",
    "import",
    "devices",
    "bench",
    "completions",
    "man",
];

fn build_job(index: &Path) -> Job {
    millrace(args!["build", "--index", index])
}

/// One good document.
const ONE: &str = "{\"id\": \"one\", \"contents\": \"mill race\"}\n";

/// Jobs that print their results may be quiet and write a report as all others.
#[test]
fn small_jobs_report_too() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let run = folder.path().join("a.run");
    std::fs::write(&run, "1 Q0 a 1 2.5 x\n2 Q0 a 1 2.5 x\n").unwrap();
    for (job, words) in [
        ("fuse", args!["fuse", &run, &run].to_vec()),
        ("devices", args!["devices"].to_vec()),
        ("demo", args!["demo", "-w", "1"].to_vec()),
    ] {
        let outcome = millrace(words).args(args!["--quiet", "--report", &report]).ok();
        assert_eq!(outcome.stderr, "", "{job}");
        let found: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        assert_eq!(found["job"], job);
        assert!(found["seconds"].as_f64().unwrap() > 0.0 && found["command"].is_string());
    }
}

#[test]
fn values_may_be_in_any_case_and_near_words_are_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    build_job(&index).args(args!["--codec", "NewPFD", "--format=JSONL", "-"]).stdin(ONE).ok();
    let asked = |mode: &str| {
        let words = args!["query", "--index", &index, "--mode", mode, "--score", "BM25"];
        millrace(words).args(args!["--query", "mill"]).ok().text().to_string()
    };
    assert_eq!(asked("AND"), asked("and"));
    millrace(args!["dump", "--index", &index, "Terms"]).ok();
    millrace(["search"]).fails(2).says("'query'");
    millrace(["query", "--k", "5"]).fails(2).says("'-k'");
}

#[test]
fn every_job_explains_itself() {
    for job in JOBS {
        let outcome = millrace([job, "--help"]).ok();
        assert!(outcome.text().contains("Usage: millrace"), "{outcome:?}");
        assert!(outcome.text().contains("Examples:\n"), "{outcome:?}");
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
        "--wait",
        "--quiet",
        "--report",
        "--index",
    ] {
        assert!(help.text().contains(option), "{option}");
    }
}

#[test]
fn shells_get_completions_and_manual_pages() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = millrace(["completions", shell]).ok();
        assert!(JOBS.iter().all(|job| script.text().contains(job)), "{shell}");
        assert!(script.text().contains("stopwords"), "{shell}");
        if shell == "bash" {
            let scratch = Scratch::new();
            let mut bash = std::process::Command::new("bash");
            let parsed = bash.arg("-n").arg(scratch.write("s", script.text())).status();
            assert!(parsed.is_ok_and(|status| status.success()));
        }
    }
    millrace(["completions", "tcsh"]).fails(2).says("possible values: bash");
    let scratch = Scratch::new();
    millrace(args!["man", "--dir", scratch.path("man1")]).ok();
    for job in JOBS {
        let page = scratch.path(format!("man1/millrace-{job}.1"));
        let page = std::fs::read_to_string(page).expect(job);
        assert!(page.contains(".TH") && page.contains("millrace"), "{job}");
    }
    let page = std::fs::read_to_string(scratch.path("man1/millrace-query.1")).unwrap();
    let synopsis = page.split(".SH SYNOPSIS").nth(1).unwrap().lines().nth(1).unwrap();
    assert!(synopsis.ends_with("\\fR [OPTIONS] \\-\\-index <DIR> [QUERIES]"), "{synopsis}");
    assert!(millrace(["man"]).ok().text().contains("build"));
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
        (&["-n", "1000"], "256 (the number of hits is -k)"),
        (&["-n", "2", "--wait", "soon"], "soon"),
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
        (&["--tokenizer", "trigram"], "words, cjk-bigram or whitespace"),
        (&["--codec", "zip"], "zip"),
        (&["--block-size", "100"], "100"),
        (&["--indexer", "slow"], "slow"),
        (&["--gpus", "some"], "some"),
        (&["--indexer", "fast", "--gpus", "2"], "--gpus: the indexer fast uses no GPU, and 2"),
        (
            &["--indexer", "gpu", "--gpus", "2"],
            "--gpus: the indexer gpu uses one GPU, and 2 were asked for: wei11 uses several",
        ),
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
    with_index("check").args(["-w", "0"]).fails(2);
    with_index("check").args(["-w", "1025"]).fails(2).says("the most is 1024");
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
    // No format can be recognised.
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
    // An empty file is an empty collection, for who says so.
    let empty = scratch.write("empty.jsonl", "");
    build_job(&index).arg(&empty).fails(1).says("this input is empty").says("empty.jsonl");
    build_job(&index).args(args!["--allow-empty", empty]).ok();
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
    assert_eq!(left.len(), 4, "CURRENT, LOCK, runs and one generation, not {left:?}");
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
    assert!(new != old && old.exists() && new.exists(), "one older generation is kept");
    assert_eq!((&info(&index)["generation"], &info(&index)["documents"]), (&2.into(), &2.into()));
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
    let input = scratch.write(
        "c.jsonl",
        "{\"id\": 1, \"contents\": \"The generalizations of Häuser 北京大学\"}\n",
    );
    let words = scratch.write("words", "# words\nhäuser\nThe\n");
    for (more, hit, miss) in [
        (args!["--stemmer", "english"], "general", "the"),
        (args!["--stemmer", "porter"], "gener", "the"),
        (args!["--stemmer", "none"], "generalizations", "generalization"),
        (args!["--stopwords", "none"], "the", "generous"),
        (args!["--stopwords", words], "of", "häuser"),
        (args!["--stemmer", "german"], "haus", "general"),
        (args!["--tokenizer", "words"], "北京大学", "京大"),
        (args!["--tokenizer", "cjk-bigram"], "京大", "北"),
        (args!["--tokenizer=cjk-bigram", "--indexer=wei11"], "大学 generalization", "学"),
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
    // The same as a page that needs nothing else.
    let page = scratch.path("report.html");
    build_job(&index).args(args!["-w", "2", "--quiet", "--report", page, input]).ok();
    let held = browser::held(&page);
    for name in ["job", "documents", "terms", "postings", "tokens", "index_bytes"] {
        assert_eq!(held[name], report[name], "{name}");
    }
    // Runs of another build have other names.
    let sums = |report: &Value| -> Vec<Value> {
        report["files"].as_array().unwrap().iter().map(|file| file["crc32"].clone()).collect()
    };
    assert_eq!(sums(&held), sums(&report));
    assert_eq!(report["uncompressed_bytes"], std::fs::metadata(&input).unwrap().len());
    let bytes: u64 = files(&index).values().map(|bytes| bytes.len() as u64).sum();
    let inputs = std::fs::metadata(generation(&index).join("inputs")).unwrap().len();
    assert_eq!(report["index_bytes"], bytes + inputs);
    check_report(&report, 2, &["Read", "Parse", "Documents"]);

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
fn info_has_a_date_and_the_first_inputs() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    for number in 0..12 {
        scratch.write(format!("in/{number:02}.txt"), "a mill");
    }
    build(&index, args![scratch.path("in")]);
    let job = millrace(args!["info", "--index", index]).ok();
    let year = |text: &str| text.get(17..21).and_then(|year| year.parse::<u32>().ok());
    let made = job.text().lines().find(|line| line.starts_with("made ")).unwrap();
    assert!(year(made) >= Some(2024) && made.contains(" UTC by `"), "{made}");
    let inputs: Vec<&str> = job.text().lines().filter(|line| line.starts_with("input ")).collect();
    assert!(inputs.len() == 11 && inputs[9].contains("09.txt"), "{inputs:?}");
    assert_eq!(inputs[10], "input            2 other files (12 B); JSON lists all");
    assert_eq!(info(&index)["input_files"].as_array().unwrap().len(), 12);
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
    let mut waiting = build_job(&index).args(["--format", "jsonl", "--allow-empty", "-"]);
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

#[cfg(unix)]
#[test]
fn paths_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = Scratch::new();
    let folder = scratch.path(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let input = scratch.write(folder.join("c.jsonl"), ONE);
    let index = folder.join("index");
    let report = scratch.path("report.json");
    build_job(&index).args(args!["--report", report, input]).ok();
    assert!(std::fs::read_to_string(&report).unwrap().contains("caf\u{fffd}/index"));
    for job in ["check", "merge", "info"] {
        millrace(args![job, "--index", index]).ok();
    }
    let answer = millrace(args!["query", "--index", index]).stdin("mill\n").ok();
    assert!(answer.text().starts_with("1 Q0 one 1 "), "{answer:?}");
}

/// A pipe can be read once: the head that would tell its format would be lost.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_by_name_needs_its_format_named() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let many = Collection::new(46, 2000, 40).jsonl();
    build_job(&index).arg("/dev/stdin").stdin(&*many).fails(1).says("/dev/stdin").says("--format");
    build_job(&index).args(["--format", "jsonl", "/dev/stdin"]).stdin(&*many).ok();
    assert_eq!(info(&index)["documents"], 2000);
    build_job(&index).args(["--format", "jsonl", "/dev/stdin"]).stdin(gzip(&many, 2)).ok();
    assert_eq!(info(&index)["documents"], 2000);
}

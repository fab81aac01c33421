//! What lies around an index and its input does no harm: a full log, links that lead nowhere, an
//! index amid its own input, a pipe in the place of a file.

use crate::support::sound::{OldAndNew, ends_soon, fails_soon};
use crate::support::{Scratch, args, info, millrace, wait};
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const ONE: &str = "{\"id\":\"one\",\"text\":\"water mill\"}\n";

/// Standard error that takes nothing: a full disk, a reader that has gone, and none at all.
fn deaf() -> Vec<(&'static str, Stdio)> {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // Open for reading: every write fails.
    let closed = fs::File::open("/dev/null").unwrap();
    vec![("full", full.into()), ("gone", writer.into()), ("closed", closed.into())]
}

#[test]
fn a_standard_error_that_takes_nothing_fails_no_job() {
    let set = OldAndNew::new(60, 20, 2);
    let index = set.index();
    // Records that are skipped are named behind the dataflow, before the index is published.
    let bad = set.scratch.write("bad.jsonl", format!("{ONE}not json\n[1]\n"));
    for (kind, stderr) in deaf() {
        let mut build = Command::new(env!("CARGO_BIN_EXE_millrace"));
        build.args(["build", "-w", "2", "--index"]).args([&index, &bad, &set.new]);
        let mut child = build.stderr(stderr).stdin(Stdio::null()).spawn().unwrap();
        assert_eq!(wait(&mut child, "build"), Some(0), "{kind}");
    }
    assert_eq!(info(&index)["generation"], 3);
    for job in ["check", "merge", "query", "info"] {
        for (kind, stderr) in deaf() {
            let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
            command.args([job, "--index"]).arg(&index).stderr(stderr);
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = piped.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            // Only `query` reads it.
            _ = stdin.write_all(b"water mill\n");
            drop(stdin);
            let mut stdout = String::new();
            child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
            assert_eq!(wait(&mut child, job), Some(0), "{job} {kind}");
            assert_eq!(stdout.is_empty(), matches!(job, "check" | "merge"), "{job}: {stdout}");
        }
    }
    // A failure stays one, with its status.
    for (kind, stderr) in deaf() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        command.args(["info", "--index", "/nowhere"]).stderr(stderr);
        assert_eq!(command.status().unwrap().code(), Some(1), "{kind}");
    }
}

/// Without a word about the signal from the starter of the job.
#[test]
fn a_limit_of_file_sizes_is_an_error_like_a_full_disk() {
    let set = OldAndNew::new(3000, 60, 3);
    set.build(&set.old).ok();
    let old = set.answers();
    let binary = env!("CARGO_BIN_EXE_millrace");
    let script = "ulimit -f 64; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", binary, "build", "--quiet", "-w", "2", "--index"])
        .args([&set.index(), &set.new])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("File too large"), "{message}");
    set.assert_tidy("after a limit of files");
    assert!(set.answers() == old);
}

fn make_pipe(path: &std::path::Path) -> bool {
    Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success())
}

#[test]
fn a_pipe_in_the_place_of_an_index_file_is_refused() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let generation = crate::support::generation(&set.index());
    let mut names: Vec<_> = crate::support::files(&set.index()).into_keys().collect();
    names.retain(|name| !name.contains("LOCK"));
    for path in names.iter().map(|name| generation.join(name)).chain([set.index().join("CURRENT")])
    {
        if !path.exists() {
            continue;
        }
        let kept = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        if !make_pipe(&path) {
            return println!("skipped: pipes cannot be made here");
        }
        for job in ["query", "info"] {
            let job = millrace(args![job, "--index", set.index()]).stdin("one\n");
            if path.ends_with("manifest.json") || path.ends_with("CURRENT") {
                fails_soon(job).says("expected a plain file, found a pipe");
            } else {
                // `info` opens no more than it needs.
                let mut job = job;
                let mut child = job.spawn();
                drop(child.stdin.take());
                ends_soon(&mut child, "a job");
            }
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, kept).unwrap();
    }
    set.assert_tidy("with its files again");
}

#[test]
fn a_check_beside_a_build_knows_that_it_lives() {
    let set = OldAndNew::new(60, 20, 1);
    set.build(&set.old).ok();
    let mut build = set.build("-".as_ref()).args(["--format", "jsonl"]);
    let mut child = build.spawn();
    let stdin = child.stdin.take();
    let start = std::time::Instant::now();
    while !set.index().join("gen-000002").exists() {
        assert!(start.elapsed().as_secs() < 60, "the build does not begin");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let check = || millrace(args!["check", "--index", set.index()]);
    let outcome = check().ok().says("a job is writing to this index").says("sound: ");
    assert!(!outcome.stderr.contains("died"), "{outcome:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    check().ok().says("gen-000002 is left from a job that died");
}

#[test]
fn an_index_amid_its_own_input_is_no_input() {
    let scratch = Scratch::new();
    let notes = scratch.path("notes");
    scratch.write("notes/a.jsonl", ONE);
    scratch.write("notes/b.txt", "a note");
    for generation in 1..4 {
        let build = |index: &str, input: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
            command.current_dir(&notes).args(["build", "-w", "1", "--index", index, input]);
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (status, message) = build("idx", ".");
        assert_eq!(status, Some(0), "{message}");
        assert_eq!(message.contains("idx: this is an index and no input"), generation > 1);
        let told = info(&notes.join("idx"));
        assert_eq!((&told["generation"], &told["documents"]), (&generation.into(), &2.into()));
        for named in ["idx", "idx/CURRENT", "../notes/idx"] {
            let (status, message) = build("idx", named);
            assert_eq!(status, Some(1), "{message}");
            assert!(message.contains("it cannot be input"), "{message}");
        }
        // As the input of another index it is passed over too.
        let (status, message) = build("../other", ".");
        assert_eq!(status, Some(0), "{message}");
        assert_eq!(info(&scratch.path("other"))["documents"], 2);
    }
}

#[test]
fn what_cannot_be_read_in_a_folder_is_skipped_and_counted() {
    let scratch = Scratch::new();
    scratch.write("in/a.jsonl", ONE);
    symlink("nowhere", scratch.path("in/b.jsonl")).unwrap();
    let secret = scratch.write("in/c.jsonl", ONE);
    let closed = scratch.path("in/closed");
    fs::create_dir(&closed).unwrap();
    for path in [&secret, &closed] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o0)).unwrap();
    }
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(scratch.path(""), everybody.clone()).unwrap();
    let index = scratch.path("index");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
        // The superuser may read everything.
        command.uid(65534).gid(65534).args(["build", "-w", "1", "--index"]).arg(&index);
        command.arg(scratch.path("in")).args(more).output()
    };
    let Ok(output) = run(&[]) else {
        return println!("skipped: only the superuser can become somebody else");
    };
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    for told in ["b.jsonl: dangling link: ", "c.jsonl: unreadable file: ", "closed: unreadable f"] {
        assert!(message.contains(told), "{message}");
    }
    let manifest = crate::support::generation(&index).join("manifest.json");
    let manifest: serde_json::Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    let skipped = &manifest["statistics"]["skipped"];
    let expected = serde_json::json!({
        "dangling link": 1, "unreadable file": 1, "unreadable folder": 1,
    });
    assert_eq!(skipped, &expected);
    let output = run(&["--strict"]).unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("3 files cannot be read, the first of them "), "{message}");
    assert_eq!(info(&index)["generation"], 1);
    fs::set_permissions(&closed, everybody).unwrap();
}

#[test]
fn control_characters_of_a_name_are_shown() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = scratch.write("c.tsv", "a\u{1b}[2Jb\u{202e}c\u{9b}d\twater mill\n");
    millrace(args!["build", "--index", index, input]).ok();
    let shown = millrace(args!["show", "--index", index, "--docid", "0"]).ok();
    let text = shown.text();
    let head = text.split("\n\n").next().unwrap();
    assert!(head.contains("name      a\\u{1b}[2Jb\\u{202e}c\\u{9b}d\n"), "{head:?}");
}

/// A frame with a window of 2^`window_log` bytes whose header does not tell the size of its
/// content.
fn long_frame(window_log: u32, content: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(window_log).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// What is indexed does not depend on the memory: a window is read, or the job fails and says what
/// it needs.
#[test]
fn a_zstd_file_with_a_long_window_is_read_or_refused() {
    let scratch = Scratch::new();
    let document = |i: usize| format!("{{\"id\":\"d{i}\",\"text\":\"water mill number {i}\"}}\n");
    for file in 0..4 {
        // The second frame needs more than the first.
        let parts = [file * 500..file * 500 + 200, file * 500 + 200..(file + 1) * 500];
        let [one, two] = parts.map(|range| range.map(document).collect::<String>());
        let bytes = [long_frame(20, one.as_bytes()), long_frame(27, two.as_bytes())].concat();
        scratch.write(format!("in/{file}.jsonl.zst"), bytes);
    }
    let index = scratch.path("index");
    let build = |memory: &str| {
        millrace(args![
            "build",
            "-w",
            "2",
            "--memory",
            memory,
            "--index",
            index,
            scratch.path("in")
        ])
    };
    for memory in ["1G", "4G"] {
        build(memory).ok();
        assert_eq!(info(&index)["documents"], 2000);
        assert_eq!(info(&index)["skipped"], serde_json::json!({}));
    }
    let outcome =
        build("64M").fails(1).says("needs a window of 128 MiB; give the build a memory of ");
    let least = outcome.stderr.split("a memory of ").nth(1).unwrap();
    build(least.split(' ').next().unwrap()).ok();
    assert_eq!(info(&index)["documents"], 2000);
    let too_large = [&b"\x28\xb5\x2f\xfd\x00\x90"[..], &[0; 100]].concat();
    let input = scratch.write("2g.jsonl.zst", too_large);
    let build = millrace(args!["build", "--format", "jsonl", "--index", index, input]).fails(1);
    build.says("window of 256 MiB").says("the largest that is read has 128 MiB");
    assert_eq!(info(&index)["generation"], 3);
}

fn documents(index: &std::path::Path) -> u64 {
    info(index)["documents"].as_u64().unwrap()
}

fn records(count: usize) -> String {
    (0..count).map(|i| format!("{{\"id\":\"d{i}\",\"text\":\"water mill {i}\"}}\n")).collect()
}

#[test]
fn empty_and_cut_input_leaves_the_live_generation() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let build = |more: &[std::ffi::OsString]| {
        millrace(args!["build", "-w", "2", "--index", index]).args(more)
    };
    let good = scratch.write("good.jsonl", records(1000));
    build(&args![good]).ok();
    let whole = crate::support::gzip(records(20_000).as_bytes(), 1);
    let cut = scratch.write("cut.jsonl.gz", &whole[..whole.len() / 3]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0xff;
    let damaged = scratch.write("damaged.jsonl.gz", flipped);
    let garbage = scratch.write("garbage.jsonl.gz", [&whole[..], b"garbage"].concat());
    let zstd = crate::support::zstd(records(20_000).as_bytes(), 1);
    let zstd = scratch.write("cut.jsonl.zst", &zstd[..zstd.len() / 3]);
    for input in [&cut, &damaged, &garbage, &zstd] {
        let outcome = build(&args![good, input]).fails(1).says("--allow-cut");
        outcome.says(input.to_str().unwrap()).says("nothing was published");
    }
    let empty = scratch.write("empty.jsonl", "");
    let nothing = scratch.write("nothing.jsonl.gz", crate::support::gzip(b"", 1));
    let note = scratch.write("empty.txt", "");
    for input in [&empty, &nothing, &note] {
        build(&args![good, input]).fails(1).says("--allow-empty").says(input.to_str().unwrap());
        build(&args![input]).fails(1).says("--allow-empty");
    }
    build(&args!["-"]).fails(1).says("-: this input is empty");
    build(&args!["--format", "jsonl", "-"]).fails(1).says("-: this input is empty");
    let told = info(&index);
    assert_eq!((&told["generation"], &told["documents"]), (&1.into(), &1000.into()));
    // What is there is taken by who says so, and a note in a folder may be empty.
    build(&args!["--allow-cut", cut]).ok().says("cut short");
    let some = documents(&index);
    assert!(some > 1000 && some < 20_000, "{some}");
    scratch.write("notes/a.txt", "");
    scratch.write("notes/b.txt", "a note");
    build(&args![scratch.path("notes")]).ok();
    assert_eq!(documents(&index), 2);
    build(&args!["--allow-empty", empty]).ok();
    assert_eq!(documents(&index), 0);
}

#[test]
fn too_many_broken_records_or_too_few_documents_are_not_published() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let build = |more: &[&str], input: &std::path::Path| {
        millrace(args!["build", "-w", "2", "--index", index]).args(more).arg(input)
    };
    let broken = |count: usize| records(100) + &"[]\n".repeat(count);
    let few = scratch.write("few.jsonl", broken(5));
    build(&["--max-skipped", "4"], &few).fails(1).says("5 of 105 records are broken, more than 4");
    build(&["--max-skipped", "4.7%"], &few).fails(1).says("more than 4.7%");
    build(&["--max-skipped", "5", "--min-documents", "101"], &few).fails(1).says("fewer than 101");
    assert!(!index.join("CURRENT").exists());
    build(&["--max-skipped", "5%", "--min-documents", "90%"], &few).ok();
    let fewer = scratch.write("fewer.jsonl", records(89));
    let outcome = build(&["--min-documents", "90%"], &fewer).fails(1);
    outcome.says("89 documents, fewer than 90 (90% of the 100 before): nothing was published");
    build(&["--min-documents", "89%"], &fewer).ok();
    assert_eq!((documents(&index), &info(&index)["generation"]), (89, &2.into()));
    for wrong in ["-1", "101%", "x"] {
        build(&[&format!("--max-skipped={wrong}")], &few).fails(2).says("found `");
    }
    // What a format leaves out on purpose is not broken.
    let page = |status: u16| {
        let content = format!("HTTP/1.1 {status} x\r\nContent-Type: text/html\r\n\r\n<p>mill");
        let length = content.len();
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {length}\r\n\r\n{content}\r\n\r\n"
        )
    };
    let crawl = scratch.write("crawl.warc", [page(200), page(404), page(500)].concat());
    build(&["--max-skipped", "0"], &crawl).ok();
    assert_eq!(info(&index)["skipped"], serde_json::json!({"HTTP status": 2}));
}

#[test]
fn older_generations_are_kept_and_come_back() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let build = |count: usize, more: &[&str]| {
        let input = scratch.write("in.jsonl", records(count));
        millrace(args!["build", "-w", "1", "--index", index]).args(more).arg(input).ok();
    };
    let rollback = |more: &[&str]| millrace(args!["rollback", "--index", index]).args(more);
    rollback(&[]).fails(1).says("no index");
    build(1, &[]);
    rollback(&[]).fails(1).says("no generation before 1 is kept; no other generation is");
    build(2, &[]);
    build(3, &[]);
    rollback(&[]).ok().says("generation 2 is live; generation 3 is kept");
    assert_eq!(documents(&index), 2);
    millrace(args!["check", "--index", index]).ok().says("sound");
    let answer = millrace(args!["query", "--index", index]).stdin("mill\n").ok();
    assert_eq!(answer.text().lines().count(), 2);
    rollback(&["--to", "gen-000003"]).ok();
    assert_eq!(documents(&index), 3);
    rollback(&["--to", "1"]).fails(1).says("generation 1 is not kept; kept are 2");
    build(4, &["--keep", "2"]);
    rollback(&["--to", "2"]).ok();
    // A failed build leaves all of them.
    millrace(args!["build", "--index", index, scratch.path("missing")]).fails(1);
    rollback(&["--to", "4"]).ok();
    build(5, &["--keep", "0"]);
    rollback(&[]).fails(1).says("no other generation is");
    assert_eq!(documents(&index), 5);
}

#[test]
fn a_job_that_fails_writes_its_report() {
    let scratch = Scratch::new();
    let report = scratch.path("report.json");
    let index = scratch.path("index");
    let read = || -> serde_json::Value {
        let told = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        fs::remove_file(&report).unwrap();
        told
    };
    let bad = scratch.write("bad.jsonl", "not json\n[1]\n");
    let missing = scratch.path("missing");
    for (job, more, why) in [
        ("build", args!["--index", index, bad].to_vec(), "not a JSON object"),
        ("query", args!["--index", index].to_vec(), "no index"),
        ("merge", args!["--index", index].to_vec(), "no index"),
        ("info", args!["--index", missing].to_vec(), "no index"),
        ("rollback", args!["--index", missing].to_vec(), "no index"),
        ("check", args!["--index", missing].to_vec(), "no index"),
    ] {
        millrace([job]).args(more).args(args!["--report", report]).fails(1);
        let told = read();
        assert_eq!(told["job"], job);
        let text = told.to_string();
        assert!(text.contains(why) && told["seconds"].is_number(), "{job}: {text}");
        assert!(told["failed"] == true || job == "check", "{text}");
    }
}

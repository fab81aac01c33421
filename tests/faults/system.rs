//! Edges: names that would steer a terminal, messages that nobody reads, files that are cut or rot
//! while they are open, disks that are full, and systems that give no thread, close no folder or
//! tell a time that cannot be written.

use crate::support::run_path;
use crate::support::*;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn lines(numbers: std::ops::Range<u32>) -> String {
    let line = |n| format!("{{\"id\": \"d{n}\", \"contents\": \"mill {n} race\"}}\n");
    numbers.map(line).collect()
}

fn build(scratch: &Scratch) -> PathBuf {
    let source = scratch.write("docs/a.jsonl", lines(0..200));
    let index = scratch.path("idx");
    millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "2", source]).ok();
    index
}

fn run_file(index: &Path, kind: &str) -> PathBuf {
    run_path(index, 0, kind)
}

#[test]
fn names_of_files_steer_no_terminal() {
    let scratch = Scratch::new();
    let name = "docs/\u{1b}]0;t\u{7}\u{9b}2J\u{202e}.jsonl";
    scratch.write(name, lines(0..9) + "{\n");
    let index = scratch.path("idx");
    let built = millrace(args!["build", "--index", &index, "-w", "1", scratch.path("docs")]).ok();
    let dumped = millrace(args!["dump", "--index", &index, "--format", "tsv", "documents"]).ok();
    let missing = millrace(args!["build", "--index", &index, scratch.path("\u{1b}[2J")]).fails(1);
    // A job file may have any name, and fields may; the command is told too.
    let info = millrace(args!["info", "--index", &index]).ok();
    assert!(
        info.text().contains("input            ") && info.text().contains("made  "),
        "{info:?}"
    );
    let texts = [built.stderr, dumped.text().to_string(), missing.stderr, info.text().to_string()];
    for text in &texts {
        let steers = |c: char| c != '\n' && c != '\t' && c.is_control() || c == '\u{202e}';
        assert!(!text.contains(steers), "{text:?}");
        assert!(text.contains("\\u{1b}"), "{text:?}");
    }
}

/// A query job that is asked for a document by its number, and answers line by line.
fn queries(index: &Path, stderr: Stdio) -> (Child, impl FnMut(&mut Child, u32) -> String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
        .args(args!["query", "--index", index, "-k", "3", "-w", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let ask = move |child: &mut Child, document: u32| {
        writeln!(child.stdin.as_mut().unwrap(), "{document}").unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line
    };
    (child, ask)
}

fn said(child: &mut Child) -> String {
    std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

#[test]
fn a_file_that_is_cut_under_its_map_is_named() {
    let scratch = Scratch::new();
    for kind in ["postings", "names", "ends"] {
        let index = build(&scratch);
        let (mut child, mut ask) = queries(&index, Stdio::piped());
        assert!(ask(&mut child, 7).contains(" d7 "));
        let file = run_file(&index, kind);
        std::fs::File::options().write(true).open(&file).unwrap().set_len(0).unwrap();
        assert_eq!(ask(&mut child, 7), "");
        assert_eq!(wait(&mut child, kind), Some(1));
        let said = said(&mut child);
        let expected = format!("{}: the file was cut short", file.display());
        assert!(said.contains(&expected), "{kind}: {said}");
    }
}

/// Some 9 and 31 bytes long, in no order.
fn long_or_short(n: u32) -> String {
    let hash = (n ^ n >> 5).wrapping_mul(0x85eb_ca6b);
    let digits = if (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35) >> 31 == 0 { 8 } else { 30 };
    format!("d{n:0digits$}")
}

/// An index whose names and the rests of their ends are in more blocks than one of 64 KiB, and the
/// number of the last document.
fn build_blocks(scratch: &Scratch) -> (PathBuf, u32) {
    let last = 79_999;
    let line =
        |n| format!("{{\"id\": \"{}\", \"contents\": \"mill {n} race\"}}\n", long_or_short(n));
    let source = scratch.write("docs/a.jsonl", (0..=last).map(line).collect::<String>());
    let index = scratch.path("idx");
    millrace(args!["build", "--index", &index, "--memory", "64M", "-w", "2", source]).ok();
    let rests = run_file(&index, "ends").metadata().unwrap().len() - 32 * 80_000 / 128;
    assert!(rests > 66_000, "{rests} bytes of rests");
    (index, last)
}

/// Where the last byte of the name of a document of the first block lies, whose names all begin
/// with five zeros.
fn last_byte(n: u32) -> u64 {
    64 + 6 + (0..=n).map(|n| long_or_short(n).len() as u64 - 6).sum::<u64>() - 1
}

/// A block of names is verified before the first of them is read, so that no answer has another
/// name.
#[test]
fn names_that_rot_while_they_are_open_are_no_answer() {
    let scratch = Scratch::new();
    let (index, last) = build_blocks(&scratch);
    let named = |n: u32| format!(" {} ", long_or_short(n));
    // The name of document 7 and what tells its place; the last of each are of other documents.
    let names = ("names", [last_byte(7), 64, last_byte(6), 64 + 9 * 900]);
    let ends = ("ends", [64 + 6, 64 + 7, 64 + 5, 64 + 900]);
    for (kind, places) in [names, ends] {
        for (number, place) in places.into_iter().enumerate() {
            let (mut child, mut ask) = queries(&index, Stdio::piped());
            assert!(ask(&mut child, last).contains(&named(last)));
            // What was read once is not verified again.
            let was_read = number == 3;
            assert!(!was_read || ask(&mut child, 7).contains(&named(7)));
            let file = run_file(&index, kind);
            let open = std::fs::File::options().read(true).write(true).open(&file).unwrap();
            let mut byte = [0];
            open.read_exact_at(&mut byte, place).unwrap();
            open.write_all_at(&[byte[0] ^ 1], place).unwrap();
            assert!(ask(&mut child, last).contains(&named(last)));
            let answer = ask(&mut child, 7);
            drop(child.stdin.take());
            if was_read {
                assert!(answer.contains(&named(7)), "{kind} {place}: {answer}");
                assert_eq!(wait(&mut child, kind), Some(0));
            } else {
                assert_eq!(answer, "", "{kind} {place}");
                assert_eq!(wait(&mut child, kind), Some(1));
                let said = said(&mut child);
                let expected = format!("{}: byte 64: expected 65472 bytes with", file.display());
                assert!(said.contains(&expected), "{kind}: {said}");
            }
            open.write_all_at(&byte, place).unwrap();
        }
    }
}

/// All forms have their names from one place.
#[test]
fn no_form_of_an_answer_has_a_name_that_rotted() {
    let scratch = Scratch::new();
    let (index, last) = build_blocks(&scratch);
    for form in ["text", "jsonl", "tsv", "trec"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
            .args(args!["query", "--index", &index, "-w", "2", "--format", form])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        writeln!(stdin, "{last}").unwrap();
        let mut line = String::new();
        while !line.contains(&long_or_short(last)) {
            line.clear();
            assert!(answers.read_line(&mut line).unwrap() > 0, "{form}");
        }
        let file = run_file(&index, "names");
        let open = std::fs::File::options().read(true).write(true).open(&file).unwrap();
        let mut digit = [0];
        open.read_exact_at(&mut digit, last_byte(7)).unwrap();
        assert_eq!(&digit, b"7");
        open.write_all_at(b"8", last_byte(7)).unwrap();
        stdin.write_all(b"7\n").unwrap();
        drop(stdin);
        let rest = std::io::read_to_string(answers).unwrap();
        assert!(!rest.contains("00008"), "{form}: {rest}");
        assert_eq!(wait(&mut child, form), Some(1));
        let said = said(&mut child);
        assert!(said.contains("names: byte 64: expected 65472 bytes with checksum"), "{said}");
        open.write_all_at(b"7", last_byte(7)).unwrap();
    }
}

/// What `CURRENT` leads to nowhere by one changed digit may be beside it: nothing is removed.
#[test]
fn a_current_that_leads_nowhere_costs_no_generation() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let live = generation(&index);
    let name = std::fs::read(index.join("CURRENT")).unwrap();
    scratch.write("idx/CURRENT", "gen-000009\n");
    let source = scratch.path("docs/a.jsonl");
    let built = args!["build", "--index", &index, source];
    for job in
        [&built[..], &args!["merge", "--index", &index], &args!["rollback", "--index", &index]]
    {
        millrace(job)
            .fails(1)
            .says("CURRENT: byte 4: expected the number of a generation whose folder is there");
        assert!(live.is_dir());
    }
    std::fs::write(index.join("CURRENT"), name).unwrap();
    millrace(args!["check", "--index", &index]).ok();
}

/// Nobody reads the messages of a job, which fill their pipe; a signal ends it all the same.
#[test]
fn a_job_whose_messages_nobody_reads_hears_signals() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let broken = "{\"query\": 7, \"k\": \"x\"}\n".repeat(20_000);
    for signal in ["-TERM", "-INT"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_millrace"))
            .args(args!["query", "--index", &index, "-w", "2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let text = broken.clone();
        let writer = std::thread::spawn(move || _ = stdin.write_all(text.as_bytes()));
        // The pipe is full when a line more than it holds was refused; the job stands then.
        let unread = child.stderr.take().unwrap();
        while rustix::io::ioctl_fionread(&unread).unwrap() < 60_000 {
            assert_eq!(child.try_wait().unwrap(), None, "the job has ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = if signal == "-TERM" { 143 } else { 130 };
        assert_eq!(wait(&mut child, signal), Some(status));
        writer.join().unwrap();
    }
}

/// Wherever storage fails, the message tells whether the new generation is live.
#[cfg(debug_assertions)]
#[test]
fn a_failure_behind_the_rename_says_what_is_live() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let job = |fault: &str| {
        let source = scratch.path("docs/a.jsonl");
        let args = args!["build", "--index", &index, "--memory", "64M", "-w", "1", source];
        millrace(args).env("MILLRACE_FAULT", fault).run()
    };
    let mut behind = 0;
    for back in 1..=30 {
        // A job removes what the ones before have left, so that no two have to do as much.
        let counted = job("count").stderr;
        let count = counted.lines().find_map(|line| line.strip_prefix("storage operations: "));
        let operation = count.unwrap().parse::<usize>().unwrap() - back;
        let before = generation(&index);
        let outcome = job(&format!("eio@{operation}"));
        let is_live = generation(&index) != before;
        let says = outcome.stderr.contains(" is live, but a step after that failed: ");
        assert_eq!(says, is_live && outcome.status == Some(1), "{operation}: {outcome:?}");
        behind += usize::from(says);
        assert!(is_live || outcome.status == Some(1), "{operation}: {outcome:?}");
    }
    assert!(behind > 0);
}

#[test]
fn a_report_is_whole_or_not_there() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let report = scratch.path("report.json");
    std::fs::write(&report, "{}").unwrap();
    let full = "ulimit -f 0; exec \"$@\"";
    let job = args![full, "sh", env!("CARGO_BIN_EXE_millrace"), "query", "--index", &index];
    let rest = args!["--query", "mill", "--report", &report];
    let ended = Command::new("sh").arg("-c").args(job.into_iter().chain(rest)).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(String::from_utf8_lossy(&ended.stderr).contains("writing the report"), "{ended:?}");
    assert!(!report.exists(), "a part of a report is none");
    let source = scratch.path("docs/a.jsonl");
    let lost = scratch.path("nowhere/report.json");
    let built = millrace(args!["build", "--index", &index, "--report", lost, source]).fails(1);
    built.says("generation 2 is live, but failed: writing the report");
}

#[test]
fn a_secret_that_all_may_read_is_warned_of() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let secret = scratch.write("secret", "0123456789abcdef0123456789abcdef");
    for (mode, warns) in [(0o644, true), (0o604, true), (0o640, false), (0o600, false)] {
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(mode)).unwrap();
        let hosts = scratch.write("hosts", "127.0.0.1:1\n127.0.0.1:2\n");
        let asked = args!["query", "--index", &index, "--hostfile", hosts, "-p", "1", "-n", "2"];
        let rest = args!["--secret", &secret, "--wait", "1", "--query", "mill"];
        let outcome = millrace(asked.into_iter().chain(rest)).run();
        let said = outcome.stderr.contains("every user of this machine may read this secret");
        assert_eq!(said, warns, "{mode:o}: {outcome:?}");
    }
}

/// A source that became a pipe is not waited for.
#[test]
fn show_opens_plain_files_only() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    let source = scratch.path("docs/a.jsonl");
    std::fs::remove_file(&source).unwrap();
    assert!(Command::new("mkfifo").arg(&source).status().unwrap().success());
    let shown = millrace(args!["show", "--index", &index, "d7"]).run();
    assert_eq!(shown.status, Some(1), "{shown:?}");
    assert!(shown.stderr.contains("expected a plain file, found a pipe"), "{shown:?}");
}

/// All that the patterns of a rebuild match belongs to its index.
#[test]
fn sources_inside_of_the_index_are_none() {
    let scratch = Scratch::new();
    let index = build(&scratch);
    scratch.write("idx/own/a.jsonl", lines(0..3));
    for (place, paths) in [("idx", "idx/own/*"), ("idx", "idx"), ("new", "new/*")] {
        scratch.write("new/a.jsonl", lines(0..3));
        let keys = "[build]\nmemory = \"64M\"\nworkers = 1\ngpus = \"none\"\n";
        let text = format!("index = \"{place}\"\n[[input]]\npaths = [\"{paths}\"]\n{keys}");
        let job = scratch.write("job.toml", text);
        for more in ["--once", "--from-nothing", "--dry-run"] {
            let outcome = millrace(args!["rebuild", &job, more]).run();
            assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
            if more != "--dry-run" {
                assert_eq!(outcome.status, Some(1), "{outcome:?}");
                assert!(outcome.stderr.contains("no document in 0 bytes of the input"));
            }
        }
    }
    millrace(args!["check", "--index", &index]).ok();
    millrace(args!["build", "--index", &index, scratch.path("idx/own")]).fails(1);
}

/// Calls of the C library that fail, or tell another time, by variables of the environment.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
int closedir(DIR *dir) {
    int (*real)(DIR *) = dlsym(RTLD_NEXT, "closedir");
    static int closed;
    int done = real(dir);
    const char *nth = getenv("SHIM_CLOSEDIR");
    if (nth && (atoi(nth) < 0 || __sync_fetch_and_add(&closed, 1) == atoi(nth))) {
        errno = EIO;
        return -1;
    }
    return done;
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    static int started;
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    const char *most = getenv("SHIM_THREADS");
    if (most && __sync_fetch_and_add(&started, 1) >= atoi(most)) return EAGAIN;
    return real(t, a, f, x);
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(clock, time);
    const char *at = getenv("SHIM_CLOCK");
    if (at && clock == CLOCK_REALTIME) time->tv_sec = atoll(at);
    return done;
}
"#;

fn shim(scratch: &Scratch) -> Option<PathBuf> {
    let source = scratch.write("shim.c", SHIM);
    let library = scratch.path("shim.so");
    let made =
        Command::new("cc").args(args!["-shared", "-fPIC", "-o", &library, source, "-ldl"]).status();
    if made.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    println!("skipped: there is no C compiler");
    None
}

#[test]
fn a_system_that_does_not_do_its_part_is_no_panic() {
    let scratch = Scratch::new();
    let Some(shim) = shim(&scratch) else { return };
    let index = build(&scratch);
    let docs = scratch.path("docs");
    let keys = "[build]\nmemory = \"64M\"\nworkers = 2\ngpus = \"none\"\n[schedule]\ncron = \"0 3 * * *\"\n";
    let text = format!("index = \"own\"\n[[input]]\npaths = [\"docs/*\"]\n{keys}");
    let job = scratch.write("job.toml", text);
    let jobs = [
        Vec::from(args!["build", "--index", &index, "--memory", "64M", "-w", "2", &docs]),
        Vec::from(args![
            "query",
            "--index",
            &index,
            "-w",
            "2",
            "--query",
            "mill",
            "--report",
            scratch.path("r")
        ]),
        Vec::from(args!["check", "--index", &index]),
        Vec::from(args!["merge", "--index", &index]),
        Vec::from(args!["rebuild", &job, "--once"]),
        Vec::from(args!["rebuild", &job, "--status"]),
        Vec::from(args!["info", "--index", &index]),
    ];
    let faults = [("SHIM_CLOSEDIR", "-1")].into_iter();
    let threads = ["0", "1", "2", "3", "4", "5", "6", "8"].map(|most| ("SHIM_THREADS", most));
    // The last day that is known, and times behind it.
    let clocks = ["253402207200", "253402300799", "253402300800", "999999999999"];
    let clocks = clocks.map(|clock| ("SHIM_CLOCK", clock));
    for (fault, value) in faults.chain(threads).chain(clocks) {
        for job in &jobs {
            let outcome = millrace(job).env("LD_PRELOAD", &shim).env(fault, value).run();
            let what = format!("{fault}={value} {job:?}: {outcome:?}");
            assert!(matches!(outcome.status, Some(0 | 1)), "{what}");
            assert!(!outcome.stderr.contains("panicked"), "{what}");
            assert!(fault != "SHIM_CLOCK" || outcome.status == Some(0), "{what}");
            assert!(outcome.status == Some(0) || outcome.stderr.contains("millrace: "), "{what}");
        }
        millrace(args!["check", "--index", &index]).ok();
    }
}

/// A folder that cannot be closed fails a job with a word, and one that has published says so.
#[test]
fn a_folder_that_cannot_be_closed_hides_no_generation() {
    let scratch = Scratch::new();
    let Some(shim) = shim(&scratch) else { return };
    let index = scratch.path("idx");
    let before = scratch.path("before");
    let [a, b] = ["a", "b"].map(|name| scratch.write(format!("docs/{name}.jsonl"), lines(0..20)));
    let keys = "index = \"idx\"\n[[input]]\npaths = [\"docs/a.jsonl\"]\n[build]\nmemory = \"64M\"\nworkers = 1\ngpus = \"none\"\n[guard]\nmin_documents = 0\n";
    let job = scratch.write("job.toml", keys);
    let build = args!["build", "--index", &index, "--memory", "64M", "-w", "1", &a, &b].to_vec();
    let limit = |job: Job| job.env("MILLRACE_RUN_LIMIT", "1");
    (0..2).for_each(|_| drop(limit(millrace(&build).arg("--no-merge")).ok()));
    copy_folder(&index, &before);
    let current = || std::fs::read_to_string(index.join("CURRENT")).unwrap();
    let old = current();
    for job in [
        build,
        args!["merge", "--index", &index].to_vec(),
        args!["rollback", "--index", &index].to_vec(),
        args!["rebuild", &job, "--once"].to_vec(),
    ] {
        let mut published = 0;
        for nth in 0..16 {
            std::fs::remove_dir_all(&index).unwrap();
            copy_folder(&before, &index);
            let failing = millrace(&job).env("LD_PRELOAD", &shim);
            let outcome = failing.env("SHIM_CLOSEDIR", nth.to_string()).run();
            let what = format!("closedir {nth} of {job:?}: {outcome:?}");
            let is_other = current() != old;
            published += u32::from(is_other);
            match outcome.status {
                Some(0) => assert!(is_other, "{what}"),
                Some(1) if is_other => assert!(outcome.stderr.contains(" is live, but "), "{what}"),
                Some(1) => assert!(outcome.stderr.contains("closedir"), "{what}"),
                _ => panic!("{what}"),
            }
            assert!(!is_other || !outcome.stderr.contains("because of a bug"), "{what}");
            millrace(args!["check", "--index", &index]).ok();
        }
        assert!(published > 0, "{job:?}");
    }
}

//! Several processes build and answer as one does, and end together.

mod built;
mod damaged;
mod follows;
mod gone;
// Only debug builds have what makes them fail.
#[cfg(debug_assertions)]
mod killed;
mod meeting;
mod models;
#[cfg(debug_assertions)]
mod rebuilt;

use crate::support::*;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Everything that fails has to fail within this time.
const SOON: Duration = Duration::from_secs(30);

/// A host file with free ports of this machine.
pub(crate) struct Hosts {
    path: PathBuf,
    addresses: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(scratch: &Scratch, n: usize) -> Self {
        // A port is free again until its process listens: no other test may get it until then.
        static GIVEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let mut given = GIVEN.lock().unwrap();
        let first = given.len();
        while given.len() < first + n {
            let port = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = port.local_addr().unwrap().to_string();
            if !given.contains(&address) {
                given.push(address);
            }
        }
        let addresses = given[first..].to_vec();
        drop(given);
        let name = format!("hosts-{}", addresses[0].replace(':', "-"));
        Self { path: scratch.write(name, addresses.join("\n")), addresses }
    }

    /// Process `process` of a job; does not wait long for the others.
    pub(crate) fn job(&self, process: usize, args: &[OsString]) -> Job {
        self.job_waiting("20", process, args)
    }

    /// The same, for this many seconds.
    pub(crate) fn job_waiting(&self, seconds: &str, process: usize, args: &[OsString]) -> Job {
        let n = self.addresses.len().to_string();
        millrace(args)
            .args(["--wait", seconds, "-n", &n, "-p", &process.to_string(), "--hostfile"])
            .arg(&self.path)
    }
}

/// All processes of a job, running.
pub(crate) struct Running(Vec<(Child, String)>);

impl Running {
    pub(crate) fn start(jobs: impl IntoIterator<Item = Job>) -> Self {
        Self(
            jobs.into_iter().map(|mut job| (job.spawn(), format!("{:?}", job.command()))).collect(),
        )
    }

    /// Ends all of them at once.
    fn kill(self) {
        for (mut child, _) in self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Ends standard input of all, and waits for them.
    pub(crate) fn end(self) -> Vec<Outcome> {
        let running: Vec<_> = self
            .0
            .into_iter()
            .map(|(mut child, command)| {
                drop(child.stdin.take());
                std::thread::spawn(move || outcome(child, command))
            })
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    }

    /// Waits for all but `but` to end, which takes not long.
    fn end_soon(self, but: usize) -> Vec<Outcome> {
        let start = Instant::now();
        let mut running: Vec<_> = self.0.into_iter().map(Some).collect();
        // A dropped child is not killed; its streams are closed when the test ends.
        let (mut victim, command) = running[but].take().unwrap();
        let mut outcomes: Vec<_> =
            running.into_iter().flatten().map(|(child, command)| outcome(child, command)).collect();
        assert!(start.elapsed() < SOON, "{:?}: {outcomes:?}", start.elapsed());
        drop(victim.stdin.take());
        outcomes.insert(but, outcome(victim, command));
        outcomes
    }
}

fn outcome(mut child: Child, command: String) -> Outcome {
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    // It kills a process that never ends, which ends its streams too.
    let status = wait(&mut child, &command);
    let stderr = String::from_utf8(stderr.join().unwrap()).unwrap();
    Outcome::new(command, status, stdout.join().unwrap(), stderr)
}

/// Takes the next call, which comes soon.
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((line, _)) => {
                line.set_nonblocking(false).unwrap();
                return line;
            }
            Err(error) => assert!(start.elapsed() < 6 * SOON, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs all processes of a job, which have to succeed; returns what process 0 wrote.
#[track_caller]
pub(crate) fn together(scratch: &Scratch, n: usize, args: &[OsString]) -> Vec<u8> {
    let hosts = Hosts::new(scratch, n);
    let outcomes = Running::start((0..n).map(|process| hosts.job(process, args))).end();
    let mut results: Vec<_> = outcomes.into_iter().map(|o| o.expect_status(0).stdout).collect();
    assert!(results[1..].iter().all(Vec::is_empty), "process 0 alone writes");
    results.swap_remove(0)
}

/// Some files of unlike sizes, and queries for them.
fn collection(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let collection = Collection::new(3, 700, 25);
    let mut rest = &collection.docs[..];
    for (number, count) in [300, 10, 150, 1, 39, 200].into_iter().enumerate() {
        let (docs, more) = rest.split_at(count);
        scratch.write(format!("input/{number}.jsonl"), jsonl(docs));
        rest = more;
    }
    // Two terms that no shard has both of, whatever the shards are.
    scratch.write("input/00.tsv", "first\tonlyfirst common words\n");
    scratch.write("input/9.tsv", "last\tonlylast common words\nfirst\tcommon onlylast\n");
    let mut random = Random::new(5);
    let mut queries = String::from(
        "onlyfirst common\nonlyfirst onlylast\ncommon onlylast\nnowhere common\nnowhere\nthe\n",
    );
    // Enough for homes in every process.
    for _ in 0..250 {
        let words = 1 + random.below(4);
        queries += &format!("{}\n", collection.words.phrase(&mut random, words));
    }
    (scratch.path("input"), scratch.write("queries.txt", queries))
}

/// Answers without the times that they took.
fn without_times(answers: Vec<u8>) -> String {
    let text = String::from_utf8(answers).unwrap();
    text.lines().map(|line| line.rsplit_once(",\"us\":").map_or(line, |(line, _)| line)).fold(
        String::new(),
        |mut all, line| {
            all += line;
            all.push('\n');
            all
        },
    )
}

/// Compares the answers of indexes over `input` built by 2 and 3 processes with those of one built
/// by one.
fn assert_equal_answers(scratch: &Scratch, input: &Path, queries: &Path, ks: &[&str]) {
    let whole = scratch.path("whole");
    build(&whole, args![input]);
    for (n, workers) in [(2, "1"), (2, "2"), (3, "1"), (3, "2")] {
        let index = scratch.path(format!("index-{n}-{workers}"));
        let arguments = args!["build", "--quiet", "--index", index, "-w", workers, input];
        together(scratch, n, &arguments);
        let one = info(&whole);
        let several = info(&index);
        for number in [
            "documents",
            "terms",
            "postings",
            "tokens",
            "empty_documents",
            "inputs",
            "skipped",
            "duplicate_names",
        ] {
            assert_eq!(one[number], several[number], "{number}");
        }
        assert_eq!(several["processes"].as_array().unwrap().len(), n);
        millrace(args!["check", "--index", index]).ok();
        for (i, mode) in ["or", "and", "and-or"].into_iter().enumerate() {
            for (j, k) in ks.iter().enumerate() {
                let form = ["trec", "jsonl", "tsv"][(i + j) % 3];
                let ask = |index: &Path| {
                    args!["query", "--index", index, "--mode", mode, "-k", k, "--format", form]
                        .into_iter()
                        .chain(args!["-w", workers, "--batch", "7", queries])
                        // In some cases a range that begins and ends within shards.
                        .chain(args!["--docids", if i == j { ".." } else { "5..900" }])
                        .collect::<Vec<_>>()
                };
                let expected = without_times(millrace(ask(&whole)).ok().stdout);
                let found = without_times(together(scratch, n, &ask(&index)));
                assert!(expected.lines().count() > 1);
                let alone = without_times(millrace(ask(&index)).ok().stdout);
                assert_eq!(expected, alone, "{n} parts by one process, {mode}, k {k}");
                assert_eq!(expected, found, "{n} processes, {workers} workers, {mode}, k {k}");
            }
        }
    }
}

#[test]
fn answers_equal_those_of_one_process() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    // Of 100 each process is asked for a part.
    assert_equal_answers(&scratch, &input, &queries, &["1", "100", "2000"]);
}

#[test]
fn answers_equal_those_of_one_process_on_a_real_collection() {
    let Some(cisi) = shared("collections/cisi") else { return };
    let Some(cacm) = shared("collections/cacm") else { return };
    let scratch = Scratch::new();
    for (name, folder) in [("a", &cacm), ("b", &cisi)] {
        let corpus = std::fs::read(folder.join("corpus.jsonl")).unwrap();
        scratch.write(format!("input/{name}.jsonl"), corpus);
    }
    let queries = cisi.join("queries.tsv");
    assert_equal_answers(&scratch, &scratch.path("input"), &queries, &["10", "300"]);
}

/// By impacts, with bounds of blocks in each shard.
#[test]
fn vectors_of_several_processes_rank_as_those_of_one() {
    let scratch = Scratch::new();
    let input = scratch.write("vectors.jsonl", vectors_by_topics(6000));
    let queries = scratch.write("queries", "topic0 often\ntopic1 topic0\noften\n");
    let vectors = args!["--format", "vectors", "--factor", "1", input];
    let whole = scratch.path("whole");
    build(&whole, &vectors);
    let ask = |index: &Path, algorithm: &str| {
        let how = args!["--score", "impact", "--algorithm", algorithm, "-k", "100", queries];
        [&args!["query", "--index", index, "--format", "tsv"][..], &how].concat()
    };
    let expected = millrace(ask(&whole, "exhaustive")).ok().text().to_owned();
    assert_eq!(expected.lines().count(), 300);
    for n in [2, 3] {
        let index = scratch.path(format!("index-{n}"));
        let arguments = args!["build", "--quiet", "--index", index, "-w", "2"];
        together(&scratch, n, &[&arguments[..], &vectors].concat());
        millrace(args!["check", "--index", index]).ok();
        for algorithm in ["exhaustive", "blocks", "auto"] {
            let found = String::from_utf8(together(&scratch, n, &ask(&index, algorithm))).unwrap();
            assert_eq!(found, expected, "{n} processes, {algorithm}");
        }
    }
}

#[test]
fn as_many_processes_as_built_it() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let index = scratch.path("index");
    let whole = scratch.path("whole");
    together(&scratch, 3, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
    build(&whole, args![input]);
    let ask = |index: &Path| args!["query", "--index", index, "-w", "1", queries];
    let expected = millrace(ask(&whole)).ok().text().to_owned();
    for (index, holders) in [(&index, "3 processes"), (&whole, "1 process")] {
        let hosts = Hosts::new(&scratch, 2);
        for outcome in Running::start((0..2).map(|p| hosts.job(p, &ask(index)))).end() {
            outcome.expect_status(1).says(format!("built by {holders}")).says("2 processes");
        }
    }
    // What one process does with any index, and what others then find.
    let found = |n| String::from_utf8(together(&scratch, n, &ask(&index))).unwrap();
    assert_eq!(found(4), expected, "one has nothing");
    millrace(args!["bench", "queries", "--index", index, queries]).ok();
    let more = scratch.write("more.tsv", "more\tonlyfirst common onlymore\n");
    for index in [&index, &whole] {
        millrace(args!["delete", "--index", index, "last"]).ok();
        millrace(args!["update", "--index", index, more]).ok();
    }
    let expected = millrace(ask(&whole)).ok().text().to_owned();
    assert_eq!(millrace(ask(&index)).ok().text(), expected);
    assert_eq!(found(3), expected, "process 0 has the new run, behind those of the others");
    millrace(args!["merge", "--index", index]).ok();
    millrace(args!["check", "--index", index]).ok();
    assert_eq!(millrace(ask(&index)).ok().text(), expected);
}

/// All files below a folder but locks, with their bytes.
pub(crate) fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().is_file() && entry.file_name() != "LOCK")
        .map(|entry| (entry.path().to_path_buf(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

/// A reader of the answers that goes away ends all processes quietly.
#[test]
fn a_closed_output_ends_all_quietly() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let index = scratch.path("index");
    together(&scratch, 2, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
    let queries = std::fs::read(queries).unwrap().repeat(50);
    let queries = scratch.write("many", queries);
    let hosts = Hosts::new(&scratch, 2);
    let ask = args!["query", "--quiet", "--index", index, "-w", "1", queries];
    let mut running = Running::start((0..2).map(|process| hosts.job(process, &ask)));
    let first = &mut running.0[0].0;
    first.stdout.as_mut().unwrap().read_exact(&mut [0; 20]).unwrap();
    drop(first.stdout.take());
    let start = Instant::now();
    for (child, command) in &mut running.0 {
        assert_eq!(wait(child, command), Some(0), "{command}");
    }
    assert!(start.elapsed() < SOON);
}

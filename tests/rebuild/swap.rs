//! A running query job follows its index, and no answer is lost, repeated or wrong.

use super::Place;
use crate::support::*;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No wait is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The documents of a version: all have a word, and their lengths differ.
fn documents(version: usize) -> String {
    let line = |n: usize| {
        let more = "race ".repeat((n * 7 + version) % 11);
        format!("{{\"id\": \"v{version}-{n}\", \"contents\": \"mill {more}\"}}\n")
    };
    (0..20 + version % 3).map(line).collect()
}

/// Names and scores of an answer.
fn hits(answer: &Value) -> Vec<(String, String)> {
    let hit = |hit: &Value| (hit["name"].as_str().unwrap().into(), hit["score"].to_string());
    answer["hits"].as_array().unwrap().iter().map(hit).collect()
}

/// A query job, and what it says.
struct Stream {
    child: Child,
    answers: Receiver<Value>,
    said: Arc<Mutex<String>>,
}

/// Hands the lines of a stream on; ends with it.
fn lines(stream: ChildStdout) -> Receiver<Value> {
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                return;
            }
        }
    });
    answers
}

fn listen(stream: ChildStderr) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let all = said.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            *all.lock().unwrap() += &(line + "\n");
        }
    });
    said
}

impl Stream {
    fn start(index: &Path, more: &[&str]) -> Self {
        let asked =
            args!["query", "--index", index, "-w", "2", "--delay-ms", "1", "--format", "jsonl"];
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_millrace"))
            .args(asked)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = lines(child.stdout.take().unwrap());
        let said = listen(child.stderr.take().unwrap());
        Self { child, answers, said }
    }

    fn ask(&mut self, qid: &str) -> Value {
        writeln!(self.child.stdin.as_mut().unwrap(), "{qid}\tmill").unwrap();
        self.answers.recv_timeout(PATIENCE).unwrap()
    }

    /// Waits until the job has said something.
    fn hears(&self, text: &str) {
        let start = Instant::now();
        while !self.said.lock().unwrap().contains(text) {
            assert!(start.elapsed() < PATIENCE, "{text}: {}", self.said.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends the stream of queries, and the job.
    fn end(mut self) {
        drop(self.child.stdin.take());
        let start = Instant::now();
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return assert!(status.success(), "{}", self.said.lock().unwrap()),
                None if start.elapsed() > PATIENCE => {
                    _ = self.child.kill();
                    panic!("the job does not end");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

/// Queries come all the time; each answer is that of one version, and none is of an older one than
/// the answer before.
#[test]
fn a_stream_goes_on_over_twenty_rebuilds() {
    let place =
        Place::new("[guard]\nmin_documents = 0\n[keep]\ngenerations = 1\n[merge]\nruns = 4\n");
    let write = |version| {
        _ = std::fs::remove_dir_all(place.scratch.path("docs"));
        place.scratch.write("docs/a.jsonl", documents(version));
    };
    // What one job that is not running on says of the live generation.
    let expected = |qid: &str| {
        let asked = args!["query", "--index", place.index(), "-w", "1", "--format", "jsonl"];
        hits(&millrace(asked).stdin(format!("{qid}\tmill\n")).ok().json_lines()[0])
    };
    write(0);
    place.once();
    let mut versions = vec![expected("x")];
    let mut stream = Stream::start(&place.index(), &["--parallelism", "fgqp"]);
    let mut stdin = stream.child.stdin.take().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let asker = std::thread::spawn({
        let over = over.clone();
        move || {
            let mut asked = 0;
            while !over.load(Ordering::SeqCst) {
                for _ in 0..8 {
                    writeln!(stdin, "{asked}\tmill").unwrap();
                    asked += 1;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            asked
        }
    });
    let mut found = Vec::new();
    let mut generations = 0;
    for version in 1..=20 {
        write(version);
        let record = place.once();
        versions.push(expected("x"));
        stream.hears(&format!("generation {} is live", record["generation"]));
        // The old one may still be open for a query that was under way.
        let entries = std::fs::read_dir(place.index()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        generations = generations.max(names.filter(|name| name.starts_with("gen-")).count());
        found.extend(stream.answers.try_iter());
    }
    over.store(true, Ordering::SeqCst);
    let asked = asker.join().unwrap();
    while found.len() < asked {
        found.push(stream.answers.recv_timeout(PATIENCE).unwrap());
    }
    let mut version = 0;
    for (number, answer) in found.iter().enumerate() {
        assert_eq!(answer["qid"], number.to_string());
        let hits = hits(answer);
        while version < 20 && versions[version] != hits {
            version += 1;
        }
        assert_eq!(versions[version], hits, "query {number}");
    }
    assert!(generations <= 4, "{generations} generations lie there");
    assert!(stream.answers.recv_timeout(Duration::from_millis(50)).is_err());
    stream.end();
    // Nobody uses an old one any more.
    assert_eq!(place.once()["outcome"], "unchanged");
    let entries = std::fs::read_dir(place.index()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("gen-")).count(), 1);
}

/// A generation that cannot be opened is reported, and answers stay as they were; the next one is
/// used.
#[test]
fn what_cannot_be_opened_is_told_of() {
    let place = Place::new("[guard]\nmin_documents = 0\n[keep]\ngenerations = 1\n");
    place.scratch.write("docs/a.jsonl", documents(0));
    std::fs::remove_file(place.scratch.path("docs/b.jsonl")).unwrap();
    place.once();
    for (version, model) in [(1, "inter"), (2, "docp-pi"), (3, "docp-ui")] {
        let mut stream = Stream::start(&place.index(), &["--parallelism", model]);
        let before = hits(&stream.ask("a"));
        place.scratch.write("docs/a.jsonl", documents(version));
        let hidden = generation(&place.index());
        let text = std::fs::read_to_string(place.index().join("CURRENT")).unwrap();
        // What becomes live is no generation.
        let broken = place.index().join("gen-900000");
        std::fs::create_dir(&broken).unwrap();
        std::fs::write(broken.join("manifest.json"), "{}").unwrap();
        let next = place.index().join("CURRENT.tmp");
        std::fs::write(&next, "gen-900000\n").unwrap();
        std::fs::rename(&next, place.index().join("CURRENT")).unwrap();
        stream.hears("a new generation is not used");
        assert_eq!(hits(&stream.ask("b")), before, "{model}");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, place.index().join("CURRENT")).unwrap();
        std::fs::remove_dir_all(&broken).unwrap();
        let record = place.once();
        let id = stream.child.id().to_string();
        let hangup = std::process::Command::new("kill").args(["-HUP", &id]).status().unwrap();
        assert!(hangup.success());
        stream.hears(&format!("generation {} is live", record["generation"]));
        let after = hits(&stream.ask("c"));
        assert_ne!(after, before, "{model}");
        stream.end();
        assert_eq!(place.once()["outcome"], "unchanged");
        assert!(!hidden.exists());
    }
}

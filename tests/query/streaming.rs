//! A query job keeps pace with the programs at the other ends of its pipes.

use crate::support::fixture::Fixture;
use crate::support::*;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A query job at the other ends of pipes; its answers come line by line.
struct Conversation {
    child: std::process::Child,
    stdin: Option<std::process::ChildStdin>,
    answers: std::sync::mpsc::Receiver<String>,
}

impl Conversation {
    fn begin(mut job: Job) -> Self {
        let mut child = job.spawn();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, answers }
    }

    fn ask(&mut self, line: &str) -> Value {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
        match self.answers.recv_timeout(Duration::from_secs(20)) {
            Ok(answer) => serde_json::from_str(&answer).unwrap(),
            Err(_) => {
                self.child.kill().unwrap();
                panic!("no answer to `{line}` while standard input is open");
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        wait(&mut self.child, "query at the end of its input")
    }
}

#[test]
fn an_answer_comes_before_the_next_query_is_written() {
    let fixture = Fixture::new(25, 300);
    let queries = fixture.queries(250, 60);
    let expected: Vec<Value> =
        fixture.query(&["--format", "jsonl"]).stdin(queries.join("\n")).ok().json_lines();
    for workers in ["1", "2", "4"] {
        let job = fixture.query(&["--format", "jsonl", "-w", workers]);
        let mut talk = Conversation::begin(job);
        let start = Instant::now();
        for (query, expected) in queries.iter().zip(&expected) {
            let answer = talk.ask(query);
            assert_eq!(
                (&answer["query"], &answer["hits"]),
                (&expected["query"], &expected["hits"])
            );
        }
        // 60 times the delay of 5 ms is 0.3 s; the bound leaves room for a busy machine.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert_eq!(talk.end(), Some(0));
    }
}

#[test]
fn a_batch_waits_for_its_delay_and_no_longer() {
    let fixture = Fixture::new(26, 100);
    let job = fixture.query(&["--format", "jsonl", "--delay-ms", "700", "--batch", "2"]);
    let mut talk = Conversation::begin(job);
    talk.ask("warm\nup");
    talk.answers.recv_timeout(Duration::from_secs(20)).expect("the second of a full batch");
    let start = Instant::now();
    talk.ask("alone");
    assert!(start.elapsed() >= Duration::from_millis(600), "{:?}", start.elapsed());
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_reader_that_goes_ends_the_job_quietly() {
    let fixture = Fixture::new(27, 2000);
    let lines = fixture.queries(270, 20_000).join("\n");
    for workers in ["1", "3"] {
        let mut job = fixture.query(&["-w", workers]);
        let mut child = job.spawn();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = lines.clone().into_bytes();
        // The job may go while this writes.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.ends_with(" millrace\n"), "{line}");
        drop(stdout);
        assert_eq!(wait(&mut child, "query without a reader"), Some(0));
        writing.join().unwrap();
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        // Some of the words are operators elsewhere.
        assert!(
            stderr.lines().all(|line| line.contains("is searched for as words alone")),
            "{stderr}"
        );
    }
}

//! Queries of several processes follow their index.

use super::*;
use std::io::{BufRead, BufReader};

/// Builds an index of two processes whose documents have a word of their generation.
fn build(scratch: &Scratch, index: &Path, generation: usize) {
    let document = |number: usize| {
        format!(
            "{{\"id\": \"g{generation}d{number}\", \"text\": \"common word{generation} n{number}\"}}\n"
        )
    };
    for file in 0..4 {
        let text: String = (file * 50..(file + 1) * 50).map(document).collect();
        scratch.write(format!("in/{file}.jsonl"), text);
    }
    let input = scratch.path("in");
    together(scratch, 2, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
}

/// Every answer is of one generation, and later ones are of the next. Nothing is lost.
#[test]
fn queries_of_several_processes_move_to_new_generations() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    build(&scratch, &index, 1);
    let hosts = Hosts::new(&scratch, 2);
    let query =
        args!["query", "--index", index, "-w", "2", "--format", "tsv", "-k", "3", "--batch", "3"];
    let mut running = Running::start((0..2).map(|process| hosts.job(process, &query)));
    let first = &mut running.0[0].0;
    let mut stdin = first.stdin.take().unwrap();
    let mut answers = BufReader::new(first.stdout.take().unwrap()).lines();
    let mut asked = 0;
    let mut ask = |generation: usize| {
        for _ in 0..10 {
            writeln!(stdin, "q{asked}\tcommon n7").unwrap();
            asked += 1;
        }
        for _ in 0..30 {
            let line = answers.next().unwrap().unwrap();
            assert!(line.contains(&format!("\tg{generation}d")), "{generation}: {line}");
        }
    };
    ask(1);
    let mut messages = BufReader::new(running.0[0].0.stderr.take().unwrap()).lines();
    for generation in 2..5 {
        build(&scratch, &index, generation);
        let says = format!("generation {generation} is live");
        let start = Instant::now();
        while !messages.next().unwrap().unwrap().contains(&says) {
            assert!(start.elapsed() < SOON);
        }
        ask(generation);
    }
    drop(stdin);
    let running = running.0.into_iter().map(|(child, _)| child);
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(asked, 40);
}

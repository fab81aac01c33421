//! Measures each step of indexing on one core, on JSON lines in pieces of 1 MiB:
//!
//! - `scan`: tokens found and dropped, the floor of all that follows;
//! - `tally`: documents found, tokens, terms, postings, regrouped by trie collection;
//! - `append`: the groups of the collection appended to the dictionary of a run;
//! - `sort`: the terms of that run put in the order of the lexicon.
//!
//! `MILLRACE_BENCH_JSONL` names a file of JSON lines with `contents`; without it lines are
//! generated with Zipf-distributed words. Expected: `scan` above 1 GB/s, `tally` most of what is
//! left.

// What criterion's macros make is not documented.
#![allow(missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use millrace::inside::dictionary::ClosedTerms;
use millrace::inside::dictionary::Owners;
use millrace::inside::dictionary::Regroup;
use millrace::inside::dictionary::Tally;
use millrace::inside::dictionary::TermGroup;
use millrace::inside::dictionary::{RunDictionary, SortedRun};
use millrace::inside::input::JsonlParser;
use millrace::inside::input::{Document, DocumentSink, PieceView, Skip};
use millrace::inside::text::Analysis;
use millrace::inside::text::{Scanner, Stretches, TokenKey};
use std::hint::black_box;
use std::sync::Arc;

const BYTES: usize = 64 << 20;

fn lines() -> Vec<u8> {
    if let Some(path) = std::env::var_os("MILLRACE_BENCH_JSONL") {
        let mut bytes = std::fs::read(path).expect("MILLRACE_BENCH_JSONL names a readable file");
        bytes.truncate(BYTES);
        return bytes;
    }
    let mut seed = 1u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut out = Vec::new();
    while out.len() < BYTES {
        let mut text = String::new();
        for _ in 0..200 {
            // Zipf by inversion: the rank is exponential in a uniform number.
            let rank = (200_000f64.powf(next())) as u64;
            text += &format!(
                "w{:x}{} ",
                rank * 2654435761 % 1_000_003,
                "ing".repeat(rank as usize % 2)
            );
        }
        out.extend_from_slice(
            format!("{{\"id\":\"{}\",\"contents\":\"{text}\"}}\n", out.len()).as_bytes(),
        );
    }
    out
}

fn pieces(lines: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = lines;
    while rest.len() > 1 << 20 {
        let end = memchr::memchr(b'\n', &rest[1 << 20..]).map_or(rest.len(), |n| (1 << 20) + n + 1);
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

struct ToTally<'a>(&'a mut Tally);

impl DocumentSink for ToTally<'_> {
    fn document(&mut self, document: Document<'_>) {
        black_box(self.0.document(document.content.bytes()));
    }
    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

#[derive(Default)]
struct Count(u64);

impl Stretches for Count {
    fn keys(&mut self, keys: &[TokenKey], _: &[u32]) {
        keys.iter().for_each(|key| self.0 = self.0.wrapping_add(key[0] ^ key[1]));
    }
    fn long(&mut self, _: &[u8]) {}
    fn mixed(&mut self, _: &[u8]) {}
}

fn tally() -> Tally {
    Tally::new(Analysis::default(), Arc::new(Owners::in_turn(1)), 64 << 20)
}

fn parse(tally: &mut Tally, jsonl: &mut JsonlParser, pieces: &[&[u8]]) -> Vec<(u32, TermGroup)> {
    let mut groups = Vec::new();
    let mut first = 0;
    for bytes in pieces {
        jsonl.parse(PieceView { bytes, offset: 1, line: 1 }, &mut ToTally(tally));
        let documents = tally.documents();
        groups.extend(tally.finish().into_iter().map(|group| (first, group)));
        first += documents;
    }
    groups
}

fn run(groups: &[(u32, TermGroup)]) -> RunDictionary {
    let mut run = RunDictionary::default();
    for (first, group) in groups {
        run.append(group, *first);
    }
    run
}

fn steps(criterion: &mut Criterion) {
    let lines = lines();
    let pieces = pieces(&lines);
    let bytes: usize = pieces.iter().map(|p| p.len()).sum();
    let mut group = criterion.benchmark_group("build");
    group.throughput(Throughput::Bytes(bytes as u64)).sample_size(10);
    let mut scanner = Scanner::new();
    group.bench_function("scan", |b| {
        b.iter(|| {
            let mut count = Count::default();
            pieces.iter().for_each(|piece| scanner.scan(piece, &mut count));
            count.0
        });
    });
    let mut tally = tally();
    let mut jsonl = JsonlParser::new();
    group.bench_function("tally", |b| b.iter(|| parse(&mut tally, &mut jsonl, &pieces).len()));
    let groups = parse(&mut tally, &mut jsonl, &pieces);
    group.bench_function("append", |b| b.iter(|| run(&groups).terms()));
    group.bench_function("sort", |b| {
        let sort = |run| {
            let mut run = SortedRun::from(run);
            (run.advance(&mut Vec::new()).is_ok(), run)
        };
        b.iter_batched(|| run(&groups), sort, BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);

//! Measures how fast JSON lines are split into documents.
//!
//! Isolated: the parser alone, over pieces of 1 MiB that are in memory; its sink adds up the
//! lengths that it gets. Axes: each way of scanning that the processor has; against `serde_json`
//! with fields that borrow where they can (it also checks that strings are UTF-8, which is left to
//! the tokenizer here); and against a search for line feeds alone, as the bound. Collections:
//! generated lines with no escape, an escape each 100 bytes, and short lines; and the file that
//! `MILLRACE_BENCH_JSONL` names, up to 200 MB of it. Expected: AVX-512 near the bound and little
//! slower with escapes.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::Read;

use criterion::{BatchSize, Criterion, Throughput};
use millrace::inside::input::JsonlParser;
use millrace::inside::input::{Document, DocumentSink, PieceView, Skip};

const SAMPLE_BYTES: u64 = 200_000_000;
const GENERATED_BYTES: usize = 64 << 20;
const PIECE_BYTES: usize = 1 << 20;

#[derive(Debug, Default, PartialEq)]
struct Total {
    documents: u64,
    bytes: u64,
}

impl DocumentSink for Total {
    fn document(&mut self, document: Document<'_>) {
        self.documents += 1;
        self.bytes += black_box(document.content.bytes()).len() as u64;
    }

    fn skipped(&mut self, _: usize, line: u64, _: usize, reason: Skip) {
        panic!("line {line}: {reason}");
    }
}

#[derive(serde::Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default, alias = "contents")]
    text: Cow<'a, str>,
}

fn with_serde_json(pieces: &[&[u8]]) -> Total {
    let mut total = Total::default();
    for line in pieces.iter().flat_map(|piece| piece.split(|byte| *byte == b'\n')) {
        if !line.is_empty() {
            let record: Record<'_> = serde_json::from_slice(line).expect("the lines are records");
            black_box(record.id);
            total.documents += 1;
            total.bytes += black_box(record.text).len() as u64;
        }
    }
    total
}

/// Cuts at line ends.
fn pieces(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let about = bytes.len().min(PIECE_BYTES);
        let end = memchr::memrchr(b'\n', &bytes[..about]).map_or(bytes.len(), |feed| feed + 1);
        let (piece, rest) = bytes.split_at(end);
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// Lines whose text has `words` words, and a line break behind each 18th, if asked for.
fn generated(words: usize, breaks: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(GENERATED_BYTES + 4096);
    let mut number = 0u64;
    while out.len() < GENERATED_BYTES {
        out.extend_from_slice(format!("{{\"id\": \"d{number}\", \"text\": \"").as_bytes());
        for word in 0..words {
            let mixed = (number * 1000 + word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let length = 2 + (mixed >> 61) as usize;
            out.extend_from_slice(&b"information"[..length]);
            let line_end = breaks && (mixed >> 32).is_multiple_of(18);
            out.extend_from_slice(if line_end { b"\\n" } else { b" " });
        }
        out.extend_from_slice(b"\"}\n");
        number += 1;
    }
    out
}

fn sample() -> Option<Vec<u8>> {
    let path = std::env::var_os("MILLRACE_BENCH_JSONL")?;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).expect("MILLRACE_BENCH_JSONL names a file");
    file.take(SAMPLE_BYTES).read_to_end(&mut bytes).expect("the file can be read");
    let end = memchr::memrchr(b'\n', &bytes).map_or(bytes.len(), |feed| feed + 1);
    bytes.truncate(end);
    Some(bytes)
}

fn measure(criterion: &mut Criterion, name: &str, bytes: &[u8]) {
    let pieces = pieces(bytes);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(bytes.len() as u64)).sample_size(10);
    group.bench_function("line feeds", |b| {
        b.iter(|| {
            pieces
                .iter()
                .map(|p| memchr::memchr_iter(b'\n', p).map(black_box).count())
                .sum::<usize>()
        });
    });
    for (way, mut parser) in JsonlParser::all() {
        group.bench_function(way, |b| {
            b.iter_batched_ref(
                Total::default,
                |total| {
                    for piece in &pieces {
                        parser.parse(PieceView::whole(piece), total);
                    }
                    total.documents
                },
                BatchSize::PerIteration,
            );
        });
    }
    let mut ours = Total::default();
    for piece in &pieces {
        JsonlParser::new().parse(PieceView::whole(piece), &mut ours);
    }
    assert_eq!(ours, with_serde_json(&pieces), "both find the same");
    group.bench_function("serde_json", |b| b.iter(|| with_serde_json(&pieces)));
    group.finish();
}

fn jsonl(criterion: &mut Criterion) {
    measure(criterion, "plain", &generated(300, false));
    measure(criterion, "escapes", &generated(300, true));
    measure(criterion, "short", &generated(12, false));
    if let Some(bytes) = sample() {
        measure(criterion, "file", &bytes);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    jsonl(&mut criterion);
    criterion.final_summary();
}

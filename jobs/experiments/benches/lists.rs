//! Measures the inner loops of queries: reading blocks, AND and OR (all postings, MaxScore).
//!
//! Isolated: decoding and ranking from memory; no files, no parsing, no threads.
//! Axes: bits of a packed integer; lengths of the lists of a query; k.
//! Collection: 206,916 documents of log-uniform length, lists of postings spread evenly at random,
//! three of four term frequencies 1. Throughput of AND and OR counts all postings of the query's
//! lists, skipped ones too. Expected: MaxScore wins where one list is rare and k is small, and is
//! level with the exhaustive search elsewhere.

// What criterion's macros make is not documented.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use millrace::IdfKind;
use millrace::inside::codec::bp128;
use millrace::inside::index::{ListEncoder, ListView};
use millrace::inside::papers::ALGORITHMS;
use millrace::inside::query::Scratch;
use millrace::inside::query::TopK;
use millrace::inside::query::{Norms, RunTerm};
use millrace::inside::query::{and, exhaustive, max_score};
use millrace::inside::score::{Bm25, idf};
use millrace::inside::score::{BoundNorms, code_below};

const DOCUMENTS: u32 = 206_916;

/// A small generator of random numbers, so that every run measures the same lists.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 20
    }
}

fn length(docid: u32) -> u32 {
    20 << (Random(u64::from(docid) + 1).next() % 6)
}

fn norms() -> (Vec<f32>, BoundNorms) {
    let lengths: Vec<u32> = (0..DOCUMENTS).map(length).collect();
    let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>() / f64::from(DOCUMENTS);
    let mut norms = Vec::new();
    Bm25::default().norms(&lengths, mean, &mut norms);
    (norms, BoundNorms::new(&Bm25::default(), mean))
}

/// A list of `df` postings: df, bytes, data.
fn list(df: u32, random: &mut Random) -> (u32, u64, Vec<u8>) {
    let mut docids: Vec<u32> = Vec::new();
    while docids.len() < df as usize {
        let missing = df as usize - docids.len();
        docids.extend((0..missing).map(|_| (random.next() % u64::from(DOCUMENTS)) as u32));
        docids.sort_unstable();
        docids.dedup();
    }
    let mut encoder = ListEncoder::new();
    for docid in docids {
        let tf = 1 + (random.next() | 1 << 24).trailing_zeros() / 2;
        encoder.push(docid, tf, code_below(length(docid)));
    }
    let (df, bytes) = encoder.finish();
    let mut data = std::mem::take(encoder.payload());
    data.extend([0; 64]);
    (df, bytes, data)
}

/// 64 blocks: 32 KiB of integers, so that the caches are not what is measured.
fn blocks(c: &mut Criterion) {
    const COUNT: usize = 64;
    let mut random = Random(1);
    for (name, sum) in [("unpack", false), ("unpack_docids", true)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements((COUNT * bp128::BLOCK) as u64));
        for width in [1u8, 2, 4, 7, 8, 12, 16, 20, 25, 26, 32] {
            let size = bp128::bytes(width);
            let bytes: Vec<u8> = (0..COUNT * size + 64).map(|_| random.next() as u8).collect();
            let mut out = [0; bp128::BLOCK];
            group.bench_function(BenchmarkId::from_parameter(width), |b| {
                b.iter(|| {
                    for block in 0..COUNT {
                        let bytes = black_box(&bytes[block * size..]);
                        if sum {
                            bp128::unpack_docids(bytes, width, 5, &mut out);
                        } else {
                            bp128::unpack(bytes, width, &mut out);
                        }
                        black_box(&mut out);
                    }
                });
            });
        }
    }
    let mut group = c.benchmark_group("pack");
    group.throughput(Throughput::Elements((COUNT * bp128::BLOCK) as u64));
    for width in [1u8, 4, 8, 16, 25, 32] {
        let values: [u32; bp128::BLOCK] = std::array::from_fn(|_| random.next() as u32);
        let mut out = Vec::new();
        group.bench_function(BenchmarkId::from_parameter(width), |b| {
            b.iter(|| {
                out.clear();
                for _ in 0..COUNT {
                    bp128::pack(black_box(&values), width, &mut out);
                }
            });
        });
    }
}

fn queries(c: &mut Criterion) {
    let mut random = Random(7);
    let (norms, bounds) = norms();
    let norms = Norms { documents: &norms, bounds: &bounds, statics: &[], globals: &[] };
    let shapes: [&[u32]; 9] = [
        &[100, 100],
        &[1_000, 1_000],
        &[1_000, 50_000],
        &[10_000, 50_000],
        &[50_000, 50_000],
        &[1_000, 10_000, 50_000],
        &[20_000, 30_000, 50_000],
        &[100, 1_000, 10_000, 100_000],
        &[100_000],
    ];
    for dfs in shapes {
        let lists: Vec<_> = dfs.iter().map(|&df| list(df, &mut random)).collect();
        let terms: Vec<RunTerm<'_>> = lists
            .iter()
            .map(|(df, bytes, data)| RunTerm {
                weight: Bm25::default().weight(idf(DOCUMENTS, *df, IdfKind::Lucene), 1).into(),
                list: ListView::new(*df, *bytes, data).ok(),
            })
            .collect();
        let name: Vec<String> = dfs.iter().map(u32::to_string).collect();
        let name = name.join("+");
        for mode in ["and", "small-adaptive", "or", "max_score", "wand", "bmw"] {
            let mut group = c.benchmark_group(mode);
            group.throughput(Throughput::Elements(dfs.iter().map(|&df| u64::from(df)).sum()));
            for k in [10, 1000] {
                let mut top = TopK::new();
                let mut scratch = Scratch::new();
                let handed = ALGORITHMS.iter().find(|algorithm| algorithm.name() == mode);
                let mut handed = handed.map(|algorithm| algorithm.begin());
                let mut hits = Vec::new();
                group.bench_function(BenchmarkId::new(&name, k), |b| {
                    b.iter(|| {
                        top.reset(k);
                        let terms = black_box(&terms[..]);
                        let top = &mut top;
                        let scratch = &mut scratch;
                        let run = scratch.run(terms, 0..DOCUMENTS, norms);
                        let searched = match (mode, &mut handed) {
                            (_, Some(handed)) => handed.search(&run, top, scratch),
                            ("and", _) => and::search(&run, top, scratch),
                            ("or", _) => exhaustive::search(&run, top, scratch),
                            _ => max_score::search(&run, top, scratch),
                        };
                        searched.expect("the lists are sound");
                        top.take(&mut hits);
                        black_box(hits.len())
                    });
                });
            }
        }
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(800))
        .configure_from_args();
    blocks(&mut criterion);
    queries(&mut criterion);
    criterion.final_summary();
}

//! Measures how fast words become stems on one core, on the distinct words of a text:
//!
//! - `english`: our own Snowball English;
//! - `rust_stemmers`: the same stems by the other implementation, which is its oracle;
//! - `porter`: the older algorithm.
//!
//! `MILLRACE_BENCH_TEXT` names a text of which up to 100,000 distinct words are taken; without it
//! words are made of syllables and suffixes. They come in the order of their hashes, so that the
//! branches are as hard to foresee as in a text. Expected: `english` takes about a fifth of
//! the time of `rust_stemmers`, less where few stems must be allocated.

// What criterion's macros make is not documented.
#![allow(missing_docs)]

use std::collections::HashSet;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use millrace::inside::text::Stemmer;
use millrace::inside::text::for_each_token;
use rust_stemmers::Algorithm;
use twox_hash::XxHash3_64;

const MOST_WORDS: usize = 100_000;

const SYLLABLES: [&str; 16] = [
    "ba", "con", "der", "ex", "fla", "gen", "in", "ker", "lo", "mi", "pro", "rat", "sy", "tri",
    "und", "ver",
];

const SUFFIXES: [&str; 20] = [
    "", "", "", "", "s", "s", "ed", "ing", "ly", "y", "e", "er", "ation", "ational", "ness",
    "ment", "ity", "able", "ized", "7",
];

fn words() -> Vec<String> {
    let mut words = HashSet::new();
    if let Some(path) = std::env::var_os("MILLRACE_BENCH_TEXT") {
        let text = std::fs::read(path).expect("MILLRACE_BENCH_TEXT names a readable file");
        for_each_token(&text, |token| {
            if words.len() < MOST_WORDS {
                words.insert(token.to_string());
            }
        });
    } else {
        for a in SYLLABLES {
            for b in SYLLABLES {
                for c in SYLLABLES {
                    words.extend(SUFFIXES.map(|suffix| format!("{a}{b}{c}{suffix}")));
                }
            }
        }
    }
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_unstable_by_key(|word| XxHash3_64::oneshot(word.as_bytes()));
    words
}

fn stemmers(criterion: &mut Criterion) {
    let words = words();
    eprintln!("{} words", words.len());
    let mut group = criterion.benchmark_group("stemmer");
    group.throughput(Throughput::Elements(words.len() as u64));
    group.bench_function("english", |b| {
        b.iter(|| words.iter().for_each(|word| _ = black_box(Stemmer::ENGLISH.stem(word))));
    });
    let snowball = rust_stemmers::Stemmer::create(Algorithm::English);
    group.bench_function("rust_stemmers", |b| {
        b.iter(|| words.iter().for_each(|word| _ = black_box(snowball.stem(word))));
    });
    group.bench_function("porter", |b| {
        b.iter(|| words.iter().for_each(|word| _ = black_box(Stemmer::PORTER.stem(word))));
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    stemmers(&mut criterion);
    criterion.final_summary();
}

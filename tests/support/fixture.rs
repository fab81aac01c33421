//! A collection and its index, and what queries answer from it.

use super::{Collection, Job, Scratch, args, build, millrace};
use serde_json::Value;
use std::path::PathBuf;

/// A collection, its index, and what it should answer.
pub(crate) struct Fixture {
    pub(crate) scratch: Scratch,
    pub(crate) index: PathBuf,
    pub(crate) collection: Collection,
}

impl Fixture {
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let scratch = Scratch::new();
        let collection = Collection::new(seed, count, 40);
        let index = scratch.path("index");
        build(&index, args![scratch.write("c.jsonl", collection.jsonl())]);
        Self { scratch, index, collection }
    }

    pub(crate) fn query(&self, more: &[&str]) -> Job {
        millrace(args!["query", "--quiet", "--index", self.index]).args(more)
    }

    /// Queries of all kinds, without line ends or tabs.
    pub(crate) fn queries(&self, seed: u64, count: usize) -> Vec<String> {
        self.collection.queries(seed, count)
    }
}

/// Docid and score of every hit of an answer in JSON.
pub(crate) fn hits(answer: &Value) -> Vec<(u32, f32)> {
    let hits = answer["hits"].as_array().unwrap();
    let number = |hit: &Value| hit["docid"].as_u64().unwrap() as u32;
    hits.iter().map(|hit| (number(hit), hit["score"].as_f64().unwrap() as f32)).collect()
}

/// Docids, and scores to the bit.
pub(crate) fn bits(hits: &[(u32, f32)]) -> Vec<(u32, u32)> {
    hits.iter().map(|&(docid, score)| (docid, score.to_bits())).collect()
}

//! Lines that are no queries, and the summary of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A line that is no query.
#[derive(Clone, Debug, thiserror::Error)]
#[error("line {line} of the queries (byte {offset}): {why}")]
pub struct Refused {
    /// From 1.
    pub line: u64,
    pub offset: u64,
    /// Its number among the queries, from 1, by which it would be named.
    pub number: u64,
    /// What is wrong with it.
    pub why: Arc<str>,
}

/// Counts refused lines.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<AtomicU64>);

impl Refusals {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// None if there were none.
    pub fn summary(&self) -> Option<String> {
        let lines = match self.0.load(Ordering::Relaxed) {
            0 => return None,
            1 => "one line was not a query".to_string(),
            n => format!("{n} lines were not queries"),
        };
        Some(format!("{lines}; all others are answered"))
    }
}

//! Lines that are no queries, and the summary of them.

use crate::crew::lock;
use std::sync::{Arc, Mutex};

/// A line that is no query.
#[derive(Clone, Debug, thiserror::Error)]
#[error("line {line} of the queries (byte {offset}): {why}")]
pub struct Refused {
    /// From 1.
    pub line: u64,
    /// Its offset in the stream.
    pub offset: u64,
    /// Its number among the queries, from 1, by which it would be named.
    pub number: u64,
    /// What is wrong with it.
    pub why: Arc<str>,
}

/// A name that two queries have, where each has to have its own.
#[derive(Clone, Debug, thiserror::Error)]
#[error("two queries have the name {0}, so that their answers cannot be told apart")]
pub struct RepeatedName(pub(super) String);

/// The number of refused lines and the message of the first.
#[derive(Clone, Debug, Default)]
pub struct Refusals(Arc<Mutex<(u64, Option<String>)>>);

impl Refusals {
    pub fn add(&self, refused: &Refused) {
        let mut all = lock(&self.0);
        all.0 += 1;
        all.1.get_or_insert_with(|| refused.to_string());
    }

    pub fn summary(&self) -> Option<String> {
        let all = lock(&self.0);
        let first = all.1.as_ref()?;
        let lines = match all.0 {
            1 => "a line was no query".to_string(),
            n => format!("{n} lines were no queries"),
        };
        Some(format!("{lines}, all others are answered: {first}"))
    }
}

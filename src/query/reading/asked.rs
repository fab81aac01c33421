//! A query as it was asked.

#![warn(missing_docs)]

use crate::query::candidates::GivenDocids;
use crate::query::wanted::{Algorithm, Mode, Wanted};

/// A query as read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Its number or name.
    pub qid: String,
    /// Its text.
    pub text: String,
    /// The most hits, if the query says it.
    pub k: Option<usize>,
    /// Its mode, if the query says it.
    pub mode: Option<Mode>,
    /// Its algorithm, if the query says it.
    pub algorithm: Option<Algorithm>,
    /// The documents that are ranked, if not all.
    pub candidates: Option<GivenDocids>,
}

impl Query {
    /// A query with the default wishes.
    pub fn new(qid: impl Into<String>, text: impl Into<String>) -> Self {
        Self { qid: qid.into(), text: text.into(), ..Self::default() }
    }

    /// What it asks for; `usual` has the defaults.
    pub fn wanted(&self, usual: &Wanted) -> Wanted {
        Wanted {
            k: self.k.unwrap_or(usual.k),
            mode: self.mode.unwrap_or(usual.mode),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
        }
    }
}

/// A line with its end has fewer bytes.
pub(crate) const MOST_LINE_BYTES: usize = 1 << 20;

/// The name in a line, or its number.
pub(super) fn named(qid: &str, number: u64) -> String {
    let qid = qid.trim();
    if qid.is_empty() { number.to_string() } else { qid.to_string() }
}

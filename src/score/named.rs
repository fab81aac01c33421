//! Which scores are there? A score says what a posting adds to its document's, by a weight of the term
//! and a norm of the document, and what the document begins with.
//!
//! ```text
//! document = ((static + score 1) + score 2) + ...      terms in the order of the query; static of BM25 is 0
//! ```
//!
//! The term's weight is made when a query is planned and the static part when an index is opened, so that
//! the loops over postings are the same for all.

use super::wang::Wang;

/// A score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Score {
    /// BM25 ([`bm25`](super::bm25)).
    #[default]
    Bm25,
    /// PageRank and BM25 ([`wang`](super::wang)).
    Wang(Wang),
}

impl Score {
    /// The names of all, as users write them.
    pub const NAMES: [&str; 2] = ["bm25", "wang"];

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bm25 => Self::NAMES[0],
            Self::Wang(_) => Self::NAMES[1],
        }
    }
}

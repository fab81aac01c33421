//! A phrase of a query.

use crate::score::weight::Weight;

/// Words that stand together. Its score is that of a term which documents have as often as they
/// have the phrase, and whose idf is the sum of those of its words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Phrase {
    /// Of each word its place, from 0 on, and the number of its term in the plan; places between
    /// are those of stop words, where any word may stand.
    pub words: Vec<(u32, usize)>,
    /// Further words that may stand between them, in all.
    pub slop: u32,
    pub ordered: bool,
    pub weight: Weight,
}

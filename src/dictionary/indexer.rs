//! What the owners of trie collections take, and what one that takes tokens has done.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// Postings: the counts of each piece.
    Postings,
    /// Tokens, one by one: an indexer that was handed in.
    Tokens,
    /// Texts, in which a device finds the words.
    Texts,
}

/// What one indexer has done in a whole job.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexerWork {
    pub owner: u32,
    pub blocks: u64,
    pub tokens: u64,
    /// Seconds in which it, or its device, had something to do.
    pub busy: f64,
    /// Seconds of its worker's time.
    pub worked: f64,
    /// Seconds in which it had nothing to do before its last block, waiting for parsers, and for
    /// the runs that it closed to be encoded.
    pub waited: f64,
    /// By split of a block's first piece: bytes of text, and busy seconds.
    pub splits: BTreeMap<u32, (u64, f64)>,
}

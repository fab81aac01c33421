//! Indexers that take tokens, on the CPU and on a device alike for the operator that feeds them:
//! blocks of consecutive pieces go in, runs come out.

use super::closed::{ClosedError, ClosedTerms, Wake};
use super::stream::TokenGroup;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// Postings: the counts of each piece.
    Postings,
    /// Tokens, one by one, as in the paper `wei11`.
    Tokens,
    /// Texts, in which a device finds the words.
    Texts,
}

impl Indexing {
    /// Times its bytes, what a parser needs besides for a piece in the worst case, where no word
    /// that is short occurs twice.
    pub(crate) fn parser_times(self) -> u64 {
        if self == Self::Tokens { 40 } else { 26 }
    }
}

/// Consecutive pieces of one run that an indexer takes together, collection by collection over all
/// of them: each with the docid of its first document, counted from the run's first.
pub type ParsedBlock = Vec<(TokenGroup, u32)>;

/// One indexer: it owns some trie collections for the life of the job, and has one run open. None
/// of its functions waits for a device.
pub trait TokenIndexer {
    /// Takes the next block of the open run, and may be done with it later.
    fn append(&mut self, block: ParsedBlock) -> Result<(), ClosedError>;

    /// Does, or polls, a part of the work that was taken; returns the blocks that are not done.
    fn advance(&mut self) -> Result<usize, ClosedError>;

    /// The most blocks that it takes at a time.
    fn most_blocks(&self) -> usize;

    /// Closes the run, all blocks of which are done, and opens the next, which gets no block before
    /// the closed one has given its last term and is dropped.
    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError>;

    /// From now on `wake` is called when another block is done. If this returns false, it is not
    /// called: the caller has to poll.
    fn wake_by(&mut self, _wake: Wake) -> bool {
        false
    }
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

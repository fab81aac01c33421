//! What does an indexer that takes tokens have to do? The same on the CPU and on a device, so that
//! the operator which feeds it knows neither: blocks of consecutive pieces go in, runs come out.

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

/// Consecutive pieces of one run that an indexer takes together, collection by collection over all
/// of them: each with the docid of its first document, counted from the run's first.
pub type ParsedBlock = Vec<(TokenGroup, u32)>;

/// One indexer: it owns some trie collections for the life of the job, and has one run open.
///
/// None of its functions waits for a device.
pub trait TokenIndexer {
    /// Takes the next block of the open run. The indexer may be done with it later.
    fn append(&mut self, block: ParsedBlock) -> Result<(), ClosedError>;

    /// Does, or looks after, a part of the work that was taken; returns how many blocks are not
    /// done.
    fn advance(&mut self) -> Result<usize, ClosedError>;

    /// Blocks that it takes at a time; the operator keeps others back.
    fn most_blocks(&self) -> usize;

    /// Closes the run, all blocks of which are done, and opens the next. The next run gets no block
    /// before the closed one has given its last term and is dropped.
    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError>;

    /// From now on `wake` is called when a block is done that was not before. False if nobody calls
    /// it: who waits has to look.
    fn wake_by(&mut self, _wake: Wake) -> bool {
        false
    }
}

/// What one indexer has done, once the job has ended.
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
    /// By split of a block's first piece: bytes of text, and seconds in which it was busy.
    pub splits: BTreeMap<u32, (u64, f64)>,
}

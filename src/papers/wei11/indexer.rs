//! Indexers that take tokens, on the CPU and on a device alike for the lane that feeds them: blocks
//! of consecutive pieces go in, runs come out.

use super::stream::TokenGroup;
use crate::dictionary::closed::{ClosedError, ClosedShare, Wake};

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

    /// Goes on closing the run, all blocks of which are done: its next share, or nothing while that
    /// is not there yet. The last share opens the next run, which gets no block before.
    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError>;

    /// From now on `wake` is called when another block is done, or more of a closed run is there.
    /// If this returns false, it is not called: the caller has to poll.
    fn wake_by(&mut self, _wake: Wake) -> bool {
        false
    }
}

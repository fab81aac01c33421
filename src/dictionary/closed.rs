//! The dictionary of a closed run: term after term in the order of the lexicon, with the postings
//! of each; some come from a device later.

use std::error::Error;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    Term,
    /// The next term is not there yet: ask again later. Nothing has moved.
    Later,
    End,
}

pub type ClosedError = Box<dyn Error + Send + Sync>;

/// Wakes those that wait for a dictionary: called from any thread, and more often than needed.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// Sort key of a term, which decides nearly all comparisons: the trie collection in the upper two
/// bytes, then the first six of the suffix. Terms with the same key are compared by their suffixes.
#[inline]
pub(crate) fn order_key(collection: u16, suffix: &[u8]) -> u64 {
    let mut key = [0u8; 8];
    key[..2].copy_from_slice(&collection.to_be_bytes());
    let n = suffix.len().min(6);
    key[2..2 + n].copy_from_slice(&suffix[..n]);
    u64::from_be_bytes(key)
}

/// One owner's terms of a closed run, by trie collection, then by suffix.
pub trait ClosedTerms {
    /// Moves on to the next term and replaces `postings` by its postings: docids counted from the
    /// run's first document, in the form of [`folded`](crate::codec::folded), a list's first gap
    /// counted from -1. Never waits.
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<Advance, ClosedError>;

    /// The current term, as (trie collection, suffix). Panics unless the last answer of
    /// [`advance`](Self::advance) other than [`Advance::Later`] was [`Advance::Term`].
    fn term(&self) -> (u16, &[u8]);

    /// From now on `wake` is called when it makes sense to ask again after [`Advance::Later`]. If
    /// this returns false, it is not called: the caller has to poll.
    fn wake_by(&mut self, _wake: Wake) -> bool {
        false
    }
}

//! In which form does a closed run leave its dictionary? Term after term in the order of the
//! lexicon, with the postings of each; some of them only when a device has sent them.

use std::error::Error;
use std::sync::Arc;

/// Where [`ClosedTerms::advance`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    Term,
    /// The next term is not there yet: ask again later. Nothing has moved.
    Later,
    /// Behind the last term.
    End,
}

pub type ClosedError = Box<dyn Error + Send + Sync>;

/// Wakes who waits for a dictionary: called from any thread, and more often than needed.
pub(crate) type Wake = Arc<dyn Fn() + Send + Sync>;

/// A number by which terms are sorted first, which decides nearly all comparisons: the trie
/// collection in the upper two bytes, then the first six of the suffix. Terms with the same one are
/// compared by their suffixes.
#[inline]
pub(crate) fn order_key(collection: u16, suffix: &[u8]) -> u64 {
    let mut key = [0u8; 8];
    key[..2].copy_from_slice(&collection.to_be_bytes());
    let n = suffix.len().min(6);
    key[2..2 + n].copy_from_slice(&suffix[..n]);
    u64::from_be_bytes(key)
}

/// One owner's terms of a closed run, in the order of the lexicon: by trie collection, then by
/// suffix.
pub trait ClosedTerms {
    /// Moves on to the next term and puts its postings in the place of what `postings` holds:
    /// docids counted from the run's first document, in the form of
    /// [`folded`](crate::codec::folded), a list's first gap counted from -1. Never waits.
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<Advance, ClosedError>;

    /// The term that it stands at, as (trie collection, suffix).
    ///
    /// # Panics
    /// If the last answer of [`advance`](Self::advance) that was not [`Advance::Later`] was not
    /// [`Advance::Term`].
    fn term(&self) -> (u16, &[u8]);

    /// From now on `wake` is called when it is worth asking again after [`Advance::Later`]. False
    /// if nobody calls it: who waits has to look.
    fn wake_by(&mut self, _wake: Wake) -> bool {
        false
    }
}

//! The dictionary of a closed run: term after term in the order of the lexicon, with the postings
//! of each, in shares that several workers can encode side by side.

use super::shared::SharedTerms;
use std::error::Error;
use std::sync::Arc;

pub type ClosedError = Box<dyn Error + Send + Sync>;

/// Wakes those that wait for a device: called from any thread, and more often than needed.
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

/// Terms of one owner in a closed run, by trie collection, then by suffix.
pub trait ClosedTerms: Send {
    /// Moves on to the next term, if there is one, and replaces `postings` by its postings: docids
    /// counted from the run's first document, in the form of [`folded`](crate::codec::folded), a
    /// list's first gap counted from -1. Never waits.
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError>;

    /// Replaces `positions` by those of the current term, if the run has them: of each posting the
    /// first position, then the gaps between the others, as vbytes.
    fn positions(&self, _positions: &mut Vec<u8>) {}

    /// The current term, as (trie collection, suffix). Panics unless the last answer of
    /// [`advance`](Self::advance) was true.
    fn term(&self) -> (u16, &[u8]);

    /// If the first term has others of its collection before it: the collection, and what these are.
    fn behind(&self) -> Option<(u16, &SharedTerms)> {
        None
    }
}

/// Neighbouring terms of an owner in a closed run, behind those of the shares before it: all of
/// some trie collections, or such that know what they are [`behind`](ClosedTerms::behind), so that
/// each share is encoded by itself.
pub struct ClosedShare {
    pub terms: Box<dyn ClosedTerms>,
    /// The owner has no more of the run.
    pub last: bool,
}

impl ClosedShare {
    pub fn whole(terms: impl ClosedTerms + 'static) -> Self {
        Self { terms: Box::new(terms), last: true }
    }
}

/// Bytes of terms and postings in a share that another worker may encode: about two chunks of
/// lists, a few milliseconds of work.
pub(crate) const SHARE_BYTES: u64 = 512 << 10;

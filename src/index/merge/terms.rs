//! Merges the terms of several runs: a heap over the lexicons' streams.

use crate::index::error::IndexError;
use crate::index::lexicon::{LexiconStream, TermEntry};

const KEY_SUFFIX_BYTES: usize = 13;

/// A stream's present term in short, big-endian: two bytes of collection, the first 13 bytes of the
/// suffix, zero where it has none, and the suffix's length, or 14 if that is more. The order of
/// keys is that of their terms; of equal keys only those that end with 14 can have different terms.
type TermKey = u128;

#[derive(Debug)]
pub(super) struct TermMerge {
    streams: Vec<LexiconStream>,
    /// Streams that have a term, the least on top; equal terms in the order of the streams.
    heap: Vec<(TermKey, usize)>,
    key: TermKey,
    suffix: Vec<u8>,
}

impl TermMerge {
    pub(super) fn new(mut streams: Vec<LexiconStream>) -> Result<Self, IndexError> {
        let mut heap = Vec::with_capacity(streams.len());
        for (source, stream) in streams.iter_mut().enumerate() {
            if stream.advance()? {
                heap.push((key(stream), source));
            }
        }
        let mut merge = Self { streams, heap, key: 0, suffix: Vec::new() };
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    /// Takes the next term; false when there is none.
    pub(super) fn take_term(&mut self) -> bool {
        let Some(&(key, source)) = self.heap.first() else { return false };
        self.key = key;
        self.suffix.clear();
        self.suffix.extend_from_slice(self.streams[source].term().suffix);
        true
    }

    /// The terms and postings of each run so far.
    pub(super) fn seen(&self) -> Vec<(u64, u64)> {
        self.streams.iter().map(LexiconStream::seen).collect()
    }

    pub(super) fn taken(&self) -> (u16, &[u8]) {
        ((self.key >> 112) as u16, &self.suffix)
    }

    /// The first run that still has the taken term, and its list.
    #[inline]
    pub(super) fn source_of_term(&self) -> Option<(usize, TermEntry)> {
        let &(key, source) = self.heap.first()?;
        let term = self.streams[source].term();
        let equal = key == self.key && (is_whole(key) || term.suffix == self.suffix);
        equal.then_some((source, term.list))
    }

    /// Moves that run to its next term.
    pub(super) fn advance(&mut self) -> Result<(), IndexError> {
        let Some(top) = self.heap.first_mut() else { return Ok(()) };
        let stream = &mut self.streams[top.1];
        if stream.advance()? {
            top.0 = key(stream);
        } else {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(child, least) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        let a = self.heap[a];
        let b = self.heap[b];
        if a.0 != b.0 || is_whole(a.0) {
            return a < b;
        }
        let suffix = |source: usize| self.streams[source].term().suffix;
        (suffix(a.1), a.1) < (suffix(b.1), b.1)
    }
}

#[inline]
fn key(stream: &LexiconStream) -> TermKey {
    let term = stream.term();
    let mut bytes = [0; 16];
    bytes[..2].copy_from_slice(&term.collection.to_be_bytes());
    let length = term.suffix.len().min(KEY_SUFFIX_BYTES);
    bytes[2..2 + length].copy_from_slice(&term.suffix[..length]);
    bytes[15] = term.suffix.len().min(KEY_SUFFIX_BYTES + 1) as u8;
    u128::from_be_bytes(bytes)
}

#[inline]
fn is_whole(key: TermKey) -> bool {
    key as u8 <= KEY_SUFFIX_BYTES as u8
}

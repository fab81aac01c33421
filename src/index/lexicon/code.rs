//! Codes terms into blocks, wherever these come to lie in a file.

use crate::codec::vbyte;
use crate::index::format::{DIRECTORY_ENTRIES, LEXICON_BLOCK, MAX_TERM_BYTES};

/// Lays out terms in blocks that begin with each collection and every 16 terms. Memory: one term.
#[derive(Debug)]
pub(crate) struct TermCoder {
    /// The last term, if there is one.
    collection: u16,
    suffix: Vec<u8>,
    /// Terms of the last block; 0 if no term has come.
    in_block: usize,
}

impl Default for TermCoder {
    fn default() -> Self {
        Self { collection: 0, suffix: Vec::with_capacity(MAX_TERM_BYTES), in_block: 0 }
    }
}

impl TermCoder {
    /// Goes on behind a term, with which its collection has this many `terms`.
    pub(crate) fn behind(collection: u16, suffix: &[u8], terms: usize) -> Self {
        let in_block = terms - terms.saturating_sub(1) / LEXICON_BLOCK * LEXICON_BLOCK;
        Self { collection, suffix: suffix.to_vec(), in_block }
    }

    /// Whether the next term, of this collection, begins a block.
    #[inline]
    pub(crate) fn begins_block(&self, collection: u16) -> bool {
        self.in_block.is_multiple_of(LEXICON_BLOCK) || collection != self.collection
    }

    /// Appends the next term to `out`, which has a list of `df` postings in `bytes` bytes, and, in
    /// a run with positions, this many bytes of these. Terms rise by collection, then by the
    /// suffix's bytes; an error says why this cannot be a term.
    #[inline]
    pub(crate) fn code(
        &mut self,
        collection: u16,
        suffix: &[u8],
        df: u32,
        bytes: u64,
        positions: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        if usize::from(collection) >= DIRECTORY_ENTRIES - 1 {
            return Err("there is no such trie collection");
        }
        if suffix.len() > MAX_TERM_BYTES {
            return Err("a term has at most 255 bytes");
        }
        if df == 0 {
            return Err("a list has at least one posting");
        }
        if self.in_block > 0 && (collection, suffix) <= (self.collection, self.suffix.as_slice()) {
            return Err("terms come in rising order");
        }
        let shared = if self.begins_block(collection) {
            self.collection = collection;
            self.in_block = 0;
            0
        } else {
            self.suffix.iter().zip(suffix).take_while(|(a, b)| a == b).count()
        };
        let rest = &suffix[shared..];
        // Both are at most 255.
        out.extend_from_slice(&[shared as u8, rest.len() as u8]);
        out.extend_from_slice(rest);
        vbyte::put(u64::from(df), out);
        vbyte::put(bytes, out);
        positions.into_iter().for_each(|bytes| vbyte::put(bytes, out));
        self.suffix.truncate(shared);
        self.suffix.extend_from_slice(rest);
        self.in_block += 1;
        Ok(())
    }
}

/// The end of the terms before a block, and of the lists and positions before its first ones, among
/// those that were laid out together.
#[derive(Clone, Copy, Debug)]
pub struct BlockStart {
    pub terms: usize,
    pub lists: usize,
    pub positions: usize,
}

/// Terms of a collection as a [`TermCoder`] lays them out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodedTerms<'a> {
    pub collection: u16,
    pub terms: u64,
    pub postings: u64,
    pub bytes: &'a [u8],
    /// The blocks that begin with one of them.
    pub blocks: &'a [BlockStart],
}

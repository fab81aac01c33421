//! The lexicon of a run: its terms and where their lists are. Terms stand in blocks of 16,
//! front-coded, with an index of the blocks and a directory of the trie collections
//! (`docs/index-format.md`, Lexicon).
//!
//! [`LexiconWriter`] writes it in one go, [`Lexicon`] finds a term in the mapped file,
//! [`LexiconStream`] reads all terms in order through a small window. None of them believes a byte.

mod code;
mod parts;
mod read;
pub(crate) mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub(crate) use code::{BlockStart, CodedTerms, TermCoder};
pub(crate) use parts::{cut, expect_totals, parts_of};
pub(crate) use read::{Lexicon, TermPlace};
pub(crate) use stream::LexiconStream;
pub(crate) use write::LexiconWriter;

use crate::codec::vbyte;
use crate::index::error::IndexError;
use crate::index::format::{
    DIRECTORY_ENTRIES, FileHeader, FileKind, HEADER_BYTES, check_length, padding,
};
use crate::index::list::MAX_BLOCK;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermEntry {
    /// Postings of the list, at least 1.
    pub df: u32,
    /// Bytes between the first list of the run and this one.
    pub offset: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LexiconHeader {
    pub terms: u64,
    pub blocks: u64,
    pub block_bytes: u64,
    pub postings: u64,
    /// Bytes of all lists, and of the padding between them.
    pub list_bytes: u64,
    /// Postings of a block: lists of as many or more begin at a multiple of 16 bytes.
    pub block_len: u32,
}

const BLOCK_ENTRY_BYTES: u64 = 16;
const DIRECTORY_BYTES: u64 = 4 * DIRECTORY_ENTRIES as u64;
/// The most bytes that a term takes in its block.
const MAX_CODED_BYTES: usize = 2 + 255 + 2 * vbyte::MAX_BYTES;

impl LexiconHeader {
    fn parse(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Self, IndexError> {
        let FileHeader { values, last: block_len, .. } =
            FileHeader::parse(path, FileKind::Lexicon, bytes)?;
        let [terms, blocks, block_bytes, postings, list_bytes] = values;
        if block_len == 0 || block_len as usize > MAX_BLOCK {
            let expected = format!("blocks of 1 to {MAX_BLOCK} postings");
            return Err(IndexError::damaged(path, 56, expected, block_len));
        }
        let header = Self { terms, blocks, block_bytes, postings, list_bytes, block_len };
        let expected = header.checked_directory().and_then(|directory| {
            directory.checked_add(DIRECTORY_BYTES + padding(DIRECTORY_BYTES))
        });
        check_length(path, file_bytes, expected)?;
        Ok(header)
    }

    fn checked_directory(&self) -> Option<u64> {
        let blocks = self.blocks.checked_mul(BLOCK_ENTRY_BYTES)?;
        let first = self.block_bytes.checked_add(padding(self.block_bytes))?;
        first.checked_add(blocks)?.checked_add(HEADER_BYTES as u64)
    }

    fn index_start(&self) -> u64 {
        HEADER_BYTES as u64 + self.block_bytes + padding(self.block_bytes)
    }

    fn directory_start(&self) -> u64 {
        self.index_start() + BLOCK_ENTRY_BYTES * self.blocks
    }
}

/// A term as it stands in its block.
struct CodedTerm<'a> {
    /// Bytes shared with the term before it.
    shared: usize,
    rest: &'a [u8],
    df: u32,
    list_bytes: u64,
}

impl<'a> CodedTerm<'a> {
    /// Reads the term at `bytes[*at]` and moves `at` behind it. `None` if it is cut short or cannot
    /// be a term.
    #[inline]
    fn parse(bytes: &'a [u8], at: &mut usize) -> Option<Self> {
        let [shared, length, rest @ ..] = bytes.get(*at..)? else { return None };
        let rest = rest.get(..usize::from(*length))?;
        let mut end = *at + 2 + rest.len();
        let df = u32::try_from(vbyte::get(bytes, &mut end)?).ok().filter(|df| *df > 0)?;
        let list_bytes = vbyte::get(bytes, &mut end)?;
        *at = end;
        Some(Self { shared: usize::from(*shared), rest, df, list_bytes })
    }
}

/// The error for a term that [`CodedTerm::parse`] refuses.
#[cold]
fn no_term(path: &Path, place: u64) -> IndexError {
    IndexError::damaged(path, HEADER_BYTES as u64 + place, "a term", "bytes that are none")
}

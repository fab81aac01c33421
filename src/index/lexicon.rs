//! The lexicon of a run: its terms and where their lists are. Terms stand in blocks of 16,
//! front-coded, with an index of the blocks and a directory of the trie collections
//! (`docs/index-format.md`, Lexicon).
//!
//! [`LexiconWriter`] writes it in one go, [`Lexicon`] finds a term in the mapped file,
//! [`LexiconStream`] reads all terms in order through a small window. None of them believes a byte.

#[cfg(feature = "serve")]
mod beginning;
mod code;
mod parts;
mod read;
pub(crate) mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub(crate) use code::{BlockStart, CodedTerms, TermCoder};
pub(crate) use parts::{TermRange, cut, expect_totals, parts_of, pieces_of};
pub(crate) use read::{Lexicon, TermPlace};
pub(crate) use stream::LexiconStream;
pub(crate) use write::LexiconWriter;

use crate::codec::vbyte;
use crate::index::error::IndexError;
use crate::index::format::{
    DIRECTORY_ENTRIES, FileHeader, FileKind, HEADER_BYTES, check_length, padding,
};
use crate::index::list::MAX_BLOCK;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermEntry {
    /// Postings of the list, at least 1.
    pub df: u32,
    /// Bytes between the first list of the run and this one.
    pub offset: u64,
    pub bytes: u64,
    /// Bytes between the first positions of the run and those of this list, and how many these are;
    /// 0 in a run without positions.
    pub positions: u64,
    pub position_bytes: u64,
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
    /// The run has positions, of which terms and blocks say where they are.
    pub positions: bool,
    /// Entries of a sparse directory; none of one that has all collections.
    sparse: Option<u64>,
}

/// Set in the number of postings of a block, which is less, if the run has positions.
const POSITIONS: u32 = 1 << 16;

const DIRECTORY_BYTES: u64 = 4 * DIRECTORY_ENTRIES as u64;
/// A directory of at most this many collections is sparse: of those that have terms, in rising
/// order, the number and the first block; and behind them how many collections and blocks there
/// are.
const MOST_SPARSE: usize = 512;

type SparseEntry = [u32; 2];

const SPARSE_BYTES: u64 = size_of::<SparseEntry>() as u64;

/// The most bytes that a term takes in its block.
const MAX_CODED_BYTES: usize = 2 + 255 + 3 * vbyte::MAX_BYTES;

impl LexiconHeader {
    fn parse(path: &Path, bytes: &[u8], file_bytes: u64) -> Result<Self, IndexError> {
        let FileHeader { values, last: block_len, .. } =
            FileHeader::parse(path, FileKind::Lexicon, bytes)?;
        let [terms, blocks, block_bytes, postings, list_bytes] = values;
        let positions = block_len & POSITIONS != 0;
        let block_len = block_len & !POSITIONS;
        if block_len == 0 || block_len as usize > MAX_BLOCK {
            let expected = format!("blocks of 1 to {MAX_BLOCK} postings");
            return Err(IndexError::damaged(path, 56, expected, block_len));
        }
        let sparse = None;
        let header =
            Self { terms, blocks, block_bytes, postings, list_bytes, block_len, positions, sparse };
        let start = header.checked_directory();
        let sparse = start.and_then(|start| file_bytes.checked_sub(start)).filter(|bytes| {
            bytes % SPARSE_BYTES == 0 && (1..=MOST_SPARSE as u64 + 1).contains(&(bytes / 8))
        });
        if let Some(bytes) = sparse {
            return Ok(Self { sparse: Some(bytes / SPARSE_BYTES), ..header });
        }
        let whole = DIRECTORY_BYTES + padding(DIRECTORY_BYTES);
        check_length(path, file_bytes, start.and_then(|start| start.checked_add(whole)))?;
        Ok(header)
    }

    /// Checks that the entries of a sparse directory rise up to the end of all collections.
    fn check_sparse(&self, path: &Path, entries: &[SparseEntry]) -> Result<(), IndexError> {
        let rises = |pair: &[SparseEntry]| pair[0][0] < pair[1][0] && pair[0][1] < pair[1][1];
        let wrong = entries.windows(2).position(|pair| !rises(pair)).map(|at| at + 1);
        let wrong = wrong.or_else(|| (entries.first()?[1] != 0).then_some(0));
        let end = [TRIE_COLLECTIONS as u64, self.blocks];
        let is_end = |last: &SparseEntry| last.map(u64::from) == end;
        let last = entries.len().saturating_sub(1);
        let wrong = wrong.or_else(|| (!entries.last().is_some_and(is_end)).then_some(last));
        wrong.map_or(Ok(()), |at| {
            let place = self.directory_start() + SPARSE_BYTES * at as u64;
            let expected = format!("collections and blocks that rise to {end:?}");
            let found = entries.get(at).copied().unwrap_or_default();
            Err(IndexError::damaged(path, place, expected, format!("{found:?}")))
        })
    }

    fn checked_directory(&self) -> Option<u64> {
        let blocks = self.blocks.checked_mul(self.entry_bytes())?;
        let first = self.block_bytes.checked_add(padding(self.block_bytes))?;
        first.checked_add(blocks)?.checked_add(HEADER_BYTES as u64)
    }

    /// Numbers of an entry of the block index: where the block begins, its first list and, if there
    /// are any, their positions.
    fn entry_words(&self) -> usize {
        if self.positions { 3 } else { 2 }
    }

    fn entry_bytes(&self) -> u64 {
        8 * self.entry_words() as u64
    }

    fn index_start(&self) -> u64 {
        HEADER_BYTES as u64 + self.block_bytes + padding(self.block_bytes)
    }

    fn directory_start(&self) -> u64 {
        self.index_start() + self.entry_bytes() * self.blocks
    }
}

/// A term as it stands in its block.
struct CodedTerm<'a> {
    /// Bytes shared with the term before it.
    shared: usize,
    rest: &'a [u8],
    df: u32,
    list_bytes: u64,
    position_bytes: u64,
}

impl<'a> CodedTerm<'a> {
    /// Reads the term at `bytes[*at]` and moves `at` behind it. `None` if it is cut short or cannot
    /// be a term.
    #[inline]
    fn parse(bytes: &'a [u8], at: &mut usize, positions: bool) -> Option<Self> {
        let [shared, length, rest @ ..] = bytes.get(*at..)? else { return None };
        let rest = rest.get(..usize::from(*length))?;
        let mut end = *at + 2 + rest.len();
        let df = u32::try_from(vbyte::get(bytes, &mut end)?).ok().filter(|df| *df > 0)?;
        let list_bytes = vbyte::get(bytes, &mut end)?;
        let position_bytes = if positions { vbyte::get(bytes, &mut end)? } else { 0 };
        *at = end;
        Some(Self { shared: usize::from(*shared), rest, df, list_bytes, position_bytes })
    }
}

/// The error for a term that [`CodedTerm::parse`] refuses.
#[cold]
fn no_term(path: &Path, place: u64) -> IndexError {
    IndexError::damaged(path, HEADER_BYTES as u64 + place, "a term", "bytes that are none")
}

//! Bounds of blocks of documents, of learned vectors: for each list in which that pays, a byte for
//! every 64 documents of the run among which it has postings (`docs/index-format.md`, Bounds of
//! blocks). The byte is the code (`score::block_codes`) of the greatest impact there.

#[cfg(test)]
mod tests;
mod write;

#[cfg(test)]
pub(crate) use write::BlockCoder;
pub(crate) use write::{check_bounds, write_missing_bounds};

use crate::codec::prefetch::prefetch_bytes;
use crate::index::error::IndexError;
use crate::index::files::map::Map;
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileHeader, FileKind, HEADER_BYTES, check_length};
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::TermEntry;
use crate::score::block_codes::{CODES, ImpactCodes};
use std::path::Path;

pub(crate) const BLOCK_DOCUMENTS: u32 = 64;

pub(crate) const WORD_DOCUMENTS: u32 = 64 * BLOCK_DOCUMENTS;

const BODY: u64 = HEADER_BYTES as u64;
/// Where the data of the lists begin, behind what codes stand for.
const DATA: u64 = BODY + 4 * CODES as u64;

/// Bytes of a list's bounds that are fetched ahead.
const FETCHED: usize = 1024;

/// Words with a bit for each block of this many documents.
pub(crate) fn words_of(documents: u32) -> usize {
    documents.div_ceil(WORD_DOCUMENTS) as usize
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockCodes<'a> {
    /// A bit for each word of 64 blocks: whether it has any.
    pub tops: &'a [u64],
    /// Those words: a bit for each block that has postings.
    pub words: &'a [u64],
    pub codes: &'a [u8],
}

impl<'a> BlockCodes<'a> {
    /// Takes the data of a list apart; none if they do not fit, or have blocks behind the last of
    /// the run.
    pub(crate) fn new(data: &'a [u64], documents: u32) -> Option<Self> {
        let blocks = documents.div_ceil(BLOCK_DOCUMENTS) as usize;
        let (tops, rest) = data.split_at_checked(words_of(documents).div_ceil(64))?;
        let ones = |words: &[u64]| words.iter().map(|word| word.count_ones() as usize).sum();
        let (words, codes) = rest.split_at_checked(ones(tops))?;
        let count: usize = ones(words);
        let codes = bytemuck::cast_slice(codes).get(..count.next_multiple_of(8))?;
        let fits = codes.len() + 8 * (tops.len() + words.len()) == 8 * data.len();
        // The last word of each level: what it has behind the end.
        let beyond = |words: &[u64], at: usize, end: usize| match end % 64 {
            0 => 0,
            end => words.get(at).map_or(0, |word| word >> end),
        };
        let last_word = words_of(documents).wrapping_sub(1);
        let has_last = tops.last().is_some_and(|top| top >> (last_word % 64) & 1 == 1);
        let past_tops = beyond(tops, tops.len().wrapping_sub(1), words_of(documents));
        let past_words = beyond(words, words.len().wrapping_sub(1), blocks);
        let is_sound = past_tops == 0 && (!has_last || past_words == 0);
        (fits && is_sound).then_some(Self { tops, words, codes: &codes[..count] })
    }

    /// Calls `take` with the number of each word that has blocks, from `from` on and below `end`,
    /// with the word, and where its codes begin.
    #[inline(always)]
    pub(crate) fn each_word(
        &self,
        from: usize,
        end: usize,
        mut take: impl FnMut(usize, u64, &'a [u8]),
    ) {
        let mut words = self.words.iter();
        let mut codes = self.codes;
        for (number, &top) in self.tops.iter().enumerate() {
            let mut left = top;
            while left != 0
                && let Some(&word) = words.next()
            {
                let at = 64 * number + left.trailing_zeros() as usize;
                left &= left - 1;
                let (here, rest) = codes.split_at(word.count_ones() as usize);
                codes = rest;
                if at >= end {
                    return;
                }
                if at >= from {
                    take(at, word, here);
                }
            }
        }
    }
}

/// Finds out whether blocks have bounds, which rise from call to call.
#[derive(Debug)]
pub(crate) struct CodeFinder<'a> {
    codes: &'a BlockCodes<'a>,
    /// The number of a top, and of the words of those before.
    top: usize,
    words: usize,
}

impl BlockCodes<'_> {
    pub(crate) fn finder(&self) -> CodeFinder<'_> {
        CodeFinder { codes: self, top: 0, words: 0 }
    }
}

impl CodeFinder<'_> {
    #[inline]
    pub(crate) fn has(&mut self, block: u32) -> bool {
        let word = block as usize / 64;
        let BlockCodes { tops, words, .. } = self.codes;
        while self.top < word / 64 {
            self.words += tops.get(self.top).map_or(0, |top| top.count_ones() as usize);
            self.top += 1;
        }
        let top = tops.get(self.top).copied().unwrap_or(0);
        let before = (top & !(u64::MAX << (word % 64))).count_ones() as usize;
        let bits = words.get(self.words + before).copied().unwrap_or(0);
        top >> (word % 64) & bits >> (block % 64) & 1 == 1
    }
}

/// The bounds of a run's lists, mapped.
#[derive(Debug)]
pub(crate) struct RunBounds {
    map: Map,
    codes: ImpactCodes,
    documents: u32,
    lists: u64,
    data_bytes: u64,
}

impl RunBounds {
    /// Maps the bounds of a run and verifies their checksum by the manifest's entry.
    pub(crate) fn open(
        generation: &Path,
        run: &RunEntry,
        file: &FileEntry,
    ) -> Result<Self, IndexError> {
        let bounds = Self::open_unverified(generation, run)?;
        bounds.map.verify(file.bytes, file.crc32)?;
        Ok(bounds)
    }

    fn open_unverified(generation: &Path, run: &RunEntry) -> Result<Self, IndexError> {
        let map = Map::open(&run.path(generation, FileKind::Bounds))?;
        let header = FileHeader::parse(map.path(), FileKind::Bounds, map.bytes())?;
        header.check_unused(map.path(), 3)?;
        let [documents, lists, data_bytes, ..] = header.values;
        if documents != u64::from(run.documents) {
            return Err(IndexError::damaged(map.path(), 16, run.documents, documents));
        }
        let expected = lists.checked_mul(16).and_then(|bytes| bytes.checked_add(DATA));
        let expected = expected.and_then(|bytes| bytes.checked_add(data_bytes));
        let expected = expected.filter(|_| data_bytes.is_multiple_of(8));
        check_length(map.path(), map.bytes().len() as u64, expected)?;
        let impacts = map.array::<u32>(BODY, CODES as u64)?.first_chunk();
        let codes = ImpactCodes::of_file(impacts.expect("there is an impact for each code"));
        Ok(Self { map, codes, documents: run.documents, lists, data_bytes })
    }

    /// What codes stand for.
    pub(crate) fn impacts(&self) -> &[u32; CODES] {
        self.codes.impacts()
    }

    /// The number of a list among those that have bounds, if it is one; fetches the bounds ahead.
    pub(crate) fn number(&self, term: &TermEntry) -> Option<usize> {
        if term.df < write::LEAST_DF {
            return None;
        }
        let number = self.offsets().binary_search(&term.offset).ok()?;
        let (start, end) = self.place(number);
        let bytes = FETCHED.min(end.saturating_sub(start) as usize);
        prefetch_bytes(self.map.from(DATA + start), bytes);
        Some(number)
    }

    pub(crate) fn codes(&self, number: usize) -> Result<BlockCodes<'_>, IndexError> {
        let (at, data) = self.data(number)?;
        BlockCodes::new(data, self.documents)
            .ok_or_else(|| self.damaged(at, "bounds of a list", "numbers that do not fit"))
    }

    /// The data of a list, and where they begin in the file.
    fn data(&self, number: usize) -> Result<(u64, &[u64]), IndexError> {
        let (start, end) = self.place(number);
        Ok((DATA + start, self.map.array(DATA + start, end.saturating_sub(start) / 8)?))
    }

    fn damaged(&self, at: u64, expected: impl ToString, found: impl ToString) -> IndexError {
        IndexError::damaged(self.map.path(), at, expected, found)
    }

    /// Where the lists begin.
    fn offsets(&self) -> &[u64] {
        self.directory(0)
    }

    /// Where the data of each end.
    fn ends(&self) -> &[u64] {
        self.directory(1)
    }

    /// An array of the directory: its length was compared when the file was opened.
    fn directory(&self, number: u64) -> &[u64] {
        let start = DATA + self.data_bytes + 8 * number * self.lists;
        self.map.array(start, self.lists).unwrap_or_default()
    }

    fn place(&self, number: usize) -> (u64, u64) {
        let ends = self.ends();
        let end_of = |number: usize| ends[number].min(self.data_bytes);
        (number.checked_sub(1).map_or(0, end_of), end_of(number))
    }
}

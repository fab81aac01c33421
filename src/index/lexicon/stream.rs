//! Reads all terms of a run in order with little memory.

use super::{
    CodedTerm, LexiconHeader, MAX_CODED_BYTES, SPARSE_BYTES, SparseEntry, TermEntry, TermRange,
    no_term,
};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{
    DIRECTORY_ENTRIES, HEADER_BYTES, LEXICON_BLOCK, MAX_TERM_BYTES, list_start,
};
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::ops::Range;
use std::path::Path;

/// Bytes of the windows on the block index and on the directory.
const TABLE_WINDOW_BYTES: usize = 2 << 10;
/// The same where nothing but these is read.
const STARTS_WINDOW_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamedTerm<'a> {
    pub collection: u16,
    /// The term without what the collection implies.
    pub suffix: &'a [u8],
    pub list: TermEntry,
}

/// All terms of a lexicon, or those of a range, in order, by positioned reads. Memory: the window,
/// and 4 KB.
///
/// It accepts nothing but what [`LexiconWriter`](super::LexiconWriter) writes: rising terms, front
/// coding that shares all it can, full blocks, tables and totals that agree.
#[derive(Debug)]
pub struct LexiconStream {
    header: LexiconHeader,
    blocks: FileWindow,
    index: FileWindow,
    directory: FileWindow,
    /// The directory, if it is sparse.
    sparse: Vec<SparseEntry>,
    /// Trie collection of the term, and the block at which the collection ends.
    collection: u64,
    collection_end: u64,
    /// The stream ends before this collection, or before this suffix.
    last: u64,
    to: Option<Vec<u8>>,
    /// The term is the first one, to which nobody went.
    is_held: bool,
    /// Terms before it that were read, and their postings and bytes of positions.
    skipped: [u64; 3],
    /// All collections are streamed, so that the totals of the header can be checked.
    whole: bool,
    begun: u64,
    in_block: usize,
    /// Where the next term begins and where the block ends, counted from the first block.
    at: u64,
    block_end: u64,
    suffix: Vec<u8>,
    list: TermEntry,
    terms: u64,
    postings: u64,
    position_bytes: u64,
}

impl LexiconStream {
    /// Opens the lexicon at `path` with a window of `window_bytes` bytes, or a few hundred if a
    /// term may need more. [`advance`](Self::advance) goes to the first term.
    pub fn open(path: &Path, window_bytes: usize) -> Result<Self, IndexError> {
        Self::open_part(path, window_bytes, 0..TRIE_COLLECTIONS as u16)
    }

    /// Streams the terms of some collections only. All parts of a lexicon together have
    /// [`seen`](Self::seen) the totals of its header.
    pub(crate) fn open_part(
        path: &Path,
        window_bytes: usize,
        collections: Range<u16>,
    ) -> Result<Self, IndexError> {
        Self::open_by(path, window_bytes, TABLE_WINDOW_BYTES, collections)
    }

    /// Streams the terms of a range only; see [`open_part`](Self::open_part).
    pub(crate) fn open_range(
        path: &Path,
        window_bytes: usize,
        range: &TermRange,
    ) -> Result<Self, IndexError> {
        let mut stream = Self::open_part(path, window_bytes, range.collections.clone())?;
        stream.to.clone_from(&range.to);
        if range.from.is_empty() {
            return Ok(stream);
        }
        // The last block whose first term is not behind the one that is sought, or the first.
        let (mut low, mut high) = (stream.begun, stream.collection_end);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match stream.first_term(middle)? <= range.from {
                true => low = middle,
                false => high = middle,
            }
        }
        stream.begin_at(low)?;
        while stream.step()? {
            if stream.suffix >= range.from {
                stream.is_held = true;
                break;
            }
            stream.skipped = [stream.terms, stream.postings, stream.position_bytes];
        }
        Ok(stream)
    }

    /// Suffixes that cut a collection of the lexicon at `path` into at most this many pieces of
    /// about the same `weight`, which is that of bytes of terms, and of their lists. None for less
    /// than two.
    pub(crate) fn cuts(
        path: &Path,
        collection: u16,
        pieces: u64,
        weight: impl Fn(u64, u64) -> u64,
    ) -> Result<Vec<Vec<u8>>, IndexError> {
        if pieces < 2 {
            return Ok(Vec::new());
        }
        let collections = collection..collection + 1;
        let mut stream = Self::open_by(path, 0, STARTS_WINDOW_BYTES, collections)?;
        let blocks = stream.begun..stream.collection_end;
        let [place, lists, _] = stream.block_start(blocks.start)?;
        let from_first = |[to, to_lists, _]: [u64; 3]| {
            u128::from(weight(to.saturating_sub(place), to_lists.saturating_sub(lists)))
        };
        let all = from_first(stream.block_start(blocks.end)?);
        let mut cuts = Vec::new();
        for block in blocks.skip(1) {
            let before = from_first(stream.block_start(block)?) * u128::from(pieces);
            if before > all * (cuts.len() as u128 + 1) {
                cuts.push(stream.first_term(block)?);
            }
        }
        Ok(cuts)
    }

    fn open_by(
        path: &Path,
        window_bytes: usize,
        table_bytes: usize,
        collections: Range<u16>,
    ) -> Result<Self, IndexError> {
        let mut blocks = FileWindow::open(path, window_bytes.max(MAX_CODED_BYTES))?;
        let length = blocks.length();
        let first = usize::try_from(length).map_or(HEADER_BYTES, |length| length.min(HEADER_BYTES));
        let header = LexiconHeader::parse(path, blocks.read(0, first)?, length)?;
        let mut stream = Self {
            header,
            blocks,
            index: FileWindow::open(path, table_bytes)?,
            directory: FileWindow::open(path, table_bytes)?,
            sparse: Vec::new(),
            collection: u64::from(collections.start),
            collection_end: 0,
            last: u64::from(collections.end),
            to: None,
            is_held: false,
            skipped: [0; 3],
            whole: collections == (0..TRIE_COLLECTIONS as u16),
            begun: 0,
            in_block: 0,
            at: 0,
            block_end: 0,
            suffix: Vec::with_capacity(MAX_TERM_BYTES),
            list: TermEntry::default(),
            terms: 0,
            postings: 0,
            position_bytes: 0,
        };
        stream.read_sparse()?;
        let first = stream.directory_entry(0)?;
        stream.expect(stream.header.directory_start(), 0, first)?;
        let collection = stream.collection;
        let begun = stream.directory_entry(collection)?;
        stream.collection_end = stream.directory_entry(collection + 1)?;
        let [place, first_list, positions] = stream.begin_at(begun)?;
        stream.block_start(stream.collection_end)?;
        if stream.collection_end < stream.begun {
            let offset = stream.header.directory_start() + 4 * (collection + 1);
            let expected = format!("at least {}", stream.begun);
            let found = stream.collection_end;
            return Err(IndexError::damaged(path, offset, expected, found));
        }
        if stream.begun == 0 {
            let entry = stream.header.index_start();
            stream.expect(entry, 0, place)?;
            stream.expect(entry + 8, 0, first_list)?;
            stream.expect(entry + 16, 0, positions)?;
        }
        Ok(stream)
    }

    /// Goes before a block, and returns its [start](Self::block_start).
    fn begin_at(&mut self, block: u64) -> Result<[u64; 3], IndexError> {
        let start = self.block_start(block)?;
        let [place, offset, positions] = start;
        (self.begun, self.at, self.block_end) = (block, place, place);
        self.list = TermEntry { offset, positions, ..TermEntry::default() };
        Ok(start)
    }

    /// That of a block, through a small window.
    fn first_term(&mut self, block: u64) -> Result<Vec<u8>, IndexError> {
        let [place, ..] = self.block_start(block)?;
        let rest = self.header.block_bytes.saturating_sub(place);
        let rest = usize::try_from(rest).unwrap_or(usize::MAX).min(MAX_CODED_BYTES);
        let bytes = self.directory.read(HEADER_BYTES as u64 + place, rest)?;
        let coded = CodedTerm::parse(bytes, &mut 0, self.header.positions);
        let term = coded.filter(|coded| coded.shared == 0).map(|coded| coded.rest.to_vec());
        term.ok_or_else(|| no_term(self.path(), place))
    }

    /// The ends of the terms and lists before each collection of the lexicon at `path`, counted
    /// from the first, and of the last.
    pub(crate) fn collection_starts(path: &Path) -> Result<Vec<[u64; 2]>, IndexError> {
        let all = 0..TRIE_COLLECTIONS as u16;
        let mut stream = Self::open_by(path, 0, STARTS_WINDOW_BYTES, all)?;
        let mut starts = Vec::with_capacity(DIRECTORY_ENTRIES);
        let mut block = 0;
        let [place, first_list, _] = stream.block_start(block)?;
        let mut start = [place, first_list];
        for entry in 0..DIRECTORY_ENTRIES as u64 {
            let next = stream.directory_entry(entry)?;
            // Most collections of few terms are empty.
            if next != block {
                block = next;
                let [place, first_list, _] = stream.block_start(block)?;
                start = [place, first_list];
            }
            starts.push(start);
        }
        let last = stream.header.directory_start() + 4 * (DIRECTORY_ENTRIES as u64 - 1);
        stream.expect(last, stream.header.blocks, block)?;
        Ok(starts)
    }

    /// The terms and the postings that were streamed.
    pub(crate) fn seen(&self) -> (u64, u64) {
        (self.terms - self.skipped[0], self.postings - self.skipped[1])
    }

    /// The bytes of their positions.
    pub(crate) fn position_bytes(&self) -> u64 {
        self.position_bytes - self.skipped[2]
    }

    pub(crate) fn header(&self) -> &LexiconHeader {
        &self.header
    }

    pub(crate) fn path(&self) -> &Path {
        self.blocks.path()
    }

    /// Where in the file the next term begins.
    pub(crate) fn position(&self) -> u64 {
        HEADER_BYTES as u64 + self.at
    }

    /// The term that [`advance`](Self::advance) went to.
    #[inline]
    pub fn term(&self) -> StreamedTerm<'_> {
        // `next_block` keeps it below the number of collections.
        StreamedTerm { collection: self.collection as u16, suffix: &self.suffix, list: self.list }
    }

    /// Goes to the next term. False when there is none; then all totals are as the header says. The
    /// stream cannot go on after an error, or behind its end.
    pub fn advance(&mut self) -> Result<bool, IndexError> {
        if !std::mem::take(&mut self.is_held) && !self.step()? {
            return Ok(false);
        }
        let is_behind = self.to.as_ref().is_some_and(|to| self.suffix >= *to);
        if is_behind {
            self.terms -= 1;
            self.postings -= u64::from(self.list.df);
            self.position_bytes -= self.list.position_bytes;
        }
        Ok(!is_behind)
    }

    fn step(&mut self) -> Result<bool, IndexError> {
        if self.at == self.block_end && !self.next_block()? {
            return Ok(false);
        }
        let start = self.at;
        // Never more than a window.
        let rest = usize::try_from(self.block_end - start).unwrap_or(usize::MAX);
        let bytes = self.blocks.read(HEADER_BYTES as u64 + start, rest.min(MAX_CODED_BYTES))?;
        let mut end = 0;
        let fits = |coded: &CodedTerm<'_>| {
            let first = self.in_block == 0;
            let length = coded.shared + coded.rest.len();
            let rises = coded.rest.first().is_some_and(|byte| {
                self.suffix.get(coded.shared).is_none_or(|before| before < byte)
            });
            length <= MAX_TERM_BYTES
                && self.in_block < LEXICON_BLOCK
                && if first {
                    coded.shared == 0
                } else {
                    coded.shared <= self.suffix.len() && rises
                }
        };
        let positions = self.header.positions;
        let Some(coded) = CodedTerm::parse(bytes, &mut end, positions).filter(fits) else {
            return Err(no_term(self.path(), start));
        };
        // The first term of a block is compared with the last of the block before, if that is of
        // the same collection; `next_block` has emptied the suffix otherwise.
        if self.in_block == 0 && !self.suffix.is_empty() && self.suffix.as_slice() >= coded.rest {
            return Err(no_term(self.path(), start));
        }
        self.suffix.truncate(coded.shared);
        self.suffix.extend_from_slice(coded.rest);
        let before = self.list.offset.checked_add(self.list.bytes);
        let offset = before.and_then(|end| list_start(end, coded.df, self.header.block_len));
        let list_end = offset.and_then(|offset| offset.checked_add(coded.list_bytes));
        let (Some(offset), Some(_)) = (offset, list_end) else {
            return Err(no_term(self.blocks.path(), start));
        };
        let CodedTerm { df, list_bytes: bytes, position_bytes, .. } = coded;
        let positions = self.list.positions.saturating_add(self.list.position_bytes);
        self.list = TermEntry { df, offset, bytes, positions, position_bytes };
        self.at += end as u64;
        self.in_block += 1;
        self.terms += 1;
        self.postings = self.postings.saturating_add(u64::from(df));
        self.position_bytes = self.position_bytes.saturating_add(position_bytes);
        Ok(true)
    }

    /// Goes into the next block, or checks the totals behind the last.
    fn next_block(&mut self) -> Result<bool, IndexError> {
        let header = self.header;
        let block = self.begun;
        let lists_end = self.list.offset + self.list.bytes;
        let positions_end = self.list.positions.saturating_add(self.list.position_bytes);
        let mut same_collection = true;
        while self.collection_end == block && self.collection + 1 < self.last {
            self.collection += 1;
            same_collection = false;
            let end = self.directory_entry(self.collection + 1)?;
            if end < block || end > header.blocks {
                let offset = header.directory_start() + 4 * (self.collection + 1);
                let expected = format!("a block from {block} to {}", header.blocks);
                return Err(IndexError::damaged(self.path(), offset, expected, end));
            }
            self.collection_end = end;
        }
        if self.collection_end == block && !self.whole {
            // Where all positions end only their file says.
            let [place, first_list, positions] = self.block_start(block)?;
            let entry = header.index_start() + header.entry_bytes() * block;
            self.expect(entry, self.at, place)?;
            self.expect(entry + 8, lists_end, first_list)?;
            if block < header.blocks {
                self.expect(entry + 16, positions_end, positions)?;
            }
            return Ok(false);
        }
        if block == header.blocks {
            let end = header.directory_start() + 4 * (self.collection + 1);
            self.expect(end, header.blocks, self.collection_end)?;
            self.expect(16, self.terms, header.terms)?;
            self.expect(32, self.at, header.block_bytes)?;
            self.expect(40, self.postings, header.postings)?;
            self.expect(48, lists_end, header.list_bytes)?;
            return Ok(false);
        }
        if self.collection_end == block {
            // All collections have ended and blocks are left.
            let end = header.directory_start() + 4 * (DIRECTORY_ENTRIES as u64 - 1);
            self.expect(end, header.blocks, block)?;
        }
        if !same_collection || self.terms == 0 {
            self.suffix.clear();
        } else if self.in_block != LEXICON_BLOCK {
            let found = format!("{} terms", self.in_block);
            let expected = format!("a full block of {LEXICON_BLOCK} terms");
            return Err(IndexError::damaged(self.path(), self.position(), expected, found));
        }
        let entry = header.index_start() + header.entry_bytes() * block;
        let [place, first_list, positions] = self.index_entry(entry)?;
        self.expect(entry, self.at, place)?;
        self.expect(entry + 8, lists_end, first_list)?;
        self.expect(entry + 16, positions_end, positions)?;
        let end = match block + 1 < header.blocks {
            true => self.index_entry(entry + header.entry_bytes())?[0],
            false => header.block_bytes,
        };
        if end <= place || end > header.block_bytes {
            let expected = format!("a place from {} to {}", place + 1, header.block_bytes);
            let next = entry + header.entry_bytes();
            return Err(IndexError::damaged(self.path(), next, expected, end));
        }
        self.block_end = end;
        self.begun += 1;
        self.in_block = 0;
        Ok(true)
    }

    fn expect(&self, offset: u64, expected: u64, found: u64) -> Result<(), IndexError> {
        if expected == found {
            return Ok(());
        }
        Err(IndexError::damaged(self.path(), offset, expected, found))
    }

    fn read_sparse(&mut self) -> Result<(), IndexError> {
        let Some(entries) = self.header.sparse else { return Ok(()) };
        let start = self.header.directory_start();
        for entry in 0..entries {
            let bytes = self.directory.read(start + SPARSE_BYTES * entry, SPARSE_BYTES as usize)?;
            self.sparse.push(bytemuck::pod_read_unaligned(bytes));
        }
        self.header.check_sparse(self.path(), &self.sparse)
    }

    /// The first block of a collection or, if it has no terms, of the next one that has some.
    fn directory_entry(&mut self, entry: u64) -> Result<u64, IndexError> {
        if self.header.sparse.is_some() {
            let at = self.sparse.partition_point(|own| u64::from(own[0]) < entry);
            return Ok(self.sparse.get(at).map_or(self.header.blocks, |own| own[1].into()));
        }
        let bytes = self.directory.read(self.header.directory_start() + 4 * entry, 4)?;
        Ok(u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
    }

    /// Where a block, its first list and the positions of this begin; behind the last block, where
    /// the first two end.
    fn block_start(&mut self, block: u64) -> Result<[u64; 3], IndexError> {
        let header = self.header;
        if block > header.blocks {
            let at = header.directory_start();
            let most = header.blocks;
            return Err(IndexError::damaged(self.path(), at, format!("at most {most}"), block));
        }
        match block == header.blocks {
            true => Ok([header.block_bytes, header.list_bytes, 0]),
            false => self.index_entry(header.index_start() + header.entry_bytes() * block),
        }
    }

    fn index_entry(&mut self, at: u64) -> Result<[u64; 3], IndexError> {
        let bytes = self.index.read(at, self.header.entry_bytes() as usize)?;
        let (words, _) = bytes.as_chunks::<8>();
        let word = |number: usize| words.get(number).map_or(0, |word| u64::from_le_bytes(*word));
        Ok([word(0), word(1), word(2)])
    }
}

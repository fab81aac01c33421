//! The positions of the terms of a run: a file beside its lists, which only phrases read
//! (`docs/index-format.md`, Positions).
//!
//! The positions of a list are in blocks, one for each block of its postings and for the tail, and
//! behind more than one block stands where each but the first begins. [`PositionsEncoder`] writes
//! them, [`ListPositions`] reads those of a list in place, [`RunPositions`] finds them in a run,
//! and [`PositionsSource`] reads those of many lists in their order where memory counts.

mod check;
mod encode;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use check::PositionsCheck;
pub(crate) use encode::PositionsEncoder;
pub(crate) use source::PositionsSource;

use super::error::IndexError;
use super::files::map::Map;
use super::files::pages::Pages;
use super::files::storage::FileEntry;
use super::format::{FileKind, HEADER_BYTES};
use super::generations::manifest::{RunEntry, find_file};
use super::lexicon::TermEntry;
use super::list::ListError;
use super::run::{PostingsHeader, Run};
use crate::codec::positions as codec;
use crate::cpu::Level;
use std::path::Path;

const START_BYTES: usize = 4;

/// The positions of a list in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListPositions<'a> {
    /// From the first block on; what follows makes reading faster.
    data: &'a [u8],
    /// Where all blocks but the first begin.
    starts: &'a [[u8; START_BYTES]],
    blocks_end: usize,
}

impl<'a> ListPositions<'a> {
    /// Of a list of `df` postings in blocks of `block_len`, in the first `bytes` bytes of `data`.
    pub(crate) fn new(
        df: u32,
        block_len: usize,
        bytes: u64,
        data: &'a [u8],
    ) -> Result<Self, ListError> {
        let blocks = (df as usize).div_ceil(block_len);
        let starts = START_BYTES * blocks.saturating_sub(1);
        let all = usize::try_from(bytes).ok().filter(|&all| all <= data.len());
        let Some(blocks_end) = all.and_then(|all| all.checked_sub(starts)) else {
            let expected = (starts as u64).max(bytes);
            return Err(ListError::CutShort { offset: 0, expected, found: data.len() as u64 });
        };
        let starts = data[blocks_end..blocks_end + starts].as_chunks().0;
        Ok(Self { data, starts, blocks_end })
    }

    fn start(&self, block: usize) -> usize {
        match block.checked_sub(1) {
            None => 0,
            Some(at) => self
                .starts
                .get(at)
                .map_or(self.blocks_end, |start| u32::from_le_bytes(*start) as usize),
        }
    }

    /// Where a block lies, counted from the first.
    fn place(&self, block: usize) -> Result<(usize, usize), ListError> {
        let [start, end] = [block, block + 1].map(|block| self.start(block));
        match start <= end && end <= self.blocks_end {
            true => Ok((start, end)),
            false => Err(ListError::Positions { offset: start as u64 }),
        }
    }

    /// Compares how many values a block of this many postings has with its bytes.
    pub(crate) fn expect_count(
        &self,
        block: usize,
        count: u64,
        postings: usize,
    ) -> Result<(), ListError> {
        let (start, end) = self.place(block)?;
        match codec::may_hold(end - start, count, postings) {
            true => Ok(()),
            false => Err(ListError::Positions { offset: start as u64 }),
        }
    }

    /// Reads all values of a block: of each posting its first position, then the gaps between the
    /// others. `values` has room for as many as the block's term frequencies sum up to.
    pub(crate) fn decode(&self, block: usize, values: &mut [u32]) -> Result<(), ListError> {
        let (start, end) = self.place(block)?;
        codec::decode(&self.data[start..end], values)
            .ok_or(ListError::Positions { offset: start as u64 })
    }

    /// Reads all values of a block as the sums up to each ([`codec::decode_sums`]).
    pub(crate) fn decode_sums(
        &self,
        level: Level,
        block: usize,
        count: usize,
        sums: &mut Vec<u32>,
        ends: &mut Vec<u32>,
    ) -> Result<(), ListError> {
        let (start, end) = self.place(block)?;
        codec::decode_sums(level, &self.data[start..end], count, sums, ends)
            .ok_or(ListError::Positions { offset: start as u64 })
    }

    /// Reads those from number `first` on of a block that has `count`.
    pub(crate) fn decode_from(
        &self,
        block: usize,
        count: usize,
        first: usize,
        values: &mut [u32],
    ) -> Result<(), ListError> {
        let (start, end) = self.place(block)?;
        codec::decode_from(&self.data[start..end], count, first, values)
            .ok_or(ListError::Positions { offset: start as u64 })
    }

    /// The bytes of all blocks, and of where they begin.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.data[..self.blocks_end + START_BYTES * self.starts.len()]
    }
}

/// All positions of a run.
#[derive(Debug)]
pub(crate) struct RunPositions {
    map: Map,
    header: PostingsHeader,
    pages: Pages,
}

impl RunPositions {
    /// Maps the positions of a run, whose lists have this header, and reads no more than their own.
    pub(crate) fn open(
        generation: &Path,
        entry: &RunEntry,
        lists: &PostingsHeader,
    ) -> Result<Self, IndexError> {
        let map = Map::open(&entry.path(generation, FileKind::Positions))?;
        let length = map.bytes().len() as u64;
        let header = parse(map.path(), map.bytes(), length, lists)?;
        let pages = Pages::new(header.layout());
        Ok(Self { map, header, pages })
    }

    /// Those of a run of which nothing else is open.
    pub(crate) fn of_run(generation: &Path, entry: &RunEntry) -> Result<Self, IndexError> {
        let run = Run::open_unverified(generation, entry)?;
        Self::open(generation, entry, run.postings_header())
    }

    /// Verifies the checksum of the file by the `files` of the generation's manifest, once.
    pub(crate) fn verify(
        &self,
        generation: &Path,
        entry: &RunEntry,
        files: &[FileEntry],
    ) -> Result<(), IndexError> {
        if !self.pages.are_verified() {
            let file = find_file(files, generation, &entry.file(FileKind::Positions))?;
            self.map.verify(file.bytes, file.crc32)?;
            self.pages.set_verified();
        }
        Ok(())
    }

    pub(crate) fn header(&self) -> &PostingsHeader {
        &self.header
    }

    pub(crate) fn path(&self) -> &Path {
        self.map.path()
    }

    /// Those of a list. The first time that they are asked for, their pages are verified.
    pub(crate) fn of(
        &self,
        term: &TermEntry,
        block_len: usize,
    ) -> Result<ListPositions<'_>, IndexError> {
        check_place(self.path(), &self.header, term)?;
        let start = HEADER_BYTES as u64 + term.positions;
        if term.position_bytes > 0 {
            self.pages.verify(self.path(), self.map.bytes(), start, term.position_bytes)?;
        }
        ListPositions::new(term.df, block_len, term.position_bytes, self.map.from(start))
            .map_err(IndexError::list(self.path(), start))
    }
}

/// Parses the header of a file of positions, and compares it with that of the lists.
fn parse(
    path: &Path,
    bytes: &[u8],
    length: u64,
    lists: &PostingsHeader,
) -> Result<PostingsHeader, IndexError> {
    let header = PostingsHeader::parse_as(FileKind::Positions, path, bytes, length)?;
    let form = lists.form.with_positions(false);
    let expected = PostingsHeader { list_bytes: header.list_bytes, form, ..*lists };
    match header == expected {
        true => Ok(header),
        false => {
            let found = format!("{header:?}");
            Err(IndexError::damaged(path, 16, format!("{expected:?}"), found))
        }
    }
}

fn check_place(path: &Path, header: &PostingsHeader, term: &TermEntry) -> Result<(), IndexError> {
    let end = term.positions.checked_add(term.position_bytes);
    if end.is_some_and(|end| end <= header.list_bytes) {
        return Ok(());
    }
    let expected = format!("positions inside of {} bytes", header.list_bytes);
    let found = format!("{} bytes from {} on", term.position_bytes, term.positions);
    Err(IndexError::damaged(path, 32, expected, found))
}

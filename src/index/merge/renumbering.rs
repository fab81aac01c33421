//! Collects the postings of a list of a run whose documents are renumbered, and hands them on
//! in their new order. Positions stay where they are until then, and are read one posting at a
//! time.

use super::source::{BlockPostings, Encoders, ListEncoding, Target};
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::lexicon::TermEntry;
use crate::index::list::MAX_BLOCK;
use crate::index::positions::{ListPositions, RunPositions};

/// Bytes that a list may take for each document: docid and term frequency, and in a run with
/// positions where they begin, and the order.
pub(super) const LIST_BYTES: u64 = 8;
pub(super) const POSITIONS_BYTES: u64 = 16;

pub(super) struct Renumbering<'a> {
    numbers: &'a [u32],
    /// Docids and term frequencies, in one number each.
    postings: Vec<u64>,
    positions: Option<OldPositions<'a>>,
}

struct OldPositions<'a> {
    of_run: &'a RunPositions,
    block_len: usize,
    list: TermEntry,
    /// By posting, in the old order: values of its block that come before its own.
    starts: Vec<u32>,
    /// Values of each block.
    counts: Vec<u32>,
}

impl<'a> Renumbering<'a> {
    pub(super) fn new(
        numbers: &'a [u32],
        positions: Option<&'a RunPositions>,
        block_len: usize,
    ) -> Self {
        let positions = positions.map(|of_run| OldPositions {
            of_run,
            block_len,
            list: TermEntry::default(),
            starts: Vec::new(),
            counts: Vec::new(),
        });
        Self { numbers, postings: Vec::new(), positions }
    }

    /// The postings of this list come next.
    pub(super) fn begin(&mut self, list: TermEntry) {
        if let Some(positions) = &mut self.positions {
            positions.list = list;
            positions.starts.clear();
            positions.counts.clear();
        }
    }

    /// Encodes the collected postings in the order of the docids, and clears them.
    pub(super) fn pour(
        &mut self,
        mut target: ListEncoding<'_>,
        mut drain: impl FnMut(&mut Encoders) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let order = self.order();
        let [mut docids, mut tfs] = [[0; MAX_BLOCK]; 2];
        let mut codes = [0; MAX_BLOCK];
        let mut values = Vec::new();
        let positions = self.positions.as_ref();
        let list = positions.map(|of| of.of_run.of(&of.list, of.block_len)).transpose()?;
        for first in (0..self.postings.len()).step_by(MAX_BLOCK) {
            let count = MAX_BLOCK.min(self.postings.len() - first);
            values.clear();
            for (at, place) in (first..first + count).enumerate() {
                let place = order.as_ref().map_or(place, |order| order[place] as usize);
                let posting = self.postings[place];
                (docids[at], tfs[at]) = ((posting >> 32) as u32, posting as u32);
                if let (Some(positions), Some(list)) = (&self.positions, &list) {
                    positions.read(list, place, tfs[at], &mut values)?;
                }
            }
            let (docids, tfs) = (&docids[..count], &tfs[..count]);
            target.take(0, 0, BlockPostings { docids, tfs, values: &values }, &mut codes)?;
            target.drain(&mut drain)?;
        }
        self.postings.clear();
        Ok(())
    }

    /// Sorts the postings, or says in which order they come if they have to stay.
    fn order(&mut self) -> Option<Vec<u32>> {
        if self.positions.is_none() {
            self.postings.sort_unstable();
            return None;
        }
        let mut order: Vec<u32> = (0..self.postings.len() as u32).collect();
        order.sort_unstable_by_key(|&place| self.postings[place as usize]);
        Some(order)
    }
}

impl OldPositions<'_> {
    fn add(&mut self, tfs: &[u32]) {
        for &tf in tfs {
            if self.starts.len().is_multiple_of(self.block_len) {
                self.counts.push(0);
            }
            let count = self.counts.last_mut().expect("a block has begun");
            self.starts.push(*count);
            *count = count.saturating_add(tf);
        }
    }

    /// Appends the values of a posting, of the positions of the list.
    fn read(
        &self,
        list: &ListPositions<'_>,
        place: usize,
        tf: u32,
        values: &mut Vec<u32>,
    ) -> Result<(), IndexError> {
        let wrong = |error| {
            let start = HEADER_BYTES as u64 + self.list.positions;
            IndexError::list(self.of_run.path(), start)(error)
        };
        let block = place / self.block_len;
        let count = self.counts[block] as usize;
        let before = values.len();
        list.expect_count(block, count as u64, self.block_len).map_err(wrong)?;
        values.resize(before + tf as usize, 0);
        let first = self.starts[place] as usize;
        list.decode_from(block, count, first, &mut values[before..]).map_err(wrong)
    }
}

impl Target for Renumbering<'_> {
    fn take(
        &mut self,
        _: u32,
        _: u32,
        BlockPostings { docids, tfs, .. }: BlockPostings<'_>,
        _: &mut [u8; MAX_BLOCK],
    ) -> Result<(), IndexError> {
        let postings = docids.iter().zip(tfs);
        // The list's reader has compared docids with the number of documents.
        let posting = |(&docid, &tf): (&u32, &u32)| {
            u64::from(self.numbers[docid as usize]) << 32 | u64::from(tf)
        };
        self.postings.extend(postings.map(posting));
        if let Some(positions) = &mut self.positions {
            positions.add(tfs);
        }
        Ok(())
    }
}

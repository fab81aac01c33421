//! How much can the documents of a short range of docids be worth, before any list is decoded
//! there?
//!
//! The docids are cut into ranges of a power of two. For each list and range, the greatest bound of
//! the blocks that reach into the range is kept; the sum over the lists bounds the scores of all
//! documents of the range. The bounds of a list of few postings say little of a range, for its
//! blocks reach over many: such a list is decoded, and the best score in each range is kept.
//!
//! Blocks of docids that may be skipped as a whole: Dimopoulos, Nepomnyachiy and Suel, Optimizing
//! top-k document retrieval strategies for block-max indexes, 2013; live blocks are those whose sum
//! exceeds the threshold.

use std::ops::Range;

use crate::query::kernels::Rest;

/// Ranges that are looked at together; their bounds stay in the cache.
pub(crate) const MOST: usize = 1024;

/// What a range has that no list reaches into.
pub(crate) const NONE: f32 = -1.0;

#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// Binary logarithm of the documents of a range.
    pub(crate) shift: u32,
    /// First document of the first range, and the one behind the last range.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// The document behind the last range of all.
    pub(crate) stop: u32,
    /// By list and range: `MOST` of each list.
    pub(crate) of_lists: Vec<f32>,
    pub(crate) sums: Vec<f32>,
    /// Of each list, the first block that may reach into ranges to come.
    pub(crate) blocks: Vec<usize>,
}

impl Ranges {
    /// Begins a search through `lists` lists for some documents, with ranges of `1 << shift`.
    pub(crate) fn begin(&mut self, lists: usize, shift: u32, wanted: Range<u32>) {
        (self.shift, self.first, self.end, self.stop) = (shift, 0, wanted.start, wanted.end);
        self.of_lists.resize(lists * MOST, NONE);
        self.blocks.clear();
        self.blocks.resize(lists, 0);
    }

    /// How many ranges there are now.
    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// The sums of bounds, below zero where there are no postings.
    pub(crate) fn sums(&self) -> &[f32] {
        &self.sums
    }

    /// What the lists up to the one with this number may be worth together in a range.
    #[inline]
    pub(crate) fn upto(&self, number: usize, range: usize) -> f32 {
        self.of_lists[number * MOST + range]
    }

    #[inline]
    pub(crate) fn rest(&self, number: usize) -> Rest<'_> {
        let of_ranges = &self.of_lists[number * MOST..][..self.sums.len()];
        Rest { of_ranges, first: self.first, shift: self.shift }
    }

    /// Takes a range out: its documents have been offered.
    pub(crate) fn remove(&mut self, range: usize) {
        self.sums[range] = NONE;
    }

    /// The first document of a range, which may be the one behind the last.
    pub(crate) fn start(&self, range: usize) -> u32 {
        self.end.min(self.first.saturating_add((range as u32) << self.shift))
    }

    /// The first range from `range` on whose sum is above `bar`.
    pub(crate) fn next_above(&self, mut range: usize, bar: f32) -> Option<usize> {
        let bar = bar.max(NONE / 2.0);
        // Sixteen at once where most are not.
        while let Some(sixteen) = self.sums.get(range..).and_then(<[f32]>::first_chunk::<16>) {
            if sixteen.iter().fold(NONE, |most, sum| most.max(*sum)) > bar {
                break;
            }
            range += 16;
        }
        let rest = self.sums.get(range..)?;
        rest.iter().position(|sum| *sum > bar).map(|more| range + more)
    }
}

//! Bounds of the scores in short ranges of docids, known before any list is decoded there.
//!
//! The docids are cut into ranges of a power of two. For each list and range, the greatest bound of
//! the blocks that reach into the range is stored; the sum over the lists bounds the scores of all
//! documents of the range. The blocks of a short list reach over many ranges, so their bounds say
//! little: such a list is decoded, and the best score in each range is stored.
//!
//! Dimopoulos, Nepomnyachiy and Suel, Optimizing top-k document retrieval strategies for block-max
//! indexes, 2013, skip blocks of docids so; their live blocks are those whose sum exceeds the
//! threshold.

use std::ops::Range;

use crate::query::kernels::Rest;

/// Ranges that are handled together; their bounds stay in the cache.
pub(crate) const MOST: usize = 1024;

/// The sum of a range that no list reaches into.
pub(crate) const NONE: f32 = -1.0;

#[derive(Debug, Default)]
pub(crate) struct DocidRanges {
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

impl DocidRanges {
    /// Begins a search through `lists` lists for some documents, with ranges of `1 << shift`.
    pub(crate) fn begin(&mut self, lists: usize, shift: u32, wanted: Range<u32>) {
        self.shift = shift;
        self.first = 0;
        self.end = wanted.start;
        self.stop = wanted.end;
        self.of_lists.resize(lists * MOST, NONE);
        self.blocks.clear();
        self.blocks.resize(lists, 0);
    }

    pub(crate) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Below zero for ranges without postings.
    pub(crate) fn sums(&self) -> &[f32] {
        &self.sums
    }

    /// The bound of the lists up to this number together in a range.
    #[inline]
    pub(crate) fn upto(&self, number: usize, range: usize) -> f32 {
        self.of_lists[number * MOST + range]
    }

    #[inline]
    pub(crate) fn rest(&self, number: usize) -> Rest<'_> {
        let of_ranges = &self.of_lists[number * MOST..][..self.sums.len()];
        Rest { of_ranges, first: self.first, shift: self.shift }
    }

    /// Its documents have been offered.
    pub(crate) fn remove(&mut self, range: usize) {
        self.sums[range] = NONE;
    }

    /// For the range behind the last, the end.
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

//! How much can the documents of a short range of docids be worth, before any list is decoded there?
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

use super::cursor::Cursor;
use super::kernels::{Rest, mosts};
use super::windows::WindowScan;
use crate::cpu::Level;
use crate::index::list::ListError;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

/// Ranges that are looked at together; their bounds stay in the cache.
const MOST: usize = 1024;

/// Lists with fewer postings than one in this many documents are decoded for their bounds.
const RARE: u32 = 1024;

/// What a range has that no list reaches into.
const NONE: f32 = -1.0;

/// The bounds of some ranges.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Binary logarithm of the documents of a range.
    shift: u32,
    /// First document of the first range, and the one behind the last range.
    first: u32,
    end: u32,
    /// The document behind the last range of all.
    stop: u32,
    /// By list and range: `MOST` of each list.
    of_lists: Vec<f32>,
    /// By range.
    sums: Vec<f32>,
    /// Of each list, the first block that may reach into ranges to come.
    blocks: Vec<usize>,
}

impl Ranges {
    /// Begins a search through `lists` lists for some documents, with ranges of `1 << shift`.
    pub(super) fn begin(&mut self, lists: usize, shift: u32, wanted: Range<u32>) {
        (self.shift, self.first, self.end, self.stop) = (shift, 0, wanted.start, wanted.end);
        self.of_lists.resize(lists * MOST, NONE);
        self.blocks.clear();
        self.blocks.resize(lists, 0);
    }

    /// Goes on to the next ranges of the run; `false` if there are none. `order` has the terms with
    /// lists; their cursors are used for the rare ones.
    ///
    /// # Errors
    ///
    /// If a list that is decoded is damaged.
    pub(super) fn advance(
        &mut self,
        run: &WindowScan<'_>,
        bounds: &BoundNorms,
        order: &[usize],
        cursors: &mut [Cursor],
    ) -> Result<bool, ListError> {
        if self.end >= self.stop {
            return Ok(false);
        }
        self.first = self.end;
        let documents = (self.stop - self.first).min((MOST as u32) << self.shift);
        self.end = self.first + documents;
        let count = ((documents - 1) >> self.shift) as usize + 1;
        self.sums.clear();
        self.sums.resize(count, NONE);
        for (number, &term) in order.iter().enumerate() {
            let Some(list) = &run.terms[term].list else { continue };
            let of_list = &mut self.of_lists[number * MOST..][..count];
            of_list.fill(NONE);
            let weight = run.terms[term].weight;
            let span = (self.first, self.end, self.shift);
            if list.bounds().is_empty() || list.df() < run.span() / RARE {
                let cursor = &mut cursors[term];
                run.seek(cursor, (list, weight), self.first)?;
                while let Some(docid) = cursor.next_docid().filter(|docid| *docid < self.end) {
                    let most = &mut of_list[((docid - self.first) >> self.shift) as usize];
                    *most = most.max(cursor.scores[cursor.at]);
                    cursor.at += 1;
                    if cursor.at == cursor.len {
                        run.next_block(cursor, (list, weight))?;
                    }
                }
            } else {
                let blocks = (list.last_docids(), list.bounds());
                spread(
                    blocks,
                    Mosts::new(run.level, weight, bounds),
                    &mut self.blocks[number],
                    span,
                    of_list,
                );
            }
            for (sum, most) in self.sums.iter_mut().zip(of_list) {
                *sum = if *most < 0.0 { *sum } else { sum.max(0.0) + *most };
                *most = sum.max(0.0);
            }
        }
        Ok(true)
    }

    /// How many ranges there are now.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// The sums of bounds, below zero where there are no postings.
    pub(super) fn sums(&self) -> &[f32] {
        &self.sums
    }

    /// What the lists up to the one with this number may be worth together in a range.
    #[inline]
    pub(super) fn upto(&self, number: usize, range: usize) -> f32 {
        self.of_lists[number * MOST + range]
    }

    /// The same for all ranges.
    #[inline]
    pub(super) fn rest(&self, number: usize) -> Rest<'_> {
        let of_ranges = &self.of_lists[number * MOST..][..self.sums.len()];
        Rest { of_ranges, first: self.first, shift: self.shift }
    }

    /// Takes a range out: its documents have been offered.
    pub(super) fn remove(&mut self, range: usize) {
        self.sums[range] = NONE;
    }

    /// The first document of a range, which may be the one behind the last.
    pub(super) fn start(&self, range: usize) -> u32 {
        self.end.min(self.first.saturating_add((range as u32) << self.shift))
    }

    /// The first range from `range` on whose sum is above `bar`.
    pub(super) fn next_above(&self, mut range: usize, bar: f32) -> Option<usize> {
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

/// Gives each range the greatest bound of the blocks that reach into it.
fn spread(
    (last_docids, bounds): (&[[u8; 4]], &[Bound]),
    mut mosts: Mosts<'_>,
    next: &mut usize,
    (first, end, shift): (u32, u32, u32),
    of_list: &mut [f32],
) {
    let last_of = |block: usize| last_docids.get(block).map(|last| u32::from_le_bytes(*last));
    let mut start = first;
    // The tail comes after the last block, and reaches to the end of the run.
    while start < end && *next < bounds.len() {
        let last = last_of(*next);
        let upto = last.unwrap_or(u32::MAX).min(end - 1);
        // Only damage makes last docids fall.
        if upto >= start {
            let most = mosts.of(bounds, *next);
            let ranges = ((start - first) >> shift) as usize..=((upto - first) >> shift) as usize;
            for range in &mut of_list[ranges] {
                *range = range.max(most);
            }
            start = upto + 1;
        }
        if last.is_none_or(|last| last >= end) {
            break;
        }
        *next += 1;
    }
}

/// What blocks may be worth; those of sixteen that lie together are found together.
struct Mosts<'a> {
    level: Level,
    weight: Weight,
    norms: &'a BoundNorms,
    /// Number of the sixteen that were found.
    sixteen: usize,
    found: [f32; 16],
}

impl<'a> Mosts<'a> {
    fn new(level: Level, weight: Weight, norms: &'a BoundNorms) -> Self {
        Mosts { level, weight, norms, sixteen: usize::MAX, found: [0.0; 16] }
    }

    /// What a block with one of these bounds may be worth.
    #[inline]
    fn of(&mut self, bounds: &[Bound], block: usize) -> f32 {
        if block / 16 != self.sixteen {
            let (sixteens, rest) = bounds.as_chunks();
            let Some(sixteen) = sixteens.get(block / 16) else {
                return self.norms.most(self.weight, &rest[block % 16]);
            };
            self.found = mosts(self.level, self.weight, sixteen, self.norms);
            self.sixteen = block / 16;
        }
        self.found[block % 16]
    }
}

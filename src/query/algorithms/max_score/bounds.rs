//! Bounds of ranges of docids from the blocks of the lists that reach into them.

use crate::cpu::Level;
use crate::index::list::{ListError, ListView};
use crate::query::algorithms::ranges::{DocidRanges, MOST, NONE};
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::kernels::mosts;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

/// Lists with fewer postings than one in this many documents are decoded for their bounds.
const RARE: u32 = 1024;

impl DocidRanges {
    /// Goes on to the next ranges of the run; `false` if there are none. `order` has the terms with
    /// lists; their cursors serve for the rare ones. Fails if a list that is decoded is damaged.
    pub(crate) fn advance(
        &mut self,
        run: &RunSearch<'_>,
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
            if list.bounds().is_empty() || list.df() < run.span() / RARE {
                let cursor = &mut cursors[term];
                run.seek_scored(cursor, list, weight, self.first)?;
                while let Some(docid) = cursor.next_docid().filter(|docid| *docid < self.end) {
                    let most = &mut of_list[((docid - self.first) >> self.shift) as usize];
                    *most = most.max(cursor.scores[cursor.at]);
                    cursor.at += 1;
                    if cursor.at == cursor.len {
                        run.next_block(cursor, list, weight)?;
                    }
                }
            } else {
                let mosts = Mosts::new(run.level, weight, run.norms_for(weight).bounds);
                let span = RangeSpan { first: self.first, end: self.end, shift: self.shift };
                spread(list, mosts, &mut self.blocks[number], span, of_list);
            }
            for (sum, most) in self.sums.iter_mut().zip(of_list) {
                *sum = if *most < 0.0 { *sum } else { sum.max(0.0) + *most };
                *most = sum.max(0.0);
            }
        }
        Ok(true)
    }
}

/// Documents from the first to before the end, in ranges of `1 << shift`.
struct RangeSpan {
    first: u32,
    end: u32,
    shift: u32,
}

/// Raises the bound of each range to that of the blocks that reach into it.
fn spread(
    list: &ListView<'_>,
    mut mosts: Mosts<'_>,
    next: &mut usize,
    RangeSpan { first, end, shift }: RangeSpan,
    of_list: &mut [f32],
) {
    let last_docids = list.last_docids();
    let bounds = list.bounds();
    let last_of = |block: usize| last_docids.get(block).map(|last| u32::from_le_bytes(*last));
    let mut start = first;
    // The tail comes after the last block and reaches to the end of the run.
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

/// Bounds of blocks, computed for sixteen together.
struct Mosts<'a> {
    level: Level,
    weight: Weight,
    norms: &'a BoundNorms,
    /// Number of the sixteen that were computed last.
    sixteen: usize,
    found: [f32; 16],
}

impl<'a> Mosts<'a> {
    fn new(level: Level, weight: Weight, norms: &'a BoundNorms) -> Self {
        Mosts { level, weight, norms, sixteen: usize::MAX, found: [0.0; 16] }
    }

    /// The most that a posting of the block scores.
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

//! Brings what a device holds of a run to the host: measured, collected in the order of the lexicon
//! into columns, and copied by chunks through pinned buffers, several under way; no call waits.
//!
//! A chunk holds the terms of neighbouring trie collections, column behind column in the order of
//! [`TreeArray::COLUMNS`]. A copy brings parts of the columns of a chunk.

use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::machine::UnderWay;
use crate::papers::wei11::gpu::btree::TreeArray;
use crate::papers::wei11::gpu::btree::terms::{TermColumns, TermSums, TreeTerm, ranges, starts};
use crate::papers::wei11::gpu::btree::trees::{Trees, sums};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Shares of a chunk at most, unless it is a single collection.
const SHARES: u64 = 8;
/// Chunks that are fetched before they are dealt, at most.
const AHEAD: usize = 3;

fn bytes_of(sums: TermSums) -> u64 {
    TreeArray::COLUMNS.iter().map(|column| column.of_sums(sums)).sum()
}

type ColumnPart = (TreeArray, Range<u64>);

/// The parts of columns that begin behind `start` and hold `sums`.
fn stretches(start: TermSums, sums: TermSums) -> VecDeque<ColumnPart> {
    let all = TreeArray::COLUMNS.into_iter().map(|column| {
        let at = column.of_sums(start);
        (column, at..at + column.of_sums(sums))
    });
    all.filter(|(_, range)| !range.is_empty()).collect()
}

pub(super) struct FetchedChunk {
    /// With their sums, without those that have no terms.
    collections: Vec<(u16, TermSums)>,
    sums: TermSums,
    /// The columns, end to end.
    words: Vec<u32>,
}

impl FetchedChunk {
    fn new(collections: Range<usize>, sums: &[TermSums]) -> Self {
        let mut all = TermSums::default();
        let mut with_terms = Vec::new();
        for collection in collections {
            let here = sums[collection];
            all.iter_mut().zip(here).for_each(|(all, here)| *all += here);
            if here[0] > 0 {
                with_terms.push((collection as u16, here));
            }
        }
        let words = vec![0; bytes_of(all).div_ceil(4) as usize];
        Self { collections: with_terms, sums: all, words }
    }

    fn bytes(&self) -> usize {
        bytes_of(self.sums) as usize
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes();
        &mut bytemuck::cast_slice_mut(&mut self.words)[..bytes]
    }

    /// Without the first `done` terms, bytes of suffixes and bytes of lists.
    fn columns(&self, done: [usize; 3]) -> TermColumns<'_> {
        let [terms, suffixes, _] = self.sums.map(|n| n as usize);
        let numbers = |i: usize| &self.words[i * terms + done[0]..(i + 1) * terms];
        let bytes: &[u8] = &bytemuck::cast_slice(&self.words)[12 * terms..self.bytes()];
        let (lengths, bytes) = bytes.split_at(terms);
        let (all_suffixes, lists) = bytes.split_at(suffixes);
        TermColumns {
            dfs: numbers(0),
            lasts: numbers(1),
            list_bytes: numbers(2),
            lengths: &lengths[done[0]..],
            suffixes: &all_suffixes[done[1]..],
            lists: &lists[done[2]..],
        }
    }
}

/// What has been fetched of a part of a run and is not dealt.
#[derive(Default)]
pub(super) struct FetchedPart {
    chunks: VecDeque<Arc<FetchedChunk>>,
    /// Terms, bytes of suffixes and bytes of lists of the first chunk that are dealt.
    done: TermSums,
    /// The same in collections.
    collections: usize,
}

impl FetchedPart {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The last collection of the next terms of about this many bytes, which lie in one chunk.
    pub(super) fn border(&self, share_bytes: u64) -> Option<u16> {
        let rest = &self.chunks.front()?.collections[self.collections..];
        let mut bytes = 0;
        let border = rest.iter().find(|(_, sums)| {
            bytes += bytes_of(*sums);
            bytes >= share_bytes
        });
        border.or(rest.last()).map(|(collection, _)| *collection)
    }

    /// Deals the terms of collections up to this one, which is not behind the
    /// [border](Self::border).
    pub(super) fn deal(&mut self, border: u16) -> Option<ChunkReader> {
        let chunk = self.chunks.front()?.clone();
        let done = self.done.map(|n| n as usize);
        let collection = self.collections;
        let rest = chunk.collections[collection..].iter();
        for (_, sums) in rest.take_while(|(collection, _)| *collection <= border) {
            self.done.iter_mut().zip(sums).for_each(|(done, more)| *done += more);
            self.collections += 1;
        }
        let end = self.collections;
        if end == chunk.collections.len() {
            self.chunks.pop_front();
            (self.done, self.collections) = Default::default();
        }
        Some(ChunkReader { chunk, done, collection, before: 0, end })
    }
}

/// Reads some collections of a chunk term by term.
pub(super) struct ChunkReader {
    chunk: Arc<FetchedChunk>,
    /// Terms, bytes of suffixes and bytes of lists before the current term.
    done: [usize; 3],
    /// Its collection among the chunk's, and terms of that before it.
    collection: usize,
    before: u64,
    /// Behind the last collection.
    end: usize,
}

impl ChunkReader {
    /// The current term, with its collection; `None` at the end.
    pub(super) fn term(&self) -> Option<(u16, TreeTerm<'_>)> {
        let (collection, _) = *self.chunk.collections[..self.end].get(self.collection)?;
        Some((collection, self.chunk.columns(self.done).next()?))
    }

    pub(super) fn step(&mut self) {
        let Some((_, term)) = self.term() else { return };
        let more = [1, term.suffix.len(), term.list.len()];
        for (done, more) in self.done.iter_mut().zip(more) {
            *done += more;
        }
        self.before += 1;
        if self.before == self.chunk.collections[self.collection].1[0] {
            self.collection += 1;
            self.before = 0;
        }
    }
}

struct ComingChunk {
    chunk: FetchedChunk,
    /// Parts that are not asked for yet.
    left: VecDeque<ColumnPart>,
    /// Where in the chunk the next copy goes.
    at: usize,
    copies: VecDeque<(Box<dyn UnderWay>, Range<usize>)>,
}

pub(super) struct Fetch {
    measuring: Option<Box<dyn UnderWay>>,
    is_measured: bool,
    sums: Vec<TermSums>,
    starts: Vec<TermSums>,
    /// Of the chunks that are not begun.
    ranges: VecDeque<Range<usize>>,
    coming: VecDeque<ComingChunk>,
    ahead: usize,
    chunk_bytes: u64,
}

impl Fetch {
    /// With `whole` all chunks are fetched, else only some before others are dealt, in shares of so
    /// many bytes.
    pub(super) fn begin(
        trees: &mut Trees,
        whole: bool,
        share_bytes: u64,
    ) -> Result<Self, GpuError> {
        let measuring = trees.measure()?;
        let ahead = if whole { usize::MAX } else { AHEAD };
        let chunk_bytes = SHARES * share_bytes;
        let (is_measured, sums, starts, ranges, coming) = Default::default();
        Ok(Self { measuring, is_measured, sums, starts, ranges, coming, ahead, chunk_bytes })
    }

    /// Does what can be done now, and moves finished chunks to `part`. True when all have come.
    pub(super) fn advance(
        &mut self,
        trees: &mut Trees,
        part: &mut FetchedPart,
    ) -> Result<bool, GpuError> {
        if !self.is_measured {
            let measuring = match self.measuring.take() {
                Some(measuring) => Some(measuring),
                None => trees.measure()?,
            };
            let measured = match measuring {
                Some(measuring) if measuring.is_done()? => measuring,
                measuring => {
                    self.measuring = measuring;
                    return Ok(false);
                }
            };
            self.sums = sums(&*measured);
            self.is_measured = true;
            // Its buffer is needed.
            drop(measured);
            self.collect(trees)?;
        }
        while let Some(first) = self.coming.front_mut() {
            while let Some((copy, _)) = first.copies.front()
                && copy.is_done()?
            {
                let (copy, to) = first.copies.pop_front().expect("there was one");
                first.chunk.bytes_mut()[to].copy_from_slice(copy.bytes());
            }
            if !first.copies.is_empty() || !first.left.is_empty() {
                break;
            }
            let done = self.coming.pop_front().expect("there was one");
            part.chunks.push_back(Arc::new(done.chunk));
        }
        self.ask(trees, part)?;
        Ok(self.coming.is_empty() && self.ranges.is_empty())
    }

    fn collect(&mut self, trees: &mut Trees) -> Result<(), GpuError> {
        let all;
        (self.starts, all) = starts(&self.sums);
        if all[0] == 0 {
            return Ok(());
        }
        trees.collect(&self.starts, all)?;
        let weights: Vec<TermSums> = self.sums.iter().map(|&sums| [bytes_of(sums), 0, 0]).collect();
        let ranges = ranges(&weights, [self.chunk_bytes, 0, 0]);
        let has_terms = |range: &Range<usize>| self.sums[range.clone()].iter().any(|s| s[0] > 0);
        self.ranges = ranges.into_iter().filter(has_terms).collect();
        Ok(())
    }

    /// Starts copies as long as there are buffers.
    fn ask(&mut self, trees: &mut Trees, part: &FetchedPart) -> Result<(), GpuError> {
        loop {
            if self.coming.back().is_none_or(|last| last.left.is_empty()) {
                if part.chunks.len().saturating_add(self.coming.len()) >= self.ahead {
                    return Ok(());
                }
                let Some(collections) = self.ranges.pop_front() else { return Ok(()) };
                let start = self.starts[collections.start];
                let chunk = FetchedChunk::new(collections, &self.sums);
                let left = stretches(start, chunk.sums);
                self.coming.push_back(ComingChunk { chunk, left, at: 0, copies: VecDeque::new() });
            }
            let last = self.coming.back_mut().expect("there is one that asks");
            let (first, bytes) = take(&last.left, trees.stretch_bytes);
            let Some(copy) = trees.download(first)? else { return Ok(()) };
            drop_first(&mut last.left, bytes as u64);
            last.copies.push_back((copy, last.at..last.at + bytes));
            last.at += bytes;
        }
    }
}

/// The first `most` bytes of `left`, and how many there are.
fn take(left: &VecDeque<ColumnPart>, most: usize) -> (Vec<ColumnPart>, usize) {
    let mut first = Vec::new();
    let mut bytes = 0;
    for (column, range) in left {
        let here = (range.end - range.start).min((most - bytes) as u64);
        if here > 0 {
            first.push((*column, range.start..range.start + here));
        }
        bytes += here as usize;
    }
    (first, bytes)
}

fn drop_first(left: &mut VecDeque<ColumnPart>, mut bytes: u64) {
    while let Some((_, first)) = left.front_mut()
        && bytes > 0
    {
        let here = bytes.min(first.end - first.start);
        first.start += here;
        bytes -= here;
        if first.is_empty() {
            left.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Copies of any size bring all bytes of a chunk, in their order, and numbers are not torn.
        #[test]
        fn law_copies_cover_a_chunk(
            start in [0u64..50, 0u64..500, 0u64..500],
            sums in [0u64..60, 0u64..300, 0u64..300],
            most in 1usize..100,
        ) {
            let mut left = stretches(start, sums);
            let all: Vec<(u8, u64)> =
                left.iter().flat_map(|(c, range)| range.clone().map(|at| (*c as u8, at))).collect();
            prop_assert_eq!(all.len() as u64, bytes_of(sums));
            let mut copied = Vec::new();
            while !left.is_empty() {
                let (first, bytes) = take(&left, most * 4);
                prop_assert!(bytes > 0 && bytes <= most * 4);
                let mut place = 0;
                for (column, range) in first {
                    if column.of_sums([1, 0, 0]) == 4 {
                        prop_assert!(place % 4 == 0 && range.start % 4 == 0 && range.end % 4 == 0);
                    }
                    place += range.end - range.start;
                    copied.extend(range.map(|at| (column as u8, at)));
                }
                prop_assert_eq!(place, bytes as u64);
                drop_first(&mut left, bytes as u64);
            }
            prop_assert_eq!(copied, all);
        }
    }
}

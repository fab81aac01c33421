//! The kernels that encode the lists of a run; `kernels/invert_encode.cuh` has what each does.

use super::InvertArray::*;
use super::postings::PostingColumns;
use super::{InvertArray, InvertStep, THREADS, clear, scan, step};
use crate::gpu::floor::steps::{Argument, launch};
use std::ops::Range;

/// For each warp lengths by frequency, and pairs of both.
pub(crate) const MEASURE_PARTS_SHARED_BYTES: u32 = 8 * BOUND_LISTS_SHARED_BYTES;
pub(crate) const BOUND_LISTS_SHARED_BYTES: u32 = 256 * (4 + 2);
/// For each warp the values of a block.
pub(crate) const WRITE_PARTS_SHARED_BYTES: u32 = 8 * 128 * 4;

/// Each has a part of a list.
const WARPS: u32 = THREADS / 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodeChunk {
    pub first: u32,
    pub ranks: u32,
    pub parts: u32,
}

fn blocks(threads: u32) -> u32 {
    threads.div_ceil(THREADS)
}

pub(crate) fn keep(counted: PostingColumns) -> InvertStep {
    let PostingColumns { terms, documents, starts, count, first } = counted;
    let kept = PostingColumns::kept(count);
    launch!("invert_keep", blocks(count + 1), 0;
        terms, documents, starts, count, first, kept.terms, kept.documents, kept.starts, Counts)
}

pub(crate) fn kept_words(postings: u32) -> u64 {
    3 * u64::from(postings) + 1
}

pub(crate) fn codes(documents: u32) -> InvertStep {
    launch!("invert_codes", blocks(documents), 0; Lengths, documents, Codes)
}

/// Postings of ranks from `first` on.
pub(crate) fn rank_counts(first: u32, ranks: u32) -> InvertStep {
    let [numbers, dfs] = [Numbers, Dfs].map(|array| Argument::Array(array, 4 * u64::from(first)));
    launch!("invert_rank_counts", blocks(ranks), 0; Counts, numbers, ranks, dfs)
}

/// Writes the sums before each value, and of all.
fn sums_of(values: Argument<InvertArray>, count: u32, to: InvertArray) -> Vec<InvertStep> {
    let mut steps = vec![launch!("invert_copy", blocks(count + 1), 0; values, count, to)];
    steps.extend(scan(to, count + 1));
    steps
}

/// Places for the postings of all lists.
pub(crate) fn make_room(terms: u32) -> Vec<InvertStep> {
    let mut steps = sums_of(Counts.into(), terms, Cursors);
    steps.push(launch!("invert_cursors_of_all", blocks(terms), 0; terms, Cursors));
    steps
}

/// Places for the postings of the lists of some ranks; `terms` is the number of all.
pub(crate) fn make_room_for(ranks: &Range<usize>, terms: u32) -> Vec<InvertStep> {
    let count = ranks.len() as u32;
    let [numbers, dfs] = [Numbers, Dfs].map(|array| Argument::Array(array, 4 * ranks.start as u64));
    let mut steps = sums_of(dfs, count, ChunkFirsts);
    steps.push(clear(Cursors, 0, terms.into()));
    steps.push(launch!("invert_cursors", blocks(count), 0; numbers, count, ChunkFirsts, Cursors));
    steps
}

/// Gathers a retained batch's postings of lists that have places.
pub(crate) fn gather(kept: PostingColumns) -> Vec<InvertStep> {
    let PostingColumns { terms, documents, starts, count, .. } = kept;
    let per_posting = blocks(count);
    vec![
        launch!("invert_list_firsts", per_posting, 0; terms, count, BatchFirsts),
        launch!("invert_gather", per_posting, 0;
            terms, documents, starts, count, BatchFirsts, Cursors, Docids, Tfs),
        launch!("invert_advance", per_posting, 0; terms, count, BatchFirsts, Cursors),
    ]
}

impl EncodeChunk {
    fn by_rank(self, array: InvertArray) -> Argument<InvertArray> {
        Argument::Array(array, 4 * u64::from(self.first))
    }

    /// Measures parts, bounds `longs` long lists, measures lists; their bytes are a counter then.
    pub(crate) fn measure(self, longs: u32) -> Vec<InvertStep> {
        let Self { ranks, parts, .. } = self;
        let per_rank = blocks(ranks + 1);
        let [numbers, dfs] = [Numbers, Dfs].map(|array| self.by_rank(array));
        let mut steps = vec![
            launch!("invert_list_places", blocks(ranks), 0;
                Cursors, numbers, dfs, ranks, ChunkFirsts),
            launch!("invert_count_parts", per_rank, 0; dfs, ranks, PartFirsts),
        ];
        steps.extend(scan(PartFirsts, ranks + 1));
        steps.push(launch!("invert_measure_parts", parts.div_ceil(WARPS), MEASURE_PARTS_SHARED_BYTES;
            Docids, Tfs, dfs, ChunkFirsts, PartFirsts, ranks, parts, Codes, PartPlaces, Heads, Bounds));
        steps.extend(scan(PartPlaces, parts + 1));
        if longs > 0 {
            steps.push(launch!("invert_bound_lists", longs, BOUND_LISTS_SHARED_BYTES;
                LongLists, PartFirsts, Bounds, ListBounds));
        }
        steps.push(launch!("invert_measure_lists", per_rank, 0;
            dfs, PartFirsts, ranks, PartPlaces, EncodedPlaces));
        steps.extend(scan(EncodedPlaces, ranks + 1));
        steps
    }

    pub(crate) fn write(self) -> InvertStep {
        let Self { ranks, parts, .. } = self;
        launch!("invert_write_parts", parts.div_ceil(WARPS), WRITE_PARTS_SHARED_BYTES;
            Docids, Tfs, self.by_rank(Dfs), ChunkFirsts, PartFirsts, ranks, parts, PartPlaces,
            Heads, Bounds, ListBounds, EncodedPlaces, Encoded)
    }
}

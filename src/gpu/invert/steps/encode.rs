//! The kernels that encode the lists of a run; `kernels/invert_encode.cuh` has what each does.

use super::postings::PostingColumns;
use super::{Argument, InvertArray, InvertStep, Number, THREADS, clear, of, scan, step};
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
    let count = counted.count;
    let kept = PostingColumns::kept(counted.count);
    let arguments = vec![
        counted.terms,
        counted.documents,
        counted.starts,
        Number(count),
        Number(counted.first),
        kept.terms,
        kept.documents,
        kept.starts,
        of(InvertArray::Counts),
    ];
    step("invert_keep", blocks(count + 1), 0, arguments)
}

pub(crate) fn kept_words(postings: u32) -> u64 {
    3 * u64::from(postings) + 1
}

pub(crate) fn codes(documents: u32) -> InvertStep {
    let arguments = vec![of(InvertArray::Lengths), Number(documents), of(InvertArray::Codes)];
    step("invert_codes", blocks(documents), 0, arguments)
}

/// Postings of ranks from `first` on.
pub(crate) fn rank_counts(first: u32, ranks: u32) -> InvertStep {
    let by_rank = |array| Argument::Array(array, 4 * u64::from(first));
    let numbers = by_rank(InvertArray::Numbers);
    let dfs = by_rank(InvertArray::Dfs);
    let arguments = vec![of(InvertArray::Counts), numbers, Number(ranks), dfs];
    step("invert_rank_counts", blocks(ranks), 0, arguments)
}

/// Writes the sums before each value, and of all.
fn sums_of(values: Argument<InvertArray>, count: u32, to: InvertArray) -> Vec<InvertStep> {
    let copy = step("invert_copy", blocks(count + 1), 0, vec![values, Number(count), of(to)]);
    let mut steps = vec![copy];
    steps.extend(scan(to, count + 1));
    steps
}

/// Places for the postings of all lists.
pub(crate) fn make_room(terms: u32) -> Vec<InvertStep> {
    let mut steps = sums_of(of(InvertArray::Counts), terms, InvertArray::Cursors);
    let cursors = vec![Number(terms), of(InvertArray::Cursors)];
    steps.push(step("invert_cursors_of_all", blocks(terms), 0, cursors));
    steps
}

/// Places for the postings of the lists of some ranks; `terms` is the number of all.
pub(crate) fn make_room_for(ranks: &Range<usize>, terms: u32) -> Vec<InvertStep> {
    let first = 4 * ranks.start as u64;
    let count = ranks.len() as u32;
    let dfs = Argument::Array(InvertArray::Dfs, first);
    let mut steps = sums_of(dfs, count, InvertArray::ChunkFirsts);
    steps.push(clear(InvertArray::Cursors, 0, terms.into()));
    let numbers = Argument::Array(InvertArray::Numbers, first);
    let cursors =
        vec![numbers, Number(count), of(InvertArray::ChunkFirsts), of(InvertArray::Cursors)];
    steps.push(step("invert_cursors", blocks(count), 0, cursors));
    steps
}

/// Gathers a retained batch's postings of lists that have places.
pub(crate) fn gather(kept: PostingColumns) -> Vec<InvertStep> {
    let PostingColumns { terms, documents, starts, count, .. } = kept;
    let per_posting = blocks(count);
    let gather = vec![
        terms,
        documents,
        starts,
        Number(count),
        of(InvertArray::BatchFirsts),
        of(InvertArray::Cursors),
        of(InvertArray::Docids),
        of(InvertArray::Tfs),
    ];
    let firsts = vec![terms, Number(count), of(InvertArray::BatchFirsts)];
    let advance =
        vec![terms, Number(count), of(InvertArray::BatchFirsts), of(InvertArray::Cursors)];
    vec![
        step("invert_list_firsts", per_posting, 0, firsts),
        step("invert_gather", per_posting, 0, gather),
        step("invert_advance", per_posting, 0, advance),
    ]
}

impl EncodeChunk {
    fn dfs(self) -> Argument<InvertArray> {
        Argument::Array(InvertArray::Dfs, 4 * u64::from(self.first))
    }

    fn lists(self) -> Vec<Argument<InvertArray>> {
        vec![
            of(InvertArray::Docids),
            of(InvertArray::Tfs),
            self.dfs(),
            of(InvertArray::ChunkFirsts),
            of(InvertArray::PartFirsts),
            Number(self.ranks),
            Number(self.parts),
        ]
    }

    /// Measures parts, bounds `longs` long lists, measures lists; their bytes are a counter then.
    pub(crate) fn measure(self, longs: u32) -> Vec<InvertStep> {
        let per_rank = blocks(self.ranks + 1);
        let numbers = Argument::Array(InvertArray::Numbers, 4 * u64::from(self.first));
        let places = vec![
            of(InvertArray::Cursors),
            numbers,
            self.dfs(),
            Number(self.ranks),
            of(InvertArray::ChunkFirsts),
        ];
        let count = vec![self.dfs(), Number(self.ranks), of(InvertArray::PartFirsts)];
        let mut steps = vec![
            step("invert_list_places", blocks(self.ranks), 0, places),
            step("invert_count_parts", per_rank, 0, count),
        ];
        steps.extend(scan(InvertArray::PartFirsts, self.ranks + 1));
        let mut measure = self.lists();
        let found =
            [InvertArray::Codes, InvertArray::PartPlaces, InvertArray::Heads, InvertArray::Bounds];
        measure.extend(found.map(of));
        let per_part = self.parts.div_ceil(WARPS);
        steps.push(step("invert_measure_parts", per_part, MEASURE_PARTS_SHARED_BYTES, measure));
        steps.extend(scan(InvertArray::PartPlaces, self.parts + 1));
        if longs > 0 {
            let bounds = [
                InvertArray::LongLists,
                InvertArray::PartFirsts,
                InvertArray::Bounds,
                InvertArray::ListBounds,
            ]
            .map(of);
            let bounds = bounds.into();
            steps.push(step("invert_bound_lists", longs, BOUND_LISTS_SHARED_BYTES, bounds));
        }
        let lists = vec![
            self.dfs(),
            of(InvertArray::PartFirsts),
            Number(self.ranks),
            of(InvertArray::PartPlaces),
            of(InvertArray::EncodedPlaces),
        ];
        steps.push(step("invert_measure_lists", per_rank, 0, lists));
        steps.extend(scan(InvertArray::EncodedPlaces, self.ranks + 1));
        steps
    }

    pub(crate) fn write(self) -> InvertStep {
        let mut arguments = self.lists();
        let measured = [
            InvertArray::PartPlaces,
            InvertArray::Heads,
            InvertArray::Bounds,
            InvertArray::ListBounds,
            InvertArray::EncodedPlaces,
            InvertArray::Encoded,
        ];
        arguments.extend(measured.map(of));
        let per_part = self.parts.div_ceil(WARPS);
        step("invert_write_parts", per_part, WRITE_PARTS_SHARED_BYTES, arguments)
    }
}

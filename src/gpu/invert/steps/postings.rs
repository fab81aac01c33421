//! The kernels that sort (term, document) pairs into postings, and write the lists of a batch.

use super::InvertArray::*;
use super::{InvertArray, InvertStep, SCAN_SHARED_BYTES, THREADS, counted, step, tiles};
use crate::gpu::floor::steps::{Argument, launch};
use crate::gpu::invert::text::MOST_PIECES;

const SORT_TILE: u32 = 4096;
/// Most bits of a digit, and digits.
const SORT_BITS: u32 = 9;
const SORT_DIGITS: u32 = 1 << SORT_BITS;

pub(crate) const SORT_COUNT_SHARED_BYTES: u32 = 4 * SORT_DIGITS;
pub(crate) const SORT_SCATTER_SHARED_BYTES: u32 =
    SCAN_SHARED_BYTES + 2 * 8 * SORT_DIGITS + 4 * SORT_DIGITS + 2 * 4 * SORT_TILE;
pub(crate) const MEASURE_SHARED_BYTES: u32 = SCAN_SHARED_BYTES + 8 * MOST_PIECES as u32;

/// For the counts of digits.
pub(crate) fn sort_words(pairs: u32) -> u32 {
    SORT_DIGITS * pairs.div_ceil(SORT_TILE)
}

/// The digits by which terms are sorted, the lowest first: where each begins, and its bits.
pub(crate) fn sort_digits(bits: u32) -> impl Iterator<Item = (u32, u32)> {
    let passes = bits.div_ceil(SORT_BITS);
    let each = bits.div_ceil(passes.max(1));
    (0..passes).map(move |pass| (pass * each, each))
}

/// Sorts pairs by `bits` bits of their terms from `shift` on, to the other two arrays.
pub(crate) fn sort_pass(pairs: u32, shift: u32, bits: u32) -> Vec<InvertStep> {
    let tiles = pairs.div_ceil(SORT_TILE);
    let count = launch!("invert_sort_count", tiles, SORT_COUNT_SHARED_BYTES;
        Keys, pairs, shift, bits, Tiles);
    let mut steps = counted(count, tiles << bits);
    steps.push(launch!("invert_sort_scatter", tiles, SORT_SCATTER_SHARED_BYTES;
        Keys, Values, pairs, shift, bits, Tiles, SortedKeys, SortedValues));
    steps
}

pub(crate) fn count_postings(pairs: u32) -> Vec<InvertStep> {
    let tiles = tiles(pairs);
    let count =
        launch!("invert_count_postings", tiles, SCAN_SHARED_BYTES; Keys, Values, pairs, Tiles);
    counted(count, tiles)
}

pub(crate) fn write_postings(pairs: u32) -> InvertStep {
    launch!("invert_write_postings", tiles(pairs), SCAN_SHARED_BYTES;
        Keys, Values, pairs, Tiles, Postings, SortedKeys, SortedValues)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PostingColumns {
    pub(super) terms: Argument<InvertArray>,
    pub(super) documents: Argument<InvertArray>,
    pub(super) starts: Argument<InvertArray>,
    pub(super) count: u32,
    /// The docid, from the run's first, of document 0.
    pub(super) first: u32,
}

impl PostingColumns {
    /// Of the batch counted last, which begins at docid `first` of the run.
    pub(crate) fn counted(count: u32, first: u32) -> Self {
        let [terms, documents, starts] = [SortedKeys, SortedValues, Postings].map(Argument::from);
        Self { terms, documents, starts, count, first }
    }

    /// Of a retained batch.
    pub(crate) fn kept(count: u32) -> Self {
        let column = |n: u64| Argument::Array(Kept, 4 * n * u64::from(count));
        Self { terms: column(0), documents: column(1), starts: column(2), count, first: 0 }
    }
}

pub(crate) fn measure(columns: PostingColumns, pieces: u32) -> Vec<InvertStep> {
    let PostingColumns { terms, documents, starts, count, first } = columns;
    let tiles = tiles(count);
    let measure = launch!("invert_measure", tiles, MEASURE_SHARED_BYTES;
        terms, documents, starts, count, Lasts, first, PieceStarts, pieces, Tiles, PieceBytes,
        PiecePostings);
    counted(measure, tiles)
}

pub(crate) fn write_lists(columns: PostingColumns, most: u32) -> Vec<InvertStep> {
    let PostingColumns { terms, documents, starts, count, first } = columns;
    vec![
        launch!("invert_write_lists", tiles(count), SCAN_SHARED_BYTES;
            terms, documents, starts, count, Lasts, first, Tiles, ListPlaces, Lists),
        launch!("invert_list_starts", (most + 1).div_ceil(THREADS), 0;
            terms, count, ListPlaces, most, ListStarts),
        launch!("invert_move_lasts", count.div_ceil(THREADS), 0;
            terms, documents, count, first, Lasts),
    ]
}

//! The inner loops of the algorithms. Each has one plain form, which defines its result; AVX2
//! machines run it compiled for them, and AVX-512 machines run the form of `avx512.rs`. All forms
//! give the same bits.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx512;
mod best;
mod bitmaps;
pub(super) mod places;
mod portable;
#[cfg(test)]
mod tests;

pub(super) use best::{
    add_all, add_codes, add_documents, blend_all, collect_reaching, collect_sums, count_bits,
    first_posting, match_block, narrow, number_bits, offer_block, pick_common, rank_bits,
    share_out, sweep, test_bits,
};
pub(super) use portable::first_block;

use std::ops::Range;

use super::top_k::TopK;
use crate::cpu::Level;
use crate::index::list::MAX_BLOCK as BLOCK;
use crate::index::run::dense::LINE_WORDS;
use crate::score::block_codes::CODES;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

/// Follows the last docid of a block or of the candidates: above every docid.
pub(super) const NO_DOCID: u32 = u32::MAX;

/// The accumulator of a document that no term has matched: minus zero, to which adding a score
/// gives that score to the bit, and which no sum of scores is.
pub(super) const UNMATCHED: f32 = -0.0;

/// Room for the numbers of the longest block and one vector beyond it. If the numbers are docids,
/// [`NO_DOCID`] follows them 16 times, and those of a block up to a multiple of 128 besides; the
/// rest is arbitrary.
pub(super) type BlockRoom = [u32; BLOCK + 16];

#[derive(Debug)]
pub(super) struct Matches<'a> {
    /// How many were found; the arrays are arbitrary behind them.
    pub(super) found: usize,
    pub(super) docids: &'a mut BlockRoom,
    /// Their numbers among the candidates.
    pub(super) kept: &'a mut BlockRoom,
    /// Their places in the list.
    pub(super) positions: &'a mut BlockRoom,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DocidBlock<'a> {
    pub(super) docids: &'a BlockRoom,
    /// How many docids: at least 1.
    pub(super) len: usize,
    /// Position of the first in the list.
    pub(super) first: u32,
}

/// The bits of 512 documents.
pub(super) type Line = [u64; LINE_WORDS];

// Candidates by the block of a list in which they lie: a share for each block.
#[derive(Clone, Debug)]
pub(super) struct CandidateShares {
    pub(super) blocks: BlockRoom,
    /// Of each share, the number of the first candidate behind it.
    pub(super) ends: BlockRoom,
    /// How many shares; the arrays are arbitrary behind them.
    pub(super) len: usize,
}

impl CandidateShares {
    pub(super) const NONE: Self =
        CandidateShares { blocks: [0; BLOCK + 16], ends: [0; BLOCK + 16], len: 0 };

    #[inline(always)]
    fn push(&mut self, block: usize, end: usize) {
        self.blocks[self.len] = block as u32;
        self.ends[self.len] = end as u32;
        self.len += 1;
    }
}

/// Docids that are looked for in a list, which rise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoughtDocids<'a> {
    pub(crate) docids: &'a BlockRoom,
    pub(crate) count: usize,
}

/// Those that were found, and their numbers among those that were looked for.
#[derive(Debug)]
pub(crate) struct FoundDocids<'a> {
    pub(crate) docids: &'a mut BlockRoom,
    pub(crate) kept: &'a mut BlockRoom,
}

/// Scores the first `len` postings of a block. `norms` holds a norm for each of the docids.
#[inline]
pub(super) fn scores(
    level: Level,
    weight: Weight,
    docids: &BlockRoom,
    tfs: &[u32; BLOCK],
    len: usize,
    norms: &[f32],
    scores: &mut [f32; BLOCK],
) {
    if weight.is_saturation() {
        // Adding zero turns minus zero into zero and changes no other weight.
        let weight = weight.factor() + 0.0;
        best::scores(level, weight, docids, tfs, len, norms, scores)
    } else {
        other_scores(level, weight, docids, tfs, len, norms, scores);
    }
}

/// The postings of a decoded block, as [`DocidBlock`] has their docids. The weight is linear.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoredPostings<'a> {
    pub(super) weight: Weight,
    pub(super) docids: &'a BlockRoom,
    pub(super) tfs: &'a [u32; BLOCK],
    pub(super) len: usize,
}

/// Replaces `scaled` by the scores, [scaled up](crate::score::block_codes::scaled_up).
#[inline]
pub(super) fn scale_up(level: Level, scores: &[f32], scale: f32, scaled: &mut Vec<u16>) {
    scaled.clear();
    scaled.resize(scores.len(), 0);
    best::scale_up(level, scores, scale, scaled);
}

/// Replaces `greatest` by the greatest of each 64 sums.
#[inline]
pub(super) fn greatest_sums(level: Level, sums: &[[u16; 64]], greatest: &mut Vec<u16>) {
    greatest.clear();
    best::greatest_sums(level, sums, greatest);
}

/// What the codes of a query's term add to sums.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct CodeSums([u16; CODES]);

impl Default for CodeSums {
    fn default() -> Self {
        Self([0; CODES])
    }
}

impl CodeSums {
    /// For the scores that the codes stand for, [scaled up](crate::score::block_codes::scaled_up).
    #[inline]
    pub(super) fn fill(&mut self, level: Level, scores: &[f32; CODES], scale: f32) {
        best::scale_up(level, scores, scale, &mut self.0);
        self.0[0] = 0;
    }
}

/// [`scores`] by a formula that is not saturation.
#[inline(never)]
fn other_scores(
    level: Level,
    weight: Weight,
    docids: &BlockRoom,
    tfs: &[u32; BLOCK],
    len: usize,
    norms: &[f32],
    scores: &mut [f32; BLOCK],
) {
    if weight.is_without_norms() {
        scores[..len].fill(0.0);
    } else {
        for (score, &docid) in scores.iter_mut().zip(&docids[..len]) {
            *score = norms[docid as usize];
        }
    }
    best::score_all(level, weight, &tfs[..len], &mut scores[..len]);
}

/// Adds the scores of the first `count` postings to their sums. Sums behind them may change.
#[inline]
pub(super) fn add_scores(
    level: Level,
    weight: Weight,
    tfs: &BlockRoom,
    norms: &[f32; BLOCK],
    count: usize,
    sums: &mut [f32; BLOCK],
) {
    if weight.is_saturation() {
        best::add_scores(level, weight.factor(), tfs, norms, count, sums)
    } else {
        add_other_scores(level, weight, tfs, norms, count, sums);
    }
}

/// [`add_scores`] by a formula that is not saturation.
#[inline(never)]
fn add_other_scores(
    level: Level,
    weight: Weight,
    tfs: &BlockRoom,
    norms: &[f32; BLOCK],
    count: usize,
    sums: &mut [f32; BLOCK],
) {
    let mut scores = *norms;
    best::score_all(level, weight, &tfs[..count], &mut scores[..count]);
    for (sum, score) in sums[..count].iter_mut().zip(&scores) {
        *sum += score;
    }
}

/// Candidates with their sums so far. The arrays are arbitrary behind them.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Left {
    /// They rise, with [`NO_DOCID`] 16 times behind them.
    pub(super) docids: BlockRoom,
    pub(super) sums: [f32; BLOCK + 16],
    /// Where their scores are stored.
    pub(super) slots: BlockRoom,
    pub(super) count: usize,
}

/// Bounds of the scores in lists that were not searched, by ranges of docids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(super) of_ranges: &'a [f32],
    /// The first document of the first range.
    pub(super) first: u32,
    /// Binary logarithm of the documents of a range.
    pub(super) shift: u32,
}

#[derive(Debug, Default)]
pub(crate) struct ScoredDocuments {
    docids: Vec<u32>,
    sums: Vec<f32>,
    /// How many; the rest is arbitrary.
    len: usize,
}

impl ScoredDocuments {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn part(&self, part: Range<usize>) -> (&[u32], &[f32]) {
        (&self.docids[part.clone()], &self.sums[part])
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes room for so many more and for a vector behind them.
    fn make_room(&mut self, more: usize) {
        let needed = self.len + more + 16;
        if self.docids.len() < needed {
            self.docids.resize(needed.next_power_of_two(), 0);
            self.sums.resize(needed.next_power_of_two(), 0.0);
        }
    }
}

/// Documents of a line of accumulators.
pub(super) const LINE: usize = 16;

/// Adds the documents of a window with sums above `bar`, which is not below zero, to `found`. Only
/// lines that are not zero in `lines` are read; these and their accumulators are cleared. The
/// numbers of both are powers of two, and there are 64 lines or more.
#[inline]
pub(super) fn collect(
    level: Level,
    accumulators: &mut [f32],
    lines: &mut [u8],
    first_docid: u32,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    best::collect(level, accumulators, lines, first_docid, bar, found)
}

/// Adds the documents of a part of a block with scores above `bar` to `found`.
#[inline]
pub(super) fn collect_block(
    level: Level,
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    found.make_room(BLOCK);
    best::collect_block(level, docids, scores, part, bar, found)
}

/// [`BoundNorms::most`] for each of sixteen blocks.
#[inline]
pub(super) fn mosts(
    level: Level,
    weight: Weight,
    bounds: &[Bound; 16],
    norms: &BoundNorms,
) -> [f32; 16] {
    if weight.is_saturation() {
        best::mosts(level, weight.factor(), bounds, norms)
    } else {
        bounds.map(|bound| norms.most(weight, &bound))
    }
}

pub(crate) trait SumSink {
    /// Sums up to this are not wanted; below zero if every document is.
    fn bar(&self) -> f32;

    fn push(&mut self, docid: u32, sum: f32);
}

impl SumSink for TopK {
    #[inline(always)]
    fn bar(&self) -> f32 {
        self.threshold()
    }

    #[inline(always)]
    fn push(&mut self, docid: u32, sum: f32) {
        self.offer(docid, sum);
    }
}

/// The bits that an accumulator has to exceed, as a signed number, to be matched and above the bar:
/// sums are not negative, so their bits order as signed numbers do, and those of [`UNMATCHED`] are
/// the least of all.
#[inline(always)]
fn bits_to_exceed(sink: &impl SumSink) -> i32 {
    let bar = sink.bar();
    if bar < 0.0 { UNMATCHED.to_bits() as i32 } else { bar.to_bits() as i32 }
}

//! The inner loops, each in the best form of the machine.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::{
    BLOCK, BlockRoom, CandidateShares, CodeSums, DocidBlock, FoundDocids, Left, Line, Matches,
    Rest, ScoredDocuments, ScoredPostings, SoughtDocids, SumSink, portable,
};
use crate::cpu::Level;
use crate::index::block_bounds::BlockCodes;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

/// Has the plain forms compiled for AVX2 too, and calls each in the best form of the machine.
macro_rules! kernels {
    ($(
        $(#[$about:meta])*
        fn $name:ident$(<$sink:ident>)?($($argument:ident: $type:ty),* $(,)?)
        $(-> $result:ty)?;
    )*) => {
        #[cfg(target_arch = "x86_64")]
        mod avx2 {
            use super::*;

            $(
                #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
                pub(super) fn $name$(<$sink: SumSink>)?($($argument: $type),*) $(-> $result)? {
                    portable::$name($($argument),*)
                }
            )*
        }

        $(
            $(#[$about])*
            #[inline]
            pub(in crate::query) fn $name$(<$sink: SumSink>)?(
                level: Level,
                $($argument: $type),*
            ) $(-> $result)? {
                match level {
                    // SAFETY: a level is found only where its instructions are.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx512 => unsafe { avx512::$name($($argument),*) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Level::Avx2 => unsafe { avx2::$name($($argument),*) },
                    Level::Portable => portable::$name($($argument),*),
                }
            }
        )*
    };
}

kernels! {
    /// Divides the candidates among the blocks of a list, given by their last docids, from block
    /// `from` on. Those behind all blocks are the share of the tail, which comes after the last
    /// block.
    fn share_out(
        last_docids: &[[u8; 4]],
        from: usize,
        sought: SoughtDocids<'_>,
        shares: &mut CandidateShares,
    );

    /// Looks in `block` for the candidates with numbers from `from` up to `end` and adds those
    /// found to `matches`. No candidate before `from` is in the block, and if one from `end` on
    /// is, it is [`NO_DOCID`].
    fn match_block(
        candidates: &BlockRoom, from: usize, end: usize, block: DocidBlock<'_>,
        matches: &mut Matches<'_>
    );

    /// The first number from `from` on of a docid that is at least `docid`, among the first `len`
    /// docids, which rise; `len` or more if there is none.
    fn first_posting(docids: &BlockRoom, from: usize, len: usize, docid: u32) -> usize;

    /// Looks for candidates in a bitmap, bit `docid % 64` of word `docid / 64`; returns how many
    /// were found. All are of its documents.
    fn test_bits(bits: &[u64], sought: SoughtDocids<'_>, found: FoundDocids<'_>) -> usize;

    fn count_bits(words: &[u64]) -> u32;

    /// Writes how many bits come before each of some documents that rise; `before` has how many
    /// come before each line.
    fn rank_bits(bits: &[u64], before: &[u32], docids: &[u32], ranks: &mut BlockRoom);

    /// Writes the docids of a line's bits; returns how many there are.
    fn number_bits(line: &Line, first: u32, docids: &mut BlockRoom) -> usize;

    /// Writes the numbers of those postings of a line's documents whose documents are common too.
    /// `numbers` are of all of its postings, with 16 more behind them.
    fn pick_common(common: &Line, line: &Line, numbers: &[u32], picked: &mut BlockRoom);

    /// Adds the scores of the postings of 64 documents, the first of which is `first`, to their
    /// sums.
    fn add_documents(
        postings: ScoredPostings<'_>,
        first: u32,
        norms: &[f32; 64],
        sums: &mut [f32; 64],
    );

    /// Adds the numbers of the sums that are at least `bar`, which is not 0, to `found`.
    fn collect_sums(sums: &[[u16; 64]], bar: u16, found: &mut Vec<u32>);

    /// Adds what the codes of a list stand for to the sums of its blocks, the first of which is
    /// the first of word `from`; the greatest sum stays.
    fn add_codes(
        codes: &BlockCodes<'_>,
        from: usize,
        of_codes: &CodeSums,
        sums: &mut [[u16; 64]],
    );

    /// Drops candidates whose sum and bound do not exceed `bar`. Each is in a range.
    fn narrow(bar: f32, rest: Rest<'_>, left: &mut Left);

    /// Passes the documents of a part of a block, which rise, to `sink` if their scores are above
    /// its bar, with `first_docid` added.
    fn offer_block<S>(docids: &BlockRoom, scores: &[f32; BLOCK], part: Range<usize>, first_docid: u32,
        sink: &mut S
    );

    /// Passes the matched documents of a window, the first of which is `first_docid`, to `sink` if
    /// their sums are above its bar, and makes every accumulator [`UNMATCHED`] again.
    fn sweep<S>(accumulators: &mut [f32], first_docid: u32, sink: &mut S);

    /// Makes scores of the frequencies of a word, 0 where it is not, and adds them to the sums.
    fn blend_all(weight: Weight, frequencies: &mut [f32], sums: &mut [f32]);

    /// Adds scores to sums.
    fn add_all(scores: &[f32], sums: &mut [f32]);

    /// Adds the places of sums above 0 to `found` that reach `bar` with `rest` more.
    fn collect_reaching(sums: &[f32], rest: f32, bar: f32, found: &mut Vec<u32>);

    fn scores(weight: f32, docids: &BlockRoom, tfs: &[u32; BLOCK], len: usize, norms: &[f32],
        scores: &mut [f32; BLOCK]
    );
    fn add_scores(weight: f32, tfs: &BlockRoom, norms: &[f32; BLOCK], count: usize,
        sums: &mut [f32; BLOCK]
    );
    fn score_all(weight: Weight, tfs: &[u32], norms: &mut [f32]);
    fn scale_up(scores: &[f32], scale: f32, scaled: &mut [u16]);
    fn greatest_sums(sums: &[[u16; 64]], greatest: &mut Vec<u16>);
    fn mosts(weight: f32, bounds: &[Bound; 16], norms: &BoundNorms
    ) -> [f32; 16];
    fn collect(
        accumulators: &mut [f32], lines: &mut [u8], first_docid: u32, bar: f32,
        found: &mut ScoredDocuments
    );
    fn collect_block(docids: &BlockRoom, scores: &[f32; BLOCK], part: Range<usize>, bar: f32,
        found: &mut ScoredDocuments
    );
}

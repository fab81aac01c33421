//! The plain forms, compiled for machines with AVX2.

use std::ops::Range;

use crate::index::block_bounds::BlockCodes;
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::Weight;

use super::{
    BLOCK, BlockRoom, CandidateShares, CodeSums, DocidBlock, Left, Matches, Rest, ScoredDocuments,
    ScoredPostings, SoughtDocids, SumSink, portable,
};

macro_rules! compiled_for_avx2 {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        pub(super) fn $name($($argument: $type),*) $(-> $result)? {
            portable::$name($($argument),*)
        }
    )*};
}

compiled_for_avx2! {
    fn share_out(
        last_docids: &[[u8; 4]],
        from: usize,
        sought: SoughtDocids<'_>,
        shares: &mut CandidateShares
    );
    fn first_posting(docids: &BlockRoom, from: usize, len: usize, docid: u32) -> usize;
    fn match_block(
        candidates: &BlockRoom,
        from: usize,
        end: usize,
        block: DocidBlock<'_>,
        matches: &mut Matches<'_>
    );
    fn scores(
        weight: f32,
        docids: &BlockRoom,
        tfs: &[u32; BLOCK],
        len: usize,
        norms: &[f32],
        scores: &mut [f32; BLOCK]
    );
    fn add_scores(
        weight: f32,
        tfs: &[u32; BLOCK],
        norms: &[f32; BLOCK],
        count: usize,
        sums: &mut [f32; BLOCK]
    );
    fn score_all(weight: Weight, tfs: &[u32], norms: &mut [f32]);
    fn add_codes(
        codes: &BlockCodes<'_>,
        from: usize,
        of_codes: &CodeSums,
        sums: &mut [[u16; 64]]
    );
    fn scale_up(scores: &[f32], scale: f32, scaled: &mut [u16]);
    fn collect_sums(sums: &[[u16; 64]], bar: u16, found: &mut Vec<u32>);
    fn greatest_sums(sums: &[[u16; 64]], greatest: &mut Vec<u16>);
    fn add_documents(
        postings: ScoredPostings<'_>,
        first: u32,
        norms: &[f32; 64],
        sums: &mut [f32; 64]
    );
    fn mosts(weight: f32, bounds: &[Bound; 16], norms: &BoundNorms) -> [f32; 16];
    fn narrow(bar: f32, rest: Rest<'_>, left: &mut Left);
    fn collect(
        accumulators: &mut [f32],
        lines: &mut [u8],
        first_docid: u32,
        bar: f32,
        found: &mut ScoredDocuments
    );
    fn collect_block(
        docids: &BlockRoom,
        scores: &[f32; BLOCK],
        part: Range<usize>,
        bar: f32,
        found: &mut ScoredDocuments
    );
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn sweep<S: SumSink>(accumulators: &mut [f32], first_docid: u32, sink: &mut S) {
    portable::sweep(accumulators, first_docid, sink);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn offer_block<S: SumSink>(
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    first_docid: u32,
    sink: &mut S,
) {
    portable::offer_block(docids, scores, part, first_docid, sink);
}

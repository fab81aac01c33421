//! The inner loops, sixteen lanes wide.

mod bitmaps;
mod bounds;
mod codes;
mod collect;
mod find;

use std::arch::x86_64::*;
use std::ops::Range;

pub(super) use bitmaps::{count_bits, number_bits, pick_common, rank_bits, test_bits};
pub(super) use bounds::mosts;
pub(super) use codes::{add_codes, add_documents, collect_sums, greatest_sums, scale_up};
pub(super) use collect::{collect, collect_block, narrow};
#[cfg(test)]
pub(super) use find::check_intersections;
pub(super) use find::{match_block, share_out};

use super::{BLOCK, BlockRoom, SumSink, UNMATCHED, bits_to_exceed, portable};
use crate::score::weight::Weight;

#[inline]
#[target_feature(enable = "avx512f")]
fn load(numbers: &[u32], at: usize) -> __m512i {
    let sixteen = &numbers[at..at + 16];
    // SAFETY: sixteen u32 are readable there.
    unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_floats(numbers: &[f32], at: usize) -> __m512 {
    let sixteen = &numbers[at..at + 16];
    // SAFETY: sixteen f32 are readable there.
    unsafe { _mm512_loadu_ps(sixteen.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(numbers: &mut [u32], at: usize, values: __m512i) {
    let sixteen = &mut numbers[at..at + 16];
    // SAFETY: sixteen u32 are writable there.
    unsafe { _mm512_storeu_si512(sixteen.as_mut_ptr().cast(), values) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_floats(numbers: &mut [f32], at: usize, values: __m512) {
    let sixteen = &mut numbers[at..at + 16];
    // SAFETY: sixteen f32 are writable there.
    unsafe { _mm512_storeu_ps(sixteen.as_mut_ptr(), values) }
}

/// The first `count` lanes; all from 16 on.
#[inline(always)]
fn first_lanes(count: usize) -> u16 {
    ((1u32 << count.min(16)) - 1) as u16
}

#[inline]
#[target_feature(enable = "avx512f")]
fn iota() -> __m512i {
    _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn first_posting(docids: &BlockRoom, from: usize, len: usize, docid: u32) -> usize {
    let wanted = _mm512_set1_epi32(docid as i32);
    let mut at = from;
    while at < len {
        let reached = _mm512_cmpge_epu32_mask(load(docids, at), wanted);
        if reached != 0 {
            return at + reached.trailing_zeros() as usize;
        }
        at += 16;
    }
    len
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn scores(
    weight: f32,
    docids: &BlockRoom,
    tfs: &[u32; BLOCK],
    len: usize,
    norms: &[f32],
    scores: &mut [f32; BLOCK],
) {
    // The gather takes signed numbers.
    let Ok(documents) = i32::try_from(norms.len()) else {
        return portable::scores(weight, docids, tfs, len, norms, scores);
    };
    let weight = _mm512_set1_ps(weight);
    let documents = _mm512_set1_epi32(documents);
    for at in (0..len).step_by(16) {
        let docids = load(docids, at);
        let valid = _mm512_cmplt_epu32_mask(docids, documents);
        // SAFETY: only numbers below the length of `norms` are read, of four bytes each.
        let norms = unsafe {
            _mm512_mask_i32gather_ps::<4>(_mm512_setzero_ps(), valid, docids, norms.as_ptr())
        };
        store_floats(scores, at, score(weight, load(tfs, at), norms));
    }
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn blend_all(weight: Weight, frequencies: &mut [f32], sums: &mut [f32]) {
    portable::blend_all(weight, frequencies, sums);
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn add_all(scores: &[f32], sums: &mut [f32]) {
    portable::add_all(scores, sums);
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn collect_reaching(sums: &[f32], rest: f32, bar: f32, found: &mut Vec<u32>) {
    portable::collect_reaching(sums, rest, bar, found);
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn score_all(weight: Weight, tfs: &[u32], norms: &mut [f32]) {
    portable::score_all(weight, tfs, norms);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn score(weight: __m512, tfs: __m512i, norms: __m512) -> __m512 {
    let tfs = _mm512_cvtepu32_ps(tfs);
    _mm512_div_ps(_mm512_mul_ps(weight, tfs), _mm512_add_ps(tfs, norms))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn add_scores(
    weight: f32,
    tfs: &BlockRoom,
    norms: &[f32; BLOCK],
    count: usize,
    sums: &mut [f32; BLOCK],
) {
    let weight = _mm512_set1_ps(weight);
    for at in (0..count).step_by(16) {
        let more = score(weight, load(tfs, at), load_floats(norms, at));
        let sum = _mm512_add_ps(load_floats(sums, at), more);
        store_floats(sums, at, sum);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn offer_block<S: SumSink>(
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    first_docid: u32,
    sink: &mut S,
) {
    for at in (part.start / 16 * 16..part.end).step_by(16) {
        let threshold = _mm512_set1_ps(sink.bar());
        let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(load_floats(scores, at), threshold);
        let lanes = first_lanes(part.end - at) & !first_lanes(part.start.saturating_sub(at));
        let mut above = above & lanes;
        while above != 0 {
            let i = at + above.trailing_zeros() as usize;
            sink.push(first_docid + docids[i], scores[i]);
            above &= above - 1;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(super) fn sweep<S: SumSink>(accumulators: &mut [f32], first_docid: u32, sink: &mut S) {
    let unmatched = _mm512_set1_ps(UNMATCHED);
    let mut bar = _mm512_set1_epi32(bits_to_exceed(sink));
    let mut docid = first_docid;
    let (chunks, rest) = accumulators.as_chunks_mut::<64>();
    for chunk in chunks {
        let sums: [__m512i; 4] =
            std::array::from_fn(|i| _mm512_castps_si512(load_floats(chunk, 16 * i)));
        let greatest = _mm512_max_epi32(
            _mm512_max_epi32(sums[0], sums[1]),
            _mm512_max_epi32(sums[2], sums[3]),
        );
        if _mm512_cmpgt_epi32_mask(greatest, bar) != 0 {
            let above = |i: usize| u64::from(_mm512_cmpgt_epi32_mask(sums[i], bar));
            push_lanes(
                above(0) | above(1) << 16 | above(2) << 32 | above(3) << 48,
                chunk,
                docid,
                sink,
            );
            bar = _mm512_set1_epi32(bits_to_exceed(sink));
        }
        for i in 0..4 {
            store_floats(chunk, 16 * i, unmatched);
        }
        docid = docid.wrapping_add(64);
    }
    portable::sweep(rest, docid, sink);
}

#[inline(never)]
fn push_lanes<S: SumSink>(mut lanes: u64, sums: &[f32; 64], first_docid: u32, sink: &mut S) {
    while lanes != 0 {
        let lane = lanes.trailing_zeros();
        sink.push(first_docid + lane, sums[lane as usize]);
        lanes &= lanes - 1;
    }
}

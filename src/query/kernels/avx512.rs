//! The inner loops, sixteen lanes wide.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::LazyLock;

use super::{BLOCK, Block, Matches, NO_DOCID, Room, TopK, UNMATCHED, bits_to_exceed, portable};

/// Up to this many candidates a block are looked for one by one: each takes about 8 cycles, a merge
/// of whole blocks about 8 for every sixteen postings.
const FEW: usize = 10;

/// Whether one instruction finds what two vectors have in common.
static INTERSECTS: LazyLock<bool> =
    LazyLock::new(|| is_x86_feature_detected!("avx512vp2intersect"));

/// The first sixteen numbers from `at` on.
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn first_block(last_docids: &[[u8; 4]], mut from: usize, docid: u32) -> usize {
    let wanted = _mm512_set1_epi32(docid as i32);
    // Most steps are short; a long one is left to the galloping search.
    for _ in 0..4 {
        let rest = &last_docids[from.min(last_docids.len())..];
        let lanes = first_lanes(rest.len());
        // SAFETY: the lanes are no more than the last docids that there are.
        let last = unsafe { _mm512_maskz_loadu_epi32(lanes, rest.as_ptr().cast()) };
        let reached = _mm512_mask_cmpge_epu32_mask(lanes, last, wanted);
        if reached != 0 {
            return from + reached.trailing_zeros() as usize;
        }
        if rest.len() <= 16 {
            return last_docids.len();
        }
        from += 16;
    }
    portable::first_block(last_docids, from, docid)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn match_block(
    candidates: &Room,
    (from, count): (usize, usize),
    block: Block<'_>,
    matches: &mut Matches,
) -> usize {
    let last = block.docids[block.len - 1];
    if candidates[from + FEW] > last {
        match_few(candidates, (from, count), last, block, matches)
    } else if *INTERSECTS {
        match_many::<true>(candidates, (from, count), last, block, matches)
    } else {
        match_many::<false>(candidates, (from, count), last, block, matches)
    }
}

/// Compares each candidate with the whole block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn match_few(
    candidates: &Room,
    (from, count): (usize, usize),
    last: u32,
    block: Block<'_>,
    matches: &mut Matches,
) -> usize {
    let docids: [__m512i; 8] = std::array::from_fn(|i| load(block.docids, 16 * i));
    let mut found = matches.found;
    let mut candidate = from;
    while candidate < count && candidates[candidate] <= last {
        let wanted = _mm512_set1_epi32(candidates[candidate] as i32);
        let equal = |i: usize| u64::from(_mm512_cmpeq_epi32_mask(docids[i], wanted));
        let low = equal(0) | equal(1) << 16 | equal(2) << 32 | equal(3) << 48;
        let high = equal(4) | equal(5) << 16 | equal(6) << 32 | equal(7) << 48;
        let in_low = low.trailing_zeros();
        let at = if low != 0 { in_low } else { 64 + high.trailing_zeros() };
        matches.kept[found] = candidate as u32;
        matches.positions[found] = block.first.wrapping_add(at);
        found += usize::from(low | high != 0);
        candidate += 1;
    }
    matches.found = found;
    candidate
}

/// Merges: sixteen candidates against sixteen postings a step.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn match_many<const INTERSECTS: bool>(
    candidates: &Room,
    (from, count): (usize, usize),
    last: u32,
    block: Block<'_>,
    matches: &mut Matches,
) -> usize {
    let mut found = matches.found;
    let (mut candidate, mut at) = (from, 0);
    while candidate < count && at < block.len {
        let wanted = load(candidates, candidate);
        let docids = load(block.docids, at);
        let (kept, met) =
            if INTERSECTS { intersect(wanted, docids) } else { compare_all(wanted, docids) };
        // What follows the candidates may equal what follows the docids.
        let kept = kept & first_lanes(count - candidate);
        let met = met & first_lanes(block.len - at);
        let number = |first: u32| _mm512_add_epi32(iota(), _mm512_set1_epi32(first as i32));
        let numbers = _mm512_maskz_compress_epi32(kept, number(candidate as u32));
        store(&mut matches.kept, found, numbers);
        let places = number(block.first.wrapping_add(at as u32));
        store(&mut matches.positions, found, _mm512_maskz_compress_epi32(met, places));
        found += kept.count_ones() as usize;
        let (most_wanted, most) = (candidates[candidate + 15], block.docids[at + 15]);
        candidate += 16 * usize::from(most_wanted <= most);
        at += 16 * usize::from(most <= most_wanted);
    }
    matches.found = found;
    if block.len < BLOCK {
        // What follows the docids of a tail lets candidates behind them pass.
        return from + candidates[from..count].partition_point(|&docid| docid <= last);
    }
    if candidate >= count {
        return count;
    }
    let reached = _mm512_set1_epi32(last as i32);
    let not_behind = _mm512_cmple_epu32_mask(load(candidates, candidate), reached);
    (candidate + not_behind.count_ones() as usize).min(count)
}

/// Which lanes of `a` are in `b`, and which of `b` in `a`. The machine has VP2INTERSECT.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn intersect(a: __m512i, b: __m512i) -> (u16, u16) {
    let (in_b, in_a): (u16, u16);
    // SAFETY: the caller made sure of the instruction; it writes the two registers named.
    unsafe {
        asm!(
            "vp2intersectd k2, {a}, {b}",
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            out("k2") in_b,
            out("k3") in_a,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    (in_b, in_a)
}

/// As [`intersect`], with the instructions that every AVX-512 machine has.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn compare_all(a: __m512i, mut b: __m512i) -> (u16, u16) {
    let (mut in_b, mut in_a) = (0, 0);
    for turn in 0..16 {
        let equal = _mm512_cmpeq_epi32_mask(a, b);
        in_b |= equal;
        in_a |= equal.rotate_left(turn);
        b = _mm512_alignr_epi32::<1>(b, b);
    }
    (in_b, in_a)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn scores(
    weight: f32,
    (docids, tfs): (&[u32; BLOCK], &[u32; BLOCK]),
    len: usize,
    norms: &[f32],
    scores: &mut [f32; BLOCK],
) {
    // The gather takes signed numbers.
    let Ok(documents) = i32::try_from(norms.len()) else {
        return portable::scores(weight, (docids, tfs), len, norms, scores);
    };
    let (weight, documents) = (_mm512_set1_ps(weight), _mm512_set1_epi32(documents));
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

/// `bm25::score` of sixteen postings.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn score(weight: __m512, tfs: __m512i, norms: __m512) -> __m512 {
    let tfs = _mm512_cvtepu32_ps(tfs);
    _mm512_div_ps(_mm512_mul_ps(weight, tfs), _mm512_add_ps(tfs, norms))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn add_scores(
    weight: f32,
    tfs: &[u32; BLOCK],
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn offer_block(
    (docids, scores): (&[u32], &[f32; BLOCK]),
    len: usize,
    first_docid: u32,
    top: &mut TopK,
) {
    for at in (0..len).step_by(16) {
        let threshold = _mm512_set1_ps(top.threshold());
        let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(load_floats(scores, at), threshold);
        let mut above = above & first_lanes(len - at);
        while above != 0 {
            let i = at + above.trailing_zeros() as usize;
            top.offer(first_docid + docids[i], scores[i]);
            above &= above - 1;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn sweep(accumulators: &mut [f32], first_docid: u32, top: &mut TopK) {
    let unmatched = _mm512_set1_ps(UNMATCHED);
    let mut bar = _mm512_set1_epi32(bits_to_exceed(top));
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
            offer_lanes(
                above(0) | above(1) << 16 | above(2) << 32 | above(3) << 48,
                chunk,
                docid,
                top,
            );
            bar = _mm512_set1_epi32(bits_to_exceed(top));
        }
        for i in 0..4 {
            store_floats(chunk, 16 * i, unmatched);
        }
        docid = docid.wrapping_add(64);
    }
    portable::sweep(rest, docid, top);
}

#[inline(never)]
fn offer_lanes(mut lanes: u64, sums: &[f32; 64], first_docid: u32, top: &mut TopK) {
    while lanes != 0 {
        let lane = lanes.trailing_zeros();
        top.offer(first_docid + lane, sums[lane as usize]);
        lanes &= lanes - 1;
    }
}

// What follows candidates and docids is above all of them, so that a merge ends.
const _: () = assert!(NO_DOCID == u32::MAX);

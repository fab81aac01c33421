//! Division of candidates among blocks and the search for them, sixteen at a time.

use std::arch::asm;
use std::arch::x86_64::*;
use std::hint::{black_box, select_unpredictable};

use crate::cpu::INTERSECTS;

use super::super::{
    BLOCK, BlockRoom, CandidateShares, DocidBlock, Matches, NO_DOCID, SoughtDocids, portable,
};
use super::{first_lanes, iota, load, store};

/// Up to this many candidates a block are looked for one by one: each takes about 5 cycles, a merge
/// of whole blocks about 10 for every sixteen postings.
const FEW: usize = 12;

/// If the last candidate is this many blocks away, most blocks between are skipped.
const NEAR: usize = 256;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn first_block(last_docids: &[[u8; 4]], mut from: usize, docid: u32) -> usize {
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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn share_out(
    last_docids: &[[u8; 4]],
    from: usize,
    sought: SoughtDocids<'_>,
    shares: &mut CandidateShares,
) {
    shares.len = 0;
    let far = last_docids.get(from + NEAR).copied().map(u32::from_le_bytes);
    if far.is_some_and(|last| last < sought.docids[sought.count - 1]) {
        share_out_far(last_docids, from, sought, shares);
    } else {
        share_out_near(last_docids, from, sought, shares);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn share_out_far(
    last_docids: &[[u8; 4]],
    from: usize,
    sought: SoughtDocids<'_>,
    shares: &mut CandidateShares,
) {
    let SoughtDocids { docids: candidates, count } = sought;
    let mut block = from;
    let mut next = 0;
    while next < count {
        block = first_block(last_docids, block, candidates[next]);
        next = match last_docids.get(block) {
            None => count,
            Some(&last) => count_up_to(candidates, next, u32::from_le_bytes(last)).min(count),
        };
        shares.push(block, next);
    }
}

/// Ranks the candidates in sixteen blocks at once, which takes about as long as three shares.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn share_out_near(
    last_docids: &[[u8; 4]],
    from: usize,
    sought: SoughtDocids<'_>,
    shares: &mut CandidateShares,
) {
    let SoughtDocids { count, .. } = sought;
    let all = _mm512_set1_epi32(count as i32);
    let mut before = _mm512_setzero_si512();
    let mut block = from;
    let mut len = 0;
    let mut shared_out = 0;
    while shared_out < count && block < last_docids.len() {
        let rest = &last_docids[block..];
        let lanes = first_lanes(rest.len());
        // SAFETY: the lanes are no more than the last docids that there are.
        let last = unsafe { _mm512_maskz_loadu_epi32(lanes, rest.as_ptr().cast()) };
        // What follows the candidates may not be behind a block that is damaged.
        let ends = _mm512_min_epu32(ranks(sought, last), all);
        let has_share =
            _mm512_mask_cmpgt_epu32_mask(lanes, ends, _mm512_alignr_epi32::<15>(ends, before));
        let numbers = _mm512_add_epi32(iota(), _mm512_set1_epi32(block as i32));
        store(&mut shares.blocks, len, _mm512_maskz_compress_epi32(has_share, numbers));
        store(&mut shares.ends, len, _mm512_maskz_compress_epi32(has_share, ends));
        len = (len + has_share.count_ones() as usize).min(BLOCK);
        shared_out = if len > 0 { shares.ends[len - 1] as usize } else { 0 };
        before = ends;
        block += 16;
    }
    shares.len = len;
    if shared_out < count && len < BLOCK {
        shares.push(last_docids.len(), count);
    }
}

/// For each lane of `last`, the number of candidates up to it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn ranks(sought: SoughtDocids<'_>, last: __m512i) -> __m512i {
    let SoughtDocids { docids: candidates, count } = sought;
    // First whole sixteens, then the place in the sixteen.
    let mut ranks = _mm512_setzero_si512();
    for sixteen in 0..count.div_ceil(16).min(BLOCK / 16) {
        let end = _mm512_set1_epi32(candidates[16 * sixteen + 15] as i32);
        let is_past = _mm512_cmple_epu32_mask(end, last);
        ranks = _mm512_mask_add_epi32(ranks, is_past, ranks, _mm512_set1_epi32(16));
    }
    for step in [8, 4, 2, 1] {
        let at = _mm512_add_epi32(ranks, _mm512_set1_epi32(step - 1));
        // SAFETY: a rank is at most `BLOCK` and grows to at most 15 more than it began with, and
        // the steps that are left are less than what is left of those 15: at most number `BLOCK` +
        // 15 is read.
        let docids = unsafe { _mm512_i32gather_epi32::<4>(at, candidates.as_ptr().cast()) };
        let is_past = _mm512_cmple_epu32_mask(docids, last);
        ranks = _mm512_mask_add_epi32(ranks, is_past, ranks, _mm512_set1_epi32(step));
    }
    ranks
}

/// The number of the first candidate behind `last`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn count_up_to(candidates: &BlockRoom, mut from: usize, last: u32) -> usize {
    let last = _mm512_set1_epi32(last as i32);
    while from < BLOCK {
        let here = _mm512_cmple_epu32_mask(load(candidates, from), last).count_ones() as usize;
        from += here;
        if here < 16 {
            break;
        }
    }
    from
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn match_block(
    candidates: &BlockRoom,
    from: usize,
    end: usize,
    block: DocidBlock<'_>,
    matches: &mut Matches<'_>,
) {
    if end - from <= FEW && block.len <= 128 {
        match_few::<false>(candidates, from, end, block, matches);
    } else if end - from <= FEW {
        match_few::<true>(candidates, from, end, block, matches);
    } else if *INTERSECTS {
        match_many::<true>(candidates, from, end, block, matches);
    } else {
        match_many::<false>(candidates, from, end, block, matches);
    }
}

/// Compares each candidate with the quarter of the block in which it must be, four candidates
/// without a branch. Of a long block, with more than 128 docids, the 128 that may hold the
/// candidate are found first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn match_few<const IS_LONG: bool>(
    candidates: &BlockRoom,
    from: usize,
    end: usize,
    block: DocidBlock<'_>,
    matches: &mut Matches<'_>,
) {
    let docids = block.docids;
    let ends = [docids[31], docids[63], docids[95]];
    let parts = block.len.div_ceil(128);
    let mut found = matches.found;
    for four in (from..end).step_by(4) {
        for (candidate, &wanted) in (four..).zip(&candidates[four..four + 4]) {
            let mut first = 0;
            let mut ends = ends;
            if IS_LONG {
                let before = |part: &usize| wanted > docids[128 * part - 1];
                first = 128 * (1..parts).take_while(before).count();
                ends = [31, 63, 95].map(|end| docids[first + end]);
            }
            let quarter: usize = ends.iter().map(|&end| usize::from(wanted > end)).sum();
            let quarter = quarter + first / 32;
            let sought = _mm512_set1_epi32(wanted as i32);
            let low = _mm512_cmpeq_epi32_mask(load(docids, 32 * quarter), sought);
            let high = _mm512_cmpeq_epi32_mask(load(docids, 32 * quarter + 16), sought);
            let equal = u32::from(low) | u32::from(high) << 16;
            let at = 32 * quarter as u32 + equal.trailing_zeros();
            matches.docids[found] = wanted;
            matches.kept[found] = candidate as u32;
            matches.positions[found] = block.first.wrapping_add(at);
            found += usize::from(equal != 0) & usize::from(candidate < end);
        }
    }
    matches.found = found;
}

/// Merges sixteen candidates with sixteen postings a step. The chain of steps is a load, a
/// comparison and a choice; matches do not lie on it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn match_many<const INTERSECTS: bool>(
    candidates: &BlockRoom,
    from: usize,
    end: usize,
    block: DocidBlock<'_>,
    matches: &mut Matches<'_>,
) {
    let start = matches.found;
    let mut found = start;
    let mut candidate = from;
    let mut at = 0;
    // Read apart from the vectors: to extract the last lane takes longer than to load it, and the
    // compiler would do that if it saw that both are the same.
    let (wanted_ends, docid_ends) = black_box((candidates, block.docids));
    while candidate < end && at < block.len {
        let wanted = load(candidates, candidate);
        let docids = load(block.docids, at);
        let (kept, met) =
            if INTERSECTS { intersect(wanted, docids) } else { compare_all(wanted, docids) };
        let number = |first: u32| _mm512_add_epi32(iota(), _mm512_set1_epi32(first as i32));
        let numbers = _mm512_maskz_compress_epi32(kept, number(candidate as u32));
        store(matches.kept, found, numbers);
        store(matches.docids, found, _mm512_maskz_compress_epi32(kept, wanted));
        let places = number(block.first.wrapping_add(at as u32));
        store(matches.positions, found, _mm512_maskz_compress_epi32(met, places));
        found += kept.count_ones() as usize;
        let most_wanted = wanted_ends[candidate + 15];
        let most = docid_ends[at + 15];
        candidate = select_unpredictable(most_wanted <= most, candidate + 16, candidate);
        at = select_unpredictable(most <= most_wanted, at + 16, at);
    }
    // What follows the candidates may have met what follows the docids of a tail: in the last step,
    // behind all true matches.
    while found > start && matches.kept[found - 1] as usize >= end {
        found -= 1;
    }
    matches.found = found;
}

/// The lanes of `a` that are in `b`, and those of `b` in `a`. The machine has VP2INTERSECT.
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

/// [`intersect`] with the instructions of every AVX-512 machine.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn compare_all(a: __m512i, mut b: __m512i) -> (u16, u16) {
    let mut in_b = 0;
    let mut in_a = 0;
    for turn in 0..16 {
        let equal = _mm512_cmpeq_epi32_mask(a, b);
        in_b |= equal;
        in_a |= equal.rotate_left(turn);
        b = _mm512_alignr_epi32::<1>(b, b);
    }
    (in_b, in_a)
}

// What follows candidates and docids is above all of them, so that a merge ends.
const _: () = assert!(NO_DOCID == u32::MAX);

/// Compares both forms of intersection, on machines that have them, with a plain one.
#[cfg(test)]
pub(in super::super) fn check_intersections(a: &[u32; 16], b: &[u32; 16]) {
    let lanes = |of: &[u32; 16], among: &[u32; 16]| {
        (0..16).fold(0, |lanes, i| lanes | u16::from(among.contains(&of[i])) << i)
    };
    let expected = (lanes(a, b), lanes(b, a));
    if crate::cpu::level() >= crate::cpu::Level::Avx512 {
        // SAFETY: the machine has AVX-512.
        let found = unsafe { compare_all(load(a, 0), load(b, 0)) };
        assert_eq!(found, expected);
    }
    if *INTERSECTS {
        // SAFETY: the machine has the instruction, and AVX-512 with it.
        let found = unsafe { intersect(load(a, 0), load(b, 0)) };
        assert_eq!(found, expected);
    }
}

//! Bitmaps of documents, sixteen documents at a time.

use std::arch::x86_64::*;

use super::super::{BlockRoom, FoundDocids, Line, SoughtDocids, portable};
use super::{first_lanes, iota, load, store};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn test_bits(
    bits: &[u64],
    sought: SoughtDocids<'_>,
    found: FoundDocids<'_>,
) -> usize {
    let SoughtDocids { docids: candidates, count } = sought;
    let halves = _mm512_set1_epi32(i32::try_from(2 * bits.len()).unwrap_or(i32::MAX));
    let mut at = 0;
    for from in (0..count).step_by(16) {
        let docids = load(candidates, from);
        let places = _mm512_srli_epi32::<5>(docids);
        let lanes = first_lanes(count - from);
        let lanes = _mm512_mask_cmplt_epu32_mask(lanes, places, halves);
        // SAFETY: only halves of the words are read, which lie in memory from the lower one on.
        let words = unsafe {
            let halves = bits.as_ptr().cast();
            _mm512_mask_i32gather_epi32::<4>(_mm512_setzero_si512(), lanes, places, halves)
        };
        let bit = _mm512_and_si512(docids, _mm512_set1_epi32(31));
        let has = _mm512_test_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), bit));
        let numbers = _mm512_add_epi32(iota(), _mm512_set1_epi32(from as i32));
        store(found.docids, at, _mm512_maskz_compress_epi32(has, docids));
        store(found.kept, at, _mm512_maskz_compress_epi32(has, numbers));
        at += has.count_ones() as usize;
    }
    at
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn number_bits(line: &Line, first: u32, docids: &mut BlockRoom) -> usize {
    let mut at = 0;
    let mut numbers = _mm512_add_epi32(iota(), _mm512_set1_epi32(first as i32));
    for &word in line {
        for part in 0..4 {
            let bits = (word >> (16 * part)) as u16;
            store(docids, at, _mm512_maskz_compress_epi32(bits, numbers));
            at += bits.count_ones() as usize;
            numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
        }
    }
    at
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn pick_common(
    common: &Line,
    line: &Line,
    numbers: &[u32],
    picked: &mut BlockRoom,
) {
    let mut at = 0;
    let mut before = 0;
    for (&common, &word) in common.iter().zip(line) {
        // A bit for each posting of the 64 documents.
        let mut wanted = _pext_u64(common, word);
        let mut from = before;
        while wanted != 0 {
            let lanes = wanted as u16;
            store(picked, at, _mm512_maskz_compress_epi32(lanes, load(numbers, from)));
            at += lanes.count_ones() as usize;
            wanted >>= 16;
            from += 16;
        }
        before += word.count_ones() as usize;
    }
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn rank_bits(
    bits: &[u64],
    before: &[u32],
    docids: &[u32],
    ranks: &mut BlockRoom,
) {
    portable::rank_bits(bits, before, docids, ranks);
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn count_bits(words: &[u64]) -> u32 {
    portable::count_bits(words)
}

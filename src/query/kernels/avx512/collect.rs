//! Choice of documents by their sums, sixteen at a time, without a branch that depends on a sum.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::{BLOCK, BlockRoom, LINE, Left, NO_DOCID, Rest, ScoredDocuments, UNMATCHED};
use super::{first_lanes, iota, load, load_floats, store, store_floats};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn collect(
    accumulators: &mut [f32],
    lines: &mut [u8],
    first_docid: u32,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    let bar = _mm512_set1_ps(bar);
    let mut docid = first_docid;
    let many = accumulators.chunks_exact_mut(64 * LINE);
    for (sums, lines) in many.zip(lines.as_chunks_mut::<64>().0) {
        // SAFETY: `lines` is 64 bytes.
        let bytes = unsafe { _mm512_loadu_si512(lines.as_ptr().cast()) };
        let mut touched = _mm512_test_epi8_mask(bytes, bytes);
        *lines = [0; 64];
        found.make_room(LINE * touched.count_ones() as usize);
        while touched != 0 {
            let at = LINE * touched.trailing_zeros() as usize;
            let line = load_floats(sums, at);
            store_floats(sums, at, _mm512_set1_ps(UNMATCHED));
            let above = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(line, bar);
            let first = _mm512_set1_epi32(docid.wrapping_add(at as u32) as i32);
            push(above, _mm512_add_epi32(iota(), first), line, found);
            touched &= touched - 1;
        }
        docid = docid.wrapping_add((64 * LINE) as u32);
    }
}

/// There must be room for sixteen.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn push(wanted: u16, docids: __m512i, sums: __m512, found: &mut ScoredDocuments) {
    store(&mut found.docids, found.len, _mm512_maskz_compress_epi32(wanted, docids));
    store_floats(&mut found.sums, found.len, _mm512_maskz_compress_ps(wanted, sums));
    found.len += wanted.count_ones() as usize;
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn collect_block(
    docids: &BlockRoom,
    scores: &[f32; BLOCK],
    part: Range<usize>,
    bar: f32,
    found: &mut ScoredDocuments,
) {
    let bar = _mm512_set1_ps(bar);
    for at in (part.start / 16 * 16..part.end).step_by(16) {
        let scores = load_floats(scores, at);
        let lanes = first_lanes(part.end - at) & !first_lanes(part.start.saturating_sub(at));
        let above = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(lanes, scores, bar);
        push(above, load(docids, at), scores, found);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn narrow(bar: f32, rest: Rest<'_>, left: &mut Left) {
    let bar = _mm512_set1_ps(bar);
    let first = _mm512_set1_epi32(rest.first as i32);
    let ranges = _mm512_set1_epi32(rest.of_ranges.len() as i32);
    let mut count = 0;
    for at in (0..left.count).step_by(16) {
        let docids = load(&left.docids, at);
        let sums = load_floats(&left.sums, at);
        let slots = load(&left.slots, at);
        let numbers =
            _mm512_srl_epi32(_mm512_sub_epi32(docids, first), _mm_cvtsi32_si128(rest.shift as i32));
        // What follows the candidates is in no range.
        let lanes = first_lanes(left.count - at);
        let lanes = _mm512_mask_cmplt_epu32_mask(lanes, numbers, ranges);
        // SAFETY: only numbers below the length are read, of four bytes each.
        let more = unsafe {
            _mm512_mask_i32gather_ps::<4>(
                _mm512_setzero_ps(),
                lanes,
                numbers,
                rest.of_ranges.as_ptr(),
            )
        };
        let most = _mm512_add_ps(sums, more);
        let above = _mm512_mask_cmp_ps_mask::<_CMP_GT_OQ>(lanes, most, bar);
        store(&mut left.docids, count, _mm512_maskz_compress_epi32(above, docids));
        store_floats(&mut left.sums, count, _mm512_maskz_compress_ps(above, sums));
        store(&mut left.slots, count, _mm512_maskz_compress_epi32(above, slots));
        count += above.count_ones() as usize;
    }
    left.docids[count..count + 16].fill(NO_DOCID);
    left.count = count;
}

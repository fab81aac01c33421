//! Sums of bounds of blocks of documents, and the scores of one block.

use std::arch::x86_64::*;

use super::super::{CodeSums, ScoredPostings, portable};
use super::{load, load_floats, store_floats};
use crate::index::block_bounds::BlockCodes;
use crate::score::block_codes::CODES;

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn scale_up(scores: &[f32], scale: f32, scaled: &mut [u16]) {
    portable::scale_up(scores, scale, scaled);
}

/// The low and the high bytes of what codes add, each in four vectors: two for the codes below 128.
struct ByteTables([[__m512i; 4]; 2]);

impl ByteTables {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
    fn new(CodeSums(of_codes): &CodeSums) -> Self {
        let low: [u8; CODES] = of_codes.map(|sum| sum as u8);
        let high: [u8; CODES] = of_codes.map(|sum| (sum >> 8) as u8);
        let vectors = |bytes: &[u8; CODES]| -> [__m512i; 4] {
            // SAFETY: 64 bytes are readable from each of these places on.
            std::array::from_fn(|i| unsafe {
                _mm512_loadu_si512(bytes[64 * i..64 * (i + 1)].as_ptr().cast())
            })
        };
        Self([vectors(&low), vectors(&high)])
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
    fn look_up(table: &[__m512i; 4], codes: __m512i) -> __m512i {
        let below = _mm512_permutex2var_epi8(table[0], codes, table[1]);
        let above = _mm512_permutex2var_epi8(table[2], codes, table[3]);
        _mm512_mask_blend_epi8(_mm512_movepi8_mask(codes), below, above)
    }
}

/// 64 blocks at a time: their codes are spread by the bits of the word and looked up in tables of
/// bytes.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt"
)]
pub(in super::super) fn add_codes(
    codes: &BlockCodes<'_>,
    from: usize,
    of_codes: &CodeSums,
    sums: &mut [[u16; 64]],
) {
    let ByteTables([low, high]) = ByteTables::new(of_codes);
    // Bytes of eight lanes that the two halves of the sums take, so that unpacking keeps the order.
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    codes.each_word(from, from + sums.len(), |number, word, codes| {
        let sums = &mut sums[number - from];
        // The word has 64 bits, so there are no more codes.
        let lanes = _bzhi_u64(u64::MAX, codes.len() as u32);
        // SAFETY: only as many bytes are read as there are codes.
        let packed = unsafe { _mm512_maskz_loadu_epi8(lanes, codes.as_ptr().cast()) };
        let spread = _mm512_maskz_expand_epi8(word, packed);
        let spread = _mm512_permutexvar_epi64(order, spread);
        let low = ByteTables::look_up(&low, spread);
        let high = ByteTables::look_up(&high, spread);
        let more = [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)];
        for (half, more) in sums.chunks_exact_mut(32).zip(more) {
            // SAFETY: a half has 64 bytes.
            unsafe {
                let sum = _mm512_loadu_si512(half.as_ptr().cast());
                _mm512_storeu_si512(half.as_mut_ptr().cast(), _mm512_adds_epu16(sum, more));
            }
        }
    });
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn collect_sums(sums: &[[u16; 64]], bar: u16, found: &mut Vec<u32>) {
    let least = _mm512_set1_epi16(bar as i16);
    for (first, sums) in (0u32..).step_by(32).zip(sums.as_flattened().as_chunks::<32>().0) {
        // SAFETY: 32 numbers of 16 bits are readable.
        let sums = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
        let mut reach = _mm512_cmpge_epu16_mask(sums, least);
        while reach != 0 {
            found.push(first + reach.trailing_zeros());
            reach &= reach - 1;
        }
    }
}

/// The plain form, compiled for these machines.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn greatest_sums(sums: &[[u16; 64]], greatest: &mut Vec<u16>) {
    portable::greatest_sums(sums, greatest);
}

/// The postings are spread over the documents, so that these need no scattered access.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn add_documents(
    postings: ScoredPostings<'_>,
    first: u32,
    norms: &[f32; 64],
    sums: &mut [f32; 64],
) {
    let ScoredPostings { weight, docids, tfs, len } = postings;
    let mut from = 0;
    let mut present = _mm512_setzero_si512();
    let one = _mm512_set1_epi64(1);
    let first = _mm512_set1_epi32(first as i32);
    for at in (0..len).step_by(16) {
        let docids = load(docids, at);
        from += _mm512_cmplt_epu32_mask(docids, first).count_ones() as usize;
        // Shifts by more than there are bits leave none.
        let places = _mm512_sub_epi32(docids, first);
        let low = _mm512_cvtepu32_epi64(_mm512_castsi512_si256(places));
        let high = _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64::<1>(places));
        let both = _mm512_or_si512(_mm512_sllv_epi64(one, low), _mm512_sllv_epi64(one, high));
        present = _mm512_or_si512(present, both);
    }
    let present = _mm512_reduce_or_epi64(present) as u64;
    let factor = _mm512_set1_ps(weight.factor());
    let gone = _mm512_set1_ps(f32::INFINITY);
    for at in (0..64).step_by(16) {
        let lanes = (present >> at) as u16;
        let count = lanes.count_ones();
        let here = &tfs[from..from + count as usize];
        from += here.len();
        let some = _bzhi_u32(0xffff, count) as u16;
        // SAFETY: only as many numbers are read as there are.
        let packed = unsafe { _mm512_maskz_loadu_epi32(some, here.as_ptr().cast()) };
        let tfs = _mm512_cvtepu32_ps(_mm512_maskz_expand_epi32(lanes, packed));
        let live = _mm512_cmp_ps_mask::<_CMP_NEQ_OQ>(load_floats(norms, at), gone);
        let scores = _mm512_maskz_mul_ps(live, factor, tfs);
        let before = load_floats(sums, at);
        store_floats(sums, at, _mm512_mask_add_ps(before, lanes, before, scores));
    }
}

//! Bounds of sixteen blocks at once.

use std::arch::x86_64::*;

use super::{score, store_floats};
use crate::score::bounds::{Bound, BoundNorms};
use crate::score::weight::ROUNDING;

/// Places of the first pair of each bound, in words.
static FIRST_PAIRS: [u16; 32] = {
    let mut places = [0; 32];
    let mut lane = 0;
    while lane < 16 {
        places[2 * lane] = 3 * lane as u16;
        lane += 1;
    }
    places
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
pub(in super::super) fn mosts(weight: f32, bounds: &[Bound; 16], norms: &BoundNorms) -> [f32; 16] {
    let bytes = bounds.as_flattened();
    // SAFETY: there are 96 bytes.
    let low = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    // SAFETY: these are the last 32 of them.
    let high = unsafe { _mm256_loadu_si256(bytes[64..].as_ptr().cast()) };
    let high = _mm512_castsi256_si512(high);
    // SAFETY: the table has 64 bytes.
    let first = unsafe { _mm512_loadu_si512(FIRST_PAIRS.as_ptr().cast()) };
    let weight = _mm512_set1_ps(weight);
    let mut most = _mm512_setzero_ps();
    for pair in 0..3 {
        let places = _mm512_add_epi16(first, _mm512_set1_epi16(pair));
        let pairs = _mm512_maskz_permutex2var_epi16(0x5555_5555, low, places, high);
        let lengths = _mm512_srli_epi32::<8>(pairs);
        // SAFETY: a byte is below the 256 that there are norms for.
        let norms = unsafe { _mm512_i32gather_ps::<4>(lengths, norms.norms.as_ptr()) };
        let tfs = greatest_tfs(_mm512_and_si512(pairs, _mm512_set1_epi32(255)));
        // Of NaN and a number the second is taken.
        most = _mm512_max_ps(score(weight, tfs, norms), most);
    }
    let mut mosts = [0.0; 16];
    store_floats(&mut mosts, 0, _mm512_mul_ps(most, _mm512_set1_ps(ROUNDING)));
    mosts
}

/// As `bounds::greatest_tf`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn greatest_tfs(codes: __m512i) -> __m512i {
    let mantissa =
        _mm512_or_si512(_mm512_and_si512(codes, _mm512_set1_epi32(15)), _mm512_set1_epi32(16));
    // Wraps for codes that are the values themselves; such a shift gives zero, which is not used.
    let exponent = _mm512_sub_epi32(_mm512_srli_epi32::<4>(codes), _mm512_set1_epi32(1));
    let values = _mm512_sllv_epi32(mantissa, exponent);
    let is_exact = _mm512_cmplt_epu32_mask(codes, _mm512_set1_epi32(32));
    let is_any = _mm512_cmpeq_epi32_mask(codes, _mm512_set1_epi32(255));
    let values = _mm512_mask_mov_epi32(values, is_exact, codes);
    _mm512_mask_set1_epi32(values, is_any, -1)
}

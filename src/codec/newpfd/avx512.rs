//! The AVX-512 path for exceptions: 64 bits of unary codes and sixteen values a step.
//!
//! 1. The zeros of 64 bits of unary codes are the ends of values; `vpcompressb` gives their places.
//! 2. A quotient is the distance between two ends, less 1.
//! 3. `vpexpandd` brings the next exceptions of sixteen values to their lanes.

use std::arch::x86_64::*;

use super::{Highs, MAX_LEN, unary};

/// Bits of unary codes whose places fit a byte, in words of 64.
const WORDS: u64 = 4;

/// As `unary::read` from bit 0 for `count` values.
///
/// # Safety
///
/// `count` is at most 128; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
pub(super) unsafe fn read_unary(stream: &[u8], count: usize, out: &mut Highs) -> Option<u64> {
    // Byte 0 is the end before the first value, -1; fewer than 128 ends come before the last store.
    let mut ends = [0xffu8; 1 + MAX_LEN + 64];
    let mut found = 0;
    // SAFETY: 64 bytes are there.
    let mut places = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    for word in 0..WORDS {
        let zeros = unary::window(stream, word)?;
        let compressed = _mm512_maskz_compress_epi8(zeros, places);
        // SAFETY: `found` is below `count`, so that 64 bytes are left behind 1 + `found`.
        unsafe { _mm512_storeu_si512(ends.as_mut_ptr().add(1 + found).cast(), compressed) };
        found += zeros.count_ones() as usize;
        if found >= count {
            break;
        }
        places = _mm512_add_epi8(places, _mm512_set1_epi8(64));
    }
    if found < count {
        return unary::read(stream, 0, &mut out[..count]);
    }
    for first in (0..count).step_by(16) {
        // SAFETY: `first` is below 128 and sixteen bytes are there.
        let before = unsafe { _mm_loadu_si128(ends.as_ptr().add(first).cast()) };
        // SAFETY: as above.
        let end = unsafe { _mm_loadu_si128(ends.as_ptr().add(first + 1).cast()) };
        let quotients = _mm_sub_epi8(_mm_sub_epi8(end, before), _mm_set1_epi8(1));
        // SAFETY: `out` has sixteen values more than 128.
        let to = unsafe { out.as_mut_ptr().add(first) };
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_cvtepu8_epi32(quotients)) };
    }
    Some(u64::from(ends[count]) + 1)
}

static IOTA: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = i as u8;
        i += 1;
    }
    bytes
};

/// As `patch` for up to 128 values.
///
/// # Safety
///
/// The machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
pub(super) unsafe fn patch(values: &mut [u32], map: u128, highs: &Highs, width: u8) {
    let shift = _mm_cvtsi32_si128(width.into());
    let (mut map, mut used) = (map, 0);
    let (groups, rest) = values.as_chunks_mut::<16>();
    for group in groups {
        let lanes = map as u16;
        // SAFETY: `used` is at most 128, and sixteen values are behind that.
        let next = unsafe { _mm512_loadu_si512(highs.as_ptr().add(used).cast()) };
        let high = _mm512_sll_epi32(_mm512_maskz_expand_epi32(lanes, next), shift);
        // SAFETY: `group` is sixteen u32.
        let low = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_or_si512(low, high)) };
        used += lanes.count_ones() as usize;
        map >>= 16;
    }
    super::patch(rest, map, &highs[used..], width);
}

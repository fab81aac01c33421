//! The AVX-512 path for exceptions: 64 bits of unary codes and sixteen values a step.
//!
//! 1. The zeros of 64 bits of unary codes are the ends of values; `vpcompressb` gives their places.
//! 2. A quotient is the distance between two ends, less 1. With the low bits of sixteen overflows,
//!    which [`bits`] has read, that makes what sixteen exceptions have above their slots.
//! 3. `vpexpandd` brings the next exceptions of sixteen values to their lanes.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::{BlockParts, MAX_LEN, bits, unary};
use crate::cpu::IOTA;

/// Words of 64 unary bits, whose places fit a byte.
const WORDS: u64 = 4;

/// As `add_exceptions_portable`, but returns the end of the unary codes and all bits of the
/// quotients for the caller to check. `None`, with nothing done, if the codes are too long or too
/// short.
///
/// # Safety
/// `parts` has at most 128 exceptions and their low bits; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
pub(super) unsafe fn add_exceptions(
    parts: &BlockParts<'_>,
    map: u128,
    values: &mut [u32],
) -> Option<(u64, u32)> {
    let count = parts.count;
    let mut ends = [0xff; 64 * WORDS as usize];
    find_ends(parts.unary, count, &mut ends)?;
    let mut lows = [0; MAX_LEN];
    if parts.overflow_width > 0 {
        bits::unpack(parts.lows, parts.overflow_width, &mut lows[..count]);
    }
    let overflow_up = _mm_cvtsi32_si128(parts.overflow_width.into());
    let up = _mm_cvtsi32_si128(parts.width.into());
    let one = _mm512_set1_epi32(1);
    let mut all = _mm512_setzero_si512();
    // Sixteen more than there can be, so that any sixteen can be loaded.
    let mut highs = MaybeUninit::<[u32; MAX_LEN + 32]>::uninit();
    let to = highs.as_mut_ptr().cast::<u32>();
    for first in (0..count).step_by(16) {
        // SAFETY: `first` is below 128, and 17 bytes are there.
        let before = unsafe { _mm_loadu_si128(ends.as_ptr().add(first).cast()) };
        // SAFETY: as above.
        let end = unsafe { _mm_loadu_si128(ends.as_ptr().add(first + 1).cast()) };
        let quotients = _mm_sub_epi8(_mm_sub_epi8(end, before), _mm_set1_epi8(1));
        let left = (count - first).min(16);
        let lanes = (1u32 << left).wrapping_sub(1) as u16;
        let quotients = _mm512_maskz_mov_epi32(lanes, _mm512_cvtepu8_epi32(quotients));
        all = _mm512_or_si512(all, quotients);
        // SAFETY: `first` is a multiple of 16 below 128, so that sixteen of the 128 are there.
        let lows = unsafe { _mm512_loadu_si512(lows.as_ptr().add(first).cast()) };
        let overflows = _mm512_or_si512(_mm512_sll_epi32(quotients, overflow_up), lows);
        let high = _mm512_sll_epi32(_mm512_add_epi32(overflows, one), up);
        // SAFETY: `highs` has sixteen values behind any `first` below 128.
        unsafe { _mm512_storeu_si512(to.add(first).cast(), high) };
    }
    let behind = count.next_multiple_of(16);
    // SAFETY: that is at most 128, and sixteen values are behind it.
    unsafe { _mm512_storeu_si512(to.add(behind).cast(), one) };

    let mut map = map;
    let mut used = 0;
    let (groups, rest) = values.as_chunks_mut::<16>();
    for group in groups {
        let lanes = map as u16;
        // SAFETY: `used` is at most `count`, and sixteen values behind that have been written.
        let next = unsafe { _mm512_loadu_si512(to.add(used).cast()) };
        let high = _mm512_maskz_expand_epi32(lanes, next);
        // SAFETY: `group` is sixteen u32.
        let low = unsafe { _mm512_loadu_si512(group.as_ptr().cast()) };
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_or_si512(low, high)) };
        used += lanes.count_ones() as usize;
        map >>= 16;
    }
    while map != 0 {
        // SAFETY: `used` is below `count`, as `map` has this many bits.
        rest[map.trailing_zeros() as usize] |= unsafe { to.add(used).read() };
        used += 1;
        map &= map - 1;
    }
    Some((u64::from(ends[count]) + 1, _mm512_reduce_or_epi32(all) as u32))
}

/// Puts the ends of the first `count` values of unary codes behind the first byte of `ends`; `None`
/// if they do not end in the first words. What follows is arbitrary.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,popcnt")]
fn find_ends(stream: &[u8], count: usize, ends: &mut [u8; 64 * WORDS as usize]) -> Option<()> {
    let mut found = 0;
    // SAFETY: 64 bytes are there.
    let mut places = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    for word in 0..WORDS {
        let zeros = unary::window(stream, word)?;
        let compressed = _mm512_maskz_compress_epi8(zeros, places);
        let to = &mut ends[1 + found..][..64];
        // SAFETY: `to` is 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), compressed) };
        found += zeros.count_ones() as usize;
        if found >= count {
            return Some(());
        }
        places = _mm512_add_epi8(places, _mm512_set1_epi8(64));
    }
    None
}

//! Reads a block of positions as the sums of all values up to each, modulo 2^32. The sum of high
//! parts needs no difference: that of the first k values is where the k-th of the zeros that end
//! them lies in the stream, less k.

#![allow(unsafe_code)]

use super::parts;
use crate::codec::{bits, unary, vbyte};
use crate::cpu::Level;

/// Numbers behind the sums that may be written.
const SLACK: usize = 64;

/// Reads the `count` values of a block, which begins the bytes, to the beginning of `sums`, which
/// grows as needed and is arbitrary behind them; `ends` is scratch. `None` if the bytes end before.
pub(crate) fn decode_sums(
    level: Level,
    bytes: &[u8],
    count: usize,
    sums: &mut Vec<u32>,
    ends: &mut Vec<u32>,
) -> Option<()> {
    if sums.len() < count + SLACK {
        sums.resize(2 * count + SLACK, 0);
    }
    if count == 1 {
        sums[0] = u32::try_from(vbyte::get(bytes, &mut 0)?).ok()?;
        return Some(());
    }
    let (width, lows, highs) = parts(bytes, count)?;
    bits::unpack(lows, width, &mut sums[..count]);
    if let Some(highs) = highs {
        if ends.len() < count + SLACK {
            ends.resize(2 * count + SLACK, 0);
        }
        let found = match level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor; there is room for 64 more.
            Level::Avx512 => unsafe { zeros_avx512(highs, count, ends) },
            _ => zeros(highs, count, ends),
        };
        (found >= count).then_some(())?;
    }
    let ends = highs.map(|_| &ends[..]);
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level was detected on this processor; both have room for 16 more.
        Level::Avx512 => unsafe { add_avx512(&mut sums[..count + 16], ends, width) },
        _ => add(&mut sums[..count], ends, width),
    }
    Some(())
}

/// Notes where the first `count` zeros of the stream are, or all, in bits; returns how many.
fn zeros(stream: &[u8], count: usize, ends: &mut [u32]) -> usize {
    let mut found = 0;
    for word in 0.. {
        let Some(mut zeros) = unary::window(stream, word) else { break };
        while zeros != 0 && found < count {
            ends[found] = word as u32 * 64 + zeros.trailing_zeros();
            zeros &= zeros - 1;
            found += 1;
        }
        if found == count {
            break;
        }
    }
    found
}

/// Replaces low parts by sums.
fn add(sums: &mut [u32], ends: Option<&[u32]>, width: u8) {
    let mut sum = 0u32;
    for (k, low) in sums.iter_mut().enumerate() {
        sum = sum.wrapping_add(*low);
        let high = ends.map_or(0, |ends| ends[k] - k as u32);
        *low = sum.wrapping_add(high.checked_shl(width.into()).unwrap_or(0));
    }
}

/// As [`zeros`]; up to 64 numbers behind them are written.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn zeros_avx512(stream: &[u8], count: usize, ends: &mut [u32]) -> usize {
    use crate::cpu::IOTA;
    use std::arch::x86_64::*;
    // SAFETY: the array has 64 bytes.
    let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    let mut found = 0;
    for word in 0.. {
        let Some(zeros) = unary::window(stream, word) else { break };
        let base = _mm512_set1_epi32(word as i32 * 64);
        let places = _mm512_maskz_compress_epi8(zeros, iota);
        let room = &mut ends[found..found + 64];
        // SAFETY: there is room for 64 numbers.
        unsafe {
            let to = room.as_mut_ptr();
            let store = |part: __m128i, to: *mut u32| {
                let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(part), base);
                _mm512_storeu_si512(to.cast(), wide);
            };
            store(_mm512_castsi512_si128(places), to);
            store(_mm512_extracti32x4_epi32::<1>(places), to.add(16));
            store(_mm512_extracti32x4_epi32::<2>(places), to.add(32));
            store(_mm512_extracti32x4_epi32::<3>(places), to.add(48));
        }
        found += zeros.count_ones() as usize;
        if found >= count {
            break;
        }
    }
    found
}

/// As [`add`], of which the last 16 are no more than room.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn add_avx512(sums: &mut [u32], ends: Option<&[u32]>, width: u8) {
    use std::arch::x86_64::*;
    let zero = _mm512_setzero_si512();
    let lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let shift = _mm_set_epi32(0, 0, 0, i32::from(width));
    let mut carry = zero;
    let count = sums.len() - 16;
    for at in (0..count).step_by(16) {
        let low = &mut sums[at..at + 16];
        // SAFETY: 16 numbers are there.
        let mut x = unsafe { _mm512_loadu_si512(low.as_ptr().cast()) };
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero));
        x = _mm512_add_epi32(x, carry);
        carry = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), x);
        if let Some(ends) = ends {
            let ends = &ends[at..at + 16];
            // SAFETY: as above.
            let ends = unsafe { _mm512_loadu_si512(ends.as_ptr().cast()) };
            let before = _mm512_add_epi32(lanes, _mm512_set1_epi32(at as i32));
            let high = _mm512_sll_epi32(_mm512_sub_epi32(ends, before), shift);
            x = _mm512_add_epi32(x, high);
        }
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(low.as_mut_ptr().cast(), x) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::positions::encode;
    use crate::codec::unary::UnaryWriter;
    use crate::cpu::level;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn oracle_sums_are_those_of_the_values(
            values in prop::collection::vec(prop_oneof![8 => 0u32..40, 3 => 0u32..3000, 1 => any::<u32>()], 1..700),
            noise in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut bytes = Vec::new();
            encode(&values, &mut UnaryWriter::default(), &mut bytes);
            let expected: Vec<u32> = values
                .iter()
                .scan(0u32, |sum, value| {
                    *sum = sum.wrapping_add(*value);
                    Some(*sum)
                })
                .collect();
            let (mut sums, mut ends) = (Vec::new(), Vec::new());
            for level in [Level::Portable, level()] {
                let mut decode = |bytes: &[u8]| {
                    decode_sums(level, bytes, values.len(), &mut sums, &mut ends)
                        .map(|()| sums[..values.len()].to_vec())
                };
                prop_assert_eq!(decode(&bytes), Some(expected.clone()));
                prop_assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
                // No panic, and the same on all levels.
                let of_noise = decode(&noise);
                let portable = decode_sums(Level::Portable, &noise, values.len(), &mut Vec::new(), &mut Vec::new());
                prop_assert_eq!(of_noise.is_some(), portable.is_some());
            }
        }
    }
}

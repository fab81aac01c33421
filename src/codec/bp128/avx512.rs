//! The AVX-512 path: sixteen values a step.
//!
//! 1. Load the 2 x w bytes of sixteen values, masked, so that no byte behind them is touched.
//! 2. `vpermb` brings the four bytes around each value into its lane; for w > 25 a value may reach
//!    into a fifth byte, which a second `vpermb` brings.
//! 3. Shift each lane by its own count (`vpsrlvd`, or `vpshrdvd` over both halves) and mask.
//! 4. For docids: sum up the lanes by four shifted additions, then add what came before.
//!
//! The sums of the sixteens do not wait for each other: only one addition a step is in the chain.

use std::arch::x86_64::*;

use super::{BLOCK, mask};

/// Where the bytes of each value lie among those of its sixteen, and how far to shift them.
#[repr(C, align(64))]
struct Gather {
    bytes: [u8; 64],
    shifts: [u32; 16],
}

static GATHER: [Gather; 33] = {
    let mut tables = [const { Gather { bytes: [0; 64], shifts: [0; 16] } }; 33];
    let mut width = 0;
    while width <= 32 {
        let mut i = 0;
        while i < 16 {
            let bit = i * width;
            let mut j = 0;
            while j < 4 {
                // Above 63 only where the bits are masked off afterwards.
                tables[width].bytes[4 * i + j] = ((bit / 8 + j) % 64) as u8;
                j += 1;
            }
            tables[width].shifts[i] = (bit % 8) as u32;
            i += 1;
        }
        width += 1;
    }
    tables
};

/// What all sixteens of a block have in common, in registers.
#[derive(Clone, Copy)]
struct Shape {
    /// Bytes of a sixteen.
    step: usize,
    loaded: __mmask64,
    low: __m512i,
    high: __m512i,
    shifts: __m512i,
    mask: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
fn shape(width: u8) -> Shape {
    let table = &GATHER[usize::from(width)];
    // SAFETY: the table has 64 bytes there.
    let low = unsafe { _mm512_loadu_si512(table.bytes.as_ptr().cast()) };
    // SAFETY: as above.
    let shifts = unsafe { _mm512_loadu_si512(table.shifts.as_ptr().cast()) };
    Shape {
        step: 2 * usize::from(width),
        loaded: ((1u128 << (2 * width)) - 1) as u64,
        low,
        high: _mm512_add_epi8(low, _mm512_set1_epi8(4)),
        shifts,
        mask: _mm512_set1_epi32(mask(width) as i32),
    }
}

/// Sixteen values. `WIDE`: they may have more than 25 bits.
///
/// # Safety
///
/// `from` points to `shape.step` readable bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn sixteen<const WIDE: bool>(from: *const u8, shape: Shape) -> __m512i {
    // SAFETY: the mask has one bit for each of the readable bytes; no other byte is read.
    let bytes = unsafe { _mm512_maskz_loadu_epi8(shape.loaded, from.cast()) };
    let low = _mm512_permutexvar_epi8(shape.low, bytes);
    let shifted = if WIDE {
        let high = _mm512_permutexvar_epi8(shape.high, bytes);
        _mm512_shrdv_epi32(low, high, shape.shifts)
    } else {
        _mm512_srlv_epi32(low, shape.shifts)
    };
    _mm512_and_si512(shifted, shape.mask)
}

/// As `bp128::unpack`.
///
/// # Safety
///
/// `width` is at most 32 and `block` has 16 x `width` bytes; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn unpack(block: &[u8], width: u8, out: &mut [u32; BLOCK]) {
    if width <= 25 {
        // SAFETY: promised by the caller.
        unsafe { unpack_as::<false>(block, width, out) }
    } else {
        // SAFETY: promised by the caller.
        unsafe { unpack_as::<true>(block, width, out) }
    }
}

/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn unpack_as<const WIDE: bool>(block: &[u8], width: u8, out: &mut [u32; BLOCK]) {
    let shape = shape(width);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // SAFETY: eight steps of 2 x width bytes are the 16 x width bytes that the caller promised.
        let values = unsafe { sixteen::<WIDE>(block.as_ptr().add(group * shape.step), shape) };
        // SAFETY: `out` is sixteen u32.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) };
    }
}

/// As `bp128::unpack_docids`.
///
/// # Safety
///
/// As [`unpack`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn unpack_docids(block: &[u8], width: u8, previous: u32, out: &mut [u32; BLOCK]) {
    if width <= 25 {
        // SAFETY: promised by the caller.
        unsafe { docids_as::<false>(block, width, previous, out) }
    } else {
        // SAFETY: promised by the caller.
        unsafe { docids_as::<true>(block, width, previous, out) }
    }
}

/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn docids_as<const WIDE: bool>(
    block: &[u8],
    width: u8,
    previous: u32,
    out: &mut [u32; BLOCK],
) {
    let shape = shape(width);
    let zero = _mm512_setzero_si512();
    let ones = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    let last = _mm512_set1_epi32(15);
    let mut before = _mm512_set1_epi32(previous as i32);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // SAFETY: eight steps of 2 x width bytes are the 16 x width bytes that the caller promised.
        let gaps = unsafe { sixteen::<WIDE>(block.as_ptr().add(group * shape.step), shape) };
        let sum = _mm512_add_epi32(gaps, _mm512_alignr_epi32::<15>(gaps, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<14>(sum, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<12>(sum, zero));
        let sum = _mm512_add_epi32(sum, _mm512_alignr_epi32::<8>(sum, zero));
        let sum = _mm512_add_epi32(sum, ones);
        let total = _mm512_permutexvar_epi32(last, sum);
        let docids = _mm512_add_epi32(sum, before);
        // SAFETY: `out` is sixteen u32.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), docids) };
        before = _mm512_add_epi32(before, total);
    }
}

//! The AVX2 path: eight values a step, four in each half of a register.
//!
//! `vpshufb` moves bytes inside a half only, so each half is loaded on its own: the second four
//! values begin w / 2 bytes after the first, with four bits before them if w is odd. Four values
//! and those bits never reach beyond 16 bytes. The loads may touch 16 bytes behind the block; where
//! they are missing, the block is copied first.

use std::arch::x86_64::*;

use super::{bytes, mask, portable};

/// Bytes behind a block that the loads may touch.
const SLACK: usize = 16;

/// The bytes of each value in its half, and how far to shift them.
#[repr(C, align(32))]
struct Gather {
    /// The four bytes from the value's first.
    low: [u8; 32],
    /// The fifth byte; 0x80 gives zero.
    high: [u8; 32],
    shifts: [u32; 8],
}

static GATHER: [Gather; 33] = {
    let mut tables = [const { Gather { low: [0x80; 32], high: [0x80; 32], shifts: [0; 8] } }; 33];
    let mut width = 0;
    while width <= 32 {
        let mut i = 0;
        while i < 8 {
            let bit = if i < 4 { i * width } else { i * width - width / 2 * 8 };
            let mut j = 0;
            while j < 4 && bit / 8 + j < 16 {
                tables[width].low[4 * i + j] = (bit / 8 + j) as u8;
                j += 1;
            }
            if bit / 8 + 4 < 16 {
                tables[width].high[4 * i] = (bit / 8 + 4) as u8;
            }
            tables[width].shifts[i] = (bit % 8) as u32;
            i += 1;
        }
        width += 1;
    }
    tables
};

/// What all eights of a block share, in registers.
#[derive(Clone, Copy)]
struct Shape {
    /// Bytes of an eight.
    step: usize,
    low: __m256i,
    high: __m256i,
    down: __m256i,
    up: __m256i,
    mask: __m256i,
}

#[inline]
#[target_feature(enable = "avx2")]
fn shape(width: u8) -> Shape {
    let table = &GATHER[usize::from(width)];
    // SAFETY: the table has 32 bytes there.
    let low = unsafe { _mm256_loadu_si256(table.low.as_ptr().cast()) };
    // SAFETY: as above.
    let high = unsafe { _mm256_loadu_si256(table.high.as_ptr().cast()) };
    // SAFETY: as above.
    let down = unsafe { _mm256_loadu_si256(table.shifts.as_ptr().cast()) };
    Shape {
        step: usize::from(width),
        low,
        high,
        down,
        up: _mm256_sub_epi32(_mm256_set1_epi32(32), down),
        mask: _mm256_set1_epi32(mask(width) as i32),
    }
}

/// `WIDE`: values may have more than 25 bits.
///
/// # Safety
/// `from` points to `shape.step` + 16 readable bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn eight<const WIDE: bool>(from: *const u8, shape: Shape) -> __m256i {
    // SAFETY: 16 bytes are readable there.
    let first = unsafe { _mm_loadu_si128(from.cast()) };
    // SAFETY: half a step on, 16 bytes are readable too.
    let second = unsafe { _mm_loadu_si128(from.add(shape.step / 2).cast()) };
    let halves = _mm256_set_m128i(second, first);
    let low = _mm256_srlv_epi32(_mm256_shuffle_epi8(halves, shape.low), shape.down);
    let value = if WIDE {
        // A shift by 32 gives zero, as it should where the fifth byte has no bit of the value.
        let high = _mm256_sllv_epi32(_mm256_shuffle_epi8(halves, shape.high), shape.up);
        _mm256_or_si256(low, high)
    } else {
        low
    };
    _mm256_and_si256(value, shape.mask)
}

#[inline(always)]
fn with_slack<const N: usize>(block: &[u8], width: u8, decode: impl FnOnce(&[u8])) {
    let size = N / 8 * usize::from(width);
    if block.len() >= size + SLACK {
        decode(block);
    } else {
        let mut copy = [0; bytes(32) + SLACK];
        copy[..size].copy_from_slice(&block[..size]);
        decode(&copy);
    }
}

/// As `bp128::unpack_plus`, or, if `DOCIDS`, as `bp128::unpack_docids`, with `start` for `more` or
/// `previous`.
///
/// # Safety
/// `width` is at most 32 and `block` has N / 8 x `width` bytes, where 32 divides N and N is at most
/// 128; the machine has AVX2.
pub(super) unsafe fn unpack<const DOCIDS: bool, const N: usize>(
    block: &[u8],
    width: u8,
    start: u32,
    out: &mut [u32; N],
) {
    with_slack::<N>(block, width, |block| {
        if width <= 25 {
            // SAFETY: promised by the caller; `with_slack` added the rest.
            unsafe { unpack_as::<DOCIDS, false, N>(block, width, start, out) }
        } else {
            // SAFETY: as above.
            unsafe { unpack_as::<DOCIDS, true, N>(block, width, start, out) }
        }
    });
}

/// # Safety
/// As [`unpack`], and `block` has [`SLACK`] bytes more.
#[target_feature(enable = "avx2")]
unsafe fn unpack_as<const DOCIDS: bool, const WIDE: bool, const N: usize>(
    block: &[u8],
    width: u8,
    start: u32,
    out: &mut [u32; N],
) {
    let shape = shape(width);
    let ones = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
    let last = _mm256_set1_epi32(7);
    let mut before = _mm256_set1_epi32(start as i32);
    for (group, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // SAFETY: N / 8 steps of `width` bytes are the block; the slack is behind the last.
        let mut values = unsafe { eight::<WIDE>(block.as_ptr().add(group * shape.step), shape) };
        if DOCIDS {
            values = _mm256_add_epi32(sums(values), ones);
        }
        // SAFETY: `out` is eight u32.
        unsafe {
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_add_epi32(values, before));
        }
        if DOCIDS {
            before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(values, last));
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn sums(values: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(values, _mm256_slli_si256::<4>(values));
    let sum = _mm256_add_epi32(sum, _mm256_slli_si256::<8>(sum));
    // The sum of the first half is added to all of the second.
    let first = _mm256_permute2x128_si256::<0x08>(sum, sum);
    _mm256_add_epi32(sum, _mm256_shuffle_epi32::<0xff>(first))
}

/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sum_docids(previous: u32, values: &mut [u32]) {
    let ones = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
    let mut end = previous;
    let (groups, rest) = values.as_chunks_mut::<8>();
    for group in groups {
        // SAFETY: `group` is eight u32.
        let sum = sums(unsafe { _mm256_loadu_si256(group.as_ptr().cast()) });
        let before = _mm256_add_epi32(_mm256_set1_epi32(end as i32), ones);
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), _mm256_add_epi32(sum, before)) };
        end = group[7];
    }
    portable::sum_docids(end, rest);
}

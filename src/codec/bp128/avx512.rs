//! The AVX-512 path: sixteen values a step.
//!
//! 1. Load the 2 x w bytes of sixteen values, masked, so that no byte behind them is touched.
//! 2. `vpermb` brings the four bytes around each value into its lane; for w > 25 a value may reach
//!    into a fifth byte, which a second `vpermb` brings.
//! 3. Shift each lane by its own count (`vpsrlvd`, or `vpshrdvd` over both halves) and mask.
//! 4. For docids: sum up the lanes by four shifted additions, then add what came before.
//!
//! The sums of the sixteens do not wait for each other: only one addition a step is in the chain.

mod pack;

use std::arch::x86_64::*;

pub(super) use pack::pack;

use super::{mask, portable};

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
pub(in super::super) struct Shape {
    /// Bytes of a sixteen.
    step: usize,
    loaded: __mmask64,
    low: __m512i,
    high: __m512i,
    shifts: __m512i,
    mask: __m512i,
}

impl Shape {
    /// Bytes of sixteen values.
    #[inline]
    pub(in super::super) fn step(&self) -> usize {
        self.step
    }
}

/// The shape for a width of at most 32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(in super::super) fn shape(width: u8) -> Shape {
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

/// The first `len` of sixteen values; what the other lanes have is of no use.
///
/// # Safety
///
/// `len` is at most 16 and `from` has the bits of so many values; the machine has the instructions.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(in super::super) unsafe fn some_of_sixteen(from: &[u8], len: usize, shape: Shape) -> __m512i {
    let needed = (len * shape.step).div_ceil(16);
    debug_assert!(len <= 16 && from.len() >= needed);
    let shape = Shape { loaded: ((1u128 << needed) - 1) as u64, ..shape };
    // SAFETY: the mask has a bit for each byte that is promised to be there.
    unsafe { sixteen::<true>(from.as_ptr(), shape) }
}

/// Reads any number of values: as `bits::unpack`.
///
/// # Safety
///
/// `width` is at most 32 and `from` has the bits of all values; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(in super::super) unsafe fn unpack_some(from: &[u8], width: u8, out: &mut [u32]) {
    let shape = shape(width);
    for (number, part) in out.chunks_mut(16).enumerate() {
        let from = &from[number * shape.step..];
        // SAFETY: promised by the caller; a part has sixteen values at most.
        let values = unsafe { some_of_sixteen(from, part.len(), shape) };
        let lanes = ((1u32 << part.len()) - 1) as u16;
        // SAFETY: the lanes are those that the part has room for.
        unsafe { _mm512_mask_storeu_epi32(part.as_mut_ptr().cast(), lanes, values) };
    }
}

/// As `bp128::unpack_plus`.
///
/// # Safety
///
/// `width` is at most 32 and `block` has N / 8 x `width` bytes, where 32 divides N; the machine has
/// the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn unpack<const N: usize>(
    block: &[u8],
    width: u8,
    more: u32,
    out: &mut [u32; N],
) {
    if width <= 25 {
        // SAFETY: promised by the caller.
        unsafe { unpack_as::<false, N>(block, width, more, out) }
    } else {
        // SAFETY: promised by the caller.
        unsafe { unpack_as::<true, N>(block, width, more, out) }
    }
}

/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn unpack_as<const WIDE: bool, const N: usize>(
    block: &[u8],
    width: u8,
    more: u32,
    out: &mut [u32; N],
) {
    let shape = shape(width);
    let more = _mm512_set1_epi32(more as i32);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // SAFETY: N / 16 steps of 2 x width bytes are what the caller promised.
        let values = unsafe { sixteen::<WIDE>(block.as_ptr().add(group * shape.step), shape) };
        let values = _mm512_add_epi32(values, more);
        // SAFETY: `out` is sixteen u32.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) };
    }
}

/// Where the two bytes around each of 32 values of up to 9 bits lie: value i goes to the low half
/// of lane i, value 16 + i to its high half.
#[repr(C, align(64))]
struct PairGather {
    bytes: [u8; 64],
    shifts: [u16; 32],
}

static PAIR_GATHER: [PairGather; 10] = {
    let mut tables = [const { PairGather { bytes: [0; 64], shifts: [0; 32] } }; 10];
    let mut width = 0;
    while width < 10 {
        let mut i = 0;
        while i < 32 {
            let bit = i * width;
            let half = 2 * (i % 16) + i / 16;
            tables[width].bytes[2 * half] = (bit / 8) as u8;
            tables[width].bytes[2 * half + 1] = (bit / 8 + 1) as u8;
            tables[width].shifts[half] = (bit % 8) as u16;
            i += 1;
        }
        width += 1;
    }
    tables
};

/// As `bp128::unpack_docids`.
///
/// # Safety
///
/// As [`unpack`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn unpack_docids<const N: usize>(
    block: &[u8],
    width: u8,
    previous: u32,
    out: &mut [u32; N],
) {
    match width {
        // SAFETY: promised by the caller.
        0..=9 => unsafe { docids_of_narrow(block, width, previous, out) },
        // SAFETY: promised by the caller.
        10..=12 => unsafe { docids_of_pairs(block, width, previous, out) },
        // SAFETY: promised by the caller.
        13..=25 => unsafe { docids_as::<false, N>(block, width, previous, out) },
        // SAFETY: promised by the caller.
        _ => unsafe { docids_as::<true, N>(block, width, previous, out) },
    }
}

/// For each lane the sum of the lanes up to it.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums(values: __m512i) -> __m512i {
    // Within pairs of lanes, within fours, within eights, and all.
    let sums = _mm512_add_epi32(values, _mm512_slli_epi64::<32>(values));
    let sums = _mm512_add_epi32(sums, _mm512_maskz_shuffle_epi32::<0x55>(0xcccc, sums));
    let ends = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0, 11, 11, 11, 11);
    let sums = _mm512_add_epi32(sums, _mm512_maskz_permutexvar_epi32(0xf0f0, ends, sums));
    let end = _mm512_set1_epi32(7);
    _mm512_add_epi32(sums, _mm512_maskz_permutexvar_epi32(0xff00, end, sums))
}

/// Numbers 1 to 16, and the docid before them.
#[inline]
#[target_feature(enable = "avx512f")]
fn counted_from(previous: u32) -> __m512i {
    let ones = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    _mm512_add_epi32(ones, _mm512_set1_epi32(previous as i32))
}

/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn docids_as<const WIDE: bool, const N: usize>(
    block: &[u8],
    width: u8,
    previous: u32,
    out: &mut [u32; N],
) {
    let shape = shape(width);
    let (last, sixteen_more) = (_mm512_set1_epi32(15), _mm512_set1_epi32(16));
    let mut before = counted_from(previous);
    for (group, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        // SAFETY: N / 16 steps of 2 x width bytes are what the caller promised.
        let gaps = unsafe { sixteen::<WIDE>(block.as_ptr().add(group * shape.step), shape) };
        let sums = sums(gaps);
        let docids = _mm512_add_epi32(sums, before);
        // SAFETY: `out` is sixteen u32.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), docids) };
        let total = _mm512_permutexvar_epi32(last, sums);
        before = _mm512_add_epi32(before, _mm512_add_epi32(total, sixteen_more));
    }
}

/// Stores the docids of 32 gaps, of which the first sixteen are in the low halves of the lanes and
/// the rest in the high halves, and returns what is before the next. No sum of sixteen exceeds 16
/// bits, so both halves are summed up at once.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_pair(gaps: __m512i, before: __m512i, out: &mut [u32; 32]) -> __m512i {
    let low = _mm512_set1_epi32(0xffff);
    let sums = sums(gaps);
    let total = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), sums);
    let first = _mm512_add_epi32(_mm512_and_si512(sums, low), before);
    let sixteen_more = _mm512_add_epi32(before, _mm512_set1_epi32(16));
    let before = _mm512_add_epi32(sixteen_more, _mm512_and_si512(total, low));
    let second = _mm512_add_epi32(_mm512_srli_epi32::<16>(sums), before);
    // SAFETY: `out` is 32 u32, of which these are the first sixteen.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), first) };
    // SAFETY: these are the other sixteen.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(16).cast(), second) };
    let sixteen_more = _mm512_add_epi32(before, _mm512_set1_epi32(16));
    _mm512_add_epi32(sixteen_more, _mm512_srli_epi32::<16>(total))
}

/// Up to 12 bits: 16 gaps of less than 2^12 sum up to less than 2^16.
///
/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn docids_of_pairs<const N: usize>(
    block: &[u8],
    width: u8,
    previous: u32,
    out: &mut [u32; N],
) {
    let shape = shape(width);
    let mut before = counted_from(previous);
    for (pair, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        // SAFETY: N / 32 steps of 4 x width bytes are what the caller promised.
        let from = unsafe { block.as_ptr().add(2 * pair * shape.step) };
        // SAFETY: a pair has two steps.
        let first = unsafe { sixteen::<false>(from, shape) };
        // SAFETY: as above.
        let second = unsafe { sixteen::<false>(from.add(shape.step), shape) };
        let gaps = _mm512_or_si512(first, _mm512_slli_epi32::<16>(second));
        before = store_pair(gaps, before, out);
    }
}

/// Up to 9 bits: a value lies in two bytes, so that 32 are brought into their halves at once.
///
/// # Safety
///
/// As [`unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
unsafe fn docids_of_narrow<const N: usize>(
    block: &[u8],
    width: u8,
    previous: u32,
    out: &mut [u32; N],
) {
    let table = &PAIR_GATHER[usize::from(width)];
    // SAFETY: the table has 64 bytes there.
    let places = unsafe { _mm512_loadu_si512(table.bytes.as_ptr().cast()) };
    // SAFETY: as above.
    let shifts = unsafe { _mm512_loadu_si512(table.shifts.as_ptr().cast()) };
    let mask = _mm512_set1_epi16(mask(width) as i16);
    let step = 4 * usize::from(width);
    let loaded = (1u64 << step) - 1;
    let mut before = counted_from(previous);
    for (pair, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        // SAFETY: the mask has one bit for each byte of this step; N / 32 steps of 4 x width
        // bytes are what the caller promised.
        let bytes =
            unsafe { _mm512_maskz_loadu_epi8(loaded, block.as_ptr().add(pair * step).cast()) };
        let gaps = _mm512_srlv_epi16(_mm512_permutexvar_epi8(places, bytes), shifts);
        before = store_pair(_mm512_and_si512(gaps, mask), before, out);
    }
}

/// As `bp128::sum_docids`.
///
/// # Safety
///
/// The machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn sum_docids(previous: u32, values: &mut [u32]) {
    let (last, sixteen_more) = (_mm512_set1_epi32(15), _mm512_set1_epi32(16));
    let mut before = counted_from(previous);
    let mut end = previous;
    let (groups, rest) = values.as_chunks_mut::<16>();
    for group in groups {
        // SAFETY: `group` is sixteen u32.
        let sums = sums(unsafe { _mm512_loadu_si512(group.as_ptr().cast()) });
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(group.as_mut_ptr().cast(), _mm512_add_epi32(sums, before)) };
        let total = _mm512_permutexvar_epi32(last, sums);
        before = _mm512_add_epi32(before, _mm512_add_epi32(total, sixteen_more));
        end = group[15];
    }
    portable::sum_docids(end, rest);
}

//! Blocks of 128 integers at one width.
//!
//! A block of width w is one little-endian bit stream of 16 x w bytes: value i occupies bits i x w
//! to (i + 1) x w - 1 (`docs/index-format.md`, Postings). So eight values begin at every w-th byte
//! with no odd bits before them, and one table of byte positions and shifts serves all eights of a
//! block: the AVX2 path brings the bytes of each value into its lane, shifts and masks. The path is
//! chosen at run time; both give the same values.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx2;
mod blocks;
#[cfg(test)]
mod tests;

pub(crate) use blocks::Bp128;

#[cfg(target_arch = "x86_64")]
use crate::cpu::{Level, level};

pub const BLOCK: usize = 128;

pub(crate) const MAX_WIDTH: u8 = 32;

/// Bytes of a packed block of `width` bits a value.
#[inline]
pub const fn bytes(width: u8) -> usize {
    BLOCK / 8 * width as usize
}

/// Appends the values to `out` with `width` bits each; higher bits are lost.
///
/// # Panics
/// If `width` is above 32.
pub fn pack(values: &[u32; BLOCK], width: u8, out: &mut Vec<u8>) {
    assert!(width <= MAX_WIDTH, "a width of {width} bits");
    let mask = mask(width);
    let width = u32::from(width);
    let mut held = 0u64;
    let mut bits = 0;
    for value in values {
        held |= u64::from(value & mask) << bits;
        bits += width;
        if bits >= 32 {
            out.extend_from_slice(&(held as u32).to_le_bytes());
            held >>= 32;
            bits -= 32;
        }
    }
}

/// Reads 128 values of `width` bits from the beginning of `bytes`. Any smaller multiple of 32, N,
/// is read the same way from N / 8 x `width` bytes.
///
/// # Panics
/// If `width` is above 32 or `bytes` is shorter than that. Any contents are fine.
#[inline]
pub fn unpack<const N: usize>(bytes: &[u8], width: u8, out: &mut [u32; N]) {
    unpack_plus(bytes, width, 0, out);
}

/// [`unpack`] that adds `more` to each value, wrapping.
///
/// # Panics
/// As [`unpack`].
#[inline]
pub(crate) fn unpack_plus<const N: usize>(bytes: &[u8], width: u8, more: u32, out: &mut [u32; N]) {
    check::<N>(bytes, width);
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: `level` found the instructions; `check` made sure of the width and the bytes.
        return unsafe { avx2::unpack::<false, N>(bytes, width, more, out) };
    }
    portable::unpack(bytes, width, more, out);
}

/// [`unpack`] of gaps and their sums: `out[i]` is `previous` plus gaps 0 to i plus i + 1, wrapping.
/// `previous` is `u32::MAX` (-1) for the first block of a list.
///
/// # Panics
/// As [`unpack`].
#[inline]
pub fn unpack_docids<const N: usize>(bytes: &[u8], width: u8, previous: u32, out: &mut [u32; N]) {
    check::<N>(bytes, width);
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: `level` found the instructions; `check` made sure of the width and the bytes.
        return unsafe { avx2::unpack::<true, N>(bytes, width, previous, out) };
    }
    portable::unpack_docids(bytes, width, previous, out);
}

/// Turns `gap_minus_one` values into docids in place, as [`unpack_docids`] does.
#[inline]
pub(crate) fn sum_docids(previous: u32, values: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: `level` found the instructions.
        return unsafe { avx2::sum_docids(previous, values) };
    }
    portable::sum_docids(previous, values);
}

#[inline]
fn check<const N: usize>(block: &[u8], width: u8) {
    const { assert!(N.is_multiple_of(32) && N <= BLOCK) }
    assert!(width <= MAX_WIDTH, "a width of {width} bits");
    let needed = N / 8 * usize::from(width);
    assert!(block.len() >= needed, "{} bytes of a block of {width} bits", block.len());
}

/// `width` is 0 to 32.
#[inline]
pub(in crate::codec) const fn mask(width: u8) -> u32 {
    ((1u64 << width) - 1) as u32
}

/// The path of every machine, which the other must agree with.
mod portable {
    use super::mask;

    pub(super) fn unpack<const N: usize>(block: &[u8], width: u8, more: u32, out: &mut [u32; N]) {
        let mut words = block[..N / 8 * usize::from(width)].chunks_exact(4);
        let mask = mask(width);
        let width = u32::from(width);
        let mut held = 0u64;
        let mut bits = 0;
        for value in out {
            if bits < width {
                // 32 values of w bits are exactly w words.
                if let Some(&[a, b, c, d]) = words.next() {
                    held |= u64::from(u32::from_le_bytes([a, b, c, d])) << bits;
                }
                bits += 32;
            }
            *value = (held as u32 & mask).wrapping_add(more);
            held >>= width;
            bits -= width;
        }
    }

    pub(super) fn unpack_docids<const N: usize>(
        block: &[u8],
        width: u8,
        previous: u32,
        out: &mut [u32; N],
    ) {
        unpack(block, width, 0, out);
        sum_docids(previous, out);
    }

    #[inline]
    pub(super) fn sum_docids(previous: u32, values: &mut [u32]) {
        let mut docid = previous;
        for value in values {
            docid = docid.wrapping_add(*value).wrapping_add(1);
            *value = docid;
        }
    }
}

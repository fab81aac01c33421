//! The sweep's vector instructions on x86.

use super::{BLOCK, Classes, Lanes, PARTS, SweepStop, sweep};
use std::arch::x86_64::*;

/// Made only where the level was detected.
#[derive(Clone, Copy)]
pub(super) struct Avx512(pub(super) ());

impl Lanes for Avx512 {
    #[inline(always)]
    fn classes(self, block: &[u8; BLOCK]) -> Classes {
        // SAFETY: the level was detected.
        unsafe { classes(block) }
    }

    #[inline(always)]
    fn spaces(self, block: &[u8; BLOCK]) -> u64 {
        // SAFETY: the level was detected.
        unsafe { spaces(block) }
    }

    #[inline(always)]
    fn parity(self, bits: u64) -> u64 {
        // SAFETY: the level was detected.
        unsafe { parity(bits) }
    }

    #[inline(always)]
    fn deposit(self, bits: u64, places: u64) -> u64 {
        // SAFETY: the level was detected.
        unsafe { _pdep_u64(bits, places) }
    }

    #[inline(always)]
    fn squeeze(self, block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>) {
        // SAFETY: the level was detected.
        unsafe { squeeze(block, keep, feeds, out) }
    }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(block: &[u8; BLOCK]) -> __m512i {
    // SAFETY: a block has 64 bytes.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn classes(block: &[u8; BLOCK]) -> Classes {
    let x = load(block);
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(byte as i8));
    // SAFETY: the table has 16 bytes.
    let table = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(PARTS.as_ptr().cast())) };
    Classes {
        open: is(b'<'),
        close: is(b'>'),
        quote: is(b'"'),
        apostrophe: is(b'\''),
        equals: is(b'='),
        ampersand: is(b'&'),
        // A byte from 0x80 on gets 0, which it is not.
        parts: _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(table, x), x),
        blank: _mm512_cmple_epu8_mask(x, _mm512_set1_epi8(b' ' as i8)),
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn spaces(block: &[u8; BLOCK]) -> u64 {
    let x = load(block);
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(byte as i8));
    is(b' ') | is(b'\t') | is(b'\n') | is(b'\x0c') | is(b'\r')
}

#[target_feature(enable = "pclmulqdq")]
#[inline]
fn parity(bits: u64) -> u64 {
    let bits = _mm_set_epi64x(0, bits.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1))).cast_unsigned()
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[inline]
fn squeeze(block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>) {
    assert!(out.capacity() - out.len() >= BLOCK);
    let x = _mm512_mask_blend_epi8(feeds, load(block), _mm512_set1_epi8(b'\n' as i8));
    let x = _mm512_maskz_compress_epi8(keep, x);
    let length = out.len() + keep.count_ones() as usize;
    // SAFETY: there is room for 64 bytes, all of which are written.
    unsafe {
        _mm512_storeu_si512(out.as_mut_ptr().add(out.len()).cast(), x);
        out.set_len(length);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1,bmi2,pclmulqdq")]
pub(super) fn sweep_avx512(page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> SweepStop {
    sweep(Avx512(()), page, at, out)
}

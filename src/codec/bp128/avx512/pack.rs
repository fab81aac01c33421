//! Sixteen values are packed a step: neighbours are joined three times over.
//!
//! 1. Two values to a lane of 64 bits: 2 x w bits.
//! 2. Two of those to a lane of 128 bits: 4 x w bits.
//! 3. Four of those end to end: `vpermb` brings lanes 0 and 2, and lanes 1 and 3, to their bytes.
//!    If w is odd, lanes 1 and 3 begin in the middle of a byte and are shifted by four bits before.

use std::arch::x86_64::*;

use super::super::{BLOCK, bytes, mask};

/// From which byte of the lanes each byte of the sixteen comes, and which bytes come from there.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Scatter {
    even: [u8; 64],
    odd: [u8; 64],
    from_even: u64,
    from_odd: u64,
}

static SCATTER: [Scatter; 33] = {
    let mut tables = [Scatter { even: [0; 64], odd: [0; 64], from_even: 0, from_odd: 0 }; 33];
    let mut width = 0usize;
    while width <= 32 {
        let mut lane = 0;
        while lane < 4 {
            let bit = 4 * width * lane;
            let size = (bit % 8 + 4 * width).div_ceil(8);
            let mut i = 0;
            while i < size {
                let (to, from) = (bit / 8 + i, (16 * lane + i) as u8);
                if lane % 2 == 0 {
                    tables[width].even[to] = from;
                    tables[width].from_even |= 1 << to;
                } else {
                    tables[width].odd[to] = from;
                    tables[width].from_odd |= 1 << to;
                }
                i += 1;
            }
            lane += 1;
        }
        width += 1;
    }
    tables
};

/// As `bp128::pack`.
///
/// # Safety
///
/// `width` is at most 32; the machine has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2")]
pub(in super::super) unsafe fn pack(values: &[u32; BLOCK], width: u8, out: &mut Vec<u8>) {
    let table = &SCATTER[usize::from(width)];
    let w = i64::from(width);
    // SAFETY: the table has 64 bytes there.
    let even = unsafe { _mm512_loadu_si512(table.even.as_ptr().cast()) };
    // SAFETY: as above.
    let odd = unsafe { _mm512_loadu_si512(table.odd.as_ptr().cast()) };
    let mask = _mm512_set1_epi32(mask(width) as i32);
    let low = _mm512_set1_epi64(0xffff_ffff);
    let one = _mm512_set1_epi64(w);
    // Shifts by 64 give zero.
    let up = _mm512_broadcast_i64x2(_mm_set_epi64x(64, 2 * w));
    let down = _mm512_broadcast_i64x2(_mm_set_epi64x(64 - 2 * w, 64));
    let nibble = if width % 2 == 1 { 4 } else { 0 };
    let half_up = _mm512_setr_epi64(0, 0, nibble, nibble, 0, 0, nibble, nibble);
    let half_down = _mm512_setr_epi64(64, 64, 64, 64 - nibble, 64, 64, 64, 64 - nibble);

    let (size, step) = (bytes(width), 2 * usize::from(width));
    // Each store writes 64 bytes, of which the next overwrites all but `step`.
    out.reserve(size + 64);
    let start = out.len();
    for (group, values) in values.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: sixteen u32 are readable there.
        let values = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        let values = _mm512_and_si512(values, mask);
        let second = _mm512_sllv_epi64(_mm512_srli_epi64::<32>(values), one);
        let twos = _mm512_or_si512(_mm512_and_si512(values, low), second);

        let second = _mm512_unpackhi_epi64(twos, twos);
        let first = _mm512_maskz_mov_epi64(0b0101_0101, twos);
        let parts = _mm512_or_si512(_mm512_sllv_epi64(second, up), _mm512_srlv_epi64(second, down));
        let fours = _mm512_or_si512(first, parts);

        let carried = _mm512_srlv_epi64(_mm512_unpacklo_epi64(fours, fours), half_down);
        let fours = _mm512_or_si512(_mm512_sllv_epi64(fours, half_up), carried);

        let packed = _mm512_or_si512(
            _mm512_maskz_permutexvar_epi8(table.from_even, even, fours),
            _mm512_maskz_permutexvar_epi8(table.from_odd, odd, fours),
        );
        // SAFETY: 64 bytes more than the block are reserved, and this begins inside the block.
        let to = unsafe { out.as_mut_ptr().add(start + group * step) };
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), packed) };
    }
    // SAFETY: eight steps of 2 x width bytes have been written.
    unsafe { out.set_len(start + size) };
}

//! Scans JSON strings with the vector units of x86, to the contract of
//! [`Scan::find`](super::Scan::find) and [`Scan::copy`](super::Scan::copy).
//!
//! The escapes of one byte are removed without a branch: the backslashes that begin an escape are
//! marked, the bytes behind them translated through a table in registers, and the marked ones
//! squeezed out (`vpcompressb`), so that the speed hardly depends on how many escapes there are.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Scan, Scanning, simple_escape};
use crate::buffers::TextBuffer;
use crate::codec::prefetch::prefetch_at;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,popcnt")]
pub(crate) fn run_avx512<W: Scanning>(work: W) -> W::Outcome {
    work.run(Scan::Avx512)
}

/// Bytes that are looked at, and copied, at a time.
const STEP: usize = 64;
const EVEN: u64 = 0x5555_5555_5555_5555;

/// [`simple_escape`] of the bytes below 128.
static ESCAPES: [u8; 128] = {
    let mut table = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = simple_escape(byte);
        byte += 1;
    }
    table
};

/// Loads up to 64 bytes from `at` on, zeros behind the end, and marks the lanes behind the end.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_avx512(bytes: &[u8], at: usize) -> (__m512i, u64) {
    let rest = &bytes[at..];
    if let Some(step) = rest.first_chunk::<STEP>() {
        // SAFETY: a step is 64 bytes.
        return (unsafe { _mm512_loadu_si512(step.as_ptr().cast()) }, 0);
    }
    let inside = (1u64 << rest.len()) - 1;
    // SAFETY: the mask has lanes for the bytes of `rest` only; other lanes are not read.
    (unsafe { _mm512_maskz_loadu_epi8(inside, rest.as_ptr().cast()) }, !inside)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(crate) fn find_avx512(bytes: &[u8], mut at: usize) -> usize {
    loop {
        let (lanes, behind_end) = load_avx512(bytes, at);
        let marks = _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'"' as i8))
            | _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'\\' as i8))
            | _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'\n' as i8))
            | behind_end;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize;
        }
        at += STEP;
    }
}

/// Bytes ahead of which a text is brought to the caches: a piece has left the nearer ones when it
/// is parsed.
const AHEAD: usize = 1 << 10;

/// Tells the compiler that what calls it is seldom reached.
#[cold]
fn seldom() {}

/// Marks, of the backslashes in `marks`, those that begin an escape: in each run of them the first,
/// the third and so on. A run's places are told by its begin: adding a bit at the begin of a run
/// clears it and sets the bit behind it, so all runs that begin at even places fall out at once.
#[inline(always)]
fn escape_begins(marks: u64) -> u64 {
    let begins = marks & !(marks << 1);
    // Seldom does one stand behind another.
    if begins == marks {
        return marks;
    }
    seldom();
    let even_runs = marks & !marks.wrapping_add(begins & EVEN);
    let odd_runs = marks & !even_runs;
    (even_runs & EVEN) | (odd_runs & !EVEN)
}

struct EscapeStep {
    /// Its bytes up to where it stops, without the backslashes, with what escapes stand for.
    squeezed: __m512i,
    bytes: usize,
    /// Where it stops: at a quote, a line feed, or behind a backslash that is left to the caller.
    stops: u64,
    /// What stands behind backslashes.
    escaped: u64,
    /// 1 if the first byte of the next step does.
    carried: u64,
}

/// Translates the escapes of a step that stops at `behind_end`; `carried` is of the one before.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
#[inline]
fn translate(lanes: __m512i, behind_end: u64, carried: u64) -> EscapeStep {
    // SAFETY: the first 64 of the table's 128 bytes.
    let table_low = unsafe { _mm512_loadu_si512(ESCAPES.as_ptr().cast()) };
    // SAFETY: the last 64 of the table's 128 bytes.
    let table_high = unsafe { _mm512_loadu_si512(ESCAPES.as_ptr().add(STEP).cast()) };
    let backslashes = _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'\\' as i8));
    let begins = escape_begins(backslashes & !carried);
    let escaped = begins << 1 | carried;
    let quotes = _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'"' as i8));
    let feeds = _mm512_cmpeq_epi8_mask(lanes, _mm512_set1_epi8(b'\n' as i8));

    // Escapes of one byte are ASCII, and stand for no 0.
    let meant = _mm512_permutex2var_epi8(table_low, lanes, table_high);
    let unknown =
        _mm512_mask_testn_epi8_mask(escaped, meant, meant) | _mm512_movepi8_mask(lanes) & escaped;
    let copied = _mm512_mask_mov_epi8(lanes, escaped, meant);
    let stops = (quotes & !escaped) | feeds | unknown | behind_end;

    // All lanes below the first stop are kept, except for the backslashes.
    let before_stop = !stops & stops.wrapping_sub(1);
    let kept = before_stop & !begins;
    let squeezed = _mm512_maskz_compress_epi8(kept, copied);
    EscapeStep {
        squeezed,
        bytes: kept.count_ones() as usize,
        stops,
        escaped,
        carried: begins >> 63,
    }
}

/// `Scan::copy` with AVX-512; it leaves `\u` and bad escapes to the caller.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
#[inline]
pub(crate) fn copy_avx512(bytes: &[u8], mut at: usize, out: &mut TextBuffer) -> usize {
    let mut carried = 0;
    loop {
        let window = out.room(STEP);
        let mut from = at;
        let mut written = 0;
        // Each step has all of its bytes, and room for them.
        let last = at + bytes[at..].len().min(window.len()) / STEP * STEP;
        let step = loop {
            if from == last {
                if last > at {
                    break None;
                }
                // The last bytes are fewer, if there are any.
                let (lanes, behind_end) = load_avx512(bytes, at);
                break Some(translate(lanes, behind_end, carried));
            }
            prefetch_at(bytes, from + AHEAD);
            // SAFETY: a step is 64 bytes, and begins before `last`.
            let lanes = unsafe { _mm512_loadu_si512(bytes.as_ptr().add(from).cast()) };
            let step = translate(lanes, 0, carried);
            if step.stops != 0 {
                break Some(step);
            }
            // SAFETY: there is room for 64 bytes behind what is written, since that is at most as
            // long as what was read.
            unsafe { _mm512_storeu_si512(window.as_mut_ptr().add(written).cast(), step.squeezed) };
            written += step.bytes;
            carried = step.carried;
            from += STEP;
        };
        if let Some(step) = step {
            // SAFETY: as above; `room` has given 64 bytes at least.
            unsafe { _mm512_storeu_si512(window.as_mut_ptr().add(written).cast(), step.squeezed) };
            out.advance(written + step.bytes);
            // A stop behind a backslash belongs to the backslash, which may be in the step before.
            let stop = step.stops.trailing_zeros();
            return from + stop as usize - (step.escaped >> stop & 1) as usize;
        }
        out.advance(written);
        at = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_begin_at_every_other_backslash_of_a_run() {
        let mut state = 88172645463325252u64;
        for round in 0..1000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let marks = match round % 3 {
                0 => state,
                1 => state | state >> 7 | state << 9,
                _ => [0, 1, u64::MAX, 1 << 63, 3 << 62, !1, EVEN, !EVEN][round / 3 % 8],
            };
            let mut expected = 0u64;
            let mut inside = false;
            for place in 0..64 {
                inside = marks >> place & 1 == 1 && !inside;
                expected |= u64::from(inside) << place;
            }
            assert_eq!(escape_begins(marks), expected, "{marks:064b}");
        }
    }
}

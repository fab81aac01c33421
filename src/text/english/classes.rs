//! Classes of a word's bytes: masks of its vowels and ys.

use super::SHORT_BYTES;
use crate::text::scan::{HIGH_BITS, every, plain_bytes};

pub(super) const VOWEL: u8 = 1;
const Y: u8 = 2;
const FOREIGN: u8 = 4;

pub(super) static CLASSES: [u8; 256] = {
    let mut classes = [FOREIGN; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a' | b'e' | b'i' | b'o' | b'u' => VOWEL,
            b'y' => Y,
            b'a'..=b'z' | b'0'..=b'9' | b'\'' => 0,
            _ => FOREIGN,
        };
        byte += 1;
    }
    classes
};

/// Masks of the vowels and the ys of a word; `None` if a byte is foreign.
pub(super) fn classes(word: &[u8]) -> Option<(u64, u64)> {
    let mut vowels = 0;
    let mut ys = 0;
    let mut seen = 0;
    for (i, &byte) in word.iter().enumerate() {
        let class = CLASSES[usize::from(byte)];
        vowels |= u64::from(class & VOWEL) << i;
        ys |= u64::from((class & Y) / Y) << i;
        seen |= class;
    }
    (seen & FOREIGN == 0).then_some((vowels, ys))
}

/// [`classes`] of a word of at most 16 bytes, all compared together.
pub(super) fn short_classes(whole: u128, len: usize) -> Option<(u64, u64)> {
    // Below 0x80 the highest bit of a byte tells whether it differs.
    let other = |byte: u8| ((whole ^ every(byte)) & !HIGH_BITS) + !HIGH_BITS;
    let known = plain_bytes(whole) | !other(b'\'') & !whole & HIGH_BITS;
    if known != HIGH_BITS >> (8 * (SHORT_BYTES - len)) {
        return None;
    }
    let consonants = other(b'a') & other(b'e') & other(b'i') & other(b'o') & other(b'u');
    Some((gather(!consonants & HIGH_BITS), gather(!other(b'y') & HIGH_BITS)))
}

/// Gathers the highest bits of 16 bytes, whose other bits are 0.
fn gather(bytes: u128) -> u64 {
    let half = |bytes: u64| (bytes >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    half(bytes as u64) | half((bytes >> 64) as u64) << 8
}

//! The fast tokenizer of the build job, which equals
//! [`for_each_token`](super::tokenizer::for_each_token) and gives nearly all tokens as 16-byte keys
//! without looking at a byte twice.
//!
//! It makes two passes over a text:
//! 1. 64 bytes at a time are classified into *word bytes*, the ASCII letters and digits and every
//!    byte from 0x80 on, and the places where word bytes begin and end go to a list. No token
//!    crosses an ASCII byte that is no letter and no digit, so a run of word bytes, a *stretch*, is
//!    one token if it has no high byte, and else holds whole tokens.
//! 2. Up to 16 ASCII bytes of a stretch are loaded at once and lower-cased by one `or`, since
//!    letters and digits have bit 5 free. Longer stretches and those with high bytes take a slower
//!    way.
//!
//! The first pass uses AVX-512 (VBMI2 compresses places), or what compilers vectorise.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use crate::cpu::IOTA;
use crate::cpu::{Level, level};

/// An ASCII token of up to 16 bytes, lower-cased, padded with zero bytes.
pub type TokenKey = [u64; 2];

pub(crate) const KEY_BYTES: usize = 16;

/// Keys that are passed on at once: with this many, what was prefetched for each when its key was
/// found has come from memory, even where all cores load.
pub(crate) const TOGETHER: usize = 128;

/// The receiver of a text's stretches: those with keys come in order, and so do the others, but a
/// few keys may come behind others that follow them in the text unless all are to be
/// [in order](Scanner::in_order).
pub trait Stretches {
    /// Called with each key that the next call of [`keys`](Self::keys) will have.
    #[inline(always)]
    fn ahead(&self) -> impl Fn(TokenKey) -> u32 {
        |_| 0
    }
    /// Whole tokens of up to 16 ASCII bytes, lower-cased, at most [`TOGETHER`], with what
    /// [`ahead`](Self::ahead) returned for each.
    fn keys(&mut self, keys: &[TokenKey], ahead: &[u32]);
    /// A whole token of more than 16 ASCII bytes, as written.
    fn long(&mut self, token: &[u8]);
    /// Bytes that hold none, one or several whole tokens, among them bytes from 0x80 on.
    fn mixed(&mut self, bytes: &[u8]);
}

/// Bytes of a long text whose stretches are found at once: their edges may take eight times as
/// many.
const PART_BYTES: usize = 256 << 10;

/// Whether a byte belongs to a stretch.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

pub struct Scanner {
    level: Level,
    in_order: bool,
    /// The begin and end of each stretch.
    edges: Vec<u32>,
    /// A bit for each byte of the text: whether it is 0x80 or more.
    high: Vec<u64>,
    /// Kept, since to clear one for each text takes time.
    batch: KeyBatch,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    pub fn new() -> Self {
        let batch = KeyBatch { keys: [[0; 2]; TOGETHER], ahead: [0; TOGETHER], found: 0 };
        Self { level: level(), in_order: false, edges: Vec::new(), high: Vec::new(), batch }
    }

    /// Whether all stretches come in the order of the text, which takes longer.
    #[must_use]
    pub(crate) fn in_order(self, in_order: bool) -> Self {
        Self { in_order, ..self }
    }

    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// # Panics
    /// If the text has 4 GiB or more; documents are limited far below that.
    #[inline]
    pub fn scan(&mut self, text: &[u8], out: &mut impl Stretches) {
        assert!(text.len() < u32::MAX as usize, "a document has less than 4 GiB");
        let mut rest = text;
        // No stretch reaches over a byte that is part of no word.
        while rest.len() > PART_BYTES
            && let Some(more) = rest[PART_BYTES..].iter().position(|&byte| !is_word(byte))
        {
            let (part, behind) = rest.split_at(PART_BYTES + more);
            self.scan_part(part, out);
            rest = behind;
        }
        self.scan_part(rest, out);
    }

    #[inline]
    fn scan_part(&mut self, text: &[u8], out: &mut impl Stretches) {
        let any_high = self.find_edges(text);
        let mut high = if any_high { next_high(&self.high, 0) } else { usize::MAX };
        let (pairs, rest) = self.edges.as_chunks::<2>();
        debug_assert!(rest.is_empty());
        let batch = &mut self.batch;
        for mut pairs in pairs.chunks(TOGETHER) {
            batch.found = 0;
            loop {
                let taken = batch.take(text, pairs, high, out.ahead());
                let Some((&[start, end], behind)) = pairs[taken..].split_first() else { break };
                if self.in_order && batch.found > 0 {
                    out.keys(&batch.keys[..batch.found], &batch.ahead[..batch.found]);
                    batch.found = 0;
                }
                let stretch = &text[start as usize..end as usize];
                let end = end as usize;
                // A byte from 0x80 on is a word byte, so no stretch before this one had it.
                if end > high {
                    out.mixed(stretch);
                    high = next_high(&self.high, end);
                } else {
                    out.long(stretch);
                }
                pairs = behind;
            }
            out.keys(&batch.keys[..batch.found], &batch.ahead[..batch.found]);
        }
    }

    /// Fills `edges` and `high`; returns whether any byte is 0x80 or more.
    fn find_edges(&mut self, text: &[u8]) -> bool {
        self.edges.clear();
        self.edges.reserve(text.len() + 65);
        self.high.clear();
        self.high.reserve(text.len() / 64 + 1);
        match self.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the level was detected on this processor.
            Level::Avx512 => unsafe { self.find_edges_avx512(text) },
            _ => self.find_edges_portable(text),
        }
    }

    fn finish_edges(&mut self, text: &[u8]) -> bool {
        // A stretch that the last word of bits left open ends with the text.
        if self.edges.len() % 2 == 1 {
            self.edges.push(text.len() as u32);
        }
        self.high.iter().fold(0, |any, &w| any | w) != 0
    }

    fn find_edges_portable(&mut self, text: &[u8]) -> bool {
        let mut carry = 0;
        let mut last = [0; 64];
        for (i, bytes) in text.chunks(64).enumerate() {
            let step = bytes.try_into().unwrap_or_else(|_| {
                last[..bytes.len()].copy_from_slice(bytes);
                &last
            });
            let word = bits_of(step, |byte| {
                let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
                u8::from(letter) | u8::from(byte.wrapping_sub(b'0') < 10) | byte >> 7
            });
            let is_ascii = step.iter().fold(0, |all, byte| all | byte) < 0x80;
            self.high.push(if is_ascii { 0 } else { bits_of(step, |byte| byte >> 7) });
            let mut edges = word ^ ((word << 1) | carry);
            carry = word >> 63;
            let all = self.edges.len() + edges.count_ones() as usize;
            // Four at a time, without a look at how many there are.
            while edges != 0 {
                self.edges.extend_from_slice(&std::array::from_fn::<_, 4, _>(|_| {
                    let place = i * 64 + edges.trailing_zeros() as usize;
                    edges &= edges.wrapping_sub(1);
                    place as u32
                }));
            }
            self.edges.truncate(all);
        }
        self.finish_edges(text)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
    fn find_edges_avx512(&mut self, text: &[u8]) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: the array has 64 bytes.
        let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
        let mut carry = 0;
        let mut at = 0;
        while at < text.len() {
            let left = text.len() - at;
            let inside = if left >= 64 { u64::MAX } else { (1 << left) - 1 };
            // SAFETY: the mask leaves out the bytes behind the text, which are not read.
            let x = unsafe { _mm512_maskz_loadu_epi8(inside, text.as_ptr().add(at).cast()) };
            let lower = _mm512_or_si512(x, _mm512_set1_epi8(0x20));
            let letters = _mm512_cmplt_epu8_mask(
                _mm512_sub_epi8(lower, _mm512_set1_epi8(b'a' as i8)),
                _mm512_set1_epi8(26),
            );
            let digits = _mm512_cmplt_epu8_mask(
                _mm512_sub_epi8(x, _mm512_set1_epi8(b'0' as i8)),
                _mm512_set1_epi8(10),
            );
            let high = _mm512_movepi8_mask(x);
            let word = letters | digits | high;
            self.high.push(high);
            let edges = word ^ ((word << 1) | carry);
            carry = word >> 63;
            let places = _mm512_maskz_compress_epi8(edges, iota);
            let base = _mm512_set1_epi32(at as i32);
            let n = edges.count_ones() as usize;
            let old = self.edges.len();
            // SAFETY: `find_edges` reserved one place for each byte of the text and 65 more; the
            // stores below write at most 64 from `old`, which is at most `at`.
            unsafe {
                let to = self.edges.as_mut_ptr().add(old);
                let store = |part: __m128i, to: *mut u32| {
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(part), base);
                    _mm512_storeu_si512(to.cast(), wide);
                };
                store(_mm512_castsi512_si128(places), to);
                if n > 16 {
                    store(_mm512_extracti32x4_epi32::<1>(places), to.add(16));
                    if n > 32 {
                        store(_mm512_extracti32x4_epi32::<2>(places), to.add(32));
                        store(_mm512_extracti32x4_epi32::<3>(places), to.add(48));
                    }
                }
                self.edges.set_len(old + n);
            }
            at += 64;
        }
        self.finish_edges(text)
    }
}

/// The result of `is`, 0 or 1, for each byte. Compilers vectorise an `is` without branches.
#[inline(always)]
pub(super) fn bits_of(step: &[u8; 64], is: impl Fn(u8) -> u8) -> u64 {
    let mut found = [0; 64];
    found.iter_mut().zip(step).for_each(|(found, &byte)| *found = is(byte));
    // The lowest bits of eight bytes come together in the highest byte of the product.
    let (eights, _) = found.as_chunks::<8>();
    eights.iter().rev().fold(0, |word, eight| {
        word << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cold]
#[inline(never)]
fn next_high(high: &[u64], from: usize) -> usize {
    let first = from / 64;
    let mut mask = u64::MAX << (from % 64);
    for (i, &word) in high.iter().enumerate().skip(first) {
        if word & mask != 0 {
            return i * 64 + (word & mask).trailing_zeros() as usize;
        }
        mask = u64::MAX;
    }
    usize::MAX
}

#[repr(C, align(64))]
struct KeyBatch {
    keys: [TokenKey; TOGETHER],
    /// What [`Stretches::ahead`] returned for each.
    ahead: [u32; TOGETHER],
    found: usize,
}

impl KeyBatch {
    /// Takes stretches up to the first without a key: one with the byte at `high`, or a long one.
    /// Returns their number. A function of its own keeps the loop's state in registers.
    #[inline(never)]
    fn take(
        &mut self,
        text: &[u8],
        pairs: &[[u32; 2]],
        high: usize,
        to_come: impl Fn(TokenKey) -> u32,
    ) -> usize {
        let room = self.keys[self.found..].iter_mut().zip(&mut self.ahead[self.found..]);
        let mut taken = 0;
        for (&[start, end], (key, ahead)) in pairs.iter().zip(room) {
            let len = (end - start) as usize;
            let start = start as usize;
            if end as usize > high || len > KEY_BYTES {
                break;
            }
            *key = load_key(text, start, len);
            *ahead = to_come(*key);
            taken += 1;
        }
        self.found += taken;
        taken
    }
}

/// Masks of the first `len` bytes of a key.
const KEEP: [TokenKey; KEY_BYTES + 1] = {
    let mut keep = [[0u64; 2]; KEY_BYTES + 1];
    let mut len = 1;
    while len <= KEY_BYTES {
        let low = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
        let high = if len <= 8 {
            0
        } else if len == 16 {
            u64::MAX
        } else {
            (1 << (8 * (len - 8))) - 1
        };
        keep[len] = [low, high];
        len += 1;
    }
    keep
};

const LOWER: u64 = 0x2020_2020_2020_2020;

/// The key of the ASCII letters and digits `text[start..start + len]`, `len` from 1 to 16.
#[inline(always)]
fn load_key(text: &[u8], start: usize, len: usize) -> TokenKey {
    let whole = match text.get(start..start + KEY_BYTES) {
        Some(bytes) => u128::from_le_bytes(bytes.try_into().expect("so many bytes were taken")),
        None => load_last(text, start, len),
    };
    let keep = &KEEP[len];
    [(whole as u64 | LOWER) & keep[0], ((whole >> 64) as u64 | LOWER) & keep[1]]
}

/// For a token that ends less than a key before the text does.
#[cold]
#[inline(never)]
fn load_last(text: &[u8], start: usize, len: usize) -> u128 {
    load_short(&text[start..start + len])
}

/// Up to 16 bytes, then zeros. Both ends, which may overlap, are loaded as whole words.
#[inline(always)]
pub(super) fn load_short(bytes: &[u8]) -> u128 {
    let n = bytes.len();
    let at = |place: usize, word: u64| u128::from(word) << (8 * place);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        at(0, u64::from_le_bytes(*first)) | at(n - 8, u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        at(0, u32::from_le_bytes(*first).into()) | at(n - 4, u32::from_le_bytes(*last).into())
    } else if n > 0 {
        at(0, bytes[0].into()) | at(n / 2, bytes[n / 2].into()) | at(n - 1, bytes[n - 1].into())
    } else {
        0
    }
}

#[inline(always)]
pub(super) const fn every(byte: u8) -> u128 {
    u128::MAX / 0xff * byte as u128
}

pub(super) const HIGH_BITS: u128 = every(0x80);

/// The highest bits of those of 16 bytes that are lower-case ASCII letters or digits.
#[inline(always)]
pub(super) fn plain_bytes(whole: u128) -> u128 {
    // The highest bit of each byte tells whether the others are at least `least`.
    let from = |least: u8| (whole & !HIGH_BITS) + every(0x80 - least);
    let digits = from(b'0') & !from(b'9' + 1);
    let letters = from(b'a') & !from(b'z' + 1);
    (digits | letters) & !whole & HIGH_BITS
}

/// The bytes of a stretch as they stand, then zeros.
pub(crate) type StretchKey = [u64; 4];

/// The key of a stretch, if it has at most 32 bytes: 16 letters of two each.
#[inline]
pub(crate) fn stretch_key(stretch: &[u8]) -> Option<StretchKey> {
    if stretch.len() > size_of::<StretchKey>() {
        return None;
    }
    let (first, rest) = stretch.split_at(stretch.len().min(KEY_BYTES));
    let [first, rest] = [first, rest].map(load_short);
    Some([first as u64, (first >> 64) as u64, rest as u64, (rest >> 64) as u64])
}

/// A hash whose lower bits depend on all of a key.
#[inline]
pub(crate) fn spread_stretch(key: &StretchKey) -> u64 {
    let add =
        |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    key.iter().fold(0, add).wrapping_mul(0xd6e8_feb8_6659_fd93).swap_bytes()
}

/// The key of a lower-cased ASCII token, or `None` if it has none.
#[inline]
pub(crate) fn key_of(token: &[u8]) -> Option<TokenKey> {
    if token.is_empty() || token.len() > KEY_BYTES {
        return None;
    }
    let whole = load_short(token);
    // Zeros, which follow the token too, are neither.
    let fits = plain_bytes(whole) == HIGH_BITS >> (8 * (KEY_BYTES - token.len()));
    fits.then_some([whole as u64, (whole >> 64) as u64])
}

pub(crate) fn key_bytes(key: TokenKey) -> ([u8; KEY_BYTES], usize) {
    let whole = (u128::from(key[1]) << 64) | u128::from(key[0]);
    let len = KEY_BYTES - whole.leading_zeros() as usize / 8;
    (whole.to_le_bytes(), len)
}

#[cfg(test)]
mod tests;

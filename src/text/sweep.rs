//! How is markup taken 64 bytes at a time, whatever stands in its tags?
//!
//! To step from mark to mark takes many instructions for each tag and attribute. Here the classes of 64 bytes are bits of words,
//! and what stands within tags follows from a few operations on these: an addition carries from each `<` to the next `>`.
//! Then the name of each tag is looked up, and what is no tag is squeezed together by one instruction (`vpcompressb`).
//!
//! That the next `>` ends a tag is not known but checked: values that stand in double quotes right behind `=` may hold anything but `>`,
//! others neither quotes nor `=`. All else is left to the caller, who steps through it.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "no other processor is known to squeeze")
)]

use super::html::markup::{INLINE, ROLES, Role, name_at, role_of, tag};

/// Bytes that are taken at a time.
const BLOCK: usize = 64;

/// Bytes behind a block that are there: a name that begins at its end is looked at.
const BEHIND: usize = 16;

/// Why not all of a page was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// Something stands here that has to be looked at: a reference, a comment, a tag with a long name, or the page's end.
    Here,
    /// Before here stands a tag that means something, whose name is at `name..after`.
    Behind { name: usize, after: usize, is_end: bool, role: Role },
    /// What stands here has to be stepped through, until there.
    Odd { until: usize },
}

/// Takes a page from a place on at which no tag is under way, appends its text, and moves the place to where it stops.
pub(super) type Sweep = fn(&[u8], &mut usize, &mut Vec<u8>) -> Stop;

/// How this machine sweeps, if it can.
pub(super) fn best() -> Option<Sweep> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        // SAFETY: the level was detected on this processor.
        return Some(|page, at, out| unsafe { x86::sweep_avx512(page, at, out) });
    }
    None
}

/// What 64 bytes are, a bit for each.
#[derive(Debug, PartialEq)]
struct Classes {
    open: u64,
    close: u64,
    quote: u64,
    apostrophe: u64,
    equals: u64,
    ampersand: u64,
    /// What ends a tag's name.
    parts: u64,
    /// Blanks, and other bytes below them, which do not go on with a word.
    blank: u64,
}

/// What vector instructions do.
trait Lanes: Copy {
    fn classes(self, block: &[u8; BLOCK]) -> Classes;

    /// White space as HTML has it.
    fn spaces(self, block: &[u8; BLOCK]) -> u64;

    /// Of each bit whether an odd number is set up to it.
    fn parity(self, bits: u64) -> u64;

    /// Puts the lowest bits where `places` are set.
    fn deposit(self, bits: u64, places: u64) -> u64;

    /// Appends the bytes that are kept; those that are `feeds` become line feeds. There has to be room for a block.
    fn squeeze(self, block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>);
}

/// The bytes that end a tag's name, by the low half of them, in which they differ.
#[cfg(target_arch = "x86_64")]
const PARTS: [u8; 16] = {
    let set = b" \t\n\x0c\r/>";
    let (mut table, mut i) = ([0xff; 16], 0);
    while i < set.len() {
        table[(set[i] & 15) as usize] = set[i];
        i += 1;
    }
    table
};

const SLOTS: usize = 128;

/// A factor that gives each name a slot of its own, found by trial.
const FACTOR: u64 = 0x84a67dde9f223d55;

/// Names of up to seven bytes, the last in the highest byte, and in the lowest byte 1 if the tag formats a part of a line, 2 if it means
/// something.
static NAMES: [u64; SLOTS] = names(FACTOR).expect("the factor parts all names");

const fn slot(name: u64, factor: u64) -> usize {
    (name.wrapping_mul(factor) >> (64 - SLOTS.ilog2())) as usize
}

const fn names(factor: u64) -> Option<[u64; SLOTS]> {
    let (mut names, mut i) = ([0; SLOTS], 0);
    while i < ROLES.len() + INLINE.len() {
        let (name, meaning) = if i < ROLES.len() {
            (ROLES[i].0, 2)
        } else {
            (tag(INLINE[i - ROLES.len()].as_bytes()), 1)
        };
        i += 1;
        // One of eight bytes is looked at anyway.
        if name >> 56 == 0 {
            let name = name.swap_bytes();
            let slot = slot(name, factor);
            if names[slot] != 0 {
                return None;
            }
            names[slot] = name | meaning;
        }
    }
    Some(names)
}

/// Repeats a byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// What a tag does whose name, of up to seven bytes in lower case, ends in the highest byte: see [`NAMES`]; 0 if it parts words.
#[inline(always)]
fn meaning(name: u64) -> u64 {
    let differs = NAMES[slot(name, FACTOR)] ^ name;
    std::hint::select_unpredictable(differs < 0x100, differs, 0)
}

#[inline(always)]
fn word_at(bytes: &[u8; BLOCK + BEHIND], at: u32) -> u64 {
    u64::from_le_bytes(*bytes[at as usize..].first_chunk().expect("a word begins in the block"))
}

/// What the usual references of one byte stand for, by what follows `&`, and their bytes behind it.
#[inline(always)]
fn one_byte(word: u64) -> Option<(u8, u32)> {
    let is =
        |name: &[u8; 8], bytes: u32| (word ^ u64::from_le_bytes(*name)) << (64 - 8 * bytes) == 0;
    Some(match () {
        () if is(b"nbsp;   ", 5) => (b' ', 5),
        () if is(b"gt;     ", 3) => (b'>', 3),
        () if is(b"lt;     ", 3) => (b'<', 3),
        () if is(b"amp;    ", 4) => (b'&', 4),
        () if is(b"quot;   ", 5) => (b'"', 5),
        () if is(b"#160;   ", 5) => (b' ', 5),
        () => return None,
    })
}

/// The bits below a place.
#[inline(always)]
fn below(place: u32) -> u64 {
    1u64.checked_shl(place).unwrap_or(0).wrapping_sub(1)
}

/// The lowest bit that is set.
#[inline(always)]
fn first(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// Carries from each begin on while `goes_on`: of the places where it does not, the sum has those to which something was carried. `carry`
/// is what comes from before the first place, and goes behind the last.
#[inline(always)]
fn carried(begins: u64, goes_on: u64, carry: &mut bool) -> u64 {
    let sum;
    (sum, *carry) = (begins | u64::from(*carry)).overflowing_add(goes_on);
    sum
}

/// Marks all places from each begin on up to the first that does not go on.
#[inline(always)]
fn stretch(begins: u64, goes_on: u64, carry: &mut bool) -> u64 {
    (carried(begins, goes_on, carry) ^ goes_on) | begins
}

/// What goes on from one block to the next.
#[derive(Clone, Copy, Default)]
struct Carry {
    in_tag: bool,
    /// Where the last tag begins, and 1 if it parts no words.
    tag_at: usize,
    inline: u64,
    /// The last tag means something.
    pending: Option<Stop>,
    /// All bits in a value in quotes.
    in_quotes: u64,
    /// In a value without quotes.
    in_bare: bool,
    /// 1 behind `=` of an attribute.
    behind_equals: u64,
    /// 1 behind a byte that is no part of an attribute's name.
    behind_part: u64,
}

impl Carry {
    /// Where to go back to, to begin with what is under way at `at`.
    fn begin(&self, at: usize) -> usize {
        if self.in_tag { self.tag_at } else { at }
    }
}

/// See [`Sweep`].
#[inline(always)]
fn sweep(lanes: impl Lanes, page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stop {
    // No more comes out than is taken.
    out.reserve(page.len() - *at + BLOCK);
    let mut after_word = out.last().is_some_and(|last| *last > b' ');
    let mut carry = Carry::default();
    let mut base = *at;
    loop {
        let mut last = [b' '; BLOCK + BEHIND];
        // Behind the last bytes of the page are blanks.
        let (bytes, filled): (&[u8; BLOCK + BEHIND], _) =
            match page.get(base..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => (bytes, BLOCK),
                None => {
                    let rest = &page[base..];
                    last[..rest.len()].copy_from_slice(rest);
                    (&last, rest.len().min(BLOCK))
                }
            };
        let mut block: &[u8; BLOCK] = bytes.first_chunk().expect("there are more bytes");
        let Classes { open, close, quote, apostrophe, equals, ampersand, parts, mut blank } =
            lanes.classes(block);
        let before = carry;
        let tags = stretch(open, !close, &mut carry.in_tag);
        let ends = close & tags;
        let starts = open & !((tags & !close) << 1 | u64::from(before.in_tag));

        // What may be otherwise than it seems.
        let inside = lanes.parity(quote & tags) ^ before.in_quotes;
        let opening = quote & tags & inside;
        let equal = equals & tags & !inside;
        let values = equal << 1 | before.behind_equals;
        // A name that ends in this block may not have any `=`.
        let begins = starts << 1;
        let names = stretch(begins, !parts | begins, &mut false);
        let mut odd = ends & inside
            | apostrophe & tags & !inside
            | equal & ((parts | quote) << 1 | before.behind_part | names)
            | opening & !values;
        let bare = values & !opening & tags;
        if bare != 0 || before.in_bare {
            let spaces = lanes.spaces(block);
            let value = stretch(bare, !(spaces | close), &mut carry.in_bare);
            odd |= bare & spaces | value & equals;
        }
        carry.in_quotes = (inside.cast_signed() >> 63).cast_unsigned();
        carry.behind_equals = equal >> 63;
        carry.behind_part = (parts | quote) >> 63;

        // Up to where all is as expected, and what stops there, or whether the next block begins there.
        let is_last = filled < BLOCK;
        let (mut cut, mut stop, mut again) = (filled as u32, is_last.then_some(Stop::Here), false);
        // References are a byte each, behind which some are left out.
        let (mut references, mut dropped) = (ampersand & !tags, 0);
        let mut replaced;
        if references != 0 {
            replaced = *block;
            while references != 0 {
                let place = references.trailing_zeros();
                references &= references - 1;
                let known = one_byte(word_at(bytes, place + 1));
                let Some((byte, length)) = known.filter(|(_, length)| place + length < 64) else {
                    again = known.is_some() && place > 0;
                    (cut, stop) = (place, Some(Stop::Here));
                    break;
                };
                replaced[place as usize] = byte;
                blank |= u64::from(byte == b' ') << place;
                dropped |= below(length) << (place + 1);
            }
            block = &replaced;
        }
        if let Some(pending) = before.pending
            && ends & below(cut) != 0
        {
            (cut, stop, again) = (ends.trailing_zeros() + 1, Some(pending), false);
        }
        // Of each tag that is under way here whether it parts no words.
        let mut inline = before.inline & u64::from(before.in_tag);
        let mut number = u32::from(before.in_tag);
        let begun = starts & below(cut);
        let mut rest = begun;
        while rest != 0 {
            let place = rest.trailing_zeros() & 63;
            rest &= rest - 1;
            let word = word_at(bytes, place + 1);
            let is_end = word as u8 == b'/';
            let start = place + 1 + u32::from(is_end);
            let word = (word >> (8 * u32::from(is_end))) | each(b' ');
            let length = parts.checked_shr(start).unwrap_or(0).trailing_zeros();
            let is_letter = (word as u8).wrapping_sub(b'a') < 26;
            // Only letters become letters in lower case.
            let mut meaning = meaning(word << (64u32.wrapping_sub(8 * length) & 63));
            if !is_letter | (length > 7) | (meaning > 1) & !is_end {
                if !is_letter || start > 63 {
                    // Behind the block nothing is known: the next one begins here.
                    (cut, stop, again) = (place, Some(Stop::Here), is_letter && place > 0);
                    break;
                }
                match look(page, base + start as usize, is_end) {
                    Look::Unknown => {
                        (cut, stop, again) = (place, Some(Stop::Here), false);
                        break;
                    }
                    Look::Plain(found) => meaning = found,
                    Look::Means(behind) => {
                        let end = first(ends & !below(place));
                        if end != 0 {
                            (cut, stop, again) = (end.trailing_zeros() + 1, Some(behind), false);
                            break;
                        }
                        carry.pending = Some(behind);
                        meaning = 0;
                    }
                }
            }
            inline |= (meaning & 1) << number;
            number += 1;
        }
        if begun != 0 {
            carry.tag_at = base + 63 - begun.leading_zeros() as usize;
        }
        carry.inline = inline >> ends.count_ones() & 1;

        let taken = below(cut);
        if odd & taken != 0 {
            *at = before.begin(base);
            return Stop::Odd { until: base + BLOCK };
        }
        let feeds = ends & taken & !lanes.deposit(inline, ends);
        let text = taken & !tags & !dropped;
        // A line feed is kept only behind a word.
        let ends_word = text & blank | feeds;
        let kept = feeds & carried(text & !blank, !ends_word, &mut after_word);
        lanes.squeeze(block, text | kept, feeds, out);
        match stop {
            // Nothing has to wait for how much is taken.
            None => base += BLOCK,
            Some(_) if again => {
                base += cut as usize;
                carry = Carry::default();
            }
            Some(stop) => {
                *at = base + cut as usize;
                // A tag that the page's end cuts is no tag.
                if is_last && cut as usize == filled {
                    *at = carry.begin(*at);
                }
                return stop;
            }
        }
    }
}

/// What a look at a long name, or one that means something, tells.
enum Look {
    /// It has bytes that no name should have, or is too long.
    Unknown,
    /// See [`meaning`].
    Plain(u64),
    Means(Stop),
}

#[cold]
#[inline(never)]
fn look(page: &[u8], name: usize, is_end: bool) -> Look {
    let (packed, after) = name_at(page, name);
    if packed == 0 || page[name..after].contains(&b'=') {
        return Look::Unknown;
    }
    match role_of(packed) {
        Role::Block => Look::Plain(0),
        Role::Inline => Look::Plain(1),
        role if is_end && role != Role::Template => Look::Plain(0),
        role => Look::Means(Stop::Behind { name, after, is_end, role }),
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
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
    pub(super) fn sweep_avx512(page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stop {
        sweep(Avx512(()), page, at, out)
    }
}

#[cfg(test)]
pub(super) use tests::portable;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The twin of the vector instructions.
    #[derive(Clone, Copy)]
    struct Portable;

    fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
        (0..BLOCK).filter(|&i| is(block[i])).map(|i| 1 << i).sum()
    }

    impl Lanes for Portable {
        fn classes(self, block: &[u8; BLOCK]) -> Classes {
            Classes {
                open: bits(block, |byte| byte == b'<'),
                close: bits(block, |byte| byte == b'>'),
                quote: bits(block, |byte| byte == b'"'),
                apostrophe: bits(block, |byte| byte == b'\''),
                equals: bits(block, |byte| byte == b'='),
                ampersand: bits(block, |byte| byte == b'&'),
                parts: bits(block, |byte| b" \t\n\x0c\r/>".contains(&byte)),
                blank: bits(block, |byte| byte <= b' '),
            }
        }

        fn spaces(self, block: &[u8; BLOCK]) -> u64 {
            bits(block, |byte| b" \t\n\x0c\r".contains(&byte))
        }

        fn parity(self, bits: u64) -> u64 {
            (0..64).map(|i| u64::from((bits << (63 - i)).count_ones() & 1) << i).sum()
        }

        fn deposit(self, bits: u64, places: u64) -> u64 {
            let places = (0..64).filter(|i| places >> i & 1 == 1).enumerate();
            places.map(|(number, place)| (bits >> number & 1) << place).sum()
        }

        fn squeeze(self, block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>) {
            for (i, &byte) in block.iter().enumerate().filter(|(i, _)| keep >> i & 1 == 1) {
                out.push(if feeds >> i & 1 == 1 { b'\n' } else { byte });
            }
        }
    }

    pub(in crate::text) fn portable(page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Stop {
        sweep(Portable, page, at, out)
    }

    #[test]
    fn names_mean_the_same_as_elsewhere() {
        for (name, role) in ROLES {
            let short = name >> 56 == 0;
            assert_eq!(meaning(name.swap_bytes()), if short { 2 } else { 0 }, "{role:?}");
        }
        for name in INLINE {
            assert_eq!(meaning(tag(name.as_bytes()).swap_bytes()), 1, "{name}");
        }
        for name in ["td", "aa", "p", "script1", "h1"] {
            assert_eq!(meaning(tag(name.as_bytes()).swap_bytes()), 0, "{name}");
        }
    }

    proptest! {
        #[test]
        fn twin_vector_instructions(
            bytes in proptest::collection::vec(prop_oneof![
                proptest::sample::select(b"<>&='\" \t\n\x0c\r/\0\x1f!a\xff\xbc".to_vec()), any::<u8>(),
            ], BLOCK..=BLOCK),
            keep in any::<u64>(), feeds in any::<u64>(),
        ) {
            let Some(best) = best_lanes() else { return Ok(()) };
            let block = bytes.first_chunk().unwrap();
            let (mut out, mut expected) = (Vec::with_capacity(2 * BLOCK), Vec::new());
            best.squeeze(block, keep, feeds, &mut out);
            Portable.squeeze(block, keep, feeds, &mut expected);
            prop_assert_eq!(out, expected);
            prop_assert_eq!(best.parity(keep), Portable.parity(keep));
            prop_assert_eq!(best.deposit(keep, feeds), Portable.deposit(keep, feeds));
            prop_assert_eq!(best.spaces(block), Portable.spaces(block));
            prop_assert_eq!(best.classes(block), Portable.classes(block));
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn best_lanes() -> Option<impl Lanes> {
        best().map(|_| x86::Avx512(()))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best_lanes() -> Option<impl Lanes> {
        None::<Portable>
    }
}

//! Markup taken 64 bytes at a time, whatever stands in its tags.
//!
//! To step from mark to mark takes many instructions for each tag and attribute. Here the classes
//! of 64 bytes are bits of words, and the insides of tags follow from a few operations on these: an
//! addition carries from each `<` to the next `>`. Then the name of each tag is looked up, and all
//! outside of tags is squeezed together by one instruction (`vpcompressb`).
//!
//! That the next `>` ends a tag is checked: values in double quotes right behind `=` may hold
//! anything but `>`, others neither quotes nor `=`. All else is left to the caller, who steps
//! through it.

#![allow(unsafe_code)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "no other processor is known to squeeze")
)]

#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::html::tags::{INLINE, ROLES, SLOTS, TagRole, each, name_at, role_of, slot, tag};
#[cfg(test)]
pub(super) use tests::portable;

const BLOCK: usize = 64;

/// Bytes that can be read behind a block, for a name that begins at its end.
const BEHIND: usize = 16;

/// Why a sweep stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SweepStop {
    /// At a reference, a comment, a tag with a long name, or the page's end.
    Here,
    /// Behind a tag with a meaning, whose name is at `name..after`.
    Behind { name: usize, after: usize, is_end: bool, role: TagRole },
    /// Before irregular markup, which must be stepped through up to there.
    Odd { until: usize },
}

/// Sweeps a page from a place outside of tags on, appends its text, and moves the place.
pub(super) type Sweep = fn(&[u8], &mut usize, &mut Vec<u8>) -> SweepStop;

/// The best sweep of this machine, if it has one.
pub(super) fn best() -> Option<Sweep> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        // SAFETY: the level was detected on this processor.
        return Some(|page, at, out| unsafe { x86::sweep_avx512(page, at, out) });
    }
    None
}

/// A bit for each of 64 bytes.
#[derive(Debug, PartialEq)]
struct Classes {
    open: u64,
    close: u64,
    quote: u64,
    apostrophe: u64,
    equals: u64,
    ampersand: u64,
    /// Bytes that end a tag's name.
    parts: u64,
    /// Bytes up to the blank, which do not go on with a word.
    blank: u64,
}

trait Lanes: Copy {
    fn classes(self, block: &[u8; BLOCK]) -> Classes;

    /// White space as HTML has it.
    fn spaces(self, block: &[u8; BLOCK]) -> u64;

    /// For each bit the parity of those up to it.
    fn parity(self, bits: u64) -> u64;

    /// Moves the lowest bits to the set bits of `places`.
    fn deposit(self, bits: u64, places: u64) -> u64;

    /// Appends the bytes in `keep`, those in `feeds` as line feeds, to `out`, which has room.
    fn squeeze(self, block: &[u8; BLOCK], keep: u64, feeds: u64, out: &mut Vec<u8>);
}

/// The bytes that end a tag's name, by their low halves, in which they differ.
#[cfg(target_arch = "x86_64")]
const PARTS: [u8; 16] = {
    let set = b" \t\n\x0c\r/>";
    let mut table = [0xff; 16];
    let mut i = 0;
    while i < set.len() {
        table[(set[i] & 15) as usize] = set[i];
        i += 1;
    }
    table
};

/// Gives each name a slot of its own; found by trial.
const FACTOR: u64 = 0x84a67dde9f223d55;

/// Names of up to seven bytes, the last in the highest byte; the lowest byte is 1 if the tag
/// formats a part of a line, 2 if it has another meaning.
static NAMES: [u64; SLOTS] = names(FACTOR).expect("the factor parts all names");

const fn names(factor: u64) -> Option<[u64; SLOTS]> {
    let mut names = [0; SLOTS];
    let mut i = 0;
    while i < ROLES.len() + INLINE.len() {
        let (name, meaning) = if i < ROLES.len() {
            (ROLES[i].0, 2)
        } else {
            (tag(INLINE[i - ROLES.len()].as_bytes()), 1)
        };
        i += 1;
        // Names of eight bytes are looked up apart.
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

/// The lowest byte in [`NAMES`] of a name of up to seven bytes in lower case, which ends in the
/// highest byte; 0 for a tag that separates words.
#[inline(always)]
fn meaning(name: u64) -> u64 {
    let differs = NAMES[slot(name, FACTOR)] ^ name;
    std::hint::select_unpredictable(differs < 0x100, differs, 0)
}

#[inline(always)]
fn word_at(bytes: &[u8; BLOCK + BEHIND], at: u32) -> u64 {
    u64::from_le_bytes(*bytes[at as usize..].first_chunk().expect("a word begins in the block"))
}

/// The character of a usual reference, by what follows its `&`, and its bytes behind it.
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

#[inline(always)]
fn below(place: u32) -> u64 {
    1u64.checked_shl(place).unwrap_or(0).wrapping_sub(1)
}

#[inline(always)]
fn first(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// Carries from each begin on while `goes_on`: the sum has those places where it does not to which
/// something was carried. `carry` comes in before the first place and goes out behind the last.
#[inline(always)]
fn carried(begins: u64, goes_on: u64, carry: &mut bool) -> u64 {
    let sum;
    (sum, *carry) = (begins | u64::from(*carry)).overflowing_add(goes_on);
    sum
}

/// Marks all places from each begin up to the first that does not go on.
#[inline(always)]
fn stretch(begins: u64, goes_on: u64, carry: &mut bool) -> u64 {
    (carried(begins, goes_on, carry) ^ goes_on) | begins
}

/// State between blocks.
#[derive(Clone, Copy, Default)]
struct Carry {
    in_tag: bool,
    /// Where the last tag begins, and 1 if it is inline.
    tag_at: usize,
    inline: u64,
    /// The last tag has a meaning.
    pending: Option<SweepStop>,
    /// All bits set within a quoted value.
    in_quotes: u64,
    /// Within an unquoted value.
    in_bare: bool,
    /// 1 behind `=` of an attribute.
    behind_equals: u64,
    /// 1 behind a byte that is not part of an attribute's name.
    behind_part: u64,
}

impl Carry {
    /// Where to resume if what is under way at `at` is to begin again.
    fn begin(&self, at: usize) -> usize {
        if self.in_tag { self.tag_at } else { at }
    }
}

#[inline(always)]
fn sweep(lanes: impl Lanes, page: &[u8], at: &mut usize, out: &mut Vec<u8>) -> SweepStop {
    // No more comes out than goes in.
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

        // Irregularities.
        let inside = lanes.parity(quote & tags) ^ before.in_quotes;
        let opening = quote & tags & inside;
        let equal = equals & tags & !inside;
        let values = equal << 1 | before.behind_equals;
        // A name that ends in this block must not contain `=`.
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

        // Where the regular part ends, why, and whether the next block begins there.
        let is_last = filled < BLOCK;
        let mut cut = filled as u32;
        let mut stop = is_last.then_some(SweepStop::Here);
        let mut again = false;
        // A reference becomes one byte; the rest of it is dropped.
        let mut references = ampersand & !tags;
        let mut dropped = 0;
        let mut replaced;
        if references != 0 {
            replaced = *block;
            while references != 0 {
                let place = references.trailing_zeros();
                references &= references - 1;
                let known = one_byte(word_at(bytes, place + 1));
                let Some((byte, length)) = known.filter(|(_, length)| place + length < 64) else {
                    again = known.is_some() && place > 0;
                    cut = place;
                    stop = Some(SweepStop::Here);
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
            cut = ends.trailing_zeros() + 1;
            stop = Some(pending);
            again = false;
        }
        // For each tag under way here whether it is inline.
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
                    // Nothing behind the block is known: the next one begins here.
                    cut = place;
                    stop = Some(SweepStop::Here);
                    again = is_letter && place > 0;
                    break;
                }
                match look(page, base + start as usize, is_end) {
                    Look::Unknown => {
                        cut = place;
                        stop = Some(SweepStop::Here);
                        again = false;
                        break;
                    }
                    Look::Plain(found) => meaning = found,
                    Look::Means(behind) => {
                        let end = first(ends & !below(place));
                        if end != 0 {
                            cut = end.trailing_zeros() + 1;
                            stop = Some(behind);
                            again = false;
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
            return SweepStop::Odd { until: base + BLOCK };
        }
        let feeds = ends & taken & !lanes.deposit(inline, ends);
        let text = taken & !tags & !dropped;
        // A line feed is kept only behind a word.
        let ends_word = text & blank | feeds;
        let kept = feeds & carried(text & !blank, !ends_word, &mut after_word);
        lanes.squeeze(block, text | kept, feeds, out);
        match stop {
            // The next block need not wait for how much is taken.
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

/// What is known of a long name or one with a meaning.
enum Look {
    /// It has bytes that no name should have, or is too long.
    Unknown,
    /// See [`meaning`].
    Plain(u64),
    Means(SweepStop),
}

#[cold]
#[inline(never)]
fn look(page: &[u8], name: usize, is_end: bool) -> Look {
    let (packed, after) = name_at(page, name);
    if packed == 0 || page[name..after].contains(&b'=') {
        return Look::Unknown;
    }
    match role_of(packed) {
        TagRole::Block => Look::Plain(0),
        TagRole::Inline => Look::Plain(1),
        role if is_end && role != TagRole::Template => Look::Plain(0),
        role => Look::Means(SweepStop::Behind { name, after, is_end, role }),
    }
}

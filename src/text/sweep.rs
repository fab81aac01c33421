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

/// Where the regular part of a block ends, why, and whether the next block begins there.
struct Cut {
    at: u32,
    stop: Option<SweepStop>,
    again: bool,
}

impl Cut {
    #[inline(always)]
    fn here(&mut self, at: u32, again: bool) {
        *self = Self { at, stop: Some(SweepStop::Here), again };
    }

    /// Behind a tag with a meaning, which ends at the first of `ends`.
    #[inline(always)]
    fn behind(&mut self, stop: SweepStop, ends: u64) {
        *self = Self { at: ends.trailing_zeros() + 1, stop: Some(stop), again: false };
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
        let (bytes, filled) = block_at(page, base, &mut last);
        let mut block: &[u8; BLOCK] = bytes.first_chunk().expect("there are more bytes");
        let classes = lanes.classes(block);
        let before = carry;
        let tags = stretch(classes.open, !classes.close, &mut carry.in_tag);
        let ends = classes.close & tags;
        let under_way = (tags & !classes.close) << 1 | u64::from(before.in_tag);
        let starts = classes.open & !under_way;
        let odd = carry.irregular(lanes, block, &classes, tags, starts);

        let is_last = filled < BLOCK;
        let mut cut =
            Cut { at: filled as u32, stop: is_last.then_some(SweepStop::Here), again: false };
        let references = classes.ampersand & !tags;
        let (mut blank, mut dropped) = (classes.blank, 0);
        let mut replaced;
        if references != 0 {
            replaced = *block;
            dropped = replace(references, bytes, &mut replaced, &mut blank, &mut cut);
            block = &replaced;
        }
        if let Some(pending) = before.pending
            && ends & below(cut.at) != 0
        {
            cut.behind(pending, ends);
        }
        let found = Tags {
            is_under_way: before.in_tag,
            begun: starts & below(cut.at),
            ends,
            parts: classes.parts,
        };
        let inline = carry.inline_tags(page, base, bytes, found, &mut cut);

        let taken = below(cut.at);
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
        match cut.stop {
            // The next block need not wait for how much is taken.
            None => base += BLOCK,
            Some(_) if cut.again => {
                base += cut.at as usize;
                carry = Carry::default();
            }
            Some(stop) => {
                *at = base + cut.at as usize;
                // A tag that the page's end cuts is no tag.
                if is_last && cut.at as usize == filled {
                    *at = carry.begin(*at);
                }
                return stop;
            }
        }
    }
}

/// The bytes from `base` on, and how many of the block are the page's: behind its last are blanks.
#[inline(always)]
fn block_at<'a>(
    page: &'a [u8],
    base: usize,
    last: &'a mut [u8; BLOCK + BEHIND],
) -> (&'a [u8; BLOCK + BEHIND], usize) {
    match page.get(base..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => (bytes, BLOCK),
        None => {
            let rest = &page[base..];
            last[..rest.len()].copy_from_slice(rest);
            (last, rest.len().min(BLOCK))
        }
    }
}

/// Each of the `references` becomes one byte of `block`; the rest of it is dropped, as the bits say
/// that are returned. The cut is before the first that is not known.
#[inline(always)]
fn replace(
    mut references: u64,
    bytes: &[u8; BLOCK + BEHIND],
    block: &mut [u8; BLOCK],
    blank: &mut u64,
    cut: &mut Cut,
) -> u64 {
    let mut dropped = 0;
    while references != 0 {
        let place = references.trailing_zeros();
        references &= references - 1;
        let known = one_byte(word_at(bytes, place + 1));
        let Some((byte, length)) = known.filter(|(_, length)| place + length < 64) else {
            cut.here(place, known.is_some() && place > 0);
            break;
        };
        block[place as usize] = byte;
        *blank |= u64::from(byte == b' ') << place;
        dropped |= below(length) << (place + 1);
    }
    dropped
}

/// Tags of a block: whether one comes into it, where those before its cut begin, where all end, and
/// what ends their names.
struct Tags {
    is_under_way: bool,
    begun: u64,
    ends: u64,
    parts: u64,
}

impl Carry {
    /// Marks what is not regular in tags: then the next `>` may not end them.
    #[inline(always)]
    fn irregular(
        &mut self,
        lanes: impl Lanes,
        block: &[u8; BLOCK],
        classes: &Classes,
        tags: u64,
        starts: u64,
    ) -> u64 {
        let Classes { close, quote, apostrophe, equals, parts, .. } = *classes;
        let inside = lanes.parity(quote & tags) ^ self.in_quotes;
        let opening = quote & tags & inside;
        let equal = equals & tags & !inside;
        let values = equal << 1 | self.behind_equals;
        // A name that ends in this block must not contain `=`.
        let begins = starts << 1;
        let names = stretch(begins, !parts | begins, &mut false);
        let mut odd = close & tags & inside
            | apostrophe & tags & !inside
            | equal & ((parts | quote) << 1 | self.behind_part | names)
            | opening & !values;
        let bare = values & !opening & tags;
        if bare != 0 || self.in_bare {
            let spaces = lanes.spaces(block);
            let value = stretch(bare, !(spaces | close), &mut self.in_bare);
            odd |= bare & spaces | value & equals;
        }
        self.in_quotes = (inside.cast_signed() >> 63).cast_unsigned();
        self.behind_equals = equal >> 63;
        self.behind_part = (parts | quote) >> 63;
        odd
    }

    /// Looks the names of tags up: a bit for each tag under way in the block, whether it is inline.
    /// The cut is before the first of which more has to be known, or behind one with a meaning.
    #[inline(always)]
    fn inline_tags(
        &mut self,
        page: &[u8],
        base: usize,
        bytes: &[u8; BLOCK + BEHIND],
        Tags { is_under_way, begun, ends, parts }: Tags,
        cut: &mut Cut,
    ) -> u64 {
        let mut inline = self.inline & u64::from(is_under_way);
        let mut number = u32::from(is_under_way);
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
                    cut.here(place, is_letter && place > 0);
                    break;
                }
                match look(page, base + start as usize, is_end) {
                    Look::Unknown => {
                        cut.here(place, false);
                        break;
                    }
                    Look::Plain(found) => meaning = found,
                    Look::Means(behind) => {
                        let end = first(ends & !below(place));
                        if end != 0 {
                            cut.behind(behind, end);
                            break;
                        }
                        self.pending = Some(behind);
                        meaning = 0;
                    }
                }
            }
            inline |= (meaning & 1) << number;
            number += 1;
        }
        if begun != 0 {
            self.tag_at = base + 63 - begun.leading_zeros() as usize;
        }
        self.inline = inline >> ends.count_ones() & 1;
        inline
    }
}

/// What is known of a long name or one with a meaning.
enum Look {
    /// It has bytes that no name should have, or is too long.
    Unknown,
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

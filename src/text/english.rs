//! Snowball's English stemmer, also known as Porter 2 (M. F. Porter, *The English (Porter2)
//! stemming algorithm*, 2002). Its steps keep their numbers here. It equals `rust_stemmers`'
//! [`Algorithm::English`](rust_stemmers::Algorithm::English), which takes several times as long and
//! serves for the words that [`stem`] does not take.
//!
//! For speed a word lies in a buffer of fixed size after eight zeros, so that its last eight bytes
//! are one integer, and whether a suffix ends the word is one comparison. Each step looks at the
//! last letter first. Vowels are a bit mask; R1, R2 and tests for vowels are arithmetic on it.
//!
//! In the algorithm's terms R1 is what follows the first non-vowel after a vowel, R2 what follows
//! the first non-vowel after a vowel in R1. `y` is no vowel at the front and after a vowel.

mod classes;

use super::scan::load_short;
use classes::{CLASSES, VOWEL, classes, short_classes};
use std::borrow::Cow;

/// The longest word that [`stem`] takes, in bytes; one less than the bits of a mask.
pub(crate) const MAX_WORD_BYTES: usize = 63;

const SHORT_BYTES: usize = 16;

/// Zeros before a word.
const BEFORE: usize = 8;

/// The stem of a lower-cased word; `None` if a suffix may end the word and it is longer than
/// [`MAX_WORD_BYTES`] or has a byte other than a to z, 0 to 9 and the apostrophe. Digits are
/// non-vowels. The stem may be empty; it is borrowed if it is a part of the word.
#[must_use]
pub(crate) fn stem(word: &str) -> Option<Cow<'_, str>> {
    let (first, end) = match *word.as_bytes() {
        [first, .., before, last] => (first, [before, last]),
        _ => return Some(Cow::Borrowed(word)),
    };
    if !may_end_suffix(end) && first != b'\'' {
        return Some(Cow::Borrowed(word));
    }
    let rest = word.strip_prefix('\'').unwrap_or(word);
    let mut letters = Letters::new(rest.as_bytes())?;
    if rest.len() == word.len()
        && let Some(stem) = letters.exception()
    {
        return Some(Cow::Borrowed(stem));
    }
    letters.step_0();
    letters.step_1a();
    letters.step_1b();
    letters.step_1c();
    // No suffix of these steps has fewer than two letters.
    if letters.len >= letters.r1 + 2 {
        letters.step_2();
        letters.step_3();
        if letters.len >= letters.r2 + 2 {
            letters.step_4();
        }
    }
    letters.step_5();
    let stem = letters.left();
    if !letters.is_changed || rest.as_bytes().starts_with(stem) {
        return Some(Cow::Borrowed(&rest[..stem.len()]));
    }
    Some(Cow::Owned(std::str::from_utf8(stem).expect("letters are ASCII").to_string()))
}

/// Whether a suffix, or a word with a stem of its own, may end so; also true of some others.
fn may_end_suffix([before, last]: [u8; 2]) -> bool {
    BEFORE_LAST[usize::from(last)] >> (before % 32) & 1 == 1
}

/// By a suffix's last byte: the bytes before it, as bits by their lower five bits, which differ.
static BEFORE_LAST: [u32; 256] = {
    let mut before = [0; 256];
    let any = b"'esy";
    let mut i = 0;
    while i < any.len() {
        before[any[i] as usize] = u32::MAX;
        i += 1;
    }
    let ends = [
        b"ic", b"ed", b"ng", b"ci", b"gi", b"li", b"ti", b"al", b"ll", b"ul", b"sm", b"on", b"er",
        b"or", b"nt",
    ];
    let mut i = 0;
    while i < ends.len() {
        before[ends[i][1] as usize] |= 1 << (ends[i][0] % 32);
        i += 1;
    }
    before
};

struct Letters {
    bytes: [u8; BEFORE + MAX_WORD_BYTES],
    len: usize,
    /// Bit i is set if letter i is a vowel; bits from `len` on are arbitrary.
    vowels: u64,
    /// R1 and R2 begin here, even when the word becomes shorter.
    r1: usize,
    r2: usize,
    /// Whether a letter was put in.
    is_changed: bool,
}

impl Letters {
    fn new(word: &[u8]) -> Option<Self> {
        let mut bytes = [0; BEFORE + MAX_WORD_BYTES];
        let (mut vowels, ys) = if word.len() <= SHORT_BYTES {
            let whole = load_short(word);
            bytes[BEFORE..][..SHORT_BYTES].copy_from_slice(&whole.to_le_bytes());
            short_classes(whole, word.len())?
        } else {
            bytes.get_mut(BEFORE..BEFORE + word.len())?.copy_from_slice(word);
            classes(word)?
        };
        // From the front, since a y that is a vowel makes the next one none; the first never is.
        let mut rest = ys & !1;
        while rest != 0 {
            let y = rest & rest.wrapping_neg();
            if vowels & (y >> 1) == 0 {
                vowels |= y;
            }
            rest ^= y;
        }
        let len = word.len();
        // The non-vowels that follow a vowel: R1 begins after the first, R2 after the next.
        let borders = !vowels & (vowels << 1) & below(len);
        let after_border = |from: usize| {
            let border = (borders >> from << from).trailing_zeros() as usize;
            len.min(border + 1)
        };
        let r1 = match word {
            [b'g', b'e', b'n', b'e', b'r', ..] | [b'a', b'r', b's', b'e', b'n', ..] => 5,
            [b'c', b'o', b'm', b'm', b'u', b'n', ..] => 6,
            _ => after_border(0),
        };
        Some(Self { bytes, len, vowels, r1, r2: after_border(r1), is_changed: false })
    }

    fn exception(&self) -> Option<&'static str> {
        let end = self.end();
        Some(match end.last() {
            _ if self.len > 6 => return None,
            b'e' if end.whole(b"howe") => "howe",
            b'g' if end.whole(b"dying") => "die",
            b'g' if end.whole(b"lying") => "lie",
            b'g' if end.whole(b"tying") => "tie",
            b's' if end.whole(b"andes") => "andes",
            b's' if end.whole(b"atlas") => "atlas",
            b's' if end.whole(b"bias") => "bias",
            b's' if end.whole(b"cosmos") => "cosmos",
            b's' if end.whole(b"news") => "news",
            b's' if end.whole(b"skies") => "sky",
            b's' if end.whole(b"skis") => "ski",
            b'y' if end.whole(b"early") => "earli",
            b'y' if end.whole(b"gently") => "gentl",
            b'y' if end.whole(b"idly") => "idl",
            b'y' if end.whole(b"only") => "onli",
            b'y' if end.whole(b"singly") => "singl",
            b'y' if end.whole(b"sky") => "sky",
            b'y' if end.whole(b"ugly") => "ugli",
            _ => return None,
        })
    }

    fn step_0(&mut self) {
        let end = self.end();
        match end.last() {
            b'\'' if end.is(b"'s'") => self.len -= 3,
            b'\'' => self.len -= 1,
            b's' if end.is(b"'s") => self.len -= 2,
            _ => {}
        }
    }

    fn step_1a(&mut self) {
        let end = self.end();
        match end.last() {
            b's' if end.is(b"sses") => self.len -= 2,
            b's' | b'd' if end.is(b"ies") || end.is(b"ied") => {
                self.len -= if self.len > 4 { 2 } else { 1 };
            }
            b's' if end.is(b"us") || end.is(b"ss") => {}
            b's' if self.has_vowel_before(self.len.saturating_sub(2)) => self.len -= 1,
            _ => {}
        }
    }

    fn step_1b(&mut self) {
        let end = self.end();
        match end.last() {
            b'd' if end.is(b"eed") => {
                let whole = end.whole(b"exceed") || end.whole(b"proceed") || end.whole(b"succeed");
                if !whole {
                    self.cut(self.r1, 3, 1);
                }
            }
            b'd' if end.is(b"ed") => self.take_off(2),
            b'g' if end.is(b"ing") => {
                let whole = end.whole(b"canning")
                    || end.whole(b"earring")
                    || end.whole(b"herring")
                    || end.whole(b"inning")
                    || end.whole(b"outing");
                if !whole {
                    self.take_off(3);
                }
            }
            b'y' if end.is(b"eedly") => self.cut(self.r1, 5, 3),
            b'y' if end.is(b"edly") => self.take_off(4),
            b'y' if end.is(b"ingly") => self.take_off(5),
            _ => {}
        }
    }

    /// Takes off a suffix if there is a vowel before it, and mends what is left.
    fn take_off(&mut self, suffix: usize) {
        if !self.has_vowel_before(self.len - suffix) {
            return;
        }
        self.len -= suffix;
        let end = self.end();
        if end.is(b"at") || end.is(b"bl") || end.is(b"iz") {
            self.push_e();
        } else if end.is_double() {
            self.len -= 1;
        } else if self.len == self.r1 && self.is_short_syllable_before(self.len) {
            self.push_e();
        }
    }

    fn step_1c(&mut self) {
        if self.end().last() == b'y' && self.len > 2 && !self.is_vowel(self.len - 2) {
            self.end_in(b'i');
        }
    }

    fn step_2(&mut self) {
        let end = self.end();
        let r1 = self.r1;
        match end.last() {
            b'i' => self.step_2_i(),
            b'l' if end.is(b"ational") => self.cut_to_e(r1, 7, 4),
            b'l' if end.is(b"tional") => self.cut(r1, 6, 2),
            b'm' if end.is(b"alism") => self.cut(r1, 5, 3),
            b'n' if end.is(b"ization") => self.cut_to_e(r1, 7, 4),
            b'n' if end.is(b"ation") => self.cut_to_e(r1, 5, 2),
            b'r' if end.is(b"izer") => self.cut(r1, 4, 1),
            b'r' if end.is(b"ator") => self.cut_to_e(r1, 4, 1),
            b's' if end.is(b"fulness") || end.is(b"iveness") || end.is(b"ousness") => {
                self.cut(r1, 7, 4);
            }
            _ => {}
        }
    }

    fn step_2_i(&mut self) {
        let end = self.end();
        let r1 = self.r1;
        match end.last_but_one() {
            b'c' if end.is(b"anci") || end.is(b"enci") => self.cut_to_e(r1, 4, 0),
            b'g' if end.is(b"logi") => self.cut(r1, 3, 1),
            b'l' if end.is(b"abli") => self.cut_to_e(r1, 4, 0),
            b'l' if end.is(b"bli") => self.cut_to_e(r1, 3, 0),
            b'l' if end.is(b"lessli") => self.cut(r1, 6, 2),
            b'l' if end.is(b"entli") || end.is(b"fulli") || end.is(b"ousli") => self.cut(r1, 5, 2),
            b'l' if end.is(b"alli") => self.cut(r1, 4, 2),
            b'l' if end.is_li_after_its_letters() => self.cut(r1, 2, 2),
            b't' if end.is(b"aliti") => self.cut(r1, 5, 3),
            b't' if end.is(b"biliti") && self.len - 6 >= r1 => {
                self.len -= 4;
                self.end_in(b'l');
                self.push_e();
            }
            b't' if end.is(b"iviti") => self.cut_to_e(r1, 5, 2),
            _ => {}
        }
    }

    fn step_3(&mut self) {
        let end = self.end();
        let r1 = self.r1;
        let r2 = self.r2;
        match end.last() {
            b'e' if end.is(b"alize") => self.cut(r1, 5, 3),
            b'e' if end.is(b"ative") => self.cut(r2, 5, 5),
            b'e' if end.is(b"icate") => self.cut(r1, 5, 3),
            b'i' if end.is(b"iciti") => self.cut(r1, 5, 3),
            b'l' if end.is(b"ational") => self.cut_to_e(r1, 7, 4),
            b'l' if end.is(b"tional") => self.cut(r1, 6, 2),
            b'l' if end.is(b"ical") => self.cut(r1, 4, 2),
            b'l' if end.is(b"ful") => self.cut(r1, 3, 3),
            b's' if end.is(b"ness") => self.cut(r1, 4, 4),
            _ => {}
        }
    }

    fn step_4(&mut self) {
        let end = self.end();
        let suffix = match end.last() {
            b'c' if end.is(b"ic") => 2,
            b'e' if end.is(b"able") || end.is(b"ance") || end.is(b"ence") || end.is(b"ible") => 4,
            b'e' if end.is(b"ate") || end.is(b"ive") || end.is(b"ize") => 3,
            b'i' if end.is(b"iti") => 3,
            b'l' if end.is(b"al") => 2,
            b'm' if end.is(b"ism") => 3,
            b'n' if end.is(b"sion") || end.is(b"tion") => 3,
            b'r' if end.is(b"er") => 2,
            b's' if end.is(b"ous") => 3,
            b't' if end.is(b"ement") => 5,
            b't' if end.is(b"ment") => 4,
            b't' if end.is(b"ant") || end.is(b"ent") => 3,
            _ => return,
        };
        self.cut(self.r2, suffix, suffix);
    }

    fn step_5(&mut self) {
        let end = self.end();
        match end.last() {
            b'e' if self.is_short_syllable_before(self.len - 1) => self.cut(self.r2, 1, 1),
            b'e' => self.cut(self.r1, 1, 1),
            b'l' if end.is(b"ll") => self.cut(self.r2, 1, 1),
            _ => {}
        }
    }

    /// Cuts off `letters` letters if the suffix lies in the region.
    fn cut(&mut self, region: usize, suffix: usize, letters: usize) {
        if self.len - suffix >= region {
            self.len -= letters;
        }
    }

    /// The same; the last letter then becomes an e.
    fn cut_to_e(&mut self, region: usize, suffix: usize, letters: usize) {
        if self.len - suffix >= region {
            self.len -= letters;
            self.end_in(b'e');
        }
    }

    fn end_in(&mut self, letter: u8) {
        self.len -= 1;
        self.push(letter);
    }

    /// Only after letters were cut off, so that there is room.
    fn push(&mut self, letter: u8) {
        self.bytes[BEFORE + self.len] = letter;
        self.is_changed = true;
        let bit = 1 << self.len;
        self.vowels = if CLASSES[usize::from(letter)] == VOWEL {
            self.vowels | bit
        } else {
            self.vowels & !bit
        };
        self.len += 1;
    }

    fn push_e(&mut self) {
        self.push(b'e');
    }

    fn is_vowel(&self, at: usize) -> bool {
        self.vowels >> at & 1 == 1
    }

    fn has_vowel_before(&self, end: usize) -> bool {
        self.vowels & below(end) != 0
    }

    /// Whether a short syllable ends at `end`: a non-vowel, a vowel and a non-vowel other than w, x
    /// and y; or a vowel at the front and a non-vowel.
    fn is_short_syllable_before(&self, end: usize) -> bool {
        match end {
            0 | 1 => false,
            2 => self.vowels & 0b11 == 0b01,
            _ => {
                self.vowels >> (end - 3) & 0b111 == 0b010
                    && !matches!(self.bytes[BEFORE + end - 1], b'w' | b'x' | b'y')
            }
        }
    }

    fn left(&self) -> &[u8] {
        &self.bytes[BEFORE..BEFORE + self.len]
    }

    fn end(&self) -> End {
        let (bytes, _) =
            self.bytes[self.len..].split_first_chunk().expect("BEFORE bytes are there");
        End(u64::from_be_bytes(*bytes))
    }
}

/// `end` is 63 at most.
fn below(end: usize) -> u64 {
    (1 << end) - 1
}

/// The last eight letters of a word, the last one lowest, after zeros.
#[derive(Clone, Copy)]
struct End(u64);

impl End {
    fn last(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    fn last_but_one(self) -> u8 {
        self.0.to_le_bytes()[1]
    }

    /// `suffix` has seven letters at most.
    #[inline(always)]
    fn is<const N: usize>(self, suffix: &[u8; N]) -> bool {
        self.0 & below(8 * N) == number(suffix)
    }

    /// `word` has seven letters at most.
    #[inline(always)]
    fn whole<const N: usize>(self, word: &[u8; N]) -> bool {
        self.0 == number(word)
    }

    /// The doubles of step 1b.
    fn is_double(self) -> bool {
        self.last() == self.last_but_one()
            && matches!(self.last(), b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')
    }

    /// `li` after a letter that lets step 2 cut it off.
    fn is_li_after_its_letters(self) -> bool {
        let before = self.0.to_le_bytes()[2];
        self.is(b"li")
            && matches!(before, b'c' | b'd' | b'e' | b'g' | b'h' | b'k' | b'm' | b'n' | b'r' | b't')
    }
}

#[inline(always)]
fn number<const N: usize>(letters: &[u8; N]) -> u64 {
    letters.iter().fold(0, |number, &letter| number << 8 | u64::from(letter))
}

#[cfg(test)]
mod tests;

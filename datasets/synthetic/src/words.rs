//! Says which word the term of a rank is.
//!
//! - Ranks 0 to 32: the 33 stop words of English, by their frequency in English.
//! - Other ranks with a symbol of their own: words of one or two syllables, the more frequent the
//!   likelier of one, drawn at random and never twice; they are stored in a table.
//! - All others: the rank, shuffled among those of its magnitude, spelled with three syllables or
//!   more. They take no memory, so that the vocabulary may have billions of terms.
//!
//! One term in 20 is a number, one in 16 a name (with a capital letter), one in 85 has a letter
//! that is not ASCII and one in 128 ends with a digit. Terms differ, capital or not, but a stemmer
//! makes some alike.

#![forbid(unsafe_code)]

use crate::random::{Purpose, Random, mix};
use crate::syllables::{Letters, Syllables};
use crate::zipf::{DIRECT, SLOTS};
use std::collections::HashSet;

/// The stop words, by their frequency in English, the highest first.
pub(super) const STOP_WORDS: [&str; 33] = [
    "the", "of", "and", "to", "a", "in", "is", "for", "that", "it", "on", "as", "with", "was",
    "be", "by", "at", "are", "this", "or", "an", "not", "they", "but", "will", "if", "there", "no",
    "their", "then", "these", "into", "such",
];

/// Ranks below this are plain words.
const FIRST_ODD: u32 = 64;

/// Numbers of terms in the table are below this, of others not.
const NUMBERS: u64 = 10_000;

/// A word of the table and a blank behind it: 15 bytes, and how many of them count. It is copied
/// whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word([u8; 16]);

impl Word {
    fn new(letters: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..letters.len()].copy_from_slice(letters);
        bytes[letters.len()] = b' ';
        bytes[15] = letters.len() as u8 + 1;
        Self(bytes)
    }

    /// The 16 bytes to copy.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Bytes that count, with the blank.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.0[15])
    }
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Number,
    Name,
    Accent,
    Digit,
}

pub(super) struct Words {
    table: Box<[Word; SLOTS]>,
    syllables: Syllables,
    key: u64,
}

impl Words {
    /// Makes the table.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, Purpose::Words, 0, 0);
        let syllables = Syllables::new();
        let key = random.bits() | 1;
        let mut table = vec![Word([0; 16]); SLOTS];
        let mut seen: HashSet<Vec<u8>> =
            STOP_WORDS.iter().map(|word| word.as_bytes().to_vec()).collect();
        for (rank, place) in (0..DIRECT).zip(&mut table) {
            if let Some(word) = STOP_WORDS.get(rank as usize) {
                *place = Word::new(word.as_bytes());
                continue;
            }
            let kind = kind(key, rank);
            *place = loop {
                let word = short(kind, rank, &syllables, &mut random);
                if seen.insert(word.as_slice().to_ascii_lowercase()) {
                    break Word::new(word.as_slice());
                }
            };
        }
        let table = table.into_boxed_slice().try_into().expect("one word a slot");
        Self { table, syllables, key }
    }

    /// The word of a rank below [`DIRECT`].
    #[inline(always)]
    pub(super) fn direct(&self, rank: u32) -> &Word {
        &self.table[rank as usize % SLOTS]
    }

    /// Spells the word of a rank from [`DIRECT`] on.
    #[inline]
    pub(super) fn spelled(&self, rank: u32) -> Letters {
        let shuffled = shuffle(self.key, rank);
        let kind = kind(self.key, rank);
        if kind == Kind::Number {
            return digits(u64::from(shuffled) + NUMBERS);
        }
        let mut word = self.syllables.spell(u64::from(shuffled));
        if kind != Kind::Plain {
            adorn(kind, rank, &mut word);
        }
        word
    }

    /// The term of a rank: its word in small letters.
    pub(super) fn term(&self, rank: u32) -> String {
        let letters = if rank < DIRECT {
            let word = self.direct(rank);
            word.bytes()[..word.len() - 1].to_vec()
        } else {
            self.spelled(rank).as_slice().to_vec()
        };
        String::from_utf8_lossy(&letters).to_lowercase()
    }

    /// A plain word of letters a to z for each number, as for the name of a host.
    pub(super) fn label(&self, number: u32) -> Letters {
        self.syllables.spell(u64::from(number))
    }
}

fn kind(key: u64, rank: u32) -> Kind {
    if rank < FIRST_ODD {
        return Kind::Plain;
    }
    match mix(key ^ u64::from(rank)) & 255 {
        0..13 => Kind::Number,
        13..29 => Kind::Name,
        29..32 => Kind::Accent,
        32..34 => Kind::Digit,
        _ => Kind::Plain,
    }
}

/// A word for a rank of the table.
fn short(kind: Kind, rank: u32, syllables: &Syllables, random: &mut Random) -> Letters {
    if kind == Kind::Number {
        // Of one to four digits; half of those with four are years.
        let digits_left = random.below(4) + 1;
        let number = match digits_left {
            4 if random.below(2) == 0 => 1900 + random.below(130),
            n => random.below(10u32.pow(n)),
        };
        return digits(u64::from(number));
    }
    // Of the most frequent words most have one syllable, of rank 1000 one in eleven.
    let one = random.below(100 + rank) < 100;
    let mut word = syllables.short(random.bits(), if one { 1 } else { 2 });
    adorn(kind, rank, &mut word);
    word
}

/// Makes of a plain word one of its kind. It can be undone, so words that differ stay so.
fn adorn(kind: Kind, rank: u32, word: &mut Letters) {
    match kind {
        Kind::Plain | Kind::Number => {}
        Kind::Name => word.as_mut_slice()[..1].make_ascii_uppercase(),
        Kind::Digit => word.push_byte(b'0' + (rank % 10) as u8),
        Kind::Accent => {
            let accents: [(u8, char); 5] =
                [(b'a', 'ä'), (b'e', 'é'), (b'i', 'í'), (b'o', 'ö'), (b'u', 'ü')];
            let plain = *word;
            let found = plain.as_slice().iter().enumerate().find_map(|(at, byte)| {
                let (_, accent) = accents.iter().find(|(letter, _)| letter == byte)?;
                Some((at, *accent))
            });
            let Some((at, accent)) = found else { return };
            *word = Letters::EMPTY;
            let mut utf8 = [0; 2];
            let letters = plain.as_slice();
            for part in
                [&letters[..at], accent.encode_utf8(&mut utf8).as_bytes(), &letters[at + 1..]]
            {
                part.iter().for_each(|byte| word.push_byte(*byte));
            }
        }
    }
}

fn digits(number: u64) -> Letters {
    let mut word = Letters::EMPTY;
    let mut place = 1;
    while number / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        word.push_byte(b'0' + (number / place % 10) as u8);
        place /= 10;
    }
    word
}

/// Shuffles the numbers from each power of two to the next among themselves.
#[inline]
fn shuffle(key: u64, rank: u32) -> u32 {
    let bits = rank.ilog2();
    let mask = (1u64 << bits) - 1;
    let mut low = u64::from(rank) & mask;
    // Each step can be undone: an odd factor, and a shift to the right with exclusive or.
    low = low.wrapping_mul(key | 1).wrapping_add(key >> 40) & mask;
    low ^= low >> bits.div_ceil(2);
    low = low.wrapping_mul(0x9e37_79b1) & mask;
    low ^= low >> (bits / 2 + 1);
    (1 << bits) | low as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace::inside::text::StopWords;

    #[test]
    fn stop_words_are_those_of_the_build() {
        let english = StopWords::english();
        assert!(STOP_WORDS.iter().all(|word| english.contains(word)));
        let words = Words::new(1);
        assert_eq!(words.term(0), "the");
        assert_eq!((33..DIRECT).filter(|rank| english.contains(&words.term(*rank))).count(), 0);
    }

    #[test]
    fn law_terms_differ() {
        let words = Words::new(5);
        let ranks = || (0..300_000).chain(5_000_000..5_100_000).chain(u32::MAX - 100_000..u32::MAX);
        let terms: HashSet<String> = ranks().map(|rank| words.term(rank)).collect();
        assert_eq!(terms.len(), 500_000);
    }

    #[test]
    fn words_are_of_the_kinds_that_are_promised() {
        let words = Words::new(2);
        let terms: Vec<String> = (100..60_100).map(|rank| words.term(rank)).collect();
        let share = |is: fn(&str) -> bool| {
            terms.iter().filter(|term| is(term)).count() as f64 / terms.len() as f64
        };
        let numbers = share(|term| term.bytes().all(|b| b.is_ascii_digit()));
        let foreign = share(|term| !term.is_ascii());
        let letters = share(|term| term.bytes().all(|b| b.is_ascii_lowercase()));
        assert!((numbers - 13.0 / 256.0).abs() < 0.004, "{numbers}");
        assert!((foreign - 3.0 / 256.0).abs() < 0.002, "{foreign}");
        assert!(letters > 0.92, "{letters}");
        assert!(terms.iter().all(|term| term.chars().all(char::is_alphanumeric)));
        let first = |letter: char| terms.iter().filter(|term| term.starts_with(letter)).count();
        assert!(first('s') > 3 * first('g') && first('c') > 20 * first('z'));
    }

    #[test]
    fn frequent_words_are_shorter() {
        let words = Words::new(3);
        let mean = |ranks: std::ops::Range<u32>| {
            let count = f64::from(ranks.end - ranks.start);
            ranks.map(|rank| words.term(rank).chars().count() as f64).sum::<f64>() / count
        };
        let means = [
            mean(33..200),
            mean(5000..10_000),
            mean(100_000..110_000),
            mean(1 << 31..(1 << 31) + 10_000),
        ];
        assert!(means.is_sorted(), "{means:?}");
        assert!(means[0] < 5.0 && means[3] < 14.0, "{means:?}");
    }

    #[test]
    fn shuffling_loses_nothing() {
        for bits in [1, 2, 5, 14, 17] {
            let all: HashSet<u32> =
                (1 << bits..2 << bits).map(|rank| shuffle(0xdead_beef_1234_5677, rank)).collect();
            assert_eq!(all.len(), 1 << bits);
            assert!(all.iter().all(|n| n.ilog2() == bits));
        }
    }
}

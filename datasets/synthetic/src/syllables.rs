//! Spells a number as a word that can be pronounced, no two numbers alike.
//!
//! A word alternates: consonants to begin with (or none), vowels, then any number of times
//! consonants and vowels, and consonants to end with (or none). A maximal run of vowels or of
//! consonants is always one choice from one list, so that words are equal only if all their choices
//! are. (`qu` begins a word as one choice; no other has a q.)
//!
//! The first consonants, the first vowels and the last consonants are chosen with weights, so that
//! the first letters are as frequent as in an English dictionary and trie collections as unequal.
//! A number is turned into such choices without loss, as in the asymmetric numeral systems of Duda:
//! of a number x the remainder by the sum of all weights falls into the interval of one choice, of
//! width w; the quotient times w, and the place in the interval, are the number that is left.

#![forbid(unsafe_code)]

use std::hint::select_unpredictable;

/// Consonants that begin a word, and their weights; the empty ones mean that it begins with a
/// vowel.
const FIRST: &str = "\
    :202 s:48 st:18 sp:10 sc:8 sh:9 str:7 sl:4 sm:3 sn:3 sw:3 sk:2 c:62 ch:14 cl:9 cr:11 p:46 \
    pr:20 pl:8 ph:5 d:52 dr:9 m:58 b:38 bl:8 br:12 r:56 t:32 tr:14 th:7 tw:1 f:27 fl:7 fr:8 h:40 \
    l:32 g:18 gr:10 gl:4 gh:1 w:22 wh:5 wr:1 n:25 kn:1 v:17 j:9 k:9 kr:1 qu:5 z:3";

/// Vowels behind consonants that begin a word.
const VOWELS: &str = "e:60 a:52 i:46 o:44 u:24 ea:6 ou:6 ai:4 oo:5 ee:5 y:4";

/// Vowels that begin a word.
const FIRST_VOWELS: &str = "a:78 e:50 i:50 o:38 u:32 au:3 ou:2 yo:2 ya:1";

/// Consonants that end a word, or none.
const LAST: &str = ":14 n:8 s:8 r:8 l:4 t:5 d:4 ng:3 nt:2 st:2 m:2 c:2 ss:1 sh:1";

/// The choices of a list, each with its weight.
fn weighed(list: &'static str) -> impl Iterator<Item = (&'static str, u16)> {
    list.split(' ').map(|choice| {
        let (letters, weight) = choice.split_once(':').expect("a choice has a weight");
        (letters, weight.parse().expect("a weight is a number"))
    })
}

/// Consonants inside a word.
const INNER: [&str; 48] = [
    "b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "k", "ck", "ct", "ft", "ld",
    "ll", "lt", "mb", "mm", "mp", "nc", "nd", "ng", "ns", "nt", "nn", "pl", "pp", "pr", "rd", "rm",
    "rn", "rs", "rt", "rr", "sc", "sh", "sp", "ss", "st", "th", "tt", "tr", "ch", "ph",
];

/// Vowels inside a word.
const INNER_VOWELS: [&str; 5] = ["e", "a", "i", "o", "u"];

/// Pairs of consonants and vowels inside a word.
const PAIRS: u64 = (INNER.len() * INNER_VOWELS.len()) as u64;

/// More bytes than any word that [`Syllables::spell`] makes of a number below 2^34, by 7 at least.
pub(super) const LONGEST_BYTES: usize = 40;

/// A part of a word: up to 7 letters and, last, how many they are. It is copied whole, because to
/// copy 8 bytes takes less time than to find out how many there are.
#[derive(Clone, Copy, Debug)]
struct Part([u8; 8]);

impl Part {
    fn new(letters: [&str; 2]) -> Self {
        let letters = letters.concat();
        let mut bytes = [0; 8];
        bytes[..letters.len()].copy_from_slice(letters.as_bytes());
        bytes[7] = letters.len() as u8;
        Self(bytes)
    }
}

/// A word while it grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letters {
    bytes: [u8; LONGEST_BYTES],
    len: usize,
}

impl Letters {
    pub(super) const EMPTY: Self = Self { bytes: [0; LONGEST_BYTES], len: 0 };

    #[inline(always)]
    fn push(&mut self, part: Part) {
        self.bytes[self.len..][..8].copy_from_slice(&part.0);
        self.len += usize::from(part.0[7]);
    }

    pub(super) fn push_byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// The word, and behind it what may be anything.
    #[inline(always)]
    pub(super) fn padded(&self) -> (&[u8; LONGEST_BYTES], usize) {
        (&self.bytes, self.len)
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

/// A choice, as it is for one remainder.
#[derive(Clone, Copy, Debug)]
struct Choice {
    part: Part,
    weight: u16,
    /// The remainder's place in the interval.
    place: u16,
    /// The number of the choice.
    number: u16,
}

/// Choices for each remainder by `ALL`, the sum of their weights and a power of two, so that
/// nothing has to be divided.
struct Choices<const ALL: usize>(Box<[Choice; ALL]>);

impl<const ALL: usize> Choices<ALL> {
    fn new(list: &'static str) -> Self {
        let mut choices = Vec::new();
        for (number, (letters, weight)) in (0..).zip(weighed(list)) {
            let part = Part::new([letters, ""]);
            choices.extend((0..weight).map(|place| Choice { part, weight, place, number }));
        }
        let choices = choices.into_boxed_slice().try_into();
        Self(choices.expect("the weights of a list add up to its ALL"))
    }

    /// Chooses, and leaves what is left of the number.
    #[inline(always)]
    fn choose(&self, x: &mut u64) -> (u64, Part) {
        let choice = &self.0[*x as usize % ALL];
        *x = *x / ALL as u64 * u64::from(choice.weight) + u64::from(choice.place);
        (choice.number.into(), choice.part)
    }
}

/// The lists, ready to choose from.
pub(super) struct Syllables {
    first: Choices<1024>,
    vowels: Choices<256>,
    first_vowels: Choices<256>,
    last: Choices<64>,
    pairs: Vec<Part>,
}

impl Syllables {
    pub(super) fn new() -> Self {
        let vowels_of = |inner| INNER_VOWELS.iter().map(move |vowels| Part::new([inner, vowels]));
        Self {
            first: Choices::new(FIRST),
            vowels: Choices::new(VOWELS),
            first_vowels: Choices::new(FIRST_VOWELS),
            last: Choices::new(LAST),
            pairs: INNER.iter().flat_map(|inner| vowels_of(*inner)).collect(),
        }
    }

    /// Spells a word of one or two syllables from 64 random bits. Words often repeat.
    pub(super) fn short(&self, mut bits: u64, syllables: u32) -> Letters {
        let mut word = Letters::EMPTY;
        let (_, last) = self.begin(&mut bits, &mut word);
        if syllables > 1 {
            word.push(self.pairs[(((bits & 0xffff) * PAIRS) >> 16) as usize]);
        }
        word.push(last);
        word
    }

    /// Spells a number below 2^34. The word has three syllables or more, and no two numbers have
    /// the same.
    #[inline]
    pub(super) fn spell(&self, mut x: u64) -> Letters {
        let mut word = Letters::EMPTY;
        let (mut turn, last) = self.begin(&mut x, &mut word);
        // What is left is written with the digits 1 to PAIRS, of which numbers above PAIRS take two
        // or more. Digits are shifted by what stands before them, so that small numbers differ too.
        x += PAIRS + 1;
        while x > 0 {
            let digit = (x - 1 + turn) % PAIRS;
            x = (x - 1) / PAIRS;
            word.push(self.pairs[digit as usize]);
            turn = turn * 5 + digit * 7;
        }
        word.push(last);
        word
    }

    /// Writes how a word begins; returns a number that says how it did, and how it is to end.
    #[inline(always)]
    fn begin(&self, x: &mut u64, word: &mut Letters) -> (u64, Part) {
        let (first, consonants) = self.first.choose(x);
        let list = select_unpredictable(first == 0, &self.first_vowels, &self.vowels);
        let (vowel, vowels) = list.choose(x);
        let (last, end) = self.last.choose(x);
        word.push(consonants);
        word.push(vowels);
        (first * 31 + vowel * 17 + last * 5, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn every_run_of_letters_is_one_choice() {
        let vowel = |c: char| "aeiouy".contains(c);
        let none = |list: &[&str], wrong: fn(char) -> bool| {
            assert_eq!(list.iter().collect::<HashSet<_>>().len(), list.len());
            assert!(!list.iter().any(|part| part.contains(wrong)), "{list:?}");
        };
        fn is_vowel(c: char) -> bool {
            "aeiouy".contains(c)
        }
        fn is_consonant(c: char) -> bool {
            !is_vowel(c)
        }
        let parts = |list| weighed(list).map(|choice| choice.0).collect::<Vec<_>>();
        let first: Vec<_> = parts(FIRST).into_iter().filter(|part| *part != "qu").collect();
        none(&first, is_vowel);
        none(&parts(LAST), is_vowel);
        none(&INNER, is_vowel);
        none(&parts(VOWELS), is_consonant);
        none(&parts(FIRST_VOWELS), is_consonant);
        none(&INNER_VOWELS, is_consonant);
        assert!(!first.concat().contains('q') && !INNER.concat().contains('q'));
        assert!(parts(FIRST_VOWELS).iter().all(|part| part.chars().all(vowel)));
    }

    #[test]
    fn the_longest_words_fit() {
        let longest = |list| weighed(list).map(|choice| choice.0.len()).max().unwrap();
        // 2^34 has at most four digits, one more for the shift.
        let pairs = 5 * (3 + 2);
        assert!(longest(FIRST) + longest(VOWELS) + pairs + longest(LAST) + 8 <= LONGEST_BYTES);
    }

    #[test]
    fn neighbours_get_different_words() {
        let syllables = Syllables::new();
        let words: HashSet<_> =
            (0..300_000).map(|x| syllables.spell(x).as_slice().to_vec()).collect();
        assert_eq!(words.len(), 300_000);
    }

    proptest! {
        #[test]
        fn law_two_numbers_have_two_words(x in 0u64..1 << 34, step in 1u64..1 << 20) {
            let syllables = Syllables::new();
            let one = syllables.spell(x);
            let other = syllables.spell(x + step);
            prop_assert_ne!(one.as_slice(), other.as_slice());
        }

        #[test]
        fn law_short_words_are_no_spelled_numbers(bits: u64, two: bool, x in 0u64..1 << 34) {
            let runs = |word: &Letters| {
                let text = std::str::from_utf8(word.as_slice()).unwrap().replace("qu", "q");
                text.split(|c: char| !"aeiouy".contains(c)).filter(|run| !run.is_empty()).count()
            };
            let syllables = Syllables::new();
            prop_assert!(runs(&syllables.short(bits, 1 + u32::from(two))) <= 2);
            prop_assert!(runs(&syllables.spell(x)) >= 3);
        }
    }
}

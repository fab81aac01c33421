//! Codes of short terms. A term of at most twelve bytes of `a` to `z` and `0` to `9`, as most are,
//! has a code of 64 bits that is all of it: `kernels/invert_terms.cuh` makes the same ones. Each
//! three bytes are 16 bits, the first ones highest: numbers with base 37, in which 0 stands behind
//! the last byte. Other terms are numbered by the host; such a number is a code too, above those of
//! all terms. Below 2^32 there are no codes.

use crate::text::trie_collection::{
    FIRST_NUMBERS, FIRST_ONE_LETTER, FIRST_THREE_LETTERS, implied_prefix_len,
};
use std::sync::LazyLock;

/// Bytes of the longest terms that have a code.
pub(crate) const CODED_BYTES: usize = 12;

/// Values of a byte, 0 included.
const BASE: u32 = 37;

/// The first code of a number of the host.
const OF_HOST: u64 = 0xffff << 48;

fn value(byte: u8) -> Option<u32> {
    match byte {
        b'0'..=b'9' => Some(u32::from(byte - b'0') + 1),
        b'a'..=b'z' => Some(u32::from(byte - b'a') + 11),
        _ => None,
    }
}

pub(crate) fn code_of(term: &[u8]) -> Option<u64> {
    if term.is_empty() || term.len() > CODED_BYTES {
        return None;
    }
    let mut code = 0;
    let mut rest = term.iter();
    for _ in 0..CODED_BYTES / 3 {
        let mut three = 0;
        for _ in 0..3 {
            three = BASE * three + rest.next().map_or(Some(0), |&byte| value(byte))?;
        }
        code = code << 16 | u64::from(three);
    }
    Some(code)
}

/// The code of the term to which the host has given this number.
pub(crate) fn code_of_number(number: u32) -> u64 {
    OF_HOST | u64::from(number)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coded {
    Short(Spelt),
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spelt {
    pub collection: u16,
    /// The suffix and zeros.
    pub suffix: [u8; 16],
    /// Bytes of the suffix.
    pub len: usize,
}

/// For each number the three bytes that it may stand for, the first one highest; above them how
/// many there are, and whether they are digits, or three letters.
static THREES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let byte = |value: u32| match value {
        0 => 0,
        1..=10 => b'0' + (value - 1) as u8,
        _ => b'a' + (value - 11) as u8,
    };
    let three = |n: u32| {
        let bytes = [n / (BASE * BASE), n / BASE % BASE, n % BASE].map(byte);
        let count = bytes.iter().filter(|&&byte| byte != 0).count() as u32;
        let is_digits = bytes.iter().all(|byte| matches!(byte, 0 | b'0'..=b'9'));
        let is_letters = bytes.iter().all(u8::is_ascii_lowercase);
        let [first, second, third] = bytes;
        let digits = if is_digits { DIGITS } else { 0 };
        let letters = if is_letters { LETTERS } else { 0 };
        digits | letters | count << 24 | u32::from_be_bytes([0, first, second, third])
    };
    (0..BASE * BASE * BASE).map(three).collect()
});
const DIGITS: u32 = 1 << 30;
const LETTERS: u32 = 1 << 31;

/// The term of a code. Panics if it is none.
#[inline]
pub(crate) fn spell(code: u64) -> Coded {
    if code >= OF_HOST {
        return Coded::Number(code as u32);
    }
    let threes = &THREES[..];
    let threes = [48, 32, 16, 0].map(|shift| threes[usize::from((code >> shift) as u16)]);
    let len = threes.iter().map(|three| three >> 24 & 3).sum::<u32>() as usize;
    let bytes =
        threes.iter().fold(0u128, |bytes, three| bytes << 24 | u128::from(three & 0xff_ffff));
    let bytes = bytes << 32;
    let [first, second, third, ..] = bytes.to_be_bytes();
    // As `trie_collection` says.
    let nth = |letter: u8| u16::from(letter.wrapping_sub(b'a'));
    let collection = if threes[0] & LETTERS != 0 && len > 3 {
        FIRST_THREE_LETTERS + 26 * 26 * nth(first) + 26 * nth(second) + nth(third)
    } else if first >= b'a' {
        FIRST_ONE_LETTER + nth(first)
    } else if threes.iter().all(|three| three & DIGITS != 0) {
        FIRST_NUMBERS + u16::from(first - b'0')
    } else {
        0
    };
    let prefix = implied_prefix_len(collection);
    let suffix = (bytes << (8 * prefix)).to_be_bytes();
    Coded::Short(Spelt { collection, suffix, len: len - prefix })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::trie_collection::trie_collection;
    use proptest::prelude::*;

    #[test]
    fn codes_are_in_order_and_between_the_others() {
        let terms = ["0", "00", "09z", "1", "9", "a", "a0", "aa", "azzz", "b", "zzzzzzzzzzzz"];
        let codes = terms.map(|term| code_of(term.as_bytes()).unwrap());
        assert!(codes.is_sorted() && codes[0] >> 33 != 0);
        assert!(codes[10] < code_of_number(0));
        for none in ["", "zzzzzzzzzzzzz", "caf\u{e9}", "A", "a b", "a\0"] {
            assert_eq!(code_of(none.as_bytes()), None);
        }
        for number in [0, 7, u32::MAX] {
            assert_eq!(spell(code_of_number(number)), Coded::Number(number));
        }
    }

    proptest! {
        #[test]
        fn law_a_code_is_all_of_a_term(term in "[a-z0-9]{1,12}|[0-9]{1,12}|[a-z]{1,12}") {
            let Coded::Short(spelt) = spell(code_of(term.as_bytes()).unwrap()) else {
                panic!("it is short");
            };
            prop_assert_eq!(spelt.collection, trie_collection(&term));
            let suffix = &term.as_bytes()[implied_prefix_len(spelt.collection)..];
            prop_assert_eq!(&spelt.suffix[..spelt.len], suffix);
            prop_assert!(spelt.suffix[spelt.len..].iter().all(|&byte| byte == 0));
        }
    }
}

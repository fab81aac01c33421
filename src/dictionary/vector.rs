//! A learned vector on its way from the parser to the tally: pairs of a term and its impact, in
//! bytes that are UTF-8.
//!
//! A pair is its impact, the length of its term in bytes, and the term. The numbers have digits of
//! six bits, the lowest first, and all of them but the last are marked.

use super::strings::short;
use std::hint::select_unpredictable;

const MORE: u8 = 0x40;

/// The pairs of a document, as [`put`] has written them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector<'a>(&'a [u8]);

impl<'a> Vector<'a> {
    pub(crate) fn new(pairs: &'a [u8]) -> Self {
        Self(pairs)
    }

    /// All of its pairs.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Appends a pair; the term has at most 255 bytes.
#[inline]
pub(crate) fn put(impact: u32, term: &[u8], out: &mut Vec<u8>) {
    let digit = |number: u32| (number & 0x3f) as u8;
    let length = term.len() as u32;
    // Nearly all pairs, without asking how many digits an impact has.
    if impact < 0x1000 && length < u32::from(MORE) {
        let start = out.len();
        let is_wide = impact >= u32::from(MORE);
        let one = [digit(impact), digit(length), 0];
        let two = [MORE | digit(impact), digit(impact >> 6), digit(length)];
        out.extend_from_slice(&select_unpredictable(is_wide, two, one));
        out.truncate(start + 2 + usize::from(is_wide));
        return short::push(term, out);
    }
    for mut number in [impact, length] {
        while number >= u32::from(MORE) {
            out.push(MORE | digit(number));
            number >>= 6;
        }
        out.push(number as u8);
    }
    out.extend_from_slice(term);
}

/// Takes the first pair off a vector.
///
/// # Panics
/// If it is none that [`put`] has written.
#[inline]
pub(super) fn take<'a>(vector: &mut &'a str) -> (u32, &'a str) {
    let mut at = 0;
    let numbers = [(); 2].map(|()| {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let digit = vector.as_bytes()[at];
            at += 1;
            number |= u32::from(digit & 0x3f) << shift;
            shift += 6;
            if digit & MORE == 0 {
                return number;
            }
        }
    });
    let end = at + numbers[1] as usize;
    let term = &vector[at..end];
    *vector = &vector[end..];
    (numbers[0], term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn oracle_pairs_come_back(pairs in prop::collection::vec((any::<u32>(), "\\PC{0,60}"), 0..20)) {
            let mut bytes = Vec::new();
            pairs.iter().for_each(|(impact, term)| put(*impact, term.as_bytes(), &mut bytes));
            let mut vector = std::str::from_utf8(&bytes).unwrap();
            for (impact, term) in &pairs {
                prop_assert_eq!(take(&mut vector), (*impact, term.as_str()));
            }
            prop_assert_eq!(vector, "");
        }
    }
}

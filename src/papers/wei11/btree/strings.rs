//! The pool of the bytes of terms behind the four that nodes cache: as in figure 6 of the paper a
//! length byte and then the bytes; a term of four bytes or fewer has no string.
//!
//! A string begins at a multiple of 8 bytes and is padded with zeros, so that eight bytes are
//! compared at a time: a big-endian word, the length in its upper byte. Numbers of strings count
//! words, so there may be 32 GiB of them.

use super::NONE;
use std::cmp::Ordering;

pub(crate) const CACHED: usize = 4;

#[inline]
#[cfg(test)]
pub(crate) fn words(suffix_bytes: usize) -> usize {
    if suffix_bytes <= CACHED { 0 } else { (1 + suffix_bytes - CACHED).div_ceil(8) }
}

/// The bytes of a big-endian word; those that are missing are zero.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk() {
        return u64::from_be_bytes(*whole);
    }
    let n = bytes.len();
    let be32 = |at: usize| {
        let four = bytes[at..at + 4].try_into().expect("four bytes were cut out");
        u64::from(u32::from_be_bytes(four))
    };
    match n {
        0 => 0,
        // The two ends overlap; what both have is the same.
        4.. => be32(0) << 32 | be32(n - 4) << (64 - 8 * n),
        _ => {
            let first = bytes[0];
            let middle = bytes[n / 2];
            let last = bytes[n - 1];
            u64::from(first) << 56
                | u64::from(middle) << (56 - 8 * (n / 2))
                | u64::from(last) << (64 - 8 * n)
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SoughtString<'a> {
    pub cache: u32,
    first: u64,
    rest: &'a [u8],
}

impl<'a> SoughtString<'a> {
    /// `suffix` lacks the prefix that its trie collection implies: at most 255 bytes of UTF-8, none
    /// of them NUL.
    #[inline(always)]
    pub(crate) fn new(suffix: &'a [u8]) -> Self {
        debug_assert!(suffix.len() < 256 && !suffix.contains(&0));
        let head = word(suffix);
        let cache = (head >> 32) as u32;
        if suffix.len() <= CACHED {
            return Self { cache, first: 0, rest: &[] };
        }
        let rest = &suffix[CACHED..];
        let seven = if rest.len() <= 4 { head << 32 } else { word(rest) };
        Self { cache, first: (rest.len() as u64) << 56 | seven >> 8, rest }
    }
}

#[derive(Default)]
pub(crate) struct Strings {
    words: Vec<u64>,
}

impl Strings {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Adds the string of a term, if it has one, and returns its number.
    pub(crate) fn push(&mut self, query: &SoughtString<'_>) -> u32 {
        if query.rest.is_empty() {
            return NONE;
        }
        let number = u32::try_from(self.words.len()).ok().filter(|&number| number != NONE);
        self.words.push(query.first);
        if let Some(behind) = query.rest.get(7..) {
            self.words.extend(behind.chunks(8).map(word));
        }
        number.expect("run limits keep the strings of a run below 32 GiB")
    }

    /// The order of a term's string and that of a query with the same cache.
    #[inline(always)]
    pub(crate) fn compare(&self, string: u32, query: &SoughtString<'_>) -> Ordering {
        if string == NONE {
            return if query.rest.is_empty() { Ordering::Equal } else { Ordering::Less };
        }
        let first = self.words[string as usize];
        if first == query.first && query.rest.len() <= 7 {
            return Ordering::Equal;
        }
        (first << 8).cmp(&(query.first << 8)).then_with(|| self.compare_long(string, query))
    }

    /// [`compare`](Self::compare) of strings whose first words agree in all but the length.
    #[cold]
    fn compare_long(&self, string: u32, query: &SoughtString<'_>) -> Ordering {
        // Equal words have equal lengths, for terms hold no NUL.
        let behind = query.rest.get(7..).unwrap_or_default();
        self.words_of(string)[1..].iter().copied().cmp(behind.chunks(8).map(word))
    }

    pub(crate) fn append(&self, string: u32, to: &mut Vec<u8>) {
        let words = self.words_of(string);
        let end = to.len() + (words[0] >> 56) as usize;
        to.extend_from_slice(&words[0].to_be_bytes()[1..]);
        to.extend(words[1..].iter().flat_map(|word| word.to_be_bytes()));
        to.truncate(end);
    }

    #[inline]
    fn words_of(&self, string: u32) -> &[u64] {
        let words = &self.words[string as usize..];
        &words[..(1 + (words[0] >> 56) as usize).div_ceil(8)]
    }
}

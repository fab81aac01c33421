//! Reads the vector of a record: an object of terms and their weights, which become impacts.
//!
//! Models such as SPLADE, DeepImpact and uniCOIL have learned the weight of each term in each
//! document. The terms are the model's own vocabulary and stay as they are. A weight times a
//! factor, rounded to the nearest whole number, is the *impact* that takes the place of a term
//! frequency.

use super::{Failure, JsonCursor, KEPT_BUFFER_BYTES};
use crate::buffers::TextBuffer;
use crate::dictionary::strings::hash::{FoundOrNew, HashTable, hash};
use crate::dictionary::vector;
use crate::input::document::Skip;
use crate::input::formats::json::unfolded;
use crate::text::analysis::MAX_TERM_BYTES;

/// The field of a record that has it.
pub(crate) const FIELD: &str = "vector";

/// What weights are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ImpactFactor {
    pub(crate) factor: f64,
    /// It is 1 because the first weights are whole numbers: a fraction ends the build.
    pub(crate) is_for_whole: bool,
}

impl ImpactFactor {
    /// The factor of weights that are no whole numbers, as in Anserini.
    pub(crate) const OF_FRACTIONS: f64 = 100.0;
    pub(crate) const OF_WHOLE: Self = Self { factor: 1.0, is_for_whole: true };

    /// A factor that was given, or that of an index.
    pub(crate) fn given(factor: f64) -> Self {
        Self { factor, is_for_whole: false }
    }
}

pub(super) struct VectorReader {
    factor: ImpactFactor,
    /// The factor, if it is a small whole number: others are multiplied by it exactly.
    whole_factor: Option<u64>,
    /// The pairs of the vector, as the dictionary takes them.
    pub(super) pairs: Vec<u8>,
    /// Where the terms of the vector lie there.
    places: Vec<(u32, u32)>,
    terms: HashTable,
    length: u32,
    is_read: bool,
    /// Weights above 0 of all vectors that have become 0.
    pub(super) lost: u64,
}

impl VectorReader {
    pub(super) fn new(factor: ImpactFactor) -> Self {
        let (pairs, places, length, is_read, lost) = Default::default();
        // Most vectors fill a sixth of it, so that a term seldom meets another.
        let terms = HashTable::with_slots(1 << 10);
        let whole_factor = None;
        let mut reader = Self { factor, whole_factor, pairs, places, terms, length, is_read, lost };
        reader.weigh_by(factor);
        reader
    }

    pub(super) fn weigh_by(&mut self, factor: ImpactFactor) {
        self.factor = factor;
        let whole = factor.factor as u64;
        self.whole_factor = (whole < EXACT && whole as f64 == factor.factor).then_some(whole);
    }

    /// Forgets the vector of the record before.
    pub(super) fn begin(&mut self) {
        self.is_read = false;
        self.length = 0;
        self.pairs.clear();
        self.places.clear();
        if self.terms.bytes() > KEPT_BUFFER_BYTES {
            self.terms = HashTable::with_slots(1 << 10);
        }
        self.terms.empty();
    }

    pub(super) fn shrink(&mut self) {
        self.pairs.shrink_to(KEPT_BUFFER_BYTES);
        self.places.shrink_to(KEPT_BUFFER_BYTES);
    }

    /// Checks a record that ends at the cursor.
    pub(super) fn end(&self, cursor: &JsonCursor<'_>) -> Result<(), Failure> {
        if !self.is_read {
            return Err(Failure::Vector(cursor.bad("a field `vector` before the end")));
        }
        match self.pairs.is_ascii() || std::str::from_utf8(&self.pairs).is_ok() {
            true => Ok(()),
            false => Err(Failure::Vector(cursor.bad("terms in UTF-8 before the end"))),
        }
    }

    pub(super) fn read(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        short: &mut TextBuffer,
    ) -> Result<(), Failure> {
        if self.is_read || !cursor.take(b'{') {
            return Err(Failure::Vector(cursor.bad("one object of terms and weights")));
        }
        self.is_read = true;
        cursor.space();
        if cursor.take(b'}') {
            return Ok(());
        }
        loop {
            cursor.begin_key()?;
            let at = cursor.at;
            let short_pair = short_pair(&cursor.bytes[at..]);
            let (term, impact) = match (short_pair, self.whole_factor) {
                (Some(pair), Some(factor)) => {
                    cursor.at += pair.bytes;
                    (&cursor.bytes[at..at + pair.term], u64::from(pair.number) * factor)
                }
                _ => {
                    let term = cursor.string()?;
                    cursor.colon()?;
                    let impact = self.rounded(cursor)?;
                    (unfolded(cursor, &term, short), impact)
                }
            };
            let wrong = |expected| Err(Failure::Vector(JsonCursor { at, ..*cursor }.bad(expected)));
            let Ok(length) = u32::try_from(u64::from(self.length) + impact) else {
                return wrong("impacts below 2^32 in all (a smaller factor)");
            };
            self.length = length;
            let impact = impact as u32;
            if !(1..=MAX_TERM_BYTES).contains(&term.len()) {
                return wrong("a term of 1 to 255 bytes");
            }
            vector::put(impact, term, &mut self.pairs);
            let end = self.pairs.len() as u32;
            let start = end - term.len() as u32;
            let number = self.places.len() as u32;
            let of = |(start, end)| &self.pairs[start as usize..end as usize];
            let same = |other: u32| of(self.places[other as usize]) == term;
            if self.terms.find_or_insert(hash(term), number, same) != FoundOrNew::New {
                return wrong("each term once");
            }
            self.places.push((start, end));
            cursor.space();
            if cursor.take(b'}') {
                return Ok(());
            }
            if !cursor.take(b',') {
                return Err(cursor.bad("`,` or `}`").into());
            }
            cursor.space();
        }
    }

    /// The impact of any number.
    fn rounded(&mut self, cursor: &mut JsonCursor<'_>) -> Result<u64, Failure> {
        let wrong = cursor.bad("a weight, which is a number of 0 or more");
        let number = match cursor.peek() {
            Some(b'-' | b'0'..=b'9') => cursor.number()?,
            _ => return Err(Failure::Vector(wrong)),
        };
        let weight = weight(&cursor.bytes[number]).ok_or(Failure::Vector(wrong))?;
        if self.factor.is_for_whole && weight.fract() != 0.0 {
            return Err(Failure::Skip(Skip::Fraction));
        }
        // More than any impact is, and less than overflows.
        const MOST: f64 = (1u64 << 40) as f64;
        let impact = (weight * self.factor.factor).round().min(MOST) as u64;
        self.lost += u64::from(impact == 0 && weight > 0.0);
        Ok(impact)
    }
}

/// Whole numbers below this have an `f32` of their own, and products of two an `f64`.
const EXACT: u64 = 1 << 24;

/// A pair as nearly all are.
struct ShortPair {
    /// Bytes of the term.
    term: usize,
    number: u32,
    /// Bytes from the term to the end of the number.
    bytes: usize,
}

/// The pair of which `bytes` begin with the term, if this has no escape, and behind its quote are
/// at once a colon and a short whole number, or a space between. Looks at eight bytes at a time.
#[inline(always)]
fn short_pair(bytes: &[u8]) -> Option<ShortPair> {
    let mut term = 0;
    loop {
        let ends = ends_of_string(eight(bytes, term)?);
        term += (ends.trailing_zeros() / 8) as usize;
        if ends != 0 {
            break;
        }
    }
    let colon = bytes[term..].strip_prefix(b"\":")?;
    let space = usize::from(colon.first() == Some(&b' '));
    let (number, digits) = short_number(eight(colon, space)?)?;
    Some(ShortPair { term, number, bytes: term + 2 + space + digits })
}

fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|eight| u64::from_le_bytes(*eight))
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x80 * ONES;

/// The high bit of bytes that end a string, or are none of one as they stand; behind the first one
/// of others too.
fn ends_of_string(word: u64) -> u64 {
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is = |byte: u8| is_zero(word ^ (u64::from(byte) * ONES));
    let is_control = word.wrapping_sub(0x20 * ONES) & !word;
    (is(b'"') | is(b'\\') | is_control) & HIGH_BITS
}

/// The whole number of up to seven digits that a word begins with, if `,`, `}` or a space is behind
/// it, and how many digits it has.
fn short_number(word: u64) -> Option<(u32, usize)> {
    let digits = word ^ (u64::from(b'0') * ONES);
    // Bytes above 9, and perhaps others behind the first of them.
    let others = (digits.wrapping_add((0x7f - 9) * ONES) | digits) & HIGH_BITS;
    let count = others.trailing_zeros() / 8;
    let is_one = (1..8).contains(&count) && (count == 1 || digits & 0xff != 0);
    if !is_one || !matches!((word >> (8 * count)) as u8, b',' | b'}' | b' ') {
        return None;
    }
    // The last digit comes to be the uppermost byte; then neighbours are put together.
    let ones = digits << (64 - 8 * count);
    let tens = (10 * ones + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let hundreds = (100 * tens + (tens >> 16)) & 0x0000_ffff_0000_ffff;
    let number = 10_000u64.wrapping_mul(hundreds).wrapping_add(hundreds >> 32) as u32;
    Some((number, count as usize))
}

/// The weight that a number of JSON is, in single precision; none if it is below 0 or too large.
fn weight(number: &[u8]) -> Option<f64> {
    let weight: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    (0.0..=f64::from(f32::MAX)).contains(&weight).then_some(f64::from(weight as f32))
}

#[cfg(test)]
mod tests {
    use super::super::JsonlParser;
    use super::*;
    use crate::input::document::{KeptDocuments, PieceView};
    use proptest::prelude::*;

    /// The pairs of a vector with one term, or nothing if it is bad.
    fn pairs(factor: ImpactFactor, number: &str) -> Option<Vec<u8>> {
        let line = format!("{{\"vector\":{{\"a\":{number}}}}}");
        let mut kept = KeptDocuments::default();
        JsonlParser::of_vectors(factor).parse(PieceView::whole(line.as_bytes()), &mut kept);
        assert_eq!(kept.documents.len() + kept.skipped.len(), 1, "{line}");
        kept.documents.pop().map(|document| document.1)
    }

    fn numbers() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u32>().prop_map(|number| number.to_string()),
            (0u32..1000).prop_map(|number| number.to_string()),
            (0.0f64..400.0).prop_map(|number| number.to_string()),
            (0u32..40_000).prop_map(|number| format!("{}", f64::from(number) / 200.0)),
            (0u32..99, -9i32..9).prop_map(|(digits, power)| format!("{digits}.5e{power}")),
        ]
    }

    proptest! {
        #[test]
        fn oracle_impacts_are_rounded_products(
            number in numbers(),
            factor in prop::sample::select(&[1.0, 100.0, 0.25, 7.3, 1e6, 1e9]),
        ) {
            let weight: f64 = number.parse().unwrap();
            let single = f64::from(weight as f32);
            let impact = (single * factor).round();
            let mut expected = Vec::new();
            vector::put(impact as u32, b"a", &mut expected);
            let fits = impact <= f64::from(u32::MAX);
            prop_assert_eq!(pairs(ImpactFactor::given(factor), &number), fits.then_some(expected));
            let is_whole = single == single.trunc() && single <= f64::from(u32::MAX);
            prop_assert_eq!(pairs(ImpactFactor::OF_WHOLE, &number).is_some(), is_whole);
        }
    }
}

//! The kernels that make terms of forms, and number terms.

use super::InvertArray::*;
use super::{InvertArray, InvertStep, THREADS, step};
use crate::dictionary::strings::codes::{CODED_BYTES, code_of};
use crate::gpu::floor::steps::{Argument, launch};
use crate::text::analysis::Analysis;
use crate::text::scan::{KEY_BYTES, key_of};
use crate::text::stemmer::Stemmer;

/// The forms of which the device makes terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plain {
    /// Their bytes, at most; 0 if the host makes all terms.
    pub longest: u32,
    /// By the English stemmer.
    pub stems: bool,
    /// Those that have a code.
    pub stop_words: u32,
}

impl Plain {
    /// Also the codes of the stop words.
    pub(crate) fn of(analysis: &Analysis) -> (Self, Vec<u64>) {
        let words = || analysis.stop_words.words().map(str::as_bytes);
        let mut codes: Vec<u64> = words().filter_map(code_of).collect();
        codes.sort_unstable();
        let has_others = words().any(|word| code_of(word).is_none() && key_of(word).is_some());
        let longest = match analysis.stemmer {
            Stemmer::ENGLISH | Stemmer::NONE if has_others => CODED_BYTES,
            Stemmer::ENGLISH | Stemmer::NONE => KEY_BYTES,
            _ => 0,
        };
        let stems = analysis.stemmer == Stemmer::ENGLISH;
        let stop_words = codes.len() as u32;
        (Self { longest: longest as u32, stems, stop_words }, codes)
    }
}

/// Finds the codes of the terms of `count` forms behind the `known` ones, or that they are foreign.
pub(crate) fn code_forms(known: u32, count: u32, plain: Plain) -> InvertStep {
    let Plain { longest, stems, stop_words } = plain;
    launch!("invert_code_forms", count.div_ceil(THREADS), 0;
        Arena, FormPlaces, known, count, longest, u32::from(stems), StopWords, stop_words, Coded,
        Counters, ForeignBytes, ForeignPlaces)
}

/// This many terms whose codes stand in an array from number `first` on; the meanings of their
/// forms go to another array from number `place` on.
pub(crate) struct ArrayTerms {
    pub from: InvertArray,
    pub first: u64,
    pub count: u32,
    pub to: InvertArray,
    pub place: u64,
}

/// Numbers terms, at least one, in a table of this many slots.
pub(crate) fn number_terms(terms: &ArrayTerms, slots: u32) -> [InvertStep; 2] {
    let count = terms.count;
    let coded = Argument::Array(terms.from, 16 * terms.first);
    let told = Argument::Array(terms.to, 8 * terms.place);
    let blocks = count.div_ceil(THREADS);
    [
        launch!("invert_find_terms", blocks, 0;
            coded, count, TermSlots, slots - 1, SlotTerms, Terms, TermCodes, told),
        launch!("invert_tell_terms", blocks, 0; coded, count, SlotTerms, ForeignMeanings, told),
    ]
}

/// Puts all terms, at most `most` and more than 0, into an empty table of more slots.
pub(crate) fn fill_table(most: u32, slots: u32) -> InvertStep {
    launch!("invert_fill_table", most.div_ceil(THREADS), 0;
        TermCodes, Terms, TermSlots, slots - 1, SlotTerms)
}

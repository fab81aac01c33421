//! The kernels that make terms of forms, and number terms.

use super::{InvertArray, InvertStep, THREADS, of, step};
use crate::dictionary::strings::codes::{CODED_BYTES, code_of};
use crate::gpu::floor::steps::Argument::{Array as At, Number};
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
    let arguments = vec![
        of(InvertArray::Arena),
        of(InvertArray::FormPlaces),
        Number(known),
        Number(count),
        Number(longest),
        Number(stems.into()),
        of(InvertArray::StopWords),
        Number(stop_words),
        of(InvertArray::Coded),
        of(InvertArray::Counters),
        of(InvertArray::ForeignBytes),
        of(InvertArray::ForeignPlaces),
    ];
    step("invert_code_forms", count.div_ceil(THREADS), 0, arguments)
}

/// So many terms whose codes stand in an array from number `first` on; the meanings of their forms
/// go to another array from number `place` on.
pub(crate) struct ArrayTerms {
    pub from: InvertArray,
    pub first: u64,
    pub count: u32,
    pub to: InvertArray,
    pub place: u64,
}

/// Numbers terms, at least one, in a table of so many slots.
pub(crate) fn number_terms(terms: &ArrayTerms, slots: u32) -> [InvertStep; 2] {
    let count = terms.count;
    let coded = At(terms.from, 16 * terms.first);
    let told = At(terms.to, 8 * terms.place);
    let find = vec![
        coded,
        Number(count),
        of(InvertArray::TermSlots),
        Number(slots - 1),
        of(InvertArray::SlotTerms),
        of(InvertArray::Terms),
        of(InvertArray::TermCodes),
        told,
    ];
    let tell = vec![
        coded,
        Number(count),
        of(InvertArray::SlotTerms),
        of(InvertArray::ForeignMeanings),
        told,
    ];
    let blocks = count.div_ceil(THREADS);
    [step("invert_find_terms", blocks, 0, find), step("invert_tell_terms", blocks, 0, tell)]
}

/// Puts all terms, at most `most` and more than 0, into an empty table of more slots.
pub(crate) fn fill_table(most: u32, slots: u32) -> InvertStep {
    let arguments = vec![
        of(InvertArray::TermCodes),
        of(InvertArray::Terms),
        of(InvertArray::TermSlots),
        Number(slots - 1),
        of(InvertArray::SlotTerms),
    ];
    step("invert_fill_table", most.div_ceil(THREADS), 0, arguments)
}

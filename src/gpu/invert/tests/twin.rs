//! The twins of the kernels in plain Rust, by the definitions alone.

use super::inverter::CountedBatch;
use super::text::{PieceText, content};
use crate::codec::folded;
use crate::dictionary::device::forms::FormMeaning;
use crate::dictionary::device::members::{for_each_member, hash_of_key};
use crate::dictionary::strings::codes::code_of;
use crate::order::{PieceCounts, Sketch};
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::scan::key_of;
use crate::text::tokenizer::{Class, Tokenizer};
use std::collections::BTreeMap;

/// `invert_scan`: the sums before each value, and of all.
pub(crate) fn scan(values: &[u32]) -> (Vec<u32>, u32) {
    let mut sums = Vec::with_capacity(values.len());
    let mut sum = 0;
    for value in values {
        sums.push(sum);
        sum += value;
    }
    (sums, sum)
}

/// `invert_write_tokens`: where forms begin, by the classes of characters.
pub(crate) fn tokens(tokenizer: Tokenizer, text: &[u8]) -> Vec<u32> {
    let mut characters = vec![(0, Class::Separator)];
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let classes = chunk.valid().char_indices().map(|(i, c)| (at + i, tokenizer.class(c)));
        characters.extend(classes);
        at += chunk.valid().len();
        characters.push((at, Class::Separator));
        at += chunk.invalid().len();
    }
    let makes_pairs = |class| matches!(class, Class::Paired | Class::Joined);
    let begins = |three: &&[(usize, Class)]| match [three[0].1, three[1].1, three[2].1] {
        [_, Class::Separator, _] => false,
        [before, Class::Paired, behind] => makes_pairs(behind) || !makes_pairs(before),
        [Class::Separator, _, _] | [Class::Paired, Class::Word, _] => true,
        _ => false,
    };
    characters.windows(3).filter(begins).map(|three| three[1].0 as u32).collect()
}

/// `invert_code_forms`: None if the form is foreign.
pub(crate) fn code_form(analysis: &Analysis, form: &str) -> Option<FormMeaning> {
    let hash = hash_of_key(key_of(form.as_bytes())?);
    match analysis.analyze_token(form) {
        None => Some(FormMeaning::NOTHING),
        Some(term) => Some(FormMeaning::of_token(code_of(term.as_bytes())?, hash)),
    }
}

/// Sorts by some bits of the keys; equal ones stay in their order.
pub(crate) fn sort_pass(pairs: &[(u32, u32)], shift: u32, bits: u32) -> Vec<(u32, u32)> {
    let mut sorted = pairs.to_vec();
    sorted.sort_by_key(|(key, _)| key >> shift & ((1 << bits) - 1));
    sorted
}

/// `invert_write_postings`: where runs of equal pairs begin, and the end.
pub(crate) fn postings(pairs: &[(u32, u32)]) -> Vec<u32> {
    let begins = |at: &usize| *at == 0 || pairs[*at] != pairs[*at - 1];
    (0..pairs.len()).filter(begins).chain([pairs.len()]).map(|at| at as u32).collect()
}

/// Docids and frequencies, by term.
pub(crate) type TwinRun = BTreeMap<String, Vec<(u32, u32)>>;

/// What the pieces of a batch from docid `first` on count; their postings are added to `run`.
pub(crate) fn invert(
    analysis: &Analysis,
    pieces: &[PieceText],
    first: u32,
    run: &mut TwinRun,
) -> Vec<CountedBatch> {
    let mut docid = first;
    let mut all = Vec::new();
    for piece in pieces {
        let mut lists = TwinRun::new();
        let mut sketch = Sketch::default();
        let mut lengths = Vec::new();
        let mut contents = Vec::new();
        let ends = piece.starts.iter().skip(1).copied().chain([piece.bytes.len() as u32]);
        for (&start, end) in piece.starts.iter().zip(ends) {
            let text = &piece.bytes[start as usize..end as usize];
            let mut length = 0;
            analysis.for_each_token(text, |token| {
                let Some(term) = analysis.analyze_token(token) else { return };
                for_each_member(token, |hash| sketch.add(hash));
                length += 1;
                let list = lists.entry(term.into_owned()).or_default();
                match list.last_mut() {
                    Some((last, tf)) if *last == docid => *tf += 1,
                    _ => list.push((docid, 1)),
                }
            });
            lengths.push(length);
            // Without the separator.
            contents.push(content(&text[..text.len() - 1]));
            docid += 1;
        }
        // As each piece counts a term's first posting.
        let behind = |list: &Vec<(u32, u32)>| -> u64 {
            let pairs = list.windows(2);
            4 + pairs.map(|p| folded::bytes(p[1].0 - p[0].0 - 1, p[1].1) as u64).sum::<u64>()
        };
        let counts = PieceCounts {
            documents: piece.documents(),
            postings: lists.values().map(|list| list.len() as u64).sum(),
            list_bytes: lists.values().map(behind).sum(),
            forms: sketch,
        };
        let codes = lengths.iter().map(|&length| code_below(length)).collect();
        all.push(CountedBatch { counts, lengths, codes, contents });
        for (term, list) in lists {
            run.entry(term).or_default().extend(list);
        }
    }
    all
}

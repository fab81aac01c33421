//! Cuts the terms of a run into parts for threads: trie collections that are neighbours, and terms
//! of one collection that is larger than a part.

use super::LexiconStream;
use crate::index::error::IndexError;
use crate::index::generations::manifest::RunEntry;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::ops::Range;
use std::path::Path;

/// Neighbouring terms: those of some trie collections, or of one collection those from a suffix on,
/// up to another.
#[derive(Clone, Debug)]
pub(crate) struct TermRange {
    pub(crate) collections: Range<u16>,
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
}

impl From<Range<u16>> for TermRange {
    fn from(collections: Range<u16>) -> Self {
        Self { collections, from: Vec::new(), to: None }
    }
}

impl TermRange {
    /// Some collections, the last of which is cut at these suffixes, if there are any.
    pub(crate) fn cut(Range { start, end }: Range<u16>, cuts: Vec<Vec<u8>>) -> Vec<Self> {
        if cuts.is_empty() {
            return vec![(start..end).into()];
        }
        let last = end - 1;
        let mut ranges = Vec::new();
        ranges.extend((start < last).then(|| (start..last).into()));
        let mut from = Vec::new();
        for to in cuts.into_iter().map(Some).chain([None]) {
            let next = to.clone().unwrap_or_default();
            let from = std::mem::replace(&mut from, next);
            ranges.push(Self { collections: last..end, from, to });
        }
        ranges
    }
}

/// Cuts all collections into about `parts` parts of about the same `weight`, which is that of the
/// collections from one up to another.
pub(crate) fn cut(parts: u64, weight: impl Fn(usize, usize) -> u64) -> Vec<Range<u16>> {
    let mut cut = Vec::new();
    if parts <= 1 {
        cut.push(0..TRIE_COLLECTIONS as u16);
        return cut;
    }
    let share = weight(0, TRIE_COLLECTIONS) / parts + 1;
    let mut start = 0;
    for end in 1..=TRIE_COLLECTIONS {
        if weight(start, end) >= share || end == TRIE_COLLECTIONS {
            cut.push(start as u16..end as u16);
            start = end;
        }
    }
    cut
}

/// Cuts the lexicon at `path` into parts of at least `least` weight, and at most about `most`;
/// `weight` is that of bytes of terms, and of their lists.
pub(crate) fn parts_of(
    path: &Path,
    least: u64,
    most: usize,
    weight: impl Fn(u64, u64) -> u64,
) -> Result<Vec<TermRange>, IndexError> {
    let starts = LexiconStream::collection_starts(path)?;
    let between = |from: usize, to: usize| {
        let [terms, lists] = [0, 1].map(|i| starts[to][i].saturating_sub(starts[from][i]));
        weight(terms, lists)
    };
    let all = between(0, TRIE_COLLECTIONS);
    let parts = (all / least.max(1)).min(most as u64);
    let mut ranges = Vec::new();
    for collections in cut(parts, between) {
        let pieces = pieces_of(all, parts, &collections, between);
        let last = collections.end - 1;
        ranges
            .extend(TermRange::cut(collections, LexiconStream::cuts(path, last, pieces, &weight)?));
    }
    Ok(ranges)
}

/// How many of `parts` parts of `all` weight the last of some collections makes, which
/// [`cut`] ends a part with.
pub(crate) fn pieces_of(
    all: u64,
    parts: u64,
    collections: &Range<u16>,
    weight: impl Fn(usize, usize) -> u64,
) -> u64 {
    let end = usize::from(collections.end);
    weight(end - 1, end) / (all / parts.max(1) + 1)
}

/// Compares the terms and postings of all parts of the lexicon at `path` with what its run says, so
/// that the parts are all of it.
pub(crate) fn expect_totals(
    path: &Path,
    run: &RunEntry,
    terms: u64,
    postings: u64,
) -> Result<(), IndexError> {
    // The header says the same as the run, at these bytes.
    for (offset, expected, found) in [(16, terms, run.terms), (40, postings, run.postings)] {
        if expected != found {
            return Err(IndexError::damaged(path, offset, expected, found));
        }
    }
    Ok(())
}

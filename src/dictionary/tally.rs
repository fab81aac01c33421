//! Counts the postings of a piece term by term, and lays them out by owner.
//!
//! A token is counted in eight bytes that its term has. Whether it is a stop word, and whether its
//! term is new in the document, is as good as random, so no branch depends on it. When a document
//! ends, each of its postings goes to the cache line of its term, beside the hash and the
//! collection, in the form in which a group has it; so nothing is sorted. Postings that do not fit
//! the line, which few terms of a piece have, go on in slices.

use super::counter::{Counter, FIRST_POSTING_BYTES, Now, TokenCounting};
use super::group::{GroupTerm, TermGroup};
use super::memo::{MemoTerm, NO_TERM};
use super::owners::Owners;
use super::parsed::Regroup;
use super::positions::TalliedPositions;
use super::slices::{Chain, Slices};
use super::vector::Vector;
use crate::codec::folded;
use crate::codec::prefetch::{prefetch, prefetch_at};
use crate::dictionary::device::members::for_each_unit;
use crate::order::PieceCounts;
use crate::pages::Grown;
use crate::text::analysis::Analysis;
use crate::text::fields::{FieldTexts, split};
use crate::text::scan::TOGETHER;
use std::hint::select_unpredictable;
use std::sync::Arc;

const LINE_BYTES: usize = 31;
/// Bytes that are written at once: two of the gap, one of the frequency, one of nothing.
const AT_ONCE: usize = 4;

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct LinePostings {
    /// The document of the last posting, counted as [`Now`] counts.
    posted: u32,
    /// The term's postings in the piece.
    postings: u32,
    /// The number, from 1 on, of the chain of the postings in slices, those before the ones in the
    /// line.
    spilled: u32,
    /// Bytes of postings in the line; at most `LINE_BYTES - AT_ONCE` between postings.
    used: u8,
    /// The postings, as a list has them; the first gap is counted from the start of the piece.
    bytes: [u8; LINE_BYTES],
}

const _: () = assert!(size_of::<MemoTerm<LinePostings>>() == 64);

impl LinePostings {
    /// Adds the posting of the current document. Returns whether it is the term's first of the
    /// piece.
    #[inline(always)]
    fn post(&mut self, tf: u32, now: Now, spilled: &mut SpilledPostings) -> bool {
        let first = self.posted <= now.before;
        let from = select_unpredictable(first, now.before, self.posted);
        let gap = now.document - 1 - from;
        let at = usize::from(select_unpredictable(first, 0, self.used));
        let (code, bytes) = folded::word(gap, tf);
        self.bytes[at..at + AT_ONCE].copy_from_slice(&code.to_le_bytes());
        self.used = at as u8 + bytes;
        self.spilled = select_unpredictable(first, 0, self.spilled);
        self.postings = select_unpredictable(first, 0, self.postings) + 1;
        self.posted = now.document;
        let wide = !folded::fits_word(gap, tf);
        if wide | (usize::from(self.used) > LINE_BYTES - AT_ONCE) {
            if wide {
                self.used = at as u8;
            }
            self.spill(spilled, wide.then_some((gap, tf)));
        }
        first
    }

    /// Appends the postings to lists except for the first, which the owner writes, who knows the
    /// gap before it. Returns that one: its document, counted from the first of the piece, and its
    /// frequency.
    #[inline(always)]
    fn lay(&self, spilled: &SpilledPostings, lists: &mut Vec<u8>) -> (u32, u32) {
        if self.spilled != 0 {
            return self.lay_spilled(spilled, lists);
        }
        let word = self.bytes.first_chunk().expect("a line is longer than a word");
        let (first, less_one, at) = folded::of_word(u32::from_le_bytes(*word));
        // All of the line, whatever is in use of it.
        let rest = self.bytes[at..].first_chunk::<{ LINE_BYTES - AT_ONCE }>();
        let end = lists.len() + usize::from(self.used) - at;
        lists.extend_from_slice(rest.expect("a posting is shorter than a word"));
        lists.truncate(end);
        (first, less_one + 1)
    }

    #[inline(never)]
    fn lay_spilled(&self, spilled: &SpilledPostings, lists: &mut Vec<u8>) -> (u32, u32) {
        let before = lists.len();
        let chain = &spilled.chains[self.spilled as usize - 1];
        spilled.slices.read(chain, |slice| lists.extend_from_slice(slice));
        lists.extend_from_slice(&self.bytes[..usize::from(self.used)]);
        let mut at = before;
        let first = folded::get(lists, &mut at).expect("a tally reads the postings that it wrote");
        lists.drain(before..at);
        first
    }

    /// Moves the bytes of the line to slices, and behind them a posting if it is `wide`: too long
    /// to be written at once.
    #[cold]
    #[inline(never)]
    fn spill(&mut self, spilled: &mut SpilledPostings, wide: Option<(u32, u32)>) {
        let SpilledPostings { slices, chains } = spilled;
        if self.spilled == 0 {
            chains.push(slices.begin());
            self.spilled = chains.len() as u32;
        }
        let chain = &mut chains[self.spilled as usize - 1];
        slices.append(chain, &self.bytes[..usize::from(self.used)]);
        self.used = 0;
        if let Some((gap, tf)) = wide {
            let mut posting = Vec::with_capacity(folded::MAX_BYTES);
            folded::put(gap, tf, &mut posting);
            slices.append(chain, &posting);
        }
    }
}

/// Postings that do not fit the lines of their terms.
#[derive(Default)]
struct SpilledPostings {
    slices: Slices,
    chains: Vec<Chain>,
}

/// The last document with a term, counted as [`Now`] counts, and above it the term's frequency
/// there. In one number, so that a token is one load and one store.
#[derive(Clone, Copy, Default)]
struct SeenCount(u64);

impl SeenCount {
    /// Counts a token of a document. Returns whether it is the first of the term there.
    #[inline(always)]
    fn count(&mut self, document: u32) -> bool {
        let new = self.0 as u32 != document;
        self.0 = select_unpredictable(new, u64::from(document), self.0) + (1 << 32);
        new
    }

    fn weighed(document: u32, tf: u32) -> Self {
        Self(u64::from(document) | u64::from(tf) << 32)
    }

    #[inline(always)]
    fn tf(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// The postings of a piece, except for those in the terms' lines.
#[derive(Default)]
struct TalliedPostings {
    /// By the numbers of terms. Apart from their lines: common terms, which have low numbers, so
    /// share lines, and most tokens find them in the nearest cache.
    seen: Grown<SeenCount>,
    /// The document's terms in order of appearance, the first `here`; then room. [`NO_TERM`] may be
    /// among them.
    document: Vec<u32>,
    here: usize,
    /// The piece's terms likewise, the first `terms`.
    touched: Vec<u32>,
    terms: usize,
    /// Postings of the piece; those of [`NO_TERM`] may be among them.
    posted: usize,
    spilled: SpilledPostings,
    /// If the index has positions.
    positions: Option<TalliedPositions>,
}

impl TalliedPostings {
    #[inline(always)]
    fn make_room(&mut self, terms: usize) {
        if self.seen.len() < terms {
            self.seen.resize(terms + terms / 4, SeenCount::default());
        }
    }
}

impl TokenCounting for TalliedPostings {
    type State = LinePostings;

    #[inline(always)]
    fn prefetch(&self, terms: &[MemoTerm<LinePostings>], term: u32) {
        prefetch_at(&self.seen, term as usize);
        prefetch_at(terms, term as usize);
    }

    #[inline(always)]
    fn count(&mut self, terms: &mut [MemoTerm<LinePostings>], tokens: &[u32], now: Now) {
        if self.document.len() < self.here + TOGETHER {
            self.document.resize(2 * self.here + 1024, 0);
        }
        self.make_room(terms.len());
        let document = &mut self.document[self.here..][..TOGETHER];
        let seen = &mut self.seen[..];
        let mut found = 0;
        for &term in tokens {
            document[found] = term;
            found += usize::from(seen[term as usize].count(now.document));
        }
        self.here += found;
    }

    #[inline]
    fn weigh(
        &mut self,
        terms: &mut [MemoTerm<LinePostings>],
        tokens: &[u32],
        tfs: &[u32],
        now: Now,
    ) {
        if self.document.len() < self.here + tokens.len() {
            self.document.resize(2 * self.here + 1024, 0);
        }
        self.make_room(terms.len());
        self.document[self.here..][..tokens.len()].copy_from_slice(tokens);
        self.here += tokens.len();
        let seen = &mut self.seen[..];
        for (&term, &tf) in tokens.iter().zip(tfs) {
            seen[term as usize] = SeenCount::weighed(now.document, tf);
        }
    }

    #[inline(always)]
    fn follow(&mut self, tokens: &[u32]) {
        if let Some(positions) = &mut self.positions {
            positions.add(tokens);
        }
    }

    fn end_part(&mut self) {
        if let Some(positions) = &mut self.positions {
            positions.end_part();
        }
    }

    fn begin_field(&mut self) {
        if let Some(positions) = &mut self.positions {
            positions.begin_field();
        }
    }

    fn end_document(&mut self, terms: &mut [MemoTerm<LinePostings>], now: Now) {
        if let Some(positions) = &mut self.positions {
            positions.end_document();
        }
        // As many as there are terms, so that bounds are checked once.
        self.make_room(terms.len());
        // Terms to be prefetched stand behind the document's.
        if self.document.len() < self.here + AHEAD {
            self.document.resize(2 * self.here + 1024, 0);
        }
        self.document[self.here..][..AHEAD].fill(NO_TERM);
        let document = &self.document[..self.here + AHEAD];
        if self.touched.len() < self.terms + document.len() {
            self.touched.resize(2 * (self.terms + document.len()) + 1024, 0);
        }
        let touched = &mut self.touched[self.terms..][..document.len()];
        let seen = &self.seen[..terms.len()];
        let spilled = &mut self.spilled;
        let mut found = 0;
        for (&term, &ahead) in document.iter().zip(&document[AHEAD..]) {
            prefetch_at(terms, ahead as usize);
            touched[found] = term;
            let state = &mut terms[term as usize].state;
            let first = state.post(seen[term as usize].tf(), now, spilled);
            found += usize::from(first);
        }
        self.terms += found;
        self.posted += self.here;
        self.here = 0;
    }

    fn anew(self) -> Self {
        let positions = self.positions.map(|_| TalliedPositions::default());
        Self { positions, ..Self::default() }
    }

    fn reset(&mut self, keep: usize) -> bool {
        let large = self.touched.len().max(self.document.len()) > keep
            || self.spilled.slices.len() > keep * 4
            || self.positions.as_ref().is_some_and(|positions| positions.tokens() > keep * 4);
        if large {
            *self = std::mem::take(self).anew();
        }
        self.positions = self.positions.take().map(TalliedPositions::next);
        self.terms = 0;
        self.posted = 0;
        self.spilled.slices.clear();
        self.spilled.chains.clear();
        large
    }
}

pub struct Tally {
    owners: Arc<Owners>,
    counter: Counter<TalliedPostings>,
}

impl Regroup for Tally {
    type Group = TermGroup;

    fn parts(&mut self, starts: &[usize]) {
        self.counter.parts(starts);
    }

    fn document(&mut self, text: &[u8]) -> u32 {
        self.counter.document(text, FieldTexts::NONE)
    }

    fn document_in_fields(&mut self, text: &[u8], fields: &FieldTexts) -> u32 {
        self.counter.document(text, fields)
    }

    fn field_lengths(&self) -> &[u32] {
        self.counter.field_tokens()
    }

    fn vector(&mut self, vector: Vector<'_>) -> u32 {
        self.counter.vector(vector)
    }

    fn hold(&mut self, bytes: u64) {
        self.counter.most_bytes = bytes;
    }

    fn over(&self) -> Option<u64> {
        self.counter.needed
    }

    fn documents(&self) -> u32 {
        self.counter.documents()
    }

    fn finish(&mut self) -> Vec<TermGroup> {
        let mut counts = self.counter.piece_counts();
        let mut parts = self.encode(&mut counts);
        self.count_fields(&mut counts);
        let counts = Arc::new(counts);
        let lengths = Arc::from(self.counter.all_lengths());
        for part in &mut parts {
            part.counts = counts.clone();
            part.lengths = Arc::clone(&lengths);
        }
        self.counter.reset();
        parts
    }
}

/// Bytes of a length of a field as those of postings count, which cost twice as much.
const FIELD_LENGTH_BYTES: u64 = 2;

/// Terms whose data is prefetched.
const AHEAD: usize = 16;

impl Tally {
    /// Terms of `analysis` are remembered in at most `memo_bytes` from piece to piece.
    pub fn new(analysis: Analysis, owners: Arc<Owners>, memo_bytes: usize) -> Self {
        let counter = Counter::new(analysis, memo_bytes);
        Self { owners, counter }
    }

    /// With the positions of terms, or without.
    #[must_use]
    pub(crate) fn with_positions(mut self, positions: bool) -> Self {
        self.counter.counted().0.positions = positions.then(TalliedPositions::default);
        self.counter.keep_order(positions);
        self
    }

    /// For an index with this many fields.
    #[must_use]
    pub(crate) fn with_fields(mut self, fields: usize) -> Self {
        self.counter.with_fields(fields);
        self
    }

    /// Counts the terms of fields among the forms, and what their lengths take.
    fn count_fields(&mut self, counts: &mut PieceCounts) {
        let (counted, memo, _) = self.counter.counted();
        let fields = memo.fields();
        if fields == 0 {
            return;
        }
        for &number in &counted.touched[..counted.terms] {
            let term = memo.term(number);
            let suffix = memo.suffix(term);
            if split(fields, suffix).1.is_some() {
                for_each_unit(term.hash, suffix.len(), |hash| counts.forms.add(hash));
            }
        }
        counts.list_bytes += u64::from(counts.documents) * fields as u64 * FIELD_LENGTH_BYTES;
    }

    /// Lays out what each owner gets.
    fn encode(&mut self, counts: &mut PieceCounts) -> Vec<TermGroup> {
        let owners = self.owners.len();
        let mut groups: Vec<TermGroup> = (0..owners)
            .map(|owner| TermGroup { owner: owner as u32, ..TermGroup::default() })
            .collect();
        let (counted, memo, now) = self.counter.counted();
        let terms = &counted.touched[..counted.terms];
        let mut positions = counted.positions.as_mut();
        if let Some(positions) = &mut positions {
            positions.sort(terms, counted.seen.len());
        }
        for group in &mut groups {
            let share = terms.len() / owners;
            group.terms.reserve(share + share / 8);
            group.lists.reserve(counted.posted * 2 / owners);
        }
        let mut from = 0;
        for (i, &number) in terms.iter().enumerate() {
            if let Some(&ahead) = terms.get(i + 2 * AHEAD) {
                prefetch(memo.term(ahead));
            }
            let own = from..positions.as_ref().map_or(0, |positions| positions.end_of(number));
            from = own.end;
            if number == NO_TERM {
                continue;
            }
            let term = memo.term(number);
            let state = &term.state;
            let owner = self.owners.of_term(term.suffix.collection, || memo.suffix(term));
            let group = &mut groups[owner as usize];
            let before = group.lists.len();
            let (first, first_tf) = state.lay(&counted.spilled, &mut group.lists);
            let list_bytes = (group.lists.len() - before) as u32;
            counts.postings += u64::from(state.postings);
            counts.list_bytes += FIRST_POSTING_BYTES + u64::from(list_bytes);
            if let Some(positions) = &positions {
                let bytes = positions.lay(own, &mut group.positions);
                group.position_bytes.push(bytes);
                counts.list_bytes += u64::from(bytes);
            }
            group.terms.push(GroupTerm {
                hash: term.hash,
                first,
                first_tf,
                last: state.posted - now.before - 1,
                postings: state.postings,
                list_bytes,
                suffix: memo.put_suffix(term, &mut group.suffixes),
            });
        }
        groups
    }
}

#[cfg(test)]
mod tests;

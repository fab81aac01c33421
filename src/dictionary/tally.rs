//! Which postings does a piece hold? Counts terms document by document, then lays the postings out
//! by owner and trie collection.
//!
//! Counting needs no table of its own: each term remembers the last document that it was seen in
//! and where its posting there lies. The postings, in the order of documents, are then sorted by
//! term with one counting sort, for the number of each term's postings is known. Whether a token is
//! a stop word, or its term is new in the document, is as good as random, so that counting has no
//! branch that depends on it.

use super::group::{Group, GroupTerm};
use super::hash::prefetch;
use super::memo::{Memo, NO_TERM};
use super::short;
use crate::codec::folded;
use crate::order::{PieceCounts, SKETCH_UNIT_BYTES};
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::scan::{Key, Scanner, Stretches};
use crate::text::tokenizer::for_each_token;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::hint::select_unpredictable;
use std::sync::Arc;

/// Where a term was last seen; all zero when it never was.
#[derive(Clone, Copy, Default)]
#[repr(align(16))]
struct State {
    /// The last document with the term.
    document: u32,
    /// Where the posting of that document lies, while its piece is counted.
    slot: u32,
    /// The term's place among the terms of that document's piece.
    ordinal: u32,
}

/// A term of the piece.
#[derive(Clone, Copy, Default)]
struct Touched {
    term: u32,
    postings: u32,
}

#[derive(Clone, Copy, Default)]
struct Posting {
    ordinal: u32,
    /// Counted as [`Counter::document`] is.
    document: u32,
    tf: u32,
}

/// Which worker owns which trie collection, and the order in which a piece is laid out: by owner,
/// then by collection.
pub struct Owners {
    owner: Box<[u32]>,
    /// The place of each collection in that order.
    rank: Box<[u16]>,
    workers: usize,
}

impl Owners {
    /// Deals the collections out to `workers` in turn: neighbours, which have like numbers of
    /// tokens, go to different workers.
    pub fn in_turn(workers: usize) -> Self {
        let owner: Box<[u32]> = (0..TRIE_COLLECTIONS).map(|c| (c % workers) as u32).collect();
        let mut order: Vec<u16> = (0..TRIE_COLLECTIONS as u16).collect();
        order.sort_by_key(|&c| owner[usize::from(c)]);
        let mut rank = vec![0; TRIE_COLLECTIONS].into_boxed_slice();
        for (place, &collection) in order.iter().enumerate() {
            rank[usize::from(collection)] = place as u16;
        }
        Self { owner, rank, workers }
    }
}

/// Counts the postings of one piece after the other.
pub struct Tally {
    owners: Arc<Owners>,
    scanner: Scanner,
    counter: Counter,
    /// Codes of the lengths of the piece's documents.
    lengths: Vec<u8>,
    /// Scratch of the layout: ordinals of terms in order, where the next posting of each ordinal
    /// goes, postings in order.
    ordered: Vec<u32>,
    starts: Vec<u32>,
    places: Vec<u32>,
    sorted: Vec<(u32, u32)>,
}

/// Tokens that are looked up together: the cache misses of one overlap those of the others.
const TOGETHER: usize = 32;

/// Terms whose data is fetched ahead of its use while a piece is laid out.
const AHEAD: usize = 16;

/// The part of [`Tally`] that takes tokens.
struct Counter {
    /// Tokens that are not looked up yet; their slots of the memo are on the way to the cache.
    keys: [Key; TOGETHER],
    waiting: usize,
    memo: Memo,
    states: Vec<State>,
    /// The piece's terms in order of appearance: the first `terms`; then room.
    touched: Vec<Touched>,
    terms: usize,
    /// The piece's postings in order of documents: the first `used`; then room. [`NO_TERM`] has
    /// postings too.
    postings: Vec<Posting>,
    used: usize,
    /// The last document before the piece, and the current one. Documents are counted from 1 and
    /// from piece to piece, so that what states say of earlier pieces is out of date by itself.
    before: u32,
    document: u32,
    /// Indexed tokens of the current document so far.
    tokens: u32,
}

impl Counter {
    /// Looks up and counts the tokens that wait.
    fn count_waiting(&mut self) {
        let keys = self.keys;
        let mut terms = [NO_TERM; TOGETHER];
        for (term, &key) in terms.iter_mut().zip(&keys[..self.waiting]) {
            *term = self.memo.term_of_key(key);
            if let Some(state) = self.states.get(*term as usize) {
                prefetch(state);
            }
        }
        self.count(&terms[..self.waiting]);
        self.waiting = 0;
    }

    /// Counts at most [`TOGETHER`] tokens by their terms.
    #[inline(always)]
    fn count(&mut self, terms: &[u32]) {
        if self.states.len() < self.memo.len() {
            self.states.resize(self.memo.len() + self.memo.len() / 4, State::default());
        }
        if self.postings.len() < self.used + TOGETHER {
            self.postings.resize(2 * self.used + 1024, Posting::default());
        }
        if self.touched.len() < self.terms + TOGETHER {
            self.touched.resize(2 * self.terms + 1024, Touched::default());
        }
        for &term in terms {
            self.tokens += u32::from(term != NO_TERM);
            let state = &mut self.states[term as usize];
            let new_here = state.document != self.document;
            let new = state.document <= self.before;
            state.document = self.document;
            state.ordinal = select_unpredictable(new, self.terms as u32, state.ordinal);
            state.slot = select_unpredictable(new_here, self.used as u32, state.slot);
            self.terms += usize::from(new);
            self.used += usize::from(new_here);
            let touched = &mut self.touched[state.ordinal as usize];
            let postings = select_unpredictable(new, 0, touched.postings);
            *touched = Touched { term, postings: postings + u32::from(new_here) };
            let posting = &mut self.postings[state.slot as usize];
            let tf = select_unpredictable(new_here, 0, posting.tf) + 1;
            *posting = Posting { ordinal: state.ordinal, document: self.document, tf };
        }
    }
}

impl Stretches for Counter {
    #[inline(always)]
    fn key(&mut self, key: Key) {
        self.memo.prefetch(key);
        self.keys[self.waiting] = key;
        self.waiting += 1;
        if self.waiting == TOGETHER {
            self.count_waiting();
        }
    }

    fn long(&mut self, token: &[u8]) {
        self.count_waiting();
        let mut lower = [0u8; 255];
        if let Some(lower) = lower.get_mut(..token.len()) {
            lower.copy_from_slice(token);
            lower.make_ascii_lowercase();
            let token = std::str::from_utf8(lower).expect("a long token is ASCII");
            let term = self.memo.term_of_token(token);
            self.count(&[term]);
        } else {
            self.mixed(token);
        }
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.count_waiting();
        for_each_token(bytes, |token| {
            let term = self.memo.term_of_token(token);
            self.count(&[term]);
        });
    }
}

impl Tally {
    /// Makes a tally whose memo takes at most `memo_bytes` from piece to piece.
    pub fn new(analysis: Analysis, owners: Arc<Owners>, memo_bytes: usize) -> Self {
        let counter = Counter {
            keys: [Key::default(); TOGETHER],
            waiting: 0,
            memo: Memo::new(analysis, memo_bytes),
            states: Vec::new(),
            touched: Vec::new(),
            terms: 0,
            postings: Vec::new(),
            used: 0,
            before: 0,
            document: 0,
            tokens: 0,
        };
        let scanner = Scanner::new();
        let (lengths, ordered, starts, places, sorted) = Default::default();
        Self { owners, scanner, counter, lengths, ordered, starts, places, sorted }
    }

    /// Counts the next document of the piece; returns its length: its indexed tokens.
    pub fn document(&mut self, text: &[u8]) -> u32 {
        self.counter.document += 1;
        self.counter.tokens = 0;
        self.scanner.scan(text, &mut self.counter);
        self.counter.count_waiting();
        self.lengths.push(code_below(self.counter.tokens));
        self.counter.tokens
    }

    /// Documents of the piece so far.
    pub fn documents(&self) -> u32 {
        self.counter.document - self.counter.before
    }

    /// Ends the piece: one group for each worker, all of them with the same counts. The tally is
    /// ready for the next piece.
    pub fn finish(&mut self) -> Vec<Group> {
        self.order_terms();
        let postings = self.sort_postings();
        let mut counts = PieceCounts {
            documents: self.documents(),
            postings: postings as u64,
            ..PieceCounts::default()
        };
        let mut parts = self.encode(&mut counts);
        let (counts, lengths) = (Arc::new(counts), Arc::from(&*self.lengths));
        for part in &mut parts {
            (part.counts, part.lengths) = (counts.clone(), Arc::clone(&lengths));
        }
        self.reset();
        parts
    }

    /// Sorts the piece's terms by owner and trie collection: a counting sort.
    fn order_terms(&mut self) {
        let Counter { memo, touched, terms, .. } = &self.counter;
        let touched = &touched[..*terms];
        let rank =
            |term: u32| usize::from(self.owners.rank[usize::from(memo.term(term).collection)]);
        self.starts.clear();
        self.starts.resize(TRIE_COLLECTIONS + 1, 0);
        for (i, term) in touched.iter().enumerate() {
            if let Some(ahead) = touched.get(i + AHEAD) {
                prefetch(memo.term(ahead.term));
            }
            self.starts[rank(term.term) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.ordered.resize(touched.len(), 0);
        for (ordinal, touched) in (0u32..).zip(touched) {
            let start = &mut self.starts[rank(touched.term)];
            self.ordered[*start as usize] = ordinal;
            *start += 1;
        }
    }

    /// Sorts the piece's postings by the order of terms; those of a term stay in docid order. Those
    /// of stop words are moved behind all others; returns how many others there are.
    fn sort_postings(&mut self) -> usize {
        let Counter { touched, terms, postings, used, before, .. } = &self.counter;
        self.places.resize(*terms, 0);
        let mut place = 0;
        let mut stop_words = None;
        for &ordinal in &self.ordered {
            let touched = touched[ordinal as usize];
            if touched.term == NO_TERM {
                stop_words = Some(ordinal);
                continue;
            }
            self.places[ordinal as usize] = place;
            place += touched.postings;
        }
        if let Some(ordinal) = stop_words {
            self.places[ordinal as usize] = place;
            self.ordered.retain(|&o| o != ordinal);
        }
        self.sorted.resize(*used, (0, 0));
        for posting in &postings[..*used] {
            let place = &mut self.places[posting.ordinal as usize];
            self.sorted[*place as usize] = (posting.document - before - 1, posting.tf);
            *place += 1;
        }
        place as usize
    }

    fn encode(&self, counts: &mut PieceCounts) -> Vec<Group> {
        let mut groups: Vec<Group> = (0..self.owners.workers)
            .map(|owner| Group {
                owner: owner as u32,
                counts: Arc::default(),
                lengths: Arc::default(),
                terms: Vec::new(),
                suffixes: Vec::new(),
                lists: Vec::new(),
            })
            .collect();
        let share = self.ordered.len() / groups.len();
        for group in &mut groups {
            group.terms.reserve(share + share / 8);
            group.suffixes.reserve(share * 6);
            group.lists.reserve(self.sorted.len() * 2 / self.owners.workers);
        }
        let mut rest = &self.sorted[..];
        let Counter { memo, touched, .. } = &self.counter;
        for (i, &ordinal) in self.ordered.iter().enumerate() {
            if let Some(&ahead) = self.ordered.get(i + AHEAD) {
                memo.prefetch_suffix(memo.term(touched[ahead as usize].term));
            }
            let touched = touched[ordinal as usize];
            let term = memo.term(touched.term);
            let suffix = memo.suffix(term);
            let (list, behind) = rest.split_at(touched.postings as usize);
            rest = behind;
            let group = &mut groups[self.owners.owner[usize::from(term.collection)] as usize];
            let before = group.lists.len();
            let (first, first_tf) = list[0];
            let mut last = first;
            for &(document, tf) in &list[1..] {
                folded::put(document - last - 1, tf, &mut group.lists);
                last = document;
            }
            short::push(suffix, &mut group.suffixes);
            group.terms.push(GroupTerm {
                hash: term.hash,
                first,
                first_tf,
                last,
                postings: list.len() as u32,
                list_bytes: (group.lists.len() - before) as u32,
                collection: term.collection,
                suffix_bytes: suffix.len() as u8,
            });
            counts.terms.add(term.hash);
            for more in 1..=suffix.len() / SKETCH_UNIT_BYTES {
                counts.terms.add(term.hash.wrapping_mul(2 * more as u64 + 1).rotate_left(17));
            }
            // The first posting is written by the owner, who knows the gap: 4 bytes do for nearly
            // all, and what is more is paid by the slack of the list's slices.
            counts.list_bytes += 4 + (group.lists.len() - before) as u64;
        }
        groups
    }

    fn reset(&mut self) {
        let counter = &mut self.counter;
        (counter.terms, counter.used) = (0, 0);
        counter.before = counter.document;
        self.lengths.clear();
        // Long before documents can no longer be counted.
        const FEW_LEFT: u32 = u32::MAX / 2;
        if counter.memo.forget_if_full() || counter.document > FEW_LEFT {
            counter.states = Vec::new();
            (counter.before, counter.document) = (0, 0);
        }
        // A piece with a huge document leaves buffers that no other piece needs.
        const KEEP: usize = 1 << 19;
        if counter.postings.capacity() > KEEP {
            counter.postings = Vec::new();
            counter.touched = Vec::new();
            self.sorted = Vec::new();
            self.ordered = Vec::new();
            self.places = Vec::new();
            self.scanner = Scanner::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::trie_collection::{implied_prefix, trie_collection};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Lists = BTreeMap<String, Vec<(u32, u32)>>;

    /// Reads groups back into terms and postings.
    fn read(groups: &[Group], owners: &Owners) -> Lists {
        let mut lists = Lists::new();
        for group in groups {
            let (mut suffix_at, mut list_at) = (0, 0);
            assert!(group.terms.is_sorted_by_key(|t| t.collection));
            for t in &group.terms {
                assert_eq!(owners.owner[usize::from(t.collection)], group.owner);
                let suffix = &group.suffixes[suffix_at..][..usize::from(t.suffix_bytes)];
                suffix_at += suffix.len();
                let (prefix, len) = implied_prefix(t.collection);
                let mut term = prefix[..len].to_vec();
                term.extend_from_slice(suffix);
                assert_eq!(super::super::hash::hash(&term), t.hash);
                let bytes = &group.lists[list_at..][..t.list_bytes as usize];
                list_at += bytes.len();
                let mut list = vec![(t.first, t.first_tf)];
                let mut at = 0;
                while at < bytes.len() {
                    let (gap, tf) = folded::get(bytes, &mut at).unwrap();
                    list.push((list.last().unwrap().0 + gap + 1, tf));
                }
                assert_eq!((list.len() as u32, list.last().unwrap().0), (t.postings, t.last));
                let term = String::from_utf8(term).unwrap();
                assert_eq!(trie_collection(&term), t.collection);
                assert!(lists.insert(term, list).is_none());
            }
            assert_eq!((suffix_at, list_at), (group.suffixes.len(), group.lists.len()));
        }
        lists
    }

    proptest! {
        #[test]
        fn oracle_counts_like_a_map(
            pieces in prop::collection::vec(prop::collection::vec("[a-cTH0-9 \u{e9}]{0,80}", 0..20), 1..4),
            workers in 1usize..5, memo_bytes in 0usize..300_000,
        ) {
            let owners = Arc::new(Owners::in_turn(workers));
            let mut tally = Tally::new(Analysis::default(), owners.clone(), memo_bytes);
            let analysis = Analysis::default();
            for texts in pieces {
                let (mut expected, mut lengths) = (Lists::new(), Vec::new());
                for (document, text) in (0u32..).zip(&texts) {
                    let mut length = 0;
                    analysis.terms(text.as_bytes(), |term| {
                        length += 1;
                        let list = expected.entry(term.to_string()).or_default();
                        match list.last_mut() {
                            Some((d, tf)) if *d == document => *tf += 1,
                            _ => list.push((document, 1)),
                        }
                    });
                    prop_assert_eq!(tally.document(text.as_bytes()), length);
                    lengths.push(code_below(length));
                }
                let groups = tally.finish();
                prop_assert_eq!(groups.len(), workers);
                prop_assert!(groups.iter().all(|group| *group.lengths == *lengths));
                prop_assert_eq!(groups[0].counts.documents as usize, texts.len());
                let postings: usize = expected.values().map(Vec::len).sum();
                prop_assert_eq!(groups[0].counts.postings, postings as u64);
                prop_assert_eq!(read(&groups, &owners), expected);
            }
        }
    }
}

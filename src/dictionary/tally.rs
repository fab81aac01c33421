//! Which postings does a piece hold? Counts terms document by document, then lays the postings out
//! by owner and trie collection.
//!
//! Counting needs no table of its own: each term remembers the last document that it was seen in
//! and where its posting there lies. The postings, in the order of documents, are then sorted by
//! term with one counting sort, for the number of each term's postings is known.

use super::group::{Group, GroupTerm};
use super::memo::{Memo, NO_TERM};
use super::short;
use crate::codec::folded;
use crate::codec::prefetch::prefetch;
use crate::order::{PieceCounts, SKETCH_UNIT_BYTES};
use crate::score::bounds::code_below;
use crate::text::analysis::Analysis;
use crate::text::scan::{Key, Scanner, Stretches};
use crate::text::tokenizer::for_each_token;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::sync::Arc;

/// What a term has in the piece so far; all zero when it has nothing.
#[derive(Clone, Copy, Default)]
struct State {
    /// The last document with the term, plus one.
    document: u32,
    /// Where the posting of that document lies.
    slot: u32,
    postings: u32,
    /// While the piece is laid out: where the term's next posting goes.
    place: u32,
}

#[derive(Clone, Copy)]
struct Posting {
    term: u32,
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
    /// Scratch of the layout: terms in order, postings in order.
    ordered: Vec<u32>,
    starts: Vec<u32>,
    sorted: Vec<(u32, u32)>,
}

/// Tokens that are looked up together: the cache misses of one overlap those of the others.
const TOGETHER: usize = 32;

/// The part of [`Tally`] that takes tokens.
struct Counter {
    /// Tokens that are not looked up yet; their slots of the memo are on the way to the cache.
    keys: [Key; TOGETHER],
    waiting: usize,
    memo: Memo,
    states: Vec<State>,
    postings: Vec<Posting>,
    /// Terms that the piece has, in order of appearance.
    touched: Vec<u32>,
    /// The current document, plus one.
    document: u32,
    /// Its indexed tokens so far.
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
        for &term in &terms[..self.waiting] {
            self.count(term);
        }
        self.waiting = 0;
    }

    #[inline(always)]
    fn count(&mut self, term: u32) {
        if term == NO_TERM {
            return;
        }
        if term as usize >= self.states.len() {
            self.states.resize(self.memo.len(), State::default());
        }
        self.tokens += 1;
        let state = &mut self.states[term as usize];
        if state.document == self.document {
            self.postings[state.slot as usize].tf += 1;
            return;
        }
        if state.postings == 0 {
            self.touched.push(term);
        }
        state.postings += 1;
        state.document = self.document;
        state.slot = self.postings.len() as u32;
        self.postings.push(Posting { term, document: self.document - 1, tf: 1 });
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
            self.count(term);
        } else {
            self.mixed(token);
        }
    }

    fn mixed(&mut self, bytes: &[u8]) {
        self.count_waiting();
        for_each_token(bytes, |token| {
            let term = self.memo.term_of_token(token);
            self.count(term);
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
            postings: Vec::new(),
            touched: Vec::new(),
            document: 0,
            tokens: 0,
        };
        let (lengths, ordered, starts, sorted) = Default::default();
        Self { owners, scanner: Scanner::new(), counter, lengths, ordered, starts, sorted }
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
        self.counter.document
    }

    /// Ends the piece: one group for each worker, all of them with the same counts. The tally is
    /// ready for the next piece.
    pub fn finish(&mut self) -> Vec<Group> {
        self.order_terms();
        self.sort_postings();
        let mut counts = PieceCounts {
            documents: self.counter.document,
            postings: self.counter.postings.len() as u64,
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
        let memo = &self.counter.memo;
        let rank =
            |term: u32| usize::from(self.owners.rank[usize::from(memo.term(term).collection)]);
        self.starts.clear();
        self.starts.resize(TRIE_COLLECTIONS + 1, 0);
        for &term in &self.counter.touched {
            self.starts[rank(term) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.ordered.resize(self.counter.touched.len(), 0);
        for &term in &self.counter.touched {
            let start = &mut self.starts[rank(term)];
            self.ordered[*start as usize] = term;
            *start += 1;
        }
    }

    /// Sorts the piece's postings by the order of terms; those of a term stay in docid order.
    fn sort_postings(&mut self) {
        let mut place = 0;
        for &term in &self.ordered {
            let state = &mut self.counter.states[term as usize];
            state.place = place;
            place += state.postings;
        }
        self.sorted.resize(self.counter.postings.len(), (0, 0));
        for posting in &self.counter.postings {
            let state = &mut self.counter.states[posting.term as usize];
            self.sorted[state.place as usize] = (posting.document, posting.tf);
            state.place += 1;
        }
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
        for &number in &self.ordered {
            let term = self.counter.memo.term(number);
            let suffix = self.counter.memo.suffix(term);
            let (list, behind) =
                rest.split_at(self.counter.states[number as usize].postings as usize);
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
        for &term in &counter.touched {
            counter.states[term as usize] = State::default();
        }
        counter.touched.clear();
        counter.postings.clear();
        counter.document = 0;
        self.lengths.clear();
        if counter.memo.forget_if_full() {
            counter.states = Vec::new();
        }
        // A piece with a huge document leaves buffers that no other piece needs.
        const KEEP: usize = 1 << 19;
        if counter.postings.capacity() > KEEP {
            counter.postings = Vec::new();
            counter.touched = Vec::new();
            self.sorted = Vec::new();
            self.ordered = Vec::new();
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

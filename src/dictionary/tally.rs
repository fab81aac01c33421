//! Which postings does a piece hold? Lays what was counted out by owner and trie collection.
//!
//! The postings, in the order of documents, are sorted by term with one counting sort, for the number
//! of each term's postings is known.

use super::counter::{Counter, FIRST_POSTING_BYTES, Touched};
use super::group::{Group, GroupTerm};
use super::memo::NO_TERM;
use super::owners::Owners;
use super::parsed::Regroup;
use super::short;
use crate::codec::folded;
use crate::codec::prefetch::prefetch;
use crate::order::PieceCounts;
use crate::text::analysis::Analysis;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::sync::Arc;

/// Counts the postings of one piece after the other.
pub struct Tally {
    owners: Arc<Owners>,
    counter: Counter,
    /// Scratch of the layout: ordinals of terms in order, where the next posting of each ordinal
    /// goes, postings in order.
    ordered: Vec<u32>,
    starts: Vec<u32>,
    places: Vec<u32>,
    sorted: Vec<(u32, u32)>,
}

impl Regroup for Tally {
    type Group = Group;

    fn new(analysis: Analysis, owners: Arc<Owners>, memo_bytes: usize) -> Self {
        let counter = Counter::new(analysis, memo_bytes);
        let (ordered, starts, places, sorted) = Default::default();
        Self { owners, counter, ordered, starts, places, sorted }
    }

    fn document(&mut self, text: &[u8]) -> u32 {
        self.counter.document(text)
    }

    fn documents(&self) -> u32 {
        self.counter.documents()
    }

    fn finish(&mut self) -> Vec<Group> {
        self.order_terms();
        self.sort_postings();
        let mut counts = self.counter.piece_counts();
        let mut parts = self.encode(&mut counts);
        let (counts, lengths) = (Arc::new(counts), Arc::from(&*self.counter.lengths));
        for part in &mut parts {
            (part.counts, part.lengths) = (counts.clone(), Arc::clone(&lengths));
        }
        if self.counter.reset() {
            (self.ordered, self.places, self.sorted) = Default::default();
        }
        parts
    }
}

/// Terms whose data is fetched ahead of its use.
const AHEAD: usize = 16;

impl Tally {
    /// Sorts the piece's terms by owner and trie collection: a counting sort. [`NO_TERM`] is left
    /// out.
    fn order_terms(&mut self) {
        let memo = &self.counter.counts.memo;
        let touched = self.counter.counts.touched();
        let rank = |term: u32| usize::from(self.owners.rank(memo.term(term).collection));
        self.starts.clear();
        self.starts.resize(TRIE_COLLECTIONS + 1, 0);
        for (i, Touched { term, .. }) in touched.iter().enumerate() {
            if let Some(ahead) = touched.get(i + AHEAD) {
                prefetch(memo.term(ahead.term));
            }
            if *term != NO_TERM {
                self.starts[rank(*term) + 1] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        self.ordered.resize(sum as usize, 0);
        for (ordinal, Touched { term, .. }) in (0u32..).zip(touched) {
            if *term != NO_TERM {
                let start = &mut self.starts[rank(*term)];
                self.ordered[*start as usize] = ordinal;
                *start += 1;
            }
        }
    }

    /// Sorts the piece's postings by the order of terms; those of a term stay in docid order. Those
    /// of [`NO_TERM`] come last.
    fn sort_postings(&mut self) {
        let (touched, postings) = (self.counter.counts.touched(), self.counter.counts.postings());
        let all: u32 = self.ordered.iter().map(|&o| touched[o as usize].postings).sum();
        self.places.clear();
        self.places.resize(touched.len(), all);
        let mut place = 0;
        for &ordinal in &self.ordered {
            self.places[ordinal as usize] = place;
            place += touched[ordinal as usize].postings;
        }
        self.sorted.resize(postings.len(), (0, 0));
        for posting in postings {
            let place = &mut self.places[posting.ordinal as usize];
            self.sorted[*place as usize] = (posting.document, posting.tf);
            *place += 1;
        }
    }

    fn encode(&self, counts: &mut PieceCounts) -> Vec<Group> {
        let mut groups: Vec<Group> = (0..self.owners.len())
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
            group.lists.reserve(self.sorted.len() * 2 / self.owners.len());
        }
        let (memo, touched) = (&self.counter.counts.memo, self.counter.counts.touched());
        let mut rest = &self.sorted[..];
        for (i, &ordinal) in self.ordered.iter().enumerate() {
            if let Some(&ahead) = self.ordered.get(i + AHEAD) {
                memo.prefetch_suffix(memo.term(touched[ahead as usize].term));
            }
            let touched = touched[ordinal as usize];
            let term = memo.term(touched.term);
            let suffix = memo.suffix(term);
            let (list, behind) = rest.split_at(touched.postings as usize);
            rest = behind;
            let group = &mut groups[self.owners.of(term.collection) as usize];
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
            counts.list_bytes += FIRST_POSTING_BYTES + (group.lists.len() - before) as u64;
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::bounds::code_below;
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
                assert_eq!(owners.of(t.collection), group.owner);
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

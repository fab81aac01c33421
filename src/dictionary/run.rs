//! What does one owner know of the run that is open? Its terms in a hash table, the postings of
//! each as bytes in slices; taken out in the order of the lexicon when the run closes.

use super::closed::{Advance, ClosedError, ClosedTerms, order_key};
use super::group::{Group, GroupTerm};
use super::hash::{Found, HashTable};
use super::place::TermPlace;
use super::short;
use super::slices::{Chain, Slices};
use crate::codec::folded;
use crate::codec::prefetch::prefetch;
use crate::pages;

/// A term and its postings so far: two to a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry {
    /// Of its suffix.
    place: TermPlace,
    df: u32,
    /// Docid of the last posting, counted from the run's first document.
    last: u32,
    chain: Chain,
}
const _: () = assert!(size_of::<Entry>() == 32);

/// The part of an open run that one worker owns.
#[derive(Default)]
pub struct RunDictionary {
    table: HashTable,
    entries: Vec<Entry>,
    suffixes: Vec<u8>,
    slices: Slices,
    postings: u64,
}

/// Terms whose slots are fetched ahead of their use.
const AHEAD: usize = 24;

impl RunDictionary {
    /// Terms so far.
    pub fn terms(&self) -> usize {
        self.entries.len()
    }

    /// Postings so far.
    pub fn postings_len(&self) -> u64 {
        self.postings
    }

    /// Appends the postings of the next piece, whose first document has docid `first`, counted from
    /// the run's first. Pieces come in the order of their docids.
    pub fn append(&mut self, group: &Group, first: u32) {
        for term in group.terms.iter().take(AHEAD) {
            self.table.prefetch(term.hash);
        }
        let (mut suffixes, mut lists) = (&group.suffixes[..], &group.lists[..]);
        let mut head = Vec::with_capacity(folded::MAX_BYTES);
        for (i, term) in group.terms.iter().enumerate() {
            self.prefetch(&group.terms[i..]);
            let (suffix, rest) = suffixes.split_at(usize::from(term.suffix_bytes));
            suffixes = rest;
            let (list, rest) = lists.split_at(term.list_bytes as usize);
            lists = rest;

            let (entries, strings) = (&self.entries, &self.suffixes);
            let next = entries.len() as u32;
            let found = self.table.find_or_insert(term.hash, next, |n| {
                let place = entries[n as usize].place;
                place.collection() == term.collection && short::equal(place.of(strings), suffix)
            });
            let docid = first + term.first;
            head.clear();
            let entry = match found {
                Found::Old(n) => {
                    let entry = &mut self.entries[n as usize];
                    folded::put(docid - entry.last - 1, term.first_tf, &mut head);
                    entry
                }
                Found::New => {
                    folded::put(docid, term.first_tf, &mut head);
                    let place = TermPlace::new(self.suffixes.len(), term.collection, suffix.len());
                    let entry = Entry { place, df: 0, last: 0, chain: self.slices.begin() };
                    pages::push(&mut self.entries, entry);
                    pages::reserve(&mut self.suffixes, short::PUSHED + suffix.len());
                    short::push(suffix, &mut self.suffixes);
                    self.entries.last_mut().expect("an entry was pushed")
                }
            };
            entry.df += term.postings;
            entry.last = first + term.last;
            self.postings += u64::from(term.postings);
            self.slices.append(&mut entry.chain, &head);
            if !list.is_empty() {
                self.slices.append(&mut entry.chain, list);
            }
        }
    }

    /// Appending to a list needs its slot, then its entry, then its string and its slice, all of
    /// them out of the cache. Each is fetched when what leads to it has arrived.
    #[inline(always)]
    fn prefetch(&self, terms: &[GroupTerm]) {
        let entry = |ahead: usize| {
            let number = self.table.guess(terms.get(ahead)?.hash)?;
            self.entries.get(number as usize)
        };
        if let Some(term) = terms.get(AHEAD) {
            self.table.prefetch(term.hash);
        }
        if let Some(entry) = entry(AHEAD * 2 / 3) {
            prefetch(entry);
        }
        if let Some(entry) = entry(AHEAD / 3) {
            if let Some(byte) = self.suffixes.get(entry.place.start()) {
                prefetch(byte);
            }
            self.slices.prefetch(&entry.chain);
        }
    }

    /// Brings the string of a term and the beginning of its list into the cache.
    #[inline(always)]
    fn prefetch_list(&self, number: u32) {
        let entry = &self.entries[number as usize];
        if let Some(byte) = self.suffixes.get(entry.place.start()) {
            prefetch(byte);
        }
        self.slices.prefetch_head(&entry.chain);
    }

    /// Brings the next slice of a list into the cache, whose first `slices` are there.
    #[inline(always)]
    fn prefetch_slice(&self, number: u32, slices: usize) {
        self.slices.prefetch_behind(&self.entries[number as usize].chain, slices);
    }

    fn suffix(&self, entry: &Entry) -> &[u8] {
        entry.place.of(&self.suffixes)
    }

    /// The terms' numbers by (trie collection, suffix). The hash table is of no use any more and is
    /// freed first.
    fn sort(&mut self) -> Vec<(u64, u32)> {
        self.table.clear();
        let mut order: Vec<(u64, u32)> = pages::with_capacity(self.entries.len());
        for (number, entry) in (0u32..).zip(&self.entries) {
            order.push((order_key(entry.place.collection(), self.suffix(entry)), number));
        }
        order.sort_unstable_by(|a, b| {
            let suffix = |number: u32| self.suffix(&self.entries[number as usize]);
            a.0.cmp(&b.0).then_with(|| suffix(a.1).cmp(suffix(b.1)))
        });
        order
    }
}

/// A closed run, which is sorted when its first term is asked for.
pub struct SortedRun {
    dictionary: RunDictionary,
    order: Option<Vec<(u64, u32)>>,
    /// Terms that were given.
    given: usize,
}

impl From<RunDictionary> for SortedRun {
    fn from(dictionary: RunDictionary) -> Self {
        Self { dictionary, order: None, given: 0 }
    }
}

impl ClosedTerms for SortedRun {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<Advance, ClosedError> {
        postings.clear();
        let order = self.order.get_or_insert_with(|| self.dictionary.sort());
        let Some(&(_, number)) = order.get(self.given) else { return Ok(Advance::End) };
        // The order of the lexicon is none of the order in which terms came, and the slices of a list are anywhere.
        let ahead = |quarters: usize| order.get(self.given + AHEAD / 4 * quarters);
        if let Some(&(_, ahead)) = ahead(4) {
            prefetch(&self.dictionary.entries[ahead as usize]);
        }
        if let Some(&(_, ahead)) = ahead(3) {
            self.dictionary.prefetch_list(ahead);
        }
        for slices in [1, 2] {
            if let Some(&(_, ahead)) = ahead(3 - slices) {
                self.dictionary.prefetch_slice(ahead, slices);
            }
        }
        self.given += 1;
        let entry = &self.dictionary.entries[number as usize];
        self.dictionary.slices.read(&entry.chain, |slice| short::push(slice, postings));
        Ok(Advance::Term)
    }

    fn term(&self) -> (u16, &[u8]) {
        let order = self.order.as_ref().expect("a term was asked for");
        let entry = &self.dictionary.entries[order[self.given - 1].1 as usize];
        (entry.place.collection(), self.dictionary.suffix(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::owners::Owners;
    use crate::dictionary::parsed::Regroup;
    use crate::dictionary::tally::Tally;
    use crate::text::analysis::Analysis;
    use crate::text::trie_collection::trie_collection;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// Postings by trie collection and suffix.
    type Lists = BTreeMap<(u16, Vec<u8>), Vec<(u32, u32)>>;

    proptest! {
        #[test]
        fn oracle_collects_pieces_like_a_map(pieces in prop::collection::vec(prop::collection::vec("[a-d0-2 ]{0,60}", 0..12), 0..8)) {
            let owners = Arc::new(Owners::in_turn(1));
            let mut tally = Tally::new(Analysis::default(), owners, 1 << 20);
            let mut run = RunDictionary::default();
            let mut expected: Lists = BTreeMap::new();
            let mut docid = 0u32;
            for texts in &pieces {
                let first = docid;
                for text in texts {
                    tally.document(text.as_bytes());
                    Analysis::default().terms(text.as_bytes(), |term| {
                        let collection = trie_collection(term);
                        let prefix = crate::text::trie_collection::implied_prefix_len(collection);
                        let key = (collection, term.as_bytes()[prefix..].to_vec());
                        let list = expected.entry(key).or_default();
                        match list.last_mut() {
                            Some((d, tf)) if *d == docid => *tf += 1,
                            _ => list.push((docid, 1)),
                        }
                    });
                    docid += 1;
                }
                run.append(&tally.finish()[0], first);
            }
            let mut run = SortedRun::from(run);
            let mut bytes = vec![1];
            for ((collection, suffix), list) in &expected {
                prop_assert_eq!(run.advance(&mut bytes).unwrap(), Advance::Term);
                prop_assert_eq!(run.term(), (*collection, &suffix[..]));
                let (mut at, mut next, mut got) = (0, 0, Vec::new());
                while let Some((gap, tf)) = folded::get(&bytes, &mut at) {
                    got.push((next + gap, tf));
                    next += gap + 1;
                }
                prop_assert_eq!(&got, list);
            }
            prop_assert_eq!(run.advance(&mut bytes).unwrap(), Advance::End);
        }
    }
}

//! The part of an open run that one owner keeps: its terms in a hash table, the postings of each as
//! bytes in slices; sorted for the lexicon when the run closes.

use super::closed::{ClosedError, ClosedShare, ClosedTerms};
use super::group::{GroupTerm, TermGroup};
use super::slices::{Chain, Slices};
use crate::codec::folded;
use crate::codec::prefetch::{prefetch, prefetch_at};
use crate::dictionary::shared::SharedTerms;
use crate::dictionary::strings::hash::{FoundOrNew, HashTable};
use crate::dictionary::strings::short;
use crate::dictionary::strings::suffix::Suffix;
use crate::pages::{self, Grown};
use std::ops::Range;
use std::sync::Arc;

/// Two to a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct DictionaryEntry {
    suffix: Suffix,
    df: u32,
    /// The docid behind that of the last posting, counted from the run's first document.
    next: u32,
    chain: Chain,
}
const _: () = assert!(size_of::<DictionaryEntry>() == 32);

#[derive(Default)]
pub struct RunDictionary {
    table: HashTable,
    entries: Grown<DictionaryEntry>,
    /// Of terms with long ones.
    suffixes: Vec<u8>,
    slices: Slices,
    postings: u64,
    /// Of each entry its positions, in a run that has them.
    positions: Grown<Chain>,
}

/// Terms by which slots are prefetched ahead.
const AHEAD: usize = 48;
/// The same for numbers and entries, and for slices.
const NUMBERS_AHEAD: usize = 32;
const SLICES_AHEAD: usize = 16;
const NO_NUMBER: u32 = u32::MAX;

impl RunDictionary {
    pub fn terms(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn postings(&self) -> u64 {
        self.postings
    }

    /// Appends the postings of the next piece, whose first document has docid `first`, counted from
    /// the run's first. Pieces come in the order of their docids.
    ///
    /// Appending to a list needs the slot of its term, then its entry, then its slice, all of them
    /// out of the cache. Each is prefetched when what leads to it has arrived. No term is in a
    /// group twice, so a number that was found before is still the term's.
    pub fn append(&mut self, group: &TermGroup, first: u32) {
        match group.position_bytes.is_empty() {
            true => self.append_all::<false>(group, first),
            false => self.append_all::<true>(group, first),
        }
    }

    fn append_all<const POSITIONS: bool>(&mut self, group: &TermGroup, first: u32) {
        let terms = &group.terms[..];
        for term in terms.iter().take(AHEAD) {
            self.table.prefetch(term.hash);
        }
        let mut numbers = [NO_NUMBER; NUMBERS_AHEAD];
        for (i, term) in terms.iter().take(NUMBERS_AHEAD).enumerate() {
            numbers[i] = self.guess::<POSITIONS>(term);
        }
        let mut lists = &group.lists[..];
        let mut positions = &group.positions[..];
        for (i, term) in terms.iter().enumerate() {
            if let Some(ahead) = terms.get(i + AHEAD) {
                self.table.prefetch(ahead.hash);
            }
            let guessed = numbers[i % NUMBERS_AHEAD];
            if let Some(ahead) = terms.get(i + NUMBERS_AHEAD) {
                numbers[i % NUMBERS_AHEAD] = self.guess::<POSITIONS>(ahead);
            }
            let ahead = numbers[(i + SLICES_AHEAD) % NUMBERS_AHEAD];
            if let Some(entry) = self.entries.get(ahead as usize) {
                self.slices.prefetch(&entry.chain);
            }
            if POSITIONS && let Some(chain) = self.positions.get(ahead as usize) {
                self.slices.prefetch(chain);
            }
            let list;
            (list, lists) = lists.split_at(term.list_bytes as usize);
            let number = self.number(guessed, term, &group.suffixes);
            if POSITIONS {
                let own;
                (own, positions) = positions.split_at(group.position_bytes[i] as usize);
                self.append_positions(number, own);
            }
            let entry = &mut self.entries[number as usize];
            let gap = first + term.first - entry.next;
            entry.df += term.postings;
            entry.next = first + term.last + 1;
            self.postings += u64::from(term.postings);
            if folded::fits_long_word(gap, term.first_tf) {
                let (word, bytes) = folded::long_word(gap, term.first_tf);
                self.slices.append_word(&mut entry.chain, word, bytes);
            } else {
                let mut head = Vec::with_capacity(folded::MAX_BYTES);
                folded::put(gap, term.first_tf, &mut head);
                self.slices.append(&mut entry.chain, &head);
            }
            if !list.is_empty() {
                self.slices.append(&mut entry.chain, list);
            }
        }
    }

    fn append_positions(&mut self, number: u32, bytes: &[u8]) {
        while self.positions.len() <= number as usize {
            let chain = self.slices.begin();
            self.positions.push(chain);
        }
        self.slices.append(&mut self.positions[number as usize], bytes);
    }

    /// The number that a term probably has, whose entry is prefetched.
    #[inline(always)]
    fn guess<const POSITIONS: bool>(&self, term: &GroupTerm) -> u32 {
        let Some(number) = self.table.guess(term.hash) else { return NO_NUMBER };
        prefetch_at(&self.entries, number as usize);
        if POSITIONS {
            prefetch_at(&self.positions, number as usize);
        }
        number
    }

    /// The number of a term, new if it has none; `strings` has its suffix if that is long.
    #[inline(always)]
    fn number(&mut self, guessed: u32, term: &GroupTerm, strings: &[u8]) -> u32 {
        let entries = &self.entries;
        let suffixes = &self.suffixes;
        let same = |n: u32| {
            let entry = entries.get(n as usize);
            entry.is_some_and(|entry| entry.suffix.same(suffixes, &term.suffix, strings))
        };
        if same(guessed) {
            return guessed;
        }
        let next = entries.len() as u32;
        match self.table.find_or_insert(term.hash, next, same) {
            FoundOrNew::Old(number) => number,
            FoundOrNew::New => {
                let suffix = term.suffix.moved(strings, &mut self.suffixes);
                let entry = DictionaryEntry { suffix, df: 0, next: 0, chain: self.slices.begin() };
                self.entries.push(entry);
                next
            }
        }
    }

    /// The terms' numbers by (trie collection, suffix). The hash table is freed first.
    fn sort(&mut self) -> Vec<(u64, u32)> {
        self.table.clear();
        let mut order: Vec<(u64, u32)> = pages::with_capacity(self.entries.len());
        for (number, entry) in (0u32..).zip(&self.entries[..]) {
            order.push((entry.suffix.order_key(&self.suffixes), number));
        }
        order.sort_unstable_by(|a, b| {
            let suffix = |number: u32| self.entries[number as usize].suffix.of(&self.suffixes);
            a.0.cmp(&b.0).then_with(|| suffix(a.1).cmp(suffix(b.1)))
        });
        order
    }
}

/// Bytes that a term has in a share beside its postings, and those of a posting, about.
const TERM_BYTES: u64 = 16;
const POSTING_BYTES: u64 = 2;

/// The terms of a closed run in the order of the lexicon.
struct ClosedRun {
    dictionary: RunDictionary,
    order: Vec<(u64, u32)>,
}

/// Cuts a closed run into shares, which several workers encode side by side.
pub(crate) struct RunShares {
    run: Arc<ClosedRun>,
    given: usize,
    /// What other owners have of some collections before the terms that are here.
    before: Vec<(u16, SharedTerms)>,
}

impl From<RunDictionary> for RunShares {
    fn from(mut dictionary: RunDictionary) -> Self {
        let order = dictionary.sort();
        Self { run: Arc::new(ClosedRun { dictionary, order }), given: 0, before: Vec::new() }
    }
}

impl RunShares {
    /// What is here of a collection.
    pub(crate) fn terms_of(&self, collection: u16) -> SharedTerms {
        let places = self.run.places_of(collection);
        let last = places.clone().next_back().map_or(&[][..], |last| self.run.term(last).1);
        SharedTerms { terms: places.len(), last: last.to_vec() }
    }

    /// The terms of a collection follow those of other owners.
    pub(crate) fn follow(&mut self, collection: u16, before: SharedTerms) {
        self.before.push((collection, before));
    }

    /// The next terms, which have about this many bytes with their postings, at least one if there
    /// is any.
    pub(crate) fn next(&mut self, bytes: u64) -> ClosedShare {
        let ClosedRun { dictionary, order } = &*self.run;
        let start = self.given;
        // A share knows of one collection what is before it.
        let starts = self.before.iter().map(|(of, _)| self.run.places_of(*of).start);
        let end = starts.filter(|place| *place > start).min().unwrap_or(order.len());
        let mut left = bytes;
        while left > 0 && self.given < end {
            if let Some(&(_, ahead)) = order.get(self.given + AHEAD) {
                prefetch_at(&dictionary.entries, ahead as usize);
            }
            let (_, number) = order[self.given];
            let postings = u64::from(dictionary.entries[number as usize].df);
            left = left.saturating_sub(TERM_BYTES + POSTING_BYTES * postings);
            self.given += 1;
        }
        let last = self.given == order.len();
        let behind = self.behind(start);
        let terms = start..self.given;
        let terms = SortedRun { run: self.run.clone(), terms, given: start, behind };
        ClosedShare { last, ..ClosedShare::whole(terms) }
    }

    /// What precedes the term at a place in its collection.
    fn behind(&self, place: usize) -> Option<(u16, SharedTerms)> {
        let collection = self.run.collection(place)?;
        let of_others = self.before.iter().find(|(of, _)| *of == collection);
        let mut terms = of_others.map(|(_, before)| before.clone()).unwrap_or_default();
        let here = place - self.run.places_of(collection).start;
        if here > 0 {
            terms.terms += here;
            terms.last = self.run.term(place - 1).1.to_vec();
        }
        (terms.terms > 0).then_some((collection, terms))
    }
}

/// Neighbouring terms of a closed run.
pub struct SortedRun {
    run: Arc<ClosedRun>,
    terms: Range<usize>,
    given: usize,
    behind: Option<(u16, SharedTerms)>,
}

impl From<RunDictionary> for SortedRun {
    fn from(dictionary: RunDictionary) -> Self {
        Self::whole(&RunShares::from(dictionary).run)
    }
}

impl ClosedRun {
    fn collection(&self, place: usize) -> Option<u16> {
        self.order.get(place).map(|(key, _)| (key >> 48) as u16)
    }

    fn places_of(&self, collection: u16) -> Range<usize> {
        let below = |end: u64| self.order.partition_point(|(key, _)| key >> 48 < end);
        below(collection.into())..below(u64::from(collection) + 1)
    }

    fn entry(&self, place: usize) -> &DictionaryEntry {
        &self.dictionary.entries[self.order[place].1 as usize]
    }

    fn term(&self, place: usize) -> (u16, &[u8]) {
        let suffix = &self.entry(place).suffix;
        (suffix.collection, suffix.of(&self.dictionary.suffixes))
    }
}

impl SortedRun {
    fn whole(run: &Arc<ClosedRun>) -> Self {
        Self { run: run.clone(), terms: 0..run.order.len(), given: 0, behind: None }
    }
}

impl ClosedTerms for SortedRun {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        postings.clear();
        if self.given == self.terms.end {
            return Ok(false);
        }
        let ClosedRun { dictionary, order } = &*self.run;
        // The order of the lexicon is not that in which terms came, and the slices of a list are
        // anywhere.
        let ahead = |quarters: usize| order.get(self.given + AHEAD / 4 * quarters);
        if let Some(&(_, ahead)) = ahead(4) {
            prefetch(&dictionary.entries[ahead as usize]);
        }
        if let Some(&(_, ahead)) = ahead(3) {
            let RunDictionary { entries, suffixes, slices, .. } = dictionary;
            let entry = &entries[ahead as usize];
            if entry.suffix.is_long() {
                prefetch_at(suffixes, entry.suffix.start());
            }
            slices.prefetch_head(&entry.chain);
        }
        for slices in [1, 2] {
            if let Some(&(_, ahead)) = ahead(3 - slices) {
                let entry = &dictionary.entries[ahead as usize];
                dictionary.slices.prefetch_behind(&entry.chain, slices);
            }
        }
        let entry = self.run.entry(self.given);
        dictionary.slices.read(&entry.chain, |slice| short::push(slice, postings));
        self.given += 1;
        Ok(true)
    }

    fn positions(&self, positions: &mut Vec<u8>) {
        positions.clear();
        let ClosedRun { dictionary, order } = &*self.run;
        let number = order[self.given - 1].1;
        if let Some(chain) = dictionary.positions.get(number as usize) {
            dictionary.slices.read(chain, |slice| short::push(slice, positions));
        }
    }

    fn term(&self) -> (u16, &[u8]) {
        self.run.term(self.given - 1)
    }

    fn behind(&self) -> Option<(u16, &SharedTerms)> {
        self.behind.as_ref().map(|(collection, before)| (*collection, before))
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

    type Lists = BTreeMap<(u16, Vec<u8>), Vec<(u32, u32)>>;

    proptest! {
        #[test]
        fn oracle_collects_pieces_like_a_map(
            pieces in prop::collection::vec(prop::collection::vec("[a-d0-2 ]{0,60}", 0..12), 0..8),
            share_bytes in prop::sample::select(vec![1, 40, 500, u64::MAX]),
        ) {
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
            let mut shares = RunShares::from(run);
            // Others have some of the terms of letters.
            let others = SharedTerms { terms: 5, last: vec![1] };
            shares.follow(11, others.clone());
            let mut bytes = vec![1];
            let mut given = expected.iter().peekable();
            let mut before = BTreeMap::from([(11, others)]);
            loop {
                let mut share = shares.next(share_bytes);
                let next = given.peek().map(|((collection, _), _)| *collection);
                let behind = next.and_then(|of| Some((of, before.get(&of)?.clone())));
                let found = share.terms.behind();
                prop_assert_eq!(found.map(|(of, terms)| (of, terms.clone())), behind);
                let mut terms = 0;
                while share.terms.advance(&mut bytes).unwrap() {
                    let (term, list) = given.next().unwrap();
                    prop_assert_eq!(share.terms.term(), (term.0, &term.1[..]));
                    prop_assert_eq!(&folded::list(&bytes), list);
                    let before = before.entry(term.0).or_default();
                    *before = SharedTerms { terms: before.terms + 1, last: term.1.clone() };
                    terms += 1;
                }
                prop_assert!(share_bytes > 1 || terms <= 1);
                prop_assert_eq!(share.last, given.peek().is_none());
                if share.last {
                    break;
                }
            }
        }
    }
}

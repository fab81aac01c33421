//! The part of an open run that one owner keeps: its terms in a hash table, the postings of each as
//! bytes in slices; sorted for the lexicon when the run closes.

use super::closed::{ClosedError, ClosedTerms};
use super::group::{GroupTerm, TermGroup};
use super::slices::{Chain, Slices};
use crate::codec::folded;
use crate::codec::prefetch::{prefetch, prefetch_at};
use crate::dictionary::strings::hash::{FoundOrNew, HashTable};
use crate::dictionary::strings::short;
use crate::dictionary::strings::suffix::Suffix;
use crate::pages::{self, Grown};

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

/// A closed run, which is sorted when its first term is asked for.
pub struct SortedRun {
    dictionary: RunDictionary,
    order: Option<Vec<(u64, u32)>>,
    given: usize,
}

impl From<RunDictionary> for SortedRun {
    fn from(dictionary: RunDictionary) -> Self {
        Self { dictionary, order: None, given: 0 }
    }
}

impl ClosedTerms for SortedRun {
    fn advance(&mut self, postings: &mut Vec<u8>) -> Result<bool, ClosedError> {
        postings.clear();
        let order = self.order.get_or_insert_with(|| self.dictionary.sort());
        let Some(&(_, number)) = order.get(self.given) else { return Ok(false) };
        // The order of the lexicon is not that in which terms came, and the slices of a list are
        // anywhere.
        let ahead = |quarters: usize| order.get(self.given + AHEAD / 4 * quarters);
        if let Some(&(_, ahead)) = ahead(4) {
            prefetch(&self.dictionary.entries[ahead as usize]);
        }
        if let Some(&(_, ahead)) = ahead(3) {
            let RunDictionary { entries, suffixes, slices, .. } = &self.dictionary;
            let entry = &entries[ahead as usize];
            if entry.suffix.is_long() {
                prefetch_at(suffixes, entry.suffix.start());
            }
            slices.prefetch_head(&entry.chain);
        }
        for slices in [1, 2] {
            if let Some(&(_, ahead)) = ahead(3 - slices) {
                let entry = &self.dictionary.entries[ahead as usize];
                self.dictionary.slices.prefetch_behind(&entry.chain, slices);
            }
        }
        self.given += 1;
        let entry = &self.dictionary.entries[number as usize];
        self.dictionary.slices.read(&entry.chain, |slice| short::push(slice, postings));
        Ok(true)
    }

    fn positions(&self, positions: &mut Vec<u8>) {
        positions.clear();
        let order = self.order.as_ref().expect("a term was asked for");
        let number = order[self.given - 1].1;
        if let Some(chain) = self.dictionary.positions.get(number as usize) {
            self.dictionary.slices.read(chain, |slice| short::push(slice, positions));
        }
    }

    fn term(&self) -> (u16, &[u8]) {
        let order = self.order.as_ref().expect("a term was asked for");
        let entry = &self.dictionary.entries[order[self.given - 1].1 as usize];
        (entry.suffix.collection, entry.suffix.of(&self.dictionary.suffixes))
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
                prop_assert!(run.advance(&mut bytes).unwrap());
                prop_assert_eq!(run.term(), (*collection, &suffix[..]));
                prop_assert_eq!(&folded::list(&bytes), list);
            }
            prop_assert!(!run.advance(&mut bytes).unwrap());
        }
    }
}

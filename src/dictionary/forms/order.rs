//! In which order do the terms of a run go to the lexicon? By trie collection, then suffix. Threads share the collections out by
//! how many terms they have; each gathers the suffixes of its own, so that what is compared lies together.

use super::{Forms, LEAST_FORMS, SHARDS, Shard};
use crate::dictionary::closed::order_key;
use crate::dictionary::place::TermPlace;
use crate::pages;
use crate::text::trie_collection::{TRIE_COLLECTIONS, implied_prefix_len};
use std::ops::Range;

/// Terms in the order of the lexicon.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OrderedTerms {
    /// Their numbers.
    pub numbers: Vec<u32>,
    /// Their trie collections.
    pub collections: Vec<u16>,
    /// Bytes of the suffix of each.
    pub suffix_bytes: Vec<u8>,
    /// The suffixes, one behind the other.
    pub suffixes: Vec<u8>,
}

/// A term that is sorted.
#[derive(Clone, Copy)]
struct Sorted {
    /// See [`order_key`].
    key: u64,
    number: u32,
    /// Of its suffix.
    place: TermPlace,
}

impl OrderedTerms {
    /// The `count` terms of some collections.
    fn of(shards: &[Shard], collections: &Range<usize>, count: usize) -> Self {
        let (mut sorted, mut strings) = (pages::with_capacity(count), Vec::new());
        for (n, shard) in (0u32..).zip(shards) {
            for (local, entry) in (0u32..).zip(&shard.terms.entries) {
                let collection = entry.collection();
                if !collections.contains(&usize::from(collection)) {
                    continue;
                }
                let term = entry.of(&shard.terms.strings);
                let suffix = &term[implied_prefix_len(collection)..];
                let place = TermPlace::new(strings.len(), collection, suffix.len());
                pages::reserve(&mut strings, suffix.len());
                strings.extend_from_slice(suffix);
                let key = order_key(collection, suffix);
                sorted.push(Sorted { key, number: local * SHARDS as u32 + n, place });
            }
        }
        let suffix = |term: &Sorted| term.place.of(&strings);
        sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key).then_with(|| suffix(a).cmp(suffix(b))));
        let mut suffixes = pages::with_capacity(strings.len());
        sorted.iter().for_each(|term| suffixes.extend_from_slice(suffix(term)));
        Self {
            numbers: sorted.iter().map(|term| term.number).collect(),
            collections: sorted.iter().map(|term| term.place.collection()).collect(),
            suffix_bytes: sorted.iter().map(|term| suffix(term).len() as u8).collect(),
            suffixes,
        }
    }
}

impl Forms {
    /// The terms of the run so far.
    pub fn in_order(&mut self) -> OrderedTerms {
        let mut terms = vec![0usize; TRIE_COLLECTIONS];
        let each = SHARDS.div_ceil(self.threads);
        let counts = self.crew.all(Vec::from_iter(self.shards.chunks(each).map(|shards| {
            move || {
                let mut counts = vec![0usize; TRIE_COLLECTIONS];
                let entries = shards.iter().flat_map(|shard| &shard.terms.entries);
                entries.for_each(|entry| counts[usize::from(entry.collection())] += 1);
                counts
            }
        })));
        for counts in counts {
            terms.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let all: usize = terms.iter().sum();
        let each = all.div_ceil(self.threads).max(LEAST_FORMS);
        let (mut ranges, mut begin, mut here) = (Vec::new(), 0, 0);
        for (collection, count) in terms.iter().enumerate() {
            here += count;
            if here >= each || collection + 1 == TRIE_COLLECTIONS {
                ranges.push((begin..collection + 1, here));
                (begin, here) = (collection + 1, 0);
            }
        }
        let shards = &self.shards;
        let work = ranges.iter().map(|(of, count)| move || OrderedTerms::of(shards, of, *count));
        let parts = self.crew.all(work.collect());
        let suffixes = parts.iter().map(|part| part.suffixes.len()).sum();
        let mut ordered = OrderedTerms {
            numbers: pages::with_capacity(all),
            collections: pages::with_capacity(all),
            suffix_bytes: pages::with_capacity(all),
            suffixes: pages::with_capacity(suffixes),
        };
        for part in parts {
            ordered.numbers.extend(part.numbers);
            ordered.collections.extend(part.collections);
            ordered.suffix_bytes.extend(part.suffix_bytes);
            ordered.suffixes.extend(part.suffixes);
        }
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::analysis::Analysis;

    #[test]
    fn terms_come_in_the_order_of_the_lexicon() {
        for (words, threads) in [(0, 1), (1, 3), (300, 1), (9000, 4)] {
            let form = |i: u32| match i % 4 {
                0 => format!("common{i}").into_bytes(),
                1 => format!("{i}").into_bytes(),
                2 => format!("\u{e9}{i}").into_bytes(),
                _ => format!("{}w", char::from(b'a' + (i % 26) as u8).to_string().repeat(9))
                    .into_bytes(),
            };
            let forms: Vec<Vec<u8>> = (0..words).map(form).collect();
            let mut learned = Forms::new(Analysis::default(), threads);
            learned.learn(forms.len(), |i| &forms[i], 0);
            let ordered = learned.in_order();
            let terms = learned.take();
            let mut expected: Vec<_> =
                terms.iter().map(|(n, collection, suffix)| (collection, suffix, n)).collect();
            expected.sort_unstable();
            let (mut at, mut found) = (0, Vec::new());
            for (i, &number) in ordered.numbers.iter().enumerate() {
                let end = at + usize::from(ordered.suffix_bytes[i]);
                found.push((ordered.collections[i], &ordered.suffixes[at..end], number));
                at = end;
            }
            assert_eq!((at, found), (ordered.suffixes.len(), expected));
        }
    }
}

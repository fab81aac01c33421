//! In which order do the terms of a run go to the lexicon? By trie collection, then suffix. Threads share the collections out by
//! how many terms they have; each gathers the suffixes of its own, so that what is compared lies together, puts terms to their
//! collection, sorts within it, and writes to its part of what all give.

use super::{Forms, PART_FORMS, SHARDS, Shard};
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

/// A term that is sorted within its collection.
#[derive(Clone, Copy, Default)]
struct Sorted {
    /// See [`key`].
    key: u64,
    /// Where its suffix lies among those of the thread, and its length.
    start: usize,
    len: u8,
    number: u32,
}

/// Bytes of a suffix that its key has.
const KEY_BYTES: usize = 7;

/// A number by which the terms of a collection are sorted first: the first bytes of the suffix, then how many it has, as far as they are no
/// more. Those with the same one have more, and are compared by these.
fn key(suffix: &[u8]) -> u64 {
    let mut key = [0u8; 8];
    let n = suffix.len().min(KEY_BYTES);
    key[..n].copy_from_slice(&suffix[..n]);
    key[KEY_BYTES] = suffix.len().min(KEY_BYTES + 1) as u8;
    u64::from_be_bytes(key)
}

/// How many terms a collection has, and bytes of their suffixes.
#[derive(Clone, Copy, Default)]
struct Size {
    terms: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, more: Self) {
        self.terms += more.terms;
        self.bytes += more.bytes;
    }
}

/// The terms of each collection.
fn sizes(shards: &[Shard]) -> Vec<Size> {
    let mut sizes = vec![Size::default(); TRIE_COLLECTIONS];
    for entry in shards.iter().flat_map(|shard| &shard.terms.entries) {
        let collection = entry.collection();
        let bytes = entry.len() - implied_prefix_len(collection);
        sizes[usize::from(collection)].add(Size { terms: 1, bytes });
    }
    sizes
}

/// Where the terms of some collections go.
struct Part<'a> {
    collections: Range<usize>,
    numbers: &'a mut [u32],
    of: &'a mut [u16],
    suffix_bytes: &'a mut [u8],
    suffixes: &'a mut [u8],
}

impl Part<'_> {
    /// Brings them into order; `sizes` are those of all collections.
    fn fill(self, shards: &[Shard], sizes: &[Size]) {
        let count = self.numbers.len();
        let mut sorted = pages::with_capacity(count);
        sorted.resize(count, Sorted::default());
        let mut strings = pages::with_capacity(self.suffixes.len());
        let mut next = 0;
        let mut places = Vec::with_capacity(self.collections.len());
        for size in &sizes[self.collections.clone()] {
            places.push(next);
            next += size.terms;
        }
        for (n, shard) in (0u32..).zip(shards) {
            for (local, entry) in (0u32..).zip(&shard.terms.entries) {
                let collection = usize::from(entry.collection());
                if !self.collections.contains(&collection) {
                    continue;
                }
                let term = entry.of(&shard.terms.strings);
                let suffix = &term[implied_prefix_len(entry.collection())..];
                let place = &mut places[collection - self.collections.start];
                sorted[*place] = Sorted {
                    key: key(suffix),
                    start: strings.len(),
                    len: suffix.len() as u8,
                    number: local * SHARDS as u32 + n,
                };
                strings.extend_from_slice(suffix);
                *place += 1;
            }
        }
        let suffix = |term: &Sorted| &strings[term.start..][..usize::from(term.len)];
        let (mut begin, mut written) = (0, 0);
        for (collection, end) in self.collections.zip(places) {
            let terms = &mut sorted[begin..end];
            // Numbers are sorted without a branch for each comparison.
            terms.sort_unstable_by_key(|term| term.key);
            for alike in terms.chunk_by_mut(|a, b| a.key == b.key).filter(|alike| alike.len() > 1) {
                alike.sort_unstable_by(|a, b| suffix(a).cmp(suffix(b)));
            }
            self.of[begin..end].fill(collection as u16);
            for (at, term) in (begin..).zip(terms) {
                let suffix = suffix(term);
                self.numbers[at] = term.number;
                self.suffix_bytes[at] = term.len;
                self.suffixes[written..written + suffix.len()].copy_from_slice(suffix);
                written += suffix.len();
            }
            begin = end;
        }
    }
}

impl Forms {
    /// The terms of the run so far.
    pub fn in_order(&mut self) -> OrderedTerms {
        let each = SHARDS.div_ceil(self.threads);
        let shards = self.shards.chunks(each);
        let counted = self.crew.all(shards.map(|shards| move || sizes(shards)).collect());
        let mut sizes = vec![Size::default(); TRIE_COLLECTIONS];
        for counted in counted {
            sizes.iter_mut().zip(counted).for_each(|(sum, more)| sum.add(more));
        }
        let mut all = Size::default();
        sizes.iter().for_each(|&size| all.add(size));
        let mut ordered = OrderedTerms {
            numbers: pages::zeroed(all.terms),
            collections: pages::zeroed(all.terms),
            suffix_bytes: pages::zeroed(all.terms),
            suffixes: pages::zeroed(all.bytes),
        };
        let OrderedTerms { numbers, collections, suffix_bytes, suffixes } = &mut ordered;
        let mut rest =
            (&mut numbers[..], &mut collections[..], &mut suffix_bytes[..], &mut suffixes[..]);
        let each = all.terms.div_ceil(self.threads).max(PART_FORMS);
        let (mut parts, mut begin, mut here) = (Vec::new(), 0, Size::default());
        for (collection, &size) in sizes.iter().enumerate() {
            here.add(size);
            if here.terms >= each || collection + 1 == TRIE_COLLECTIONS {
                let Size { terms, bytes } = std::mem::take(&mut here);
                let taken = "there are so many in all";
                parts.push(Part {
                    collections: begin..collection + 1,
                    numbers: rest.0.split_off_mut(..terms).expect(taken),
                    of: rest.1.split_off_mut(..terms).expect(taken),
                    suffix_bytes: rest.2.split_off_mut(..terms).expect(taken),
                    suffixes: rest.3.split_off_mut(..bytes).expect(taken),
                });
                begin = collection + 1;
            }
        }
        let (shards, sizes) = (&self.shards, &sizes);
        self.crew.all(parts.into_iter().map(|part| move || part.fill(shards, sizes)).collect());
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
            let form = |i: u32| match i % 5 {
                0 => format!("common{i}").into_bytes(),
                1 => format!("{i}").into_bytes(),
                2 => format!("\u{e9}{i}").into_bytes(),
                // One begins with the other, or they differ far behind.
                3 => {
                    format!("prefix{}{}", "en".repeat(i as usize % 4), i % 7 * (i % 3)).into_bytes()
                }
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

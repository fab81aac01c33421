//! Sorts the terms of a run for the lexicon: by trie collection, then suffix. Each thread deals the
//! terms of some numbers out to their collections. Then the threads share the collections, put the
//! terms of each together, sort them, and write to their part of the result. A term is sorted by
//! the first bytes of its suffix as a number; most suffixes are no longer.

use super::{FormSuffix, FormTerm, Forms, PART_FORMS, TermShard, place_of};
use crate::codec::prefetch::prefetch_at;
use crate::dictionary::strings::codes::{Coded, spell};
use crate::pages;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use bytemuck::Zeroable;
use std::ops::Range;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderedTerms {
    pub numbers: Vec<u32>,
    pub collections: Vec<u16>,
    pub suffix_bytes: Vec<u8>,
    /// End to end.
    pub suffixes: Vec<u8>,
}

#[derive(Clone, Copy, Zeroable)]
struct SortedTerm {
    key: u64,
    number: u32,
    len: u8,
}

impl SortedTerm {
    /// Whether the suffix is longer than the key.
    fn is_long(&self) -> bool {
        usize::from(self.len) > KEY_BYTES
    }
}

/// Parts of the collections for each thread: some have many terms.
const PARTS: usize = 4;

/// Terms by which strings are prefetched ahead; their places twice, their codes three times as
/// many.
const AHEAD: usize = 8;

const KEY_BYTES: usize = 7;

/// Sort key of a term in its collection: the first bytes of the suffix, then its length, up to one
/// more. Suffixes with the same key are longer, and are compared by the rest.
fn key(suffix: &[u8]) -> u64 {
    let mut key = [0u8; 8];
    let n = suffix.len().min(KEY_BYTES);
    key[..n].copy_from_slice(&suffix[..n]);
    key[KEY_BYTES] = suffix.len().min(KEY_BYTES + 1) as u8;
    u64::from_be_bytes(key)
}

/// The same of the suffix of a term.
fn key_of(term: &FormTerm<'_>) -> u64 {
    match term.suffix {
        FormSuffix::Short([a, b, c, d, e, f, g, ..], len) => {
            u64::from_be_bytes([a, b, c, d, e, f, g, len.min(KEY_BYTES + 1) as u8])
        }
        FormSuffix::Numbered(suffix) => key(suffix),
    }
}

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

/// All terms, by the numbers of their codes.
#[derive(Clone, Copy)]
struct All<'a> {
    codes: &'a [u64],
    shards: &'a [TermShard],
}

impl<'a> All<'a> {
    fn term(self, code: u64) -> FormTerm<'a> {
        FormTerm::of(code, |shard| &self.shards[shard].terms)
    }

    fn of(self, term: &SortedTerm) -> FormTerm<'a> {
        self.term(self.codes[term.number as usize])
    }

    /// Prefetches for suffixes that are longer than keys: the code of one term, the place of an
    /// earlier one, and the bytes of one before that.
    fn prefetch(self, terms: [Option<&SortedTerm>; 3]) {
        let [code, place, bytes] = terms.map(|term| term.filter(|term| term.is_long()));
        if let Some(term) = code {
            prefetch_at(self.codes, term.number as usize);
        }
        let numbered = |term: &SortedTerm| match spell(self.codes[term.number as usize]) {
            Coded::Short(_) => None,
            Coded::Number(number) => {
                let (shard, at) = place_of(number);
                Some((&self.shards[shard].terms, at))
            }
        };
        if let Some((terms, at)) = place.and_then(numbered) {
            prefetch_at(&terms.entries, at);
        }
        if let Some((terms, at)) = bytes.and_then(numbered) {
            prefetch_at(&terms.strings, terms.entries[at].start());
        }
    }

    /// Sorts terms with the same key, whose suffixes are longer than that.
    fn sort_alike(self, alike: &mut [SortedTerm]) {
        let with_rest = |&sorted: &SortedTerm| {
            let term = self.of(&sorted);
            (key(&term.suffix()[KEY_BYTES..]), term, sorted)
        };
        let mut sorted: Vec<_> = alike.iter().map(with_rest).collect();
        sorted.sort_unstable_by(|(a, one, _), (b, other, _)| {
            a.cmp(b).then_with(|| one.suffix().cmp(other.suffix()))
        });
        alike.iter_mut().zip(sorted).for_each(|(to, (_, _, term))| *to = term);
    }
}

/// Some terms, by collection.
struct Scattered {
    terms: Vec<SortedTerm>,
    ends: Vec<usize>,
    sizes: Vec<Size>,
}

impl Scattered {
    fn of(all: All<'_>, numbers: Range<usize>) -> Self {
        let mut sizes = vec![Size::default(); TRIE_COLLECTIONS];
        let codes = &all.codes[numbers.clone()];
        for &code in codes {
            let term = all.term(code);
            sizes[usize::from(term.collection)].add(Size { terms: 1, bytes: term.suffix().len() });
        }
        // As terms come the beginnings move to the ends.
        let mut ends = Vec::with_capacity(sizes.len());
        let mut count = 0;
        for size in &sizes {
            ends.push(count);
            count += size.terms;
        }
        let mut terms = pages::zeroed(count);
        for (number, &code) in (numbers.start as u32..).zip(codes) {
            let term = all.term(code);
            let end = &mut ends[usize::from(term.collection)];
            terms[*end] = SortedTerm { key: key_of(&term), number, len: term.suffix().len() as u8 };
            *end += 1;
        }
        Self { terms, ends, sizes }
    }

    fn collection(&self, collection: usize) -> &[SortedTerm] {
        let begin = collection.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[begin..self.ends[collection]]
    }
}

/// The places of the terms of some collections in the result.
struct OrderPart<'a> {
    collections: Range<usize>,
    numbers: &'a mut [u32],
    of: &'a mut [u16],
    suffix_bytes: &'a mut [u8],
    suffixes: &'a mut [u8],
}

impl OrderPart<'_> {
    fn fill(self, all: All<'_>, scattered: &[Scattered]) {
        let mut terms = Vec::new();
        let mut begin = 0;
        let mut written = 0;
        for collection in self.collections {
            terms.clear();
            scattered.iter().for_each(|some| terms.extend_from_slice(some.collection(collection)));
            // Numbers are sorted without a branch for each comparison.
            terms.sort_unstable_by_key(|term: &SortedTerm| term.key);
            for alike in terms.chunk_by_mut(|a, b| a.key == b.key).filter(|alike| alike.len() > 1) {
                all.sort_alike(alike);
            }
            let end = begin + terms.len();
            self.of[begin..end].fill(collection as u16);
            let to = self.numbers[begin..end].iter_mut().zip(&mut self.suffix_bytes[begin..end]);
            for (i, (term, (number, suffix_bytes))) in terms.iter().zip(to).enumerate() {
                *number = term.number;
                *suffix_bytes = term.len;
                all.prefetch([3, 2, 1].map(|steps| terms.get(i + steps * AHEAD)));
                let len = usize::from(term.len);
                let to = &mut self.suffixes[written..];
                written += len;
                if term.is_long() {
                    to[..len].copy_from_slice(all.of(term).suffix());
                    continue;
                }
                let bytes = term.key.to_be_bytes();
                match to.first_chunk_mut() {
                    // The next one overwrites what is written behind it.
                    Some(to) => *to = bytes,
                    None => to[..len].copy_from_slice(&bytes[..len]),
                }
            }
            begin = end;
        }
    }
}

impl Forms {
    /// The terms of the run so far, by the numbers of their codes.
    pub(crate) fn in_order(&mut self, codes: &[u64]) -> OrderedTerms {
        let Self { threads, crew, shards, .. } = self;
        let terms = All { codes, shards };
        let each = codes.len().div_ceil(*threads).max(PART_FORMS);
        let some = (0..codes.len()).step_by(each);
        let some = some.map(|first| first..codes.len().min(first + each));
        let scatter = some.map(|numbers| move || Scattered::of(terms, numbers));
        let scattered = crew.all(scatter.collect());
        let mut sizes = vec![Size::default(); TRIE_COLLECTIONS];
        for some in &scattered {
            sizes.iter_mut().zip(&some.sizes).for_each(|(sum, &more)| sum.add(more));
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
        let each = all.terms.div_ceil(*threads * PARTS).max(PART_FORMS);
        let mut parts = Vec::new();
        let mut begin = 0;
        let mut here = Size::default();
        for (collection, &size) in sizes.iter().enumerate() {
            here.add(size);
            if here.terms >= each || collection + 1 == TRIE_COLLECTIONS {
                let Size { terms, bytes } = std::mem::take(&mut here);
                let taken = "there are so many in all";
                parts.push(OrderPart {
                    collections: begin..collection + 1,
                    numbers: rest.0.split_off_mut(..terms).expect(taken),
                    of: rest.1.split_off_mut(..terms).expect(taken),
                    suffix_bytes: rest.2.split_off_mut(..terms).expect(taken),
                    suffixes: rest.3.split_off_mut(..bytes).expect(taken),
                });
                begin = collection + 1;
            }
        }
        crew.share(*threads - 1, parts, |part| part.fill(terms, &scattered));
        ordered
    }
}

#[cfg(test)]
mod tests {
    use super::super::FormReader;
    use super::*;
    use crate::text::analysis::Analysis;
    use std::sync::Arc;

    #[test]
    fn terms_come_in_the_order_of_the_lexicon() {
        for (words, threads) in [(0, 1), (1, 3), (300, 1), (9000, 4)] {
            let form = |i: u32| match i % 5 {
                0 => format!("common{i}").into_bytes(),
                1 => format!("{i}").into_bytes(),
                2 => format!("\u{e9}{i}").into_bytes(),
                // One begins with the other, or they differ far behind.
                3 => {
                    format!("prefix{}{}", "en".repeat(i as usize % 9), i % 7 * (i % 3)).into_bytes()
                }
                _ => format!("{}w", char::from(b'a' + (i % 26) as u8).to_string().repeat(9))
                    .into_bytes(),
            };
            let forms: Vec<Vec<u8>> = (0..words).map(form).collect();
            let mut learned = Forms::new(threads);
            let read =
                FormReader::new(Analysis::default(), threads).read(forms.len(), |i| &forms[i]);
            let (meanings, expansions) = learned.learn(&read, 0);
            let all = meanings.iter().chain(&expansions).map(|meaning| meaning.code);
            let mut codes: Vec<u64> = all.filter(|code| code >> 33 != 0).collect();
            codes.sort_unstable();
            codes.dedup();
            let middle = codes.len() / 2;
            codes.rotate_left(middle);
            let ordered = learned.in_order(&codes);
            let terms = learned.take(Arc::new(codes));
            let mut expected = Vec::new();
            terms.for_each(|n, collection, suffix| expected.push((collection, suffix.to_vec(), n)));
            expected.sort_unstable();
            let mut at = 0;
            let mut found = Vec::new();
            for (i, &number) in ordered.numbers.iter().enumerate() {
                let end = at + usize::from(ordered.suffix_bytes[i]);
                found.push((ordered.collections[i], ordered.suffixes[at..end].to_vec(), number));
                at = end;
            }
            assert_eq!((at, found), (ordered.suffixes.len(), expected));
        }
    }
}

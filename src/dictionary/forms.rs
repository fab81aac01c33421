//! What do the forms mean that a device has found in texts? A device compares bytes and knows no words: a form is a
//! stretch of letters and digits, or a part of one, with ASCII letters in lower case. Each new one is cut into tokens, and these are stemmed, here, once;
//! from then on the device counts by the numbers of terms.
//!
//! A form of ASCII is one token. One with other letters may hold several: it stands for all of their terms.
//! Terms get numbers by shards of their hashes, so that several threads learn at once; which number a term gets depends on
//! what came before it, and nothing in an index depends on that.

mod order;

pub use order::OrderedTerms;

use super::hash::{Found, HashTable, hash};
use super::memo::for_each_member;
use super::place::TermPlace;
use super::short;
use crate::codec::prefetch::prefetch_at;
use crate::crew::Crew;
use crate::order::Sketch;
use crate::pages;
use crate::text::analysis::Analysis;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::{AtomicU32, Ordering};

/// What stands for a form that has no term: a stop word, or bytes that are no token.
pub const NO_TERM: u32 = u32::MAX;

/// Set where a form has other than one term and one member: the rest is where its expansion begins.
pub const EXPANDED: u32 = 1 << 31;

/// What one form stands for, as the kernels of `invert.cu` read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Meaning {
    /// The number of its term, [`NO_TERM`], or [`EXPANDED`] and the place of its expansion: the number of its parts, how many of these
    /// have a term, and each as a meaning. A part without a term is another member of the sketch.
    pub term: u32,
    /// What it adds to the sketch of a piece: register and rank, `register << 8 | rank`.
    pub member: u32,
}

impl Meaning {
    /// Of a form without a term.
    const NOTHING: Self = Self { term: NO_TERM, member: 0 };
}

/// Terms are shared out by this many parts of their hashes.
const SHARDS: usize = 32;
/// Forms of a part, which one thread takes: 0.3 ms of work.
const PART_FORMS: usize = 2048;
/// Words for which the table of a shard is asked before it is read.
const AHEAD: usize = 12;

/// Terms whose hashes have the same remainder.
#[derive(Default)]
struct Shard {
    table: HashTable,
    terms: ShardTerms,
}

/// The terms of a shard, and their bytes.
#[derive(Default, Debug)]
struct ShardTerms {
    /// In the order in which they came.
    entries: Vec<TermPlace>,
    strings: Vec<u8>,
}

impl Shard {
    /// The place of a term, of a trie collection, among those of the shard.
    fn number(&mut self, term: &[u8], hash: u64, collection: u16) -> u32 {
        let next = self.terms.entries.len() as u32;
        let terms = &self.terms;
        let found = self.table.find_or_insert(hash, next, |n| {
            short::equal(terms.entries[n as usize].of(&terms.strings), term)
        });
        match found {
            Found::Old(number) => number,
            Found::New => {
                let start = self.terms.strings.len();
                let entry = TermPlace::new(start, collection, term.len());
                pages::reserve(&mut self.terms.strings, term.len());
                self.terms.strings.extend_from_slice(term);
                pages::push(&mut self.terms.entries, entry);
                next
            }
        }
    }
}

/// The terms of a run that a device has inverted.
#[derive(Debug)]
pub struct Terms {
    shards: Vec<ShardTerms>,
}

impl Terms {
    /// All terms, each with its number, its trie collection, and the suffix behind the prefix that this implies.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u16, &[u8])> {
        (0u32..).zip(&self.shards).flat_map(|(shard, terms)| {
            (0u32..).zip(&terms.entries).map(move |(local, entry)| {
                let collection = entry.collection();
                let suffix = &entry.of(&terms.strings)[implied_prefix_len(collection)..];
                (local * SHARDS as u32 + shard, collection, suffix)
            })
        })
    }
}

/// A token of a form that is being learned.
struct Word {
    hash: u64,
    start: u32,
    /// Of its term, once whoever has the shard has said so.
    number: AtomicU32,
    collection: u16,
    len: u8,
}

/// Some of the forms that are learned together. Its memory is used again.
#[derive(Default)]
struct Part {
    /// Words so far behind each form.
    ends: Vec<u32>,
    /// Of each word, its shard, and where its members end.
    words: Vec<(u8, u32)>,
    strings: Vec<u8>,
    members: Vec<u32>,
    /// The words of each shard, in their order: no two threads write close to each other.
    by_shard: [Vec<Word>; SHARDS],
    /// Words of the expansions of the forms.
    expansion_words: usize,
}

impl Part {
    /// Makes words of forms.
    fn read<'a>(&mut self, analysis: &Analysis, forms: impl Iterator<Item = &'a [u8]>) {
        self.ends.clear();
        self.words.clear();
        self.strings.clear();
        self.members.clear();
        self.by_shard.iter_mut().for_each(Vec::clear);
        self.expansion_words = 0;
        for form in forms {
            let before = (self.words.len(), self.members.len());
            match str::from_utf8(form) {
                // It is a token as it stands.
                Ok(token) if form.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9')) => {
                    self.token(analysis, token);
                }
                _ => {
                    let token = |token: &str| self.token(analysis, token);
                    analysis.tokenizer.for_each_token(form, token);
                }
            }
            let (words, members) = (self.words.len() - before.0, self.members.len() - before.1);
            if words > 0 && (words, members) != (1, 1) {
                self.expansion_words += 2 + 2 * members;
            }
            self.ends.push(self.words.len() as u32);
        }
    }

    fn token(&mut self, analysis: &Analysis, token: &str) {
        let Some(term) = analysis.analyze_token(token) else { return };
        for_each_member(token, |hash| {
            let (register, rank) = Sketch::place(hash);
            self.members.push((register as u32) << 8 | u32::from(rank));
        });
        let hash = hash(term.as_bytes());
        let shard = shard_of(hash);
        self.words.push((shard as u8, self.members.len() as u32));
        self.by_shard[shard].push(Word {
            hash,
            start: self.strings.len() as u32,
            number: AtomicU32::new(NO_TERM),
            collection: trie_collection(&term),
            len: term.len() as u8,
        });
        self.strings.extend_from_slice(term.as_bytes());
    }

    fn term(&self, word: &Word) -> &[u8] {
        &self.strings[word.start as usize..][..usize::from(word.len)]
    }

    /// Gives the words of shard `n` their terms' numbers.
    fn number(&self, n: usize, shard: &mut Shard) {
        let words = &self.by_shard[n];
        for (i, word) in words.iter().enumerate() {
            if let Some(later) = words.get(i + AHEAD) {
                shard.table.prefetch(later.hash);
                // Another thread has written them, to its own caches.
                prefetch_at(&self.strings, later.start as usize);
            }
            let place = shard.number(self.term(word), word.hash, word.collection);
            word.number.store(place * SHARDS as u32 + n as u32, Ordering::Relaxed);
        }
    }

    /// Writes what the forms stand for, and their expansions, which will stand from `place` on.
    fn meanings(&self, place: usize, meanings: &mut [Meaning], expansions: &mut [u32]) {
        let (mut word, mut member, mut filled) = (0, 0, 0);
        let mut of_shards = self.by_shard.each_ref().map(|words| words.iter());
        let mut number = |shard: u8| {
            let word = of_shards[usize::from(shard)].next().expect("each word is in its shard");
            word.number.load(Ordering::Relaxed)
        };
        for (&end, meaning) in self.ends.iter().zip(meanings) {
            let words = &self.words[word..end as usize];
            word = end as usize;
            let before = member;
            member = words.last().map_or(member, |&(_, members)| members as usize);
            *meaning = match words {
                [] => Meaning::NOTHING,
                &[(shard, _)] if member - before == 1 => {
                    Meaning { term: number(shard), member: self.members[before] }
                }
                _ => {
                    let place = (place + filled) as u32;
                    let mut write = |pair: [u32; 2]| {
                        expansions[filled..filled + 2].copy_from_slice(&pair);
                        filled += 2;
                    };
                    write([(member - before) as u32, words.len() as u32]);
                    let mut at = before;
                    for &(shard, members) in words {
                        // The first member comes with the term.
                        let mut term = number(shard);
                        for &member in &self.members[at..members as usize] {
                            write([std::mem::replace(&mut term, NO_TERM), member]);
                        }
                        at = members as usize;
                    }
                    Meaning { term: EXPANDED | place, member: 0 }
                }
            };
        }
    }
}

fn shard_of(hash: u64) -> usize {
    // The table of a shard uses the upper bits.
    hash as usize % SHARDS
}

/// Forms whose words are found, so that nothing is left but to look up their terms.
#[derive(Default)]
pub struct ReadForms {
    count: usize,
    parts: Vec<Part>,
}

/// Finds the words of forms, for which no term has to be known.
pub struct FormReader {
    analysis: Analysis,
    threads: usize,
    crew: Crew,
    spare: Vec<Part>,
}

impl FormReader {
    /// At most so many `threads` read at once.
    pub fn new(analysis: Analysis, threads: usize) -> Self {
        Self { analysis, threads: threads.max(1), crew: Crew::new("forms"), spare: Vec::new() }
    }

    /// Finds the words of `count` forms.
    pub fn read<'a>(&mut self, count: usize, form: impl Fn(usize) -> &'a [u8] + Sync) -> ReadForms {
        let Self { analysis, threads, crew, spare } = self;
        let mut parts: Vec<Part> = Vec::new();
        parts.resize_with(count.div_ceil(PART_FORMS), || spare.pop().unwrap_or_default());
        let others = (*threads - 1).min(parts.len() / 2);
        crew.share(others, parts.iter_mut().enumerate().collect(), |(n, part)| {
            let forms = n * PART_FORMS..count.min((n + 1) * PART_FORMS);
            part.read(analysis, forms.map(&form));
        });
        ReadForms { count, parts }
    }

    /// Takes the memory of forms back that are learned, and keeps as much as two such batches need: later ones have fewer new forms. What has grown for
    /// forms of many words is freed.
    pub fn give_back(&mut self, forms: [ReadForms; 2]) {
        let most = 2 * forms.iter().map(|forms| forms.parts.len()).sum::<usize>();
        let parts = forms.into_iter().flat_map(|forms| forms.parts);
        self.spare.extend(parts.filter(|part| part.words.capacity() <= 4 * PART_FORMS));
        self.spare.truncate(most);
    }
}

/// The terms of a run, while a device finds forms of them.
pub struct Forms {
    threads: usize,
    crew: Crew,
    shards: Vec<Shard>,
}

fn no_terms() -> Vec<Shard> {
    (0..SHARDS).map(|_| Shard::default()).collect()
}

impl Forms {
    /// Knows no terms; at most so many `threads` learn at once.
    pub fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), crew: Crew::new("terms"), shards: no_terms() }
    }

    /// The numbers of terms are below this.
    pub fn numbers(&self) -> u32 {
        let most = self.shards.iter().map(|shard| shard.terms.entries.len()).max().unwrap_or(0);
        (most * SHARDS) as u32
    }

    /// What forms stand for, in their order, and their expansions, which will stand from `place` on.
    ///
    /// # Panics
    /// If expansions would take 2^31 words: a run has ended long before.
    pub fn learn(&mut self, forms: &ReadForms, place: usize) -> (Vec<Meaning>, Vec<u32>) {
        let Self { threads, crew, shards } = self;
        let ReadForms { count, parts } = forms;
        let others = (*threads - 1).min(parts.len() / 2);
        crew.share(others, shards.iter_mut().enumerate().collect(), |(n, shard)| {
            parts.iter().for_each(|part| part.number(n, shard));
        });
        let words: usize = parts.iter().map(|part| part.expansion_words).sum();
        assert!(place + words < EXPANDED as usize, "expansions take too much");
        let (mut meanings, mut expansions) = (pages::zeroed(*count), pages::zeroed(words));
        let (mut rest, mut place) = (&mut expansions[..], place);
        let told = parts.iter().zip(meanings.chunks_mut(PART_FORMS)).map(|(part, meanings)| {
            let (expansions, behind) = std::mem::take(&mut rest).split_at_mut(part.expansion_words);
            let here = place;
            (place, rest) = (place + part.expansion_words, behind);
            (part, here, meanings, expansions)
        });
        crew.share(others, told.collect(), |(part, place, meanings, expansions)| {
            part.meanings(place, meanings, expansions);
        });
        (meanings, expansions)
    }

    /// Ends the run: its terms. None is known any more.
    pub fn take(&mut self) -> Terms {
        let shards = std::mem::replace(&mut self.shards, no_terms());
        Terms { shards: shards.into_iter().map(|shard| shard.terms).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The terms and the registers that a meaning stands for.
    fn read(meaning: Meaning, expansions: &[u32]) -> (Vec<u32>, Vec<u32>) {
        if meaning.term == NO_TERM {
            return (Vec::new(), Vec::new());
        }
        if meaning.term & EXPANDED == 0 {
            return (vec![meaning.term], vec![meaning.member]);
        }
        let at = (meaning.term & !EXPANDED) as usize;
        let parts = expansions[at + 2..][..2 * expansions[at] as usize].chunks(2);
        let terms: Vec<u32> = parts.clone().map(|part| part[0]).filter(|&t| t != NO_TERM).collect();
        assert_eq!(terms.len() as u32, expansions[at + 1]);
        (terms, parts.map(|part| part[1]).collect())
    }

    fn strings(terms: &Terms) -> HashMap<u32, (u16, Vec<u8>)> {
        terms.iter().map(|(number, c, suffix)| (number, (c, suffix.to_vec()))).collect()
    }

    /// Forms mean what the analysis makes of them, in one call or in many, with one thread or several.
    fn compare(forms: &[Vec<u8>], calls: usize, threads: usize) {
        let analysis = Analysis::default();
        let mut reader = FormReader::new(analysis.clone(), threads);
        let mut learned = Forms::new(threads);
        let (mut meanings, mut expansions) = (Vec::new(), Vec::new());
        for forms in forms.chunks(forms.len().div_ceil(calls).max(1)) {
            let read = reader.read(forms.len(), |i| &forms[i]);
            let (more, words) = learned.learn(&read, expansions.len());
            reader.give_back([read, ReadForms::default()]);
            meanings.extend(more);
            expansions.extend(words);
        }
        assert_eq!(meanings.len(), forms.len());
        let numbers = learned.numbers();
        let terms = strings(&learned.take());
        assert_eq!(learned.numbers(), 0);
        for (form, &meaning) in forms.iter().zip(&meanings) {
            let mut expected = Vec::new();
            let (mut sketch, mut found) = (Sketch::default(), Sketch::default());
            analysis.tokenizer.for_each_token(form, |token| {
                if let Some(term) = analysis.analyze_token(token) {
                    let collection = trie_collection(&term);
                    let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
                    expected.push((collection, suffix.to_vec()));
                    for_each_member(token, |hash| sketch.add(hash));
                }
            });
            let (of, members) = read(meaning, &expansions);
            assert!(of.iter().all(|&term| term < numbers));
            assert_eq!(of.iter().map(|term| terms[term].clone()).collect::<Vec<_>>(), expected);
            let mut registers = [0; Sketch::REGISTERS];
            for member in members {
                let register = &mut registers[member as usize >> 8];
                *register = (member as u8).max(*register);
            }
            found.unite(&Sketch::of_registers(registers));
            assert_eq!(found, sketch, "{form:?}");
        }
    }

    #[test]
    fn many_forms_are_learned_by_several_threads() {
        let form = |i: u32| match i % 5 {
            0 => format!("caf\u{e9}{}\u{2014}{}", i % 900, i % 70).into_bytes(),
            1 => vec![b'a' + (i % 26) as u8; (i % 250) as usize + 1],
            _ => format!("w{}s", i % 9000).into_bytes(),
        };
        let forms: Vec<Vec<u8>> = (0..20_000).map(form).collect();
        compare(&forms, 2, 4);
        compare(&forms[..3000], 3, 1);
    }

    proptest! {
        #[test]
        fn oracle_forms_mean_what_the_analysis_says(
            forms in prop::collection::vec("[a-c0-1thens\u{e9}\u{3a3}\u{2014}\u{5317}]{1,40}", 0..60),
            calls in 1usize..4,
        ) {
            compare(&forms.into_iter().map(String::into_bytes).collect::<Vec<_>>(), calls, 3);
        }

        /// Lower case of ASCII, which a device makes, changes no token.
        #[test]
        fn law_ascii_may_be_lower_case_before(form in "[A-Za-z\u{130}\u{3a3}\u{3c3}\u{df}\u{e9}\u{212a}\u{1c5}\u{307}]{1,12}") {
            let tokens = |text: &str| {
                let mut tokens = Vec::new();
                Analysis::default().tokenizer.for_each_token(text.as_bytes(), |t| tokens.push(t.to_owned()));
                tokens
            };
            prop_assert_eq!(tokens(&form), tokens(&form.to_ascii_lowercase()));
        }
    }
}

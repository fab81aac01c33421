//! Terms of the forms that a device finds in texts. A form is a span of letters and digits, or a
//! part of one, with ASCII letters in lower case. The device makes no terms itself: each new form
//! is cut into tokens and stemmed here, once; from then on the device counts by the numbers of
//! terms.
//!
//! A form of ASCII is one token. One with other letters may hold several, and stands for all of
//! their terms. Short terms are named by their [codes](crate::dictionary::strings::codes). Others
//! get numbers by shards of their hashes, so that several threads learn at once; the codes are
//! those of these numbers. The device numbers all terms by their codes; the number of a term
//! depends on what came before it, and nothing in an index depends on that.

#![allow(unsafe_code)]

mod order;

pub(crate) use order::OrderedTerms;

use super::members::{for_each_member, hash_of_key};
use crate::crew::Crew;
use crate::dictionary::strings::codes::{Coded, Spelt, code_of, code_of_number, spell};
use crate::dictionary::strings::hash::{FoundOrNew, HashTable, hash};
use crate::dictionary::strings::place::StringPlace;
use crate::dictionary::strings::short;
use crate::order::Sketch;
use crate::pages;
use crate::text::analysis::Analysis;
use crate::text::scan::key_of;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use bytemuck::{Pod, Zeroable};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The code of a form without a term: a stop word, or bytes that are no token.
pub(crate) const NO_TERM: u64 = u32::MAX as u64;

/// Set where a form has other than one term and one member: the other bits are the place of its
/// expansion, two words for each meaning.
pub(crate) const EXPANDED: u64 = 1 << 31;

/// What one form stands for, as `kernels/invert_terms.cuh` reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct FormMeaning {
    /// The [code](crate::dictionary::strings::codes) of its term, [`NO_TERM`], or [`EXPANDED`] and
    /// the place of its expansion: the number of its parts and how many of these have a term, then
    /// each as a meaning. A part without a term is another member of the sketch.
    pub code: u64,
    /// What it adds to the sketch of a piece: `register << 8 | rank`.
    pub member: u64,
}

impl FormMeaning {
    pub(crate) const NOTHING: Self = Self { code: NO_TERM, member: 0 };

    /// Of a token with the term of this code and the member of this hash.
    #[cfg(test)]
    pub(crate) fn of_token(code: u64, hash: u64) -> Self {
        Self { code, member: member(hash).into() }
    }
}

fn member(hash: u64) -> u32 {
    let (register, rank) = Sketch::place(hash);
    (register as u32) << 8 | u32::from(rank)
}

/// Terms are dealt out to this many shards by their hashes.
const SHARDS: usize = 32;
/// Forms of a part, which one thread takes: 0.3 ms of work.
const PART_FORMS: usize = 2048;
/// Words for which the table of a shard is prefetched.
const AHEAD: usize = 16;

/// Terms whose hashes have the same remainder.
#[derive(Default)]
struct TermShard {
    table: HashTable,
    terms: ShardTerms,
}

#[derive(Default, Debug)]
struct ShardTerms {
    /// In the order in which they came.
    entries: Vec<StringPlace>,
    strings: Vec<u8>,
}

impl TermShard {
    /// The place of a term among those of the shard.
    fn number(&mut self, term: &[u8], hash: u64, collection: u16) -> u32 {
        let next = self.terms.entries.len() as u32;
        let terms = &self.terms;
        let found = self.table.find_or_insert(hash, next, |n| {
            short::equal(terms.entries[n as usize].of(&terms.strings), term)
        });
        match found {
            FoundOrNew::Old(number) => number,
            FoundOrNew::New => {
                let start = self.terms.strings.len();
                let entry = StringPlace::new(start, collection, term.len());
                // As much as a short one may be copied with.
                pages::reserve(&mut self.terms.strings, term.len().max(short::PUSHED));
                short::push(term, &mut self.terms.strings);
                pages::push(&mut self.terms.entries, entry);
                next
            }
        }
    }
}

#[derive(Debug)]
pub struct Terms {
    codes: Arc<Vec<u64>>,
    shards: Vec<ShardTerms>,
}

impl Terms {
    /// Calls `f` with each term's number, trie collection and suffix.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32, u16, &[u8])) {
        for (number, &code) in (0..).zip(&*self.codes) {
            let term = FormTerm::of(code, |shard| &self.shards[shard]);
            f(number, term.collection, term.suffix());
        }
    }
}

struct FormTerm<'a> {
    collection: u16,
    suffix: FormSuffix<'a>,
}

enum FormSuffix<'a> {
    /// Zeros stand behind it.
    Short([u8; 16], usize),
    Numbered(&'a [u8]),
}

impl<'a> FormTerm<'a> {
    #[inline]
    fn of(code: u64, shard: impl FnOnce(usize) -> &'a ShardTerms) -> Self {
        match spell(code) {
            Coded::Short(Spelt { collection, suffix, len }) => {
                Self { collection, suffix: FormSuffix::Short(suffix, len) }
            }
            Coded::Number(number) => {
                let (n, at) = place_of(number);
                let ShardTerms { entries, strings } = shard(n);
                let entry = entries[at];
                let collection = entry.collection();
                let suffix = &entry.of(strings)[implied_prefix_len(collection)..];
                Self { collection, suffix: FormSuffix::Numbered(suffix) }
            }
        }
    }

    #[inline]
    fn suffix(&self) -> &[u8] {
        match &self.suffix {
            FormSuffix::Short(bytes, len) => &bytes[..*len],
            FormSuffix::Numbered(suffix) => suffix,
        }
    }
}

/// The shard of a term that the host has numbered, and its place there.
fn place_of(number: u32) -> (usize, usize) {
    (number as usize % SHARDS, number as usize / SHARDS)
}

/// A token of a form that is being learned, whose term has no code.
struct LearnedWord {
    hash: u64,
    /// Of its term, once the thread of the shard has set it.
    number: AtomicU32,
    collection: u16,
    len: u8,
}

/// The words of one shard, apart from others: no two threads write close to each other, and
/// look-ups read on and on.
#[derive(Default)]
struct OfShard {
    words: Vec<LearnedWord>,
    /// Their terms, end to end.
    strings: Vec<u8>,
}

/// Some of the forms that are learned together. Its memory is used again.
#[derive(Default)]
struct LearnedPart {
    /// Words up to the end of each form.
    ends: Vec<u32>,
    /// Of each word, the code of its term, or the shard if it has none, and where its members end.
    words: Vec<(u64, u32)>,
    members: Vec<u32>,
    /// The words of each shard that have no code, in order.
    by_shard: [OfShard; SHARDS],
    expansions: usize,
}

impl LearnedPart {
    fn read<'a>(&mut self, analysis: &Analysis, forms: impl Iterator<Item = &'a [u8]>) {
        self.ends.clear();
        self.words.clear();
        self.members.clear();
        for OfShard { words, strings } in &mut self.by_shard {
            words.clear();
            strings.clear();
        }
        self.expansions = 0;
        for form in forms {
            let before = (self.words.len(), self.members.len());
            match key_of(form) {
                Some(key) => self.form_with_key(analysis, form, hash_of_key(key)),
                None => {
                    let token = |token: &str| self.token(analysis, token);
                    analysis.for_each_token(form, token);
                }
            }
            let words = self.words.len() - before.0;
            let members = self.members.len() - before.1;
            if words > 0 && (words, members) != (1, 1) {
                self.expansions += 1 + members;
            }
            self.ends.push(self.words.len() as u32);
        }
    }

    /// A form with a key of this hash, as nearly all have: it is a token as it stands, and most are
    /// their own terms.
    fn form_with_key(&mut self, analysis: &Analysis, form: &[u8], hash: u64) {
        debug_assert!(form.is_ascii());
        // SAFETY: what has a key is ASCII.
        let token = unsafe { str::from_utf8_unchecked(form) };
        let Some(term) = analysis.analyze_token(token) else { return };
        self.members.push(member(hash));
        self.word(&term);
    }

    fn token(&mut self, analysis: &Analysis, token: &str) {
        let Some(term) = analysis.analyze_token(token) else { return };
        for_each_member(token, |hash| self.members.push(member(hash)));
        self.word(&term);
    }

    fn word(&mut self, term: &str) {
        let members = self.members.len() as u32;
        if let Some(code) = code_of(term.as_bytes()) {
            return self.words.push((code, members));
        }
        let hash = term_hash(term);
        let shard = shard_of(hash);
        self.words.push((shard as u64, members));
        let OfShard { words, strings } = &mut self.by_shard[shard];
        let number = AtomicU32::new(0);
        let collection = trie_collection(term);
        let len = term.len() as u8;
        words.push(LearnedWord { hash, number, collection, len });
        short::push(term.as_bytes(), strings);
    }

    /// Writes what the forms stand for, and their expansions, which will stand behind `place` other
    /// meanings.
    fn meanings(&self, place: usize, meanings: &mut [FormMeaning], expansions: &mut [FormMeaning]) {
        let mut word = 0;
        let mut before = 0;
        let mut filled = 0;
        let mut of_shards = self.by_shard.each_ref().map(|of| of.words.iter());
        let mut code = |code_or_shard: u64| match of_shards.get_mut(code_or_shard as usize) {
            None => code_or_shard,
            Some(words) => {
                let word = words.next().expect("each word without a code is in its shard");
                code_of_number(word.number.load(Ordering::Relaxed))
            }
        };
        for (&end, meaning) in self.ends.iter().zip(meanings) {
            let words = &self.words[word..end as usize];
            word = end as usize;
            let members = words.last().map_or(before, |&(_, members)| members as usize);
            *meaning = match words {
                [] => FormMeaning::NOTHING,
                &[(one, _)] if members - before == 1 => {
                    FormMeaning { code: code(one), member: self.members[before].into() }
                }
                _ => {
                    let place = 2 * (place + filled) as u64;
                    let mut write = |code, member| {
                        expansions[filled] = FormMeaning { code, member };
                        filled += 1;
                    };
                    write((members - before) as u64, words.len() as u64);
                    let mut at = before;
                    for &(one, members) in words {
                        // The first member comes with the term.
                        let mut code = code(one);
                        for &member in &self.members[at..members as usize] {
                            write(std::mem::replace(&mut code, NO_TERM), member.into());
                        }
                        at = members as usize;
                    }
                    FormMeaning { code: EXPANDED | place, member: 0 }
                }
            };
            before = members;
        }
    }
}

/// Numbers the terms of the words of shard `n`. The table is prefetched for words of the next part,
/// too, while those of one are looked up.
fn number(parts: &[LearnedPart], n: usize, shard: &mut TermShard) {
    let mut later = parts.iter().flat_map(|part| &part.by_shard[n].words);
    later.by_ref().take(AHEAD).for_each(|word| shard.table.prefetch(word.hash));
    for part in parts {
        let OfShard { words, strings } = &part.by_shard[n];
        let mut rest = &strings[..];
        for word in words {
            if let Some(later) = later.next() {
                shard.table.prefetch(later.hash);
            }
            let (term, behind) = rest.split_at(word.len.into());
            rest = behind;
            let place = shard.number(term, word.hash, word.collection);
            word.number.store(place * SHARDS as u32 + n as u32, Ordering::Relaxed);
        }
    }
}

/// The hash by which a term is found: that of its key, which most forms have computed already.
fn term_hash(term: &str) -> u64 {
    key_of(term.as_bytes()).map_or_else(|| hash(term.as_bytes()), hash_of_key)
}

fn shard_of(hash: u64) -> usize {
    // The table of a shard uses the upper bits.
    hash as usize % SHARDS
}

/// Forms whose words are found; only their terms are to be looked up.
#[derive(Default)]
pub(crate) struct ReadForms {
    count: usize,
    parts: Vec<LearnedPart>,
}

/// Finds the words of forms, which needs no terms.
pub(crate) struct FormReader {
    analysis: Analysis,
    threads: usize,
    crew: Crew,
    spare: Vec<LearnedPart>,
}

impl FormReader {
    /// At most this many `threads` read at once.
    pub(crate) fn new(analysis: Analysis, threads: usize) -> Self {
        Self { analysis, threads: threads.max(1), crew: Crew::new("forms"), spare: Vec::new() }
    }

    pub(crate) fn read<'a>(
        &mut self,
        count: usize,
        form: impl Fn(usize) -> &'a [u8] + Sync,
    ) -> ReadForms {
        let Self { analysis, threads, crew, spare } = self;
        let mut parts: Vec<LearnedPart> = Vec::new();
        parts.resize_with(count.div_ceil(PART_FORMS), || spare.pop().unwrap_or_default());
        let others = (*threads - 1).min(parts.len() / 2);
        crew.share(others, parts.iter_mut().enumerate().collect(), |(n, part)| {
            let forms = n * PART_FORMS..count.min((n + 1) * PART_FORMS);
            part.read(analysis, forms.map(&form));
        });
        ReadForms { count, parts }
    }

    /// Takes back the memory of forms that are learned, as much as two such batches need: later
    /// ones have fewer new forms. What has grown for forms of many words is freed.
    pub(crate) fn give_back(&mut self, forms: [ReadForms; 2]) {
        let most = 2 * forms.iter().map(|forms| forms.parts.len()).sum::<usize>();
        let parts = forms.into_iter().flat_map(|forms| forms.parts);
        self.spare.extend(parts.filter(|part| part.words.capacity() <= 4 * PART_FORMS));
        self.spare.truncate(most);
    }
}

/// The terms of a run, while a device finds forms of them.
pub(crate) struct Forms {
    threads: usize,
    crew: Crew,
    shards: Vec<TermShard>,
}

fn no_terms() -> Vec<TermShard> {
    (0..SHARDS).map(|_| TermShard::default()).collect()
}

impl Forms {
    /// At most this many `threads` learn at once.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: threads.max(1), crew: Crew::new("terms"), shards: no_terms() }
    }

    /// What forms stand for, in order, and their expansions, which will stand behind `place` other
    /// meanings. Panics if expansions would take 2^31 words: a run has ended long before.
    pub(crate) fn learn(
        &mut self,
        forms: &ReadForms,
        place: usize,
    ) -> (Vec<FormMeaning>, Vec<FormMeaning>) {
        let Self { threads, crew, shards } = self;
        let ReadForms { count, parts } = forms;
        let others = (*threads - 1).min(parts.len() / 2);
        crew.share(others, shards.iter_mut().enumerate().collect(), |(n, shard)| {
            number(parts, n, shard);
        });
        let all: usize = parts.iter().map(|part| part.expansions).sum();
        assert!(2 * (place + all) < EXPANDED as usize, "expansions take too much");
        let mut meanings = pages::zeroed(*count);
        let mut expansions = pages::zeroed(all);
        let mut rest = &mut expansions[..];
        let mut place = place;
        let told = parts.iter().zip(meanings.chunks_mut(PART_FORMS)).map(|(part, meanings)| {
            let (expansions, behind) = std::mem::take(&mut rest).split_at_mut(part.expansions);
            let here = place;
            place += part.expansions;
            rest = behind;
            (part, here, meanings, expansions)
        });
        crew.share(others, told.collect(), |(part, place, meanings, expansions)| {
            part.meanings(place, meanings, expansions);
        });
        (meanings, expansions)
    }

    /// Ends the run: its terms by the numbers of their codes, and none here any more.
    pub(crate) fn take(&mut self, codes: Arc<Vec<u64>>) -> Terms {
        let shards = std::mem::replace(&mut self.shards, no_terms());
        Terms { codes, shards: shards.into_iter().map(|shard| shard.terms).collect() }
    }
}

#[cfg(test)]
mod tests;

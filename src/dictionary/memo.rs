//! The memo of surface forms: each form is lower-cased, looked up among the stop words and stemmed
//! once; after that its term is one look-up of a 16-byte key.

mod fields;

use crate::codec::prefetch::{prefetch, prefetch_at};
use crate::dictionary::device::members::{for_each_unit, hash_of_key};
use crate::dictionary::strings::doubled::double;
use crate::dictionary::strings::hash::{FoundOrNew, HashTable, hash};
use crate::dictionary::strings::suffix::Suffix;
use crate::order::Sketch;
use crate::pages::Grown;
use crate::text::analysis::Analysis;
use crate::text::scan::{TokenKey, key_bytes, key_of};
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use bytemuck::Zeroable;
use std::sync::Arc;

/// The term number of a form that has no term: a stop word.
pub(crate) const NO_TERM: u32 = 0;

/// A term that a parser knows, and what its counter keeps with it: in one line of the cache.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct MemoTerm<S> {
    pub hash: u64,
    /// The memo's strings have a long one.
    pub suffix: Suffix,
    pub(crate) state: S,
}

#[derive(Clone, Copy, Default, PartialEq, Zeroable)]
#[repr(align(32))]
struct MemoSlot {
    key: TokenKey,
    term: u32,
    /// The last piece that had the form.
    seen: u32,
}

struct OtherForm {
    /// Its bytes among the strings.
    start: u32,
    end: u32,
    term: u32,
    /// The last piece that had it.
    seen: u32,
}

/// From surface forms to terms. Bounded: [`Memo::forget_if_full`] empties it.
pub(crate) struct Memo<S: Copy> {
    analysis: Arc<Analysis>,
    /// Forms with a key; a slot whose key is zero is free.
    slots: Grown<MemoSlot>,
    used: usize,
    /// Forms without a key, lower-cased.
    others: HashTable,
    other_forms: Vec<OtherForm>,
    terms: HashTable,
    /// Number 0 stands for all stop words.
    list: Grown<MemoTerm<S>>,
    /// By field and number of a term, the number of the term of the field, or [`NO_TERM`].
    of_fields: Vec<Vec<u32>>,
    strings: Vec<u8>,
    most_bytes: usize,
    is_full: bool,
    /// Its memory is kept when it is emptied.
    is_kept: bool,
    /// The number of the piece, and its forms so far except for stop words.
    piece: u32,
    forms: Sketch,
}

/// Keys that are learned at once.
const AT_ONCE: usize = 8;
const LEAST_SLOTS: usize = 1 << 12;
/// Only the forms of one very long document take as many slots, which are not kept, and are filled
/// further, since their bytes count more than their time.
const MANY_SLOTS: usize = 1 << 21;

/// The place of a key, in as many of the lower bits as there are slots: multiplied, every byte
/// reaches the uppermost byte, which is swapped to be the lowest.
#[inline(always)]
fn spread(key: TokenKey) -> u32 {
    let folded = key[0] ^ key[1].wrapping_mul(0xd6e8_feb8_6659_fd93);
    folded.wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes() as u32
}

fn count_form(forms: &mut Sketch, hash: u64, bytes: usize, term: u32) {
    if term != NO_TERM {
        for_each_unit(hash, bytes, |hash| forms.add(hash));
    }
}

#[inline(never)]
fn see_key(forms: &mut Sketch, key: TokenKey, term: u32) {
    // A key is shorter than a unit.
    count_form(forms, hash_of_key(key), 0, term);
}

/// The slot of a key whose [`spread`] is given, or the place for it. Probes a first slot, the other
/// one of its cache line, and then one line after the other.
///
/// If the first slot has another form, which the piece has not had, the two change places, so that
/// common forms come to be found at once. The other one is still found, for all slots between are
/// in use.
#[inline(always)]
fn find_key(
    slots: &mut [MemoSlot],
    key: TokenKey,
    spread: u32,
    piece: u32,
) -> Result<&mut MemoSlot, usize> {
    let mask = slots.len() - 1;
    let home = spread as usize & mask;
    let mut at = home;
    if slots[at].key != key {
        if slots[at].key == [0, 0] {
            return Err(at);
        }
        at ^= 1;
        let mut behind = home | 1;
        while slots[at].key != key {
            if slots[at].key == [0, 0] {
                return Err(at);
            }
            behind += 1;
            at = behind & mask;
        }
        if slots[home].seen != piece {
            slots.swap(home, at);
            at = home;
        }
    }
    Ok(&mut slots[at])
}

fn no_forms() -> Grown<MemoSlot> {
    let mut slots = Grown::default();
    slots.lengthen(LEAST_SLOTS);
    slots
}

/// With the entry for stop words.
fn no_terms<S: Copy + Default>() -> Grown<MemoTerm<S>> {
    let mut list = Grown::default();
    list.push(MemoTerm::default());
    list
}

impl<S: Copy + Default> Memo<S> {
    /// Forgets everything when it holds more than `most_bytes`.
    pub(crate) fn new(analysis: Analysis, most_bytes: usize) -> Self {
        Self {
            analysis: Arc::new(analysis),
            slots: no_forms(),
            used: 0,
            others: HashTable::default(),
            other_forms: Vec::new(),
            terms: HashTable::default(),
            list: no_terms(),
            of_fields: Vec::new(),
            strings: Vec::new(),
            most_bytes,
            is_full: false,
            is_kept: true,
            piece: 1,
            forms: Sketch::default(),
        }
    }

    /// Ends a piece. Returns the sketch of its surface forms without stop words, a member for each
    /// started [`SKETCH_UNIT_BYTES`](crate::order::SKETCH_UNIT_BYTES) of a form. A memo that is
    /// going to be [emptied](Self::forget_if_full) knows its terms until then, but no form; one
    /// that a long document has made too large frees them at once, since laying out the piece takes
    /// memory too.
    pub(crate) fn end_piece(&mut self) -> Sketch {
        let bytes = self.bytes();
        if bytes > self.most_bytes || self.used * 4 > self.slots.len() * 3 {
            self.is_full = true;
            self.is_kept = bytes <= self.most_bytes + self.most_bytes / 4;
            self.forget_forms();
        }
        // 0 stands in slots whose form no piece has had.
        self.piece = self.piece.checked_add(1).unwrap_or(1);
        std::mem::take(&mut self.forms)
    }

    /// Forgets all forms, and by which strings terms are found.
    fn forget_forms(&mut self) {
        let used = std::mem::take(&mut self.used);
        if self.is_kept {
            if used > 0 {
                self.slots.fill(MemoSlot::default());
            }
            self.others.empty();
            self.other_forms.clear();
            self.terms.empty();
        } else {
            self.slots = no_forms();
            self.others.clear();
            self.other_forms = Vec::new();
            self.terms.clear();
        }
    }

    /// Adds a form that has a known term to the sketch of the piece.
    pub(super) fn see_form(&mut self, hash: u64, bytes: usize, term: u32) {
        count_form(&mut self.forms, hash, bytes, term);
    }

    /// The number of the piece, which is never 0.
    pub(super) fn piece(&self) -> u32 {
        self.piece
    }

    pub(super) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Whether no term is known.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.len() == 1
    }

    /// All terms by their numbers, to change what is kept with them; the first stands for all stop
    /// words.
    #[inline]
    pub(super) fn terms_mut(&mut self) -> &mut [MemoTerm<S>] {
        &mut self.list
    }

    #[inline]
    pub(crate) fn term(&self, number: u32) -> &MemoTerm<S> {
        &self.list[number as usize]
    }

    #[inline]
    pub(crate) fn suffix<'a>(&'a self, term: &'a MemoTerm<S>) -> &'a [u8] {
        term.suffix.of(&self.strings)
    }

    /// A long suffix is appended to the group's strings.
    #[inline]
    pub(super) fn put_suffix(&self, term: &MemoTerm<S>, strings: &mut Vec<u8>) -> Suffix {
        term.suffix.moved(&self.strings, strings)
    }

    /// How many terms are known.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    fn bytes(&self) -> usize {
        self.slots.len() * size_of::<MemoSlot>()
            + self.others.bytes()
            + self.terms.bytes()
            + self.other_forms.len() * size_of::<OtherForm>()
            + self.list.len() * size_of::<MemoTerm<S>>()
            + self.of_fields.iter().map(|of| of.len() * size_of::<u32>()).sum::<usize>()
            + self.strings.len()
    }

    /// Forgets all forms and terms, and returns true, if they took too much memory when the last
    /// piece ended. Numbers start again from 1.
    pub(crate) fn forget_if_full(&mut self) -> bool {
        let full = self.is_full;
        if full {
            self.forget();
        }
        full
    }

    /// Forgets all forms and terms, and what their counter kept with them. Its memory is filled
    /// again: the system would have to clear new memory, some times a second.
    pub(super) fn forget(&mut self) {
        self.forget_forms();
        self.of_fields.iter_mut().for_each(|of| match self.is_kept {
            true => of.clear(),
            false => *of = Vec::new(),
        });
        if self.is_kept {
            self.list.truncate(1);
            self.list[0] = MemoTerm::default();
            self.strings.clear();
        } else {
            self.list = no_terms();
            self.strings = Vec::new();
        }
        self.is_full = false;
        self.is_kept = true;
    }

    /// Prefetches the first slot for a key, and returns what [`terms_of_keys`](Self::terms_of_keys)
    /// takes with it.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> impl Fn(TokenKey) -> u32 {
        let slots = &self.slots[..];
        move |key| {
            let spread = spread(key);
            prefetch_at(slots, spread as usize & (slots.len() - 1));
            spread
        }
    }

    /// The terms of tokens that have keys, at most [`TOGETHER`](crate::text::scan::TOGETHER), with
    /// what [`prefetch`](Self::prefetch) returned for each. Calls `known` with all terms and each
    /// that is known. Returns the bits of those that are not, whose terms stay as they are.
    #[inline(always)]
    pub(super) fn terms_of_keys(
        &mut self,
        keys: &[TokenKey],
        spreads: &[u32],
        terms: &mut [u32],
        known: impl Fn(&[MemoTerm<S>], u32),
    ) -> u128 {
        let mut unknown = 0u128;
        let slots = &mut self.slots[..];
        let list = &self.list[..];
        let piece = self.piece;
        for (i, ((term, &key), &spread)) in terms.iter_mut().zip(keys).zip(spreads).enumerate() {
            match find_key(slots, key, spread, piece) {
                Ok(slot) => {
                    *term = slot.term;
                    known(list, slot.term);
                    if slot.seen != piece {
                        slot.seen = piece;
                        see_key(&mut self.forms, key, slot.term);
                    }
                }
                Err(_) => unknown |= 1 << i,
            }
        }
        unknown
    }

    pub(super) fn term_of_key(&mut self, key: TokenKey) -> u32 {
        let mut term = [NO_TERM];
        if self.terms_of_keys(&[key], &[spread(key)], &mut term, |_, _| {}) != 0 {
            self.learn_keys(&[key], 1, &mut term, |_, _| ());
        }
        term[0]
    }

    /// Learns those of the keys that are `unknown`, by their bits, puts them among the `terms`, and
    /// has all of them counted: first those that are known already, then those that were learned.
    /// The table of terms is out of the caches, and prefetched meanwhile.
    #[cold]
    #[inline(never)]
    pub(super) fn learn_keys(
        &mut self,
        keys: &[TokenKey],
        mut unknown: u128,
        terms: &mut [u32],
        mut count: impl FnMut(&mut [MemoTerm<S>], &[u32]),
    ) {
        let analysis = Arc::clone(&self.analysis);
        let mut are_counted = false;
        while unknown != 0 {
            let mut places = [0; AT_ONCE];
            let mut tokens = [([0; 16], 0); AT_ONCE];
            let mut found = 0;
            while unknown != 0 && found < AT_ONCE {
                places[found] = unknown.trailing_zeros() as usize;
                tokens[found] = key_bytes(keys[places[found]]);
                unknown &= unknown - 1;
                found += 1;
            }
            let mut learned = [const { (None, 0) }; AT_ONCE];
            for ((bytes, len), learned) in tokens[..found].iter().zip(&mut learned) {
                let token =
                    std::str::from_utf8(&bytes[..*len]).expect("a key is ASCII letters and digits");
                let term = analysis.analyze_token(token);
                let hash = term.as_ref().map_or(0, |term| hash(term.as_bytes()));
                self.terms.prefetch(hash);
                *learned = (term, hash);
            }
            if !std::mem::replace(&mut are_counted, true) {
                count(&mut self.list, terms);
            }
            for (_, hash) in &learned[..found] {
                let known = self.terms.guess(*hash).and_then(|n| self.list.get(n as usize));
                if let Some(known) = known {
                    prefetch(known);
                }
            }
            let mut new = [NO_TERM; AT_ONCE];
            for ((&place, (stem, hash)), term) in places[..found].iter().zip(&learned).zip(&mut new)
            {
                let key = keys[place];
                // One before it may have been the same.
                *term = match find_key(&mut self.slots, key, spread(key), self.piece) {
                    Ok(slot) => slot.term,
                    Err(at) => {
                        let term = stem.as_ref().map_or(NO_TERM, |stem| self.number(stem, *hash));
                        self.learn_key(key, at, term);
                        term
                    }
                };
                terms[place] = *term;
            }
            count(&mut self.list, &new[..found]);
        }
    }

    fn learn_key(&mut self, key: TokenKey, at: usize, term: u32) {
        self.slots[at] = MemoSlot { key, term, seen: self.piece };
        see_key(&mut self.forms, key, term);
        self.used += 1;
        let used = self.used;
        let slots = self.slots.len();
        if used * 2 > slots && (used * 8 > slots * 7 || self.may_double()) {
            self.double();
        }
    }

    /// Whether the slots may double. Where not, they are filled further, and the memo is full when
    /// three quarters are in use: doubled, it would be too large when the piece ends, to be emptied
    /// at once, and its memory, far beyond what it may keep, would be taken from the system again.
    fn may_double(&self) -> bool {
        let slots = self.slots.len();
        slots < MANY_SLOTS && self.bytes() + slots * size_of::<MemoSlot>() <= self.most_bytes
    }

    fn double(&mut self) {
        let piece = self.piece;
        double::<_, 2>(&mut self.slots, |slots, slot| {
            find_key(slots, slot.key, spread(slot.key), piece).err().expect("a key has one slot")
        });
    }

    pub(crate) fn term_of_token(&mut self, token: &str) -> u32 {
        if let Some(key) = key_of(token.as_bytes()) {
            return self.term_of_key(key);
        }
        self.term_of_long(token.as_bytes())
    }

    pub(super) fn term_of_long(&mut self, token: &[u8]) -> u32 {
        let next = self.other_forms.len() as u32;
        let forms = &self.other_forms;
        let strings = &self.strings;
        let hash = hash(token);
        let found = self.others.find_or_insert(hash, next, |n| {
            let form = &forms[n as usize];
            &strings[form.start as usize..form.end as usize] == token
        });
        let number = match found {
            FoundOrNew::Old(number) => number,
            FoundOrNew::New => {
                let start = self.strings.len() as u32;
                self.strings.extend_from_slice(token);
                let end = u32::try_from(self.strings.len()).expect("forms take less than 4 GiB");
                let term = self.analyze(str::from_utf8(token).expect("tokens are UTF-8"));
                self.other_forms.push(OtherForm { start, end, term, seen: 0 });
                next
            }
        };
        let form = &mut self.other_forms[number as usize];
        let term = form.term;
        if form.seen != self.piece {
            form.seen = self.piece;
            count_form(&mut self.forms, hash, token.len(), term);
        }
        term
    }

    fn analyze(&mut self, token: &str) -> u32 {
        let analysis = Arc::clone(&self.analysis);
        let Some(term) = analysis.analyze_token(token) else { return NO_TERM };
        let hash = hash(term.as_bytes());
        self.number(&term, hash)
    }

    /// The number of a term, new if it has none.
    fn number(&mut self, term: &str, hash: u64) -> u32 {
        self.number_in(trie_collection(term), term, hash)
    }

    #[inline]
    fn number_in(&mut self, collection: u16, term: &str, hash: u64) -> u32 {
        let bytes = &term.as_bytes()[implied_prefix_len(collection)..];
        let suffix = Suffix::new(collection, bytes);
        let next = self.list.len() as u32;
        let list = &self.list;
        let strings = &self.strings;
        let found = self.terms.find_or_insert(hash, next, |n| {
            let t = &list[n as usize];
            t.hash == hash && t.suffix.same(strings, &suffix, bytes)
        });
        match found {
            FoundOrNew::Old(n) => n,
            FoundOrNew::New => {
                let suffix = suffix.moved(bytes, &mut self.strings);
                self.list.push(MemoTerm { hash, suffix, state: S::default() });
                next
            }
        }
    }
}

#[cfg(test)]
mod tests;

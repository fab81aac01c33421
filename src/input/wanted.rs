//! The documents of an input that are indexed, where only some of them are.

use crate::codec::prefetch::prefetch;
use crate::pages;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use twox_hash::XxHash3_64;

#[derive(Debug)]
pub(crate) enum WantedInput {
    At(WantedDocuments),
    /// None; all are noted.
    None,
    /// Those that have a name; others are skipped.
    Named,
    /// Those that are not known; all others are noted too
    /// ([`PieceSeen`](crate::index::documents::pieces::PieceSeen)).
    Unknown(KnownDocuments),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WantedDocuments {
    offsets: Vec<Vec<u64>>,
}

impl WantedDocuments {
    pub(crate) fn new(inputs: usize) -> Self {
        Self { offsets: vec![Vec::new(); inputs] }
    }

    /// Wants a document; `offset` is that of its location.
    ///
    /// # Panics
    /// When there is no such input, or the document is not behind the others.
    pub(crate) fn push(&mut self, input: u32, offset: u64) {
        let offsets = &mut self.offsets[input as usize];
        assert!(offsets.last().is_none_or(|&last| last < offset), "documents come in order");
        offsets.push(offset);
    }

    pub(crate) fn contains(&self, input: u32, offset: u64) -> bool {
        let offsets = self.offsets.get(input as usize);
        offsets.is_some_and(|offsets| offsets.binary_search(&offset).is_ok())
    }
}

/// Documents that an index has, by name and hash of the content.
///
/// A document that is there is always found. One that is not may be found too: with a probability
/// of n / 2^64 for n documents, and where it has no name and some document whose name was made of
/// file and line has its content.
///
/// Several threads may add documents.
#[derive(Debug, Default)]
pub(crate) struct KnownDocuments {
    named: KnownKeys,
    /// Of documents whose names may be made of file and line: keys without them. As a rule there
    /// are none, and no page of it is touched.
    nameless: KnownKeys,
}

/// Keys of 64 bits stand in the order of the documents: most files are read in the order in which
/// the index has them, so that the next key is that of the next document. Others are looked up in a
/// table, where the number of a key lies near the place that its name has, so that this line can be
/// brought into the cache while the content is hashed. Where many documents have one name, those
/// that find no place there lie where their keys say.
#[derive(Debug, Default)]
struct KnownKeys {
    /// By the numbers of documents; 0 where there is none.
    keys: Vec<AtomicU64>,
    /// Numbers of documents, and 1; 0 where there is none. There are 2^n of them.
    slots: Vec<AtomicU32>,
    /// 64 less n.
    shift: u32,
}

/// A document's name, as it is looked for; none if it is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedName(Option<u64>);

/// Where the next document may be, as the last ones were found: behind the last one, or behind one
/// before it, if documents of two runs lie among each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextKnown {
    numbers: [usize; 2],
    /// The last document was not where it was expected.
    is_lost: bool,
}

/// Slots behind the place of a name where its keys may lie.
const NEAR: usize = 16;

/// Documents that wait for their slots to come into the cache.
const COMING: usize = 16;

/// Documents from where one is expected: that, and one in whose place another has come.
const EXPECTED: usize = 2;

impl KnownDocuments {
    /// So many documents, at most.
    pub(crate) const MOST: u64 = u32::MAX as u64 - 1;

    pub(crate) fn bytes_of(documents: u64) -> u64 {
        2 * (slots_of(documents) * size_of::<u32>() as u64 + documents * size_of::<u64>() as u64)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.named.bytes() + self.nameless.bytes()
    }

    pub(crate) fn with_capacity(documents: usize) -> Self {
        let [named, nameless] = std::array::from_fn(|_| KnownKeys::with_capacity(documents));
        Self { named, nameless }
    }

    /// Adds documents, each under a number of its own.
    ///
    /// # Panics
    /// If there is no room for a number.
    pub(crate) fn insert_all<E>(
        &self,
        read: impl FnOnce(&mut dyn FnMut(usize, &[u8], u64)) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut coming = VecDeque::new();
        let put = |(number, name, content)| self.named.put(number, name, content);
        read(&mut |number, name, content| {
            if coming.len() == COMING {
                coming.pop_front().into_iter().for_each(put);
            }
            let hash = XxHash3_64::oneshot(name);
            self.named.prefetch(hash);
            coming.push_back((number, hash, content));
            // The line of a document without a name is known when all before it are counted, which
            // is later.
            let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 && name[..name.len() - digits].ends_with(b":") {
                self.nameless.put(number, content, content);
            }
        })?;
        coming.into_iter().for_each(put);
        Ok(())
    }

    /// Begins to look for a document by its name, which is empty if it is missing: what will be
    /// needed is brought into the cache.
    #[inline]
    pub(crate) fn look_for(&self, next: &NextKnown, name: &[u8]) -> WantedName {
        let named = (!name.is_empty()).then(|| XxHash3_64::oneshot(name));
        if let (Some(named), true) = (named, next.is_lost) {
            self.named.prefetch(named);
        }
        WantedName(named)
    }

    #[inline]
    pub(crate) fn contains(
        &self,
        next: &mut NextKnown,
        WantedName(name): WantedName,
        content: u64,
    ) -> bool {
        let keys = if name.is_some() { &self.named } else { &self.nameless };
        let key = key_of(name.unwrap_or(content), content);
        let [first, other] = next.numbers;
        for (from, before) in [(first, other), (other, first)] {
            let is_it = |number: &usize| keys.key(*number) == Some(key);
            if let Some(number) = (from..from + EXPECTED).find(is_it) {
                *next = NextKnown { numbers: [number + 1, before], is_lost: false };
                return true;
            }
        }
        next.is_lost = true;
        if keys.slots.is_empty() {
            return false;
        }
        let found = keys.find(name.unwrap_or(content), key);
        if let Ok(number) = found {
            next.numbers = [number + 1, first];
        }
        found.is_ok()
    }
}

impl KnownKeys {
    fn with_capacity(documents: usize) -> Self {
        let slots = slots_of(documents as u64);
        let shift = 64 - slots.trailing_zeros();
        Self { keys: pages::zeroed(documents), slots: pages::zeroed(slots as usize), shift }
    }

    fn bytes(&self) -> u64 {
        (size_of_val(&*self.slots) + size_of_val(&*self.keys)) as u64
    }

    #[inline]
    fn prefetch(&self, name: u64) {
        if !self.slots.is_empty() {
            prefetch(&self.slots[self.home(name)]);
        }
    }

    #[inline]
    fn key(&self, number: usize) -> Option<u64> {
        self.keys.get(number).map(|key| key.load(Ordering::Relaxed))
    }

    fn put(&self, number: usize, name: u64, content: u64) {
        let key = key_of(name, content);
        self.keys[number].store(key, Ordering::Relaxed);
        while let Err(slot) = self.find(name, key) {
            let slot = &self.slots[slot];
            // Another thread may have taken the slot meanwhile.
            if slot
                .compare_exchange(0, number as u32 + 1, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Finds the number of a key, or the slot where that belongs. Keys are never removed: behind a
    /// free slot there is nothing.
    #[inline]
    fn find(&self, name: u64, key: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let near = (0..NEAR).map(|more| self.home(name) + more);
        let far = (0..self.slots.len()).map(|more| self.home(key) + more);
        for at in near.chain(far).map(|at| at & mask) {
            match self.slots[at].load(Ordering::Acquire) {
                0 => return Err(at),
                more => {
                    let number = more as usize - 1;
                    if self.key(number) == Some(key) {
                        return Ok(number);
                    }
                }
            }
        }
        unreachable!("a fifth of the slots is free")
    }
}

/// Both are hashes; 0 is no key.
fn key_of(name: u64, content: u64) -> u64 {
    (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ content).max(1)
}

/// Slots for this many documents: at least five for four.
fn slots_of(documents: u64) -> u64 {
    (documents * 5 / 4).max(64).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn insert(
        known: &KnownDocuments,
        all: impl IntoIterator<Item = (usize, impl AsRef<[u8]>, u64)>,
    ) {
        let insert = |take: &mut dyn FnMut(usize, &[u8], u64)| {
            all.into_iter()
                .for_each(|(number, name, content)| take(number, name.as_ref(), content));
            Ok::<_, Infallible>(())
        };
        let Ok(()) = known.insert_all(insert);
    }

    fn contains(known: &KnownDocuments, name: &str, content: u64) -> bool {
        let mut next = NextKnown::default();
        let wanted = known.look_for(&next, name.as_bytes());
        known.contains(&mut next, wanted, content)
    }

    #[test]
    fn a_document_that_was_added_is_known() {
        let known = KnownDocuments::with_capacity(4);
        insert(&known, [(3, "a", 1), (1, "b", 2), (2, "docs/c.jsonl:17", 3), (0, "", 0)]);
        assert!(contains(&known, "a", 1) && contains(&known, "b", 2));
        assert!(contains(&known, "docs/c.jsonl:17", 3));
        assert!(!contains(&known, "a", 2) && !contains(&known, "c", 1) && !contains(&known, "", 1));
        // It may be that document: its line is not known yet.
        assert!(contains(&known, "", 3));
        assert!(!contains(&KnownDocuments::default(), "a", 1));
    }

    #[test]
    fn oracle_a_set_of_pairs_also_of_one_name() {
        for names in [1, 7, 100_000] {
            let known = KnownDocuments::with_capacity(3000);
            let pair =
                |n: u64| (format!("name:{}", n % names), XxHash3_64::oneshot(&n.to_le_bytes()));
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let known = &known;
                    let numbered = move |number: usize| {
                        let (name, content) = pair(number as u64);
                        (number, name, content)
                    };
                    let all = (thread..3000).step_by(3).map(numbered);
                    scope.spawn(move || insert(known, all));
                }
            });
            assert!((0..3000).map(pair).all(|(name, content)| contains(&known, &name, content)));
            assert!(
                !(3000..6000).map(pair).any(|(name, content)| contains(&known, &name, content))
            );
            assert_eq!(known.memory_bytes(), KnownDocuments::bytes_of(3000));
            // In order, also of two places by turns, with and without names, among unknown ones.
            let mut next = NextKnown::default();
            for number in (0..1000).flat_map(|n| [n, 1500 + n, 3000 + n]) {
                let (name, content) = pair(number);
                let name = if number % 5 == 0 { "" } else { &name };
                let wanted = known.look_for(&next, name.as_bytes());
                assert_eq!(known.contains(&mut next, wanted, content), number < 3000, "{number}");
                assert_eq!(next.is_lost, number >= 3000 || number == 1500, "{number}");
            }
        }
    }
}

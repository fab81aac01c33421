//! The documents of an input that are indexed, where only some of them are.

use crate::codec::prefetch::prefetch;
use crate::pages;
use std::sync::atomic::{AtomicU64, Ordering};
use twox_hash::XxHash3_64;

#[derive(Debug)]
pub(crate) enum WantedInput {
    At(WantedDocuments),
    /// None; all are noted.
    None,
    /// Those that have a name; others are skipped.
    Named,
    /// Those that are not known; all others are noted too
    /// ([`PieceDocuments::see`](crate::index::documents::pieces::PieceDocuments::see)).
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
/// A key of 64 bits for each lies near the place that its name has, so that this line can be
/// brought into the cache while the content is hashed. Where many documents have one name, those
/// that find no place there lie where their keys say. Several threads may add documents.
#[derive(Debug, Default)]
pub(crate) struct KnownDocuments {
    /// Keys; 0 where there is none. There are 2^n of them.
    slots: Vec<AtomicU64>,
    /// 64 less n.
    shift: u32,
}

/// A document's name, as it is looked for; none if it is missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedName(Option<u64>);

/// Slots behind the place of a name where its keys may lie.
const NEAR: usize = 16;

impl KnownDocuments {
    pub(crate) fn bytes_of(documents: u64) -> u64 {
        slots_of(documents) * size_of::<u64>() as u64
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.slots.len() * size_of::<u64>()) as u64
    }

    pub(crate) fn with_capacity(documents: usize) -> Self {
        let slots = slots_of(documents as u64);
        let shift = 64 - slots.trailing_zeros();
        Self { slots: pages::zeroed(slots as usize), shift }
    }

    /// # Panics
    /// If there is no room for it.
    pub(crate) fn insert(&self, name: &[u8], content: u64) {
        self.put(XxHash3_64::oneshot(name), content);
        // The line of a document without a name is known when all before it are counted, which is
        // later.
        let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && name[..name.len() - digits].ends_with(b":") {
            self.put(content, content);
        }
    }

    /// Begins to look for a document by its name, which is empty if it is missing: what will be
    /// needed is brought into the cache.
    #[inline]
    pub(crate) fn look_for(&self, name: &[u8]) -> WantedName {
        let named = (!name.is_empty()).then(|| XxHash3_64::oneshot(name));
        if let (Some(named), false) = (named, self.slots.is_empty()) {
            prefetch(&self.slots[self.home(named)]);
        }
        WantedName(named)
    }

    #[inline]
    pub(crate) fn contains(&self, WantedName(name): WantedName, content: u64) -> bool {
        !self.slots.is_empty() && self.find(name.unwrap_or(content), content).is_ok()
    }

    fn put(&self, name: u64, content: u64) {
        while let Err((at, key)) = self.find(name, content) {
            // Another thread may have taken the slot meanwhile.
            let free =
                self.slots[at].compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            if free.is_ok() {
                return;
            }
        }
    }

    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// Finds a document, or the slot where its key belongs. Keys are never removed: behind a free
    /// slot there is nothing.
    #[inline]
    fn find(&self, name: u64, content: u64) -> Result<(), (usize, u64)> {
        // Both are hashes; 0 is no key.
        let key = (name.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ content).max(1);
        let mask = self.slots.len() - 1;
        let near = (0..NEAR).map(|more| self.home(name) + more);
        let far = (0..self.slots.len()).map(|more| self.home(key) + more);
        for at in near.chain(far).map(|at| at & mask) {
            match self.slots[at].load(Ordering::Relaxed) {
                0 => return Err((at, key)),
                other if other == key => return Ok(()),
                _ => {}
            }
        }
        panic!("there is room for as many documents as was said")
    }
}

/// Slots for this many documents, of which some have two keys: at least five for two.
fn slots_of(documents: u64) -> u64 {
    (documents * 5 / 2).max(64).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(known: &KnownDocuments, name: &str, content: u64) -> bool {
        known.contains(known.look_for(name.as_bytes()), content)
    }

    #[test]
    fn a_document_that_was_added_is_known() {
        let known = KnownDocuments::with_capacity(4);
        known.insert(b"a", 1);
        known.insert(b"b", 2);
        known.insert(b"docs/c.jsonl:17", 3);
        known.insert(b"", 0);
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
                    scope.spawn(move || {
                        for (name, content) in (thread..3000).step_by(3).map(pair) {
                            known.insert(name.as_bytes(), content);
                        }
                    });
                }
            });
            assert!((0..3000).map(pair).all(|(name, content)| contains(&known, &name, content)));
            assert!(
                !(3000..6000).map(pair).any(|(name, content)| contains(&known, &name, content))
            );
            assert_eq!(known.memory_bytes(), KnownDocuments::bytes_of(3000));
        }
    }
}

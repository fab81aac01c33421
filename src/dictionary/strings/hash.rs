//! An open-addressing table from hashes to numbers of strings; the strings themselves stay with the
//! caller.

use super::doubled::double;
use crate::codec::prefetch::prefetch;
use crate::pages::Grown;
use twox_hash::XxHash3_64;

/// For terms, surface forms, and names of documents.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The half of a hash that a slot keeps.
const UPPER: u64 = 0xffff_ffff_0000_0000;

/// Its lower bits are the first slot for a hash: those of the half that the slot keeps.
#[inline(always)]
fn home(hash: u64) -> usize {
    (hash >> 32) as usize
}

#[inline(always)]
fn free(slots: &[u64], slot: u64) -> usize {
    let mask = slots.len() - 1;
    let mut at = home(slot) & mask;
    while slots[at] != 0 {
        at = (at + 1) & mask;
    }
    at
}

/// A table of numbers below 2^32 - 1, found by hash and comparison. A slot is 8 bytes: the upper
/// half of the hash, and the number plus one. Linear probing; the table doubles when it is more
/// than 70 % full.
#[derive(Default)]
pub(crate) struct HashTable {
    slots: Grown<u64>,
    used: usize,
}

/// What [`HashTable::find_or_insert`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundOrNew {
    Old(u32),
    /// The given number, which is there now.
    New,
}

impl HashTable {
    /// So many slots, a power of two, are there from the beginning.
    pub(crate) fn with_slots(count: usize) -> Self {
        let mut slots = Grown::default();
        slots.lengthen(count);
        Self { slots, used: 0 }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Forgets all numbers and frees the memory.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Forgets all numbers and keeps the memory.
    pub(crate) fn empty(&mut self) {
        if self.used > 0 {
            self.slots.fill(0);
            self.used = 0;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        home(hash) & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if !self.slots.is_empty() {
            prefetch(&self.slots[self.home(hash)]);
        }
    }

    /// The number that a search for `hash` finds if no other hash has the same upper half.
    #[inline]
    pub(crate) fn guess(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.probe(hash, same).ok()
    }

    #[inline]
    pub(crate) fn find_or_insert(
        &mut self,
        hash: u64,
        number: u32,
        same: impl FnMut(u32) -> bool,
    ) -> FoundOrNew {
        debug_assert!(number < u32::MAX);
        if self.used * 10 >= self.slots.len() * 7 {
            self.grow();
        }
        match self.probe(hash, same) {
            Ok(old) => FoundOrNew::Old(old),
            Err(free) => {
                self.slots[free] = (hash & UPPER) | (u64::from(number) + 1);
                self.used += 1;
                FoundOrNew::New
            }
        }
    }

    /// Finds the number with this hash for which `same` holds, or the free slot where it belongs.
    /// There are slots.
    #[inline(always)]
    fn probe(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let upper = hash & UPPER;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            if slot & UPPER == upper && same(slot as u32 - 1) {
                return Ok(slot as u32 - 1);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(1 << 10);
        assert!(slots <= 1 << 32, "a table's numbers have 32 bits");
        if self.slots.is_empty() {
            self.slots.lengthen(slots);
        } else {
            double::<_, 1>(&mut self.slots, |slots, slot| free(slots, *slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Numbers strings as a map does, also when many hashes agree in the half that is kept.
        #[test]
        fn oracle_numbers_like_a_map(keys in prop::collection::vec(0u32..3000, 0..6000), bits in 0u32..33) {
            let weak = |key: u32| hash(&key.to_le_bytes()) & !(u64::MAX << 32 << bits);
            let mut table = HashTable::default();
            let mut strings: Vec<u32> = Vec::new();
            let mut map: HashMap<u32, u32> = HashMap::new();
            for key in keys {
                let next = strings.len() as u32;
                match table.find_or_insert(weak(key), next, |n| strings[n as usize] == key) {
                    FoundOrNew::New => {
                        strings.push(key);
                        prop_assert_eq!(map.insert(key, next), None);
                    }
                    FoundOrNew::Old(n) => prop_assert_eq!(map.get(&key), Some(&n)),
                }
            }
            prop_assert_eq!(table.len(), map.len());
            for key in 0..3000 {
                let found = table.find(weak(key), |n| strings[n as usize] == key);
                prop_assert_eq!(found, map.get(&key).copied());
            }
        }
    }
}

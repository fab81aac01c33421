//! Which lists are in the memory of a device, where, and which have to go?
//!
//! The arena is one piece of memory; lists are ranges of it. A list that is asked for comes in if there is
//! room, or if it is asked for more often than those that would have to go: what keeping a list saves is
//! its bytes as often as it is asked for, and what it costs is its bytes, so the number of times decides.
//! Old times fade. A list that a batch is reading stays.

use super::list::Placed;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Ranges begin at multiples of so many bytes: no line of a cache has bytes of two lists, so that a kernel
/// that reads one keeps nothing of what the other was before.
const APART: u64 = 256;

/// Free and used ranges of some bytes.
#[derive(Debug)]
pub struct Ranges {
    /// Free ranges: first byte and bytes. No two touch.
    free: BTreeMap<u64, u64>,
    left: u64,
}

impl Ranges {
    /// All of `bytes` are free.
    pub fn new(bytes: u64) -> Self {
        let bytes = bytes / APART * APART;
        let free = if bytes > 0 { BTreeMap::from([(0, bytes)]) } else { BTreeMap::new() };
        Self { free, left: bytes }
    }

    /// Free bytes, which may lie in pieces.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes `bytes` in one piece, the first that is large enough.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).next_multiple_of(APART);
        let (&at, &len) = self.free.iter().find(|&(_, &len)| len >= bytes)?;
        self.free.remove(&at);
        if len > bytes {
            self.free.insert(at + bytes, len - bytes);
        }
        self.left -= bytes;
        Some(at)
    }

    /// Gives back what [`take`](Self::take) gave.
    pub fn give(&mut self, mut at: u64, bytes: u64) {
        let mut bytes = bytes.max(1).next_multiple_of(APART);
        self.left += bytes;
        if let Some((&before, &len)) = self.free.range(..at).next_back()
            && before + len == at
        {
            self.free.remove(&before);
            (at, bytes) = (before, bytes + len);
        }
        if let Some(len) = self.free.remove(&(at + bytes)) {
            bytes += len;
        }
        self.free.insert(at, bytes);
    }
}

/// Where a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the arena, readable.
    Here(u64, Placed),
    /// On its way.
    Coming,
    /// Not there.
    Away,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    bytes: u64,
    /// Batches that read it, and queries that wait for it.
    pins: u32,
    times: u32,
}

/// The lists of an arena.
#[derive(Debug)]
pub struct Residency<K> {
    ranges: Ranges,
    entries: HashMap<K, Entry>,
    /// Times of all entries since they were last halved.
    asked: u64,
    /// Bytes that came in.
    pub loaded_bytes: u64,
    /// Lists that had to go.
    pub evicted: u64,
}

/// Times are halved after so many.
const FADE: u64 = 1 << 20;

impl<K: Clone + Eq + Hash> Residency<K> {
    /// An empty arena of `bytes`.
    pub fn new(bytes: u64) -> Self {
        let ranges = Ranges::new(bytes);
        Self { ranges, entries: HashMap::new(), asked: 0, loaded_bytes: 0, evicted: 0 }
    }

    /// Asks for a list, pins it and says where it is.
    pub fn ask(&mut self, key: &K) -> Place {
        self.fade();
        match self.entries.get_mut(key) {
            Some(entry) => {
                entry.times = entry.times.saturating_add(1);
                entry.pins += 1;
                entry.place
            }
            None => {
                let entry = Entry { place: Place::Away, bytes: 0, pins: 1, times: 1 };
                self.entries.insert(key.clone(), entry);
                Place::Away
            }
        }
    }

    /// Where a list is.
    pub fn place(&self, key: &K) -> Place {
        self.entries.get(key).map_or(Place::Away, |entry| entry.place)
    }

    /// Takes a pin away.
    pub fn unpin(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.pins = entry.pins.saturating_sub(1);
        }
    }

    /// Says that somebody fetches a list.
    pub fn fetch(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.place = Place::Coming;
        }
    }

    /// Makes room for a list that comes; `None` if there is none, and the list is away.
    pub fn make_room(&mut self, key: &K, bytes: u64) -> Option<u64> {
        let at = self.ranges.take(bytes).or_else(|| self.evict_for(key, bytes));
        let entry = self.entries.get_mut(key)?;
        match at {
            Some(_) => entry.bytes = bytes,
            None => entry.place = Place::Away,
        }
        at
    }

    /// The list is where [`make_room`](Self::make_room) said.
    pub fn arrived(&mut self, key: &K, at: u64, placed: Placed) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.place = Place::Here(at, placed);
            self.loaded_bytes += entry.bytes;
        }
    }

    /// A list that was to come does not: `at` is what [`make_room`](Self::make_room) had given.
    pub fn failed(&mut self, key: &K, at: Option<u64>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.place = Place::Away;
            if let Some(at) = at {
                self.ranges.give(at, entry.bytes);
            }
        }
    }

    /// Lists that nobody reads and that are asked for less often go until there is room.
    fn evict_for(&mut self, key: &K, bytes: u64) -> Option<u64> {
        let times = self.entries.get(key)?.times;
        let can_go = |entry: &Entry| {
            matches!(entry.place, Place::Here(..)) && entry.pins == 0 && entry.times <= times
        };
        let mut going: Vec<(u32, u64, K)> = self
            .entries
            .iter()
            .filter(|(_, entry)| can_go(entry))
            .map(|(key, entry)| (entry.times, entry.bytes, key.clone()))
            .collect();
        let all: u64 = going.iter().map(|(_, bytes, _)| bytes).sum();
        if self.ranges.left() + all < bytes {
            return None;
        }
        going.sort_by_key(|&(times, bytes, _)| (times, std::cmp::Reverse(bytes)));
        // A little more than is needed, so that this is not done for each list.
        let spare = all / 16;
        let mut found = None;
        let mut freed = 0;
        for (_, _, key) in going {
            if found.is_some() && freed >= spare {
                break;
            }
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            if let Place::Here(at, _) = entry.place {
                self.ranges.give(at, entry.bytes);
                freed += entry.bytes;
                entry.place = Place::Away;
                self.evicted += 1;
            }
            if found.is_none() {
                found = self.ranges.take(bytes);
            }
        }
        found
    }

    /// Halves all times now and then, and forgets lists that are away and were asked for once.
    fn fade(&mut self) {
        self.asked += 1;
        if self.asked < FADE {
            return;
        }
        self.asked = 0;
        self.entries.retain(|_, entry| {
            entry.times /= 2;
            entry.times > 0 || entry.pins > 0 || entry.place != Place::Away
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bring(lists: &mut Residency<u32>, key: u32, bytes: u64) -> bool {
        if let Place::Here(..) = lists.ask(&key) {
            lists.unpin(&key);
            return true;
        }
        lists.fetch(&key);
        let at = lists.make_room(&key, bytes);
        if let Some(at) = at {
            lists.arrived(&key, at, Placed::default());
        }
        lists.unpin(&key);
        at.is_some()
    }

    #[test]
    fn what_is_asked_for_more_often_stays() {
        let mut lists = Residency::new(4096);
        for _ in 0..3 {
            assert!(bring(&mut lists, 1, 2560));
        }
        assert!(bring(&mut lists, 2, 1536));
        // No list of its size was asked for as rarely; the second time there is one.
        assert!(!bring(&mut lists, 3, 2560));
        assert!(bring(&mut lists, 4, 1536), "as often as list 2");
        assert_eq!(lists.place(&2), Place::Away);
        assert!(!bring(&mut lists, 3, 2560));
        assert!(bring(&mut lists, 3, 2560), "as often as list 1 now");
        assert_eq!(lists.place(&1), Place::Away);
        assert!(!bring(&mut lists, 5, 4097), "more than there is");
    }

    #[test]
    fn a_list_that_is_read_stays() {
        let mut lists = Residency::new(1024);
        assert!(bring(&mut lists, 1, 1024));
        assert_eq!(lists.ask(&1), Place::Here(0, Placed::default()));
        for _ in 0..9 {
            assert!(!bring(&mut lists, 2, 1024));
        }
        lists.unpin(&1);
        assert!(bring(&mut lists, 2, 1024));
        lists.ask(&3);
        lists.fetch(&3);
        lists.failed(&3, None);
        assert_eq!(lists.place(&3), Place::Away);
    }

    proptest! {
        #[test]
        fn law_ranges_never_overlap_and_all_come_back(
            steps in prop::collection::vec((any::<bool>(), 1..3200u64, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut ranges = Ranges::new(32_000);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (takes, bytes, which) in steps {
                if takes || taken.is_empty() {
                    if let Some(at) = ranges.take(bytes) {
                        let end = at + bytes.next_multiple_of(APART);
                        prop_assert!(end <= 32_000);
                        prop_assert!(taken.iter().all(|&(a, b)| end <= a || a + b.next_multiple_of(APART) <= at));
                        taken.push((at, bytes));
                    }
                } else {
                    let (at, bytes) = taken.swap_remove(which.index(taken.len()));
                    ranges.give(at, bytes);
                }
            }
            for (at, bytes) in taken {
                ranges.give(at, bytes);
            }
            prop_assert_eq!((ranges.left(), ranges.free.len()), (32_000, 1));
        }
    }
}

//! The cache of lists in the memory of a device: which are there, where, and which are evicted.
//!
//! The arena is one piece of memory; lists are ranges of it. A list that is asked for comes in, and
//! those that were asked for least often go: caching a list saves its bytes as often as it is asked
//! for, and costs its bytes, so the number of times decides. Old times fade. A list that a query
//! waits for or a batch is reading is pinned; callers watch how much that is.

use super::list::PlacedList;
use crate::codec::prefetch::prefetch_at;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// Ranges begin at multiples of this, so that no cache line has bytes of two lists, of which a
/// kernel could see one as it was.
const APART: u64 = 256;

/// Free and used ranges of some bytes.
#[derive(Debug)]
pub struct FreeRanges {
    /// First byte and bytes; no two touch.
    free: BTreeMap<u64, u64>,
    left: u64,
}

impl FreeRanges {
    pub fn new(bytes: u64) -> Self {
        let bytes = bytes / APART * APART;
        let free = if bytes > 0 { BTreeMap::from([(0, bytes)]) } else { BTreeMap::new() };
        Self { free, left: bytes }
    }

    /// Which may be fragmented.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// First fit.
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

    /// Frees what [`take`](Self::take) returned.
    pub(crate) fn give(&mut self, mut at: u64, bytes: u64) {
        let mut bytes = bytes.max(1).next_multiple_of(APART);
        self.left += bytes;
        if let Some((&before, &len)) = self.free.range(..at).next_back()
            && before + len == at
        {
            self.free.remove(&before);
            at = before;
            bytes += len;
        }
        if let Some(len) = self.free.remove(&(at + bytes)) {
            bytes += len;
        }
        self.free.insert(at, bytes);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Residence {
    Here(u64, PlacedList),
    Coming,
    Away,
}

/// Valid while the list is pinned; a list that was forgotten leaves its number to another.
pub(crate) type ListId = u32;

#[derive(Debug)]
struct ResidentList {
    place: Residence,
    /// What it takes, or about what it will; 0 if it is away.
    bytes: u64,
    /// Batches that read it, and queries that wait for it.
    pins: u32,
    times: u32,
}

/// The lists of an arena.
#[derive(Debug)]
pub(crate) struct Residency {
    ranges: FreeRanges,
    /// By where a list begins in each run. Every term of every query is looked up by one thread.
    ids: HashMap<SmallVec<[u64; 2]>, ListId, foldhash::fast::RandomState>,
    entries: Vec<ResidentList>,
    /// Of lists that were forgotten.
    unused: Vec<ListId>,
    /// Requests since times were last halved.
    asked: u64,
    /// Bytes of lists with pins.
    pinned: u64,
    pub loaded_bytes: u64,
}

/// Requests after which times are halved.
const FADE: u64 = 1 << 20;

impl Residency {
    pub(crate) fn new(bytes: u64) -> Self {
        let ranges = FreeRanges::new(bytes);
        let (ids, entries, unused) = Default::default();
        Self { ranges, ids, entries, unused, asked: 0, pinned: 0, loaded_bytes: 0 }
    }

    /// The number of a list that is soon [asked for](Self::ask), which it keeps until then.
    pub(crate) fn find(&mut self, key: &[u64]) -> ListId {
        if let Some(&id) = self.ids.get(key) {
            // Callers find all lists of a query before they ask for the first.
            prefetch_at(&self.entries, id as usize);
            return id;
        }
        let entry = ResidentList { place: Residence::Away, bytes: 0, pins: 0, times: 0 };
        let id = match self.unused.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as ListId - 1
            }
        };
        self.ids.insert(key.into(), id);
        id
    }

    /// Pins the list.
    pub(crate) fn ask(&mut self, id: ListId) -> Residence {
        let entry = &mut self.entries[id as usize];
        entry.times = entry.times.saturating_add(1);
        if entry.pins == 0 {
            self.pinned += entry.bytes;
        }
        entry.pins += 1;
        self.asked += 1;
        entry.place
    }

    pub(crate) fn place(&self, id: ListId) -> Residence {
        self.entries[id as usize].place
    }

    pub(crate) fn unpin(&mut self, id: ListId) {
        let entry = &mut self.entries[id as usize];
        if entry.pins == 1 {
            self.pinned -= entry.bytes;
        }
        entry.pins = entry.pins.saturating_sub(1);
    }

    /// With those under way.
    pub(crate) fn pinned(&self) -> u64 {
        self.pinned
    }

    fn set_bytes(&mut self, id: ListId, bytes: u64) {
        let entry = &mut self.entries[id as usize];
        if entry.pins > 0 {
            self.pinned = self.pinned - entry.bytes + bytes;
        }
        entry.bytes = bytes;
    }

    /// Notes that a list is fetched, which takes about this many bytes.
    pub(crate) fn fetch(&mut self, id: ListId, bytes: u64) {
        self.entries[id as usize].place = Residence::Coming;
        self.set_bytes(id, bytes);
    }

    /// Makes room for a list that comes; `None` if there is none. The list is still coming until
    /// [`arrived`](Self::arrived) or [`failed`](Self::failed): a query that asks meanwhile waits
    /// too, and it cannot go before those who wait know that it is there.
    pub(crate) fn make_room(&mut self, id: ListId, bytes: u64) -> Option<u64> {
        let at = self.ranges.take(bytes).or_else(|| self.evict_for(bytes));
        if at.is_some() {
            self.set_bytes(id, bytes);
        }
        at
    }

    /// The list is where [`make_room`](Self::make_room) said. By the thread that tells who waits.
    pub(crate) fn arrived(&mut self, id: ListId, at: u64, placed: PlacedList) {
        let entry = &mut self.entries[id as usize];
        entry.place = Residence::Here(at, placed);
        self.loaded_bytes += entry.bytes;
    }

    /// The list does not come; `at` is from [`make_room`](Self::make_room).
    pub(crate) fn failed(&mut self, id: ListId, at: Option<u64>) {
        let entry = &mut self.entries[id as usize];
        entry.place = Residence::Away;
        if let Some(at) = at {
            self.ranges.give(at, entry.bytes);
        }
        self.set_bytes(id, 0);
    }

    /// Evicts lists without pins until there is room, least often asked for first.
    fn evict_for(&mut self, bytes: u64) -> Option<u64> {
        let can_go =
            |entry: &ResidentList| matches!(entry.place, Residence::Here(..)) && entry.pins == 0;
        let mut going: Vec<(u32, u64, usize)> = (0..)
            .zip(&self.entries)
            .filter(|(_, entry)| can_go(entry))
            .map(|(number, entry)| (entry.times, entry.bytes, number))
            .collect();
        let all: u64 = going.iter().map(|&(_, bytes, _)| bytes).sum();
        if self.ranges.left() + all < bytes {
            return None;
        }
        going.sort_unstable_by_key(|&(times, bytes, _)| (times, std::cmp::Reverse(bytes)));
        // A little more than is needed, so that this is not done for each list.
        let spare = all / 16;
        let mut found = None;
        let mut freed = 0;
        for (_, _, number) in going {
            if found.is_some() && freed >= spare {
                break;
            }
            let entry = &mut self.entries[number];
            if let Residence::Here(at, _) = entry.place {
                self.ranges.give(at, entry.bytes);
                freed += entry.bytes;
                entry.place = Residence::Away;
                entry.bytes = 0;
            }
            if found.is_none() {
                found = self.ranges.take(bytes);
            }
        }
        found
    }

    /// Halves all times now and then, and forgets lists that are away and were asked for once.
    pub(crate) fn fade(&mut self) {
        if self.asked < FADE {
            return;
        }
        self.asked = 0;
        let Self { ids, entries, unused, .. } = self;
        ids.retain(|_, id| {
            let entry = &mut entries[*id as usize];
            entry.times /= 2;
            let stays =
                entry.times > 0 || entry.pins > 0 || !matches!(entry.place, Residence::Away);
            if !stays {
                unused.push(*id);
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(lists: &mut Residency, key: u64) -> (ListId, Residence) {
        lists.fade();
        let id = lists.find(&[key]);
        (id, lists.ask(id))
    }

    fn bring(lists: &mut Residency, key: u64, bytes: u64) -> bool {
        let (id, place) = ask(lists, key);
        if let Residence::Here(..) = place {
            lists.unpin(id);
            return true;
        }
        lists.fetch(id, bytes);
        let at = lists.make_room(id, bytes);
        match at {
            Some(at) => lists.arrived(id, at, PlacedList::default()),
            None => lists.failed(id, None),
        }
        lists.unpin(id);
        at.is_some()
    }

    fn place(lists: &Residency, key: u64) -> Residence {
        lists.place(lists.ids[&[key][..]])
    }

    #[test]
    fn what_is_asked_for_more_often_stays() {
        let mut lists = Residency::new(4096);
        for _ in 0..3 {
            assert!(bring(&mut lists, 1, 2560));
        }
        assert!(bring(&mut lists, 2, 1536));
        assert!(bring(&mut lists, 3, 1536), "list 2 goes");
        assert_eq!(place(&lists, 2), Residence::Away);
        assert_eq!(place(&lists, 1), Residence::Here(0, PlacedList::default()));
        assert!(bring(&mut lists, 4, 2560), "list 3 is not enough");
        assert_eq!((place(&lists, 3), place(&lists, 1)), (Residence::Away, Residence::Away));
        assert!(!bring(&mut lists, 5, 4097), "more than there is");
    }

    #[test]
    fn a_list_that_is_read_stays() {
        let mut lists = Residency::new(1024);
        assert!(bring(&mut lists, 1, 1024));
        let (one, place) = ask(&mut lists, 1);
        assert_eq!(place, Residence::Here(0, PlacedList::default()));
        for _ in 0..9 {
            assert!(!bring(&mut lists, 2, 1024));
        }
        lists.unpin(one);
        assert!(bring(&mut lists, 2, 1024));
        let (three, _) = ask(&mut lists, 3);
        lists.fetch(three, 64);
        lists.failed(three, None);
        assert_eq!(lists.place(three), Residence::Away);
    }

    /// A query that waited for it is dropped since another of its lists has no room; a second query
    /// asks before anybody has told that the list is there.
    #[test]
    fn a_list_that_is_on_its_way_cannot_go() {
        let mut lists = Residency::new(1024);
        let (one, place) = ask(&mut lists, 1);
        assert_eq!(place, Residence::Away);
        lists.fetch(one, 1000);
        let at = lists.make_room(one, 1024).expect("all is free");
        lists.unpin(one);
        for _ in 0..9 {
            assert!(!bring(&mut lists, 2, 1024), "the place of a list that comes was taken");
        }
        assert_eq!(ask(&mut lists, 1), (one, Residence::Coming));
        lists.arrived(one, at, PlacedList::default());
        assert_eq!(lists.place(one), Residence::Here(at, PlacedList::default()));
        assert!(!bring(&mut lists, 2, 1024), "it is pinned");
        lists.unpin(one);
        assert!(bring(&mut lists, 2, 1024));
    }

    #[test]
    fn what_is_forgotten_makes_room_for_others() {
        let mut lists = Residency::new(1024);
        assert!(bring(&mut lists, 0, 1024));
        let (kept, _) = ask(&mut lists, 1);
        for key in 2..9 {
            let (id, _) = ask(&mut lists, key);
            lists.unpin(id);
        }
        lists.asked = FADE;
        let (new, _) = ask(&mut lists, 9);
        assert_eq!((lists.ids.len(), lists.entries.len()), (3, 9), "0 is there, 1 is pinned");
        assert!(new != kept && place(&lists, 0) == Residence::Here(0, PlacedList::default()));
    }

    #[test]
    fn what_is_pinned_is_counted() {
        let mut lists = Residency::new(4096);
        let (one, _) = ask(&mut lists, 1);
        lists.fetch(one, 1000);
        assert_eq!(lists.pinned(), 1000);
        let at = lists.make_room(one, 1200).unwrap();
        ask(&mut lists, 1);
        lists.unpin(one);
        assert_eq!(lists.pinned(), 1200);
        lists.arrived(one, at, PlacedList::default());
        lists.unpin(one);
        assert_eq!(lists.pinned(), 0);
        let (two, _) = ask(&mut lists, 2);
        lists.fetch(two, 500);
        lists.failed(two, None);
        assert_eq!(lists.pinned(), 0);
    }

    proptest! {
        #[test]
        fn law_ranges_never_overlap_and_all_come_back(
            steps in prop::collection::vec((any::<bool>(), 1..3200u64, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut ranges = FreeRanges::new(32_000);
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

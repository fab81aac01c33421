//! Lists that come to a device with the batch that asks for them, and the host's cache of these. A
//! batch brings each list once. Laying a list out takes longer than copying it: the host caches the
//! last ones, and lays out lists of queries that come ahead, by several threads.

use super::lists::{ByList, DevicePart, ListKey, by_threads};
use crate::crew::{Crew, lock};
use crate::gpu::floor::arrays::ALIGNMENT;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Its description, and its bytes.
pub(crate) type Bytes<L> = (L, Arc<[u8]>);

#[derive(Debug)]
pub(in crate::papers) struct Travelling<L> {
    /// In the order of their places.
    lists: Vec<(ListKey, usize, Arc<[u8]>)>,
    places: ByList<(u64, L)>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::papers) struct TravellingTerm<L> {
    /// In bytes, on the device or among those that travel.
    pub(in crate::papers) place: u64,
    pub(in crate::papers) laid: L,
    pub(in crate::papers) travels: bool,
    pub(in crate::papers) weight: f32,
}

impl<L> Default for Travelling<L> {
    fn default() -> Self {
        Self { lists: Vec::new(), places: HashMap::default(), bytes: 0 }
    }
}

impl<L: Copy> Travelling<L> {
    /// The place and description of a list, which `lay` lays out behind the others if it is new.
    fn place<E>(
        &mut self,
        key: &ListKey,
        lay: impl FnOnce() -> Result<Bytes<L>, E>,
    ) -> Result<(u64, L), E> {
        if let Some(&place) = self.places.get(key) {
            return Ok(place);
        }
        let (laid, bytes) = lay()?;
        let place = (self.bytes as u64, laid);
        self.places.insert(key.clone(), place);
        let end = self.bytes + bytes.len();
        self.lists.push((key.clone(), self.bytes, bytes));
        self.bytes = end.next_multiple_of(ALIGNMENT);
        Ok(place)
    }

    /// Places the lists of a query: on the device, if `asked` says so, or among these. `lay` lays
    /// out one that is in neither, by its number in the query.
    ///
    /// # Errors
    /// What `lay` returns; none was added.
    pub(in crate::papers) fn place_all<'a, E>(
        &mut self,
        asked: impl IntoIterator<Item = (&'a ListKey, Option<(u64, L)>, f32)>,
        mut lay: impl FnMut(usize) -> Result<Bytes<L>, E>,
    ) -> Result<Vec<TravellingTerm<L>>, E> {
        let before = self.lists.len();
        let placed = asked.into_iter().enumerate().map(|(number, (key, on_device, weight))| {
            let (place, laid) = match on_device {
                Some(place) => place,
                None => self.place(key, || lay(number))?,
            };
            Ok(TravellingTerm { place, laid, travels: on_device.is_none(), weight })
        });
        placed.collect::<Result<_, E>>().inspect_err(|_| self.truncate(before))
    }

    pub(in crate::papers) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Forgets all but the first `len`.
    pub(in crate::papers) fn truncate(&mut self, len: usize) {
        for (key, at, _) in self.lists.drain(len..).rev() {
            self.places.remove(&key);
            self.bytes = at;
        }
    }

    pub(in crate::papers) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Each list; the next one begins at the next multiple of [`ALIGNMENT`].
    pub(in crate::papers) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.lists.iter().map(|(_, _, bytes)| &bytes[..])
    }
}

/// A cache of lists in their layout for a device, on the host.
#[derive(Debug)]
pub struct KeptLists<L, S> {
    lists: ByList<Bytes<L>>,
    /// In the order in which they came.
    order: VecDeque<ListKey>,
    layer: S,
    room: Vec<u8>,
    bytes: u64,
    most: u64,
}

impl<L: Copy + Send, S: Default + Send> KeptLists<L, S> {
    pub(crate) fn new(most: u64) -> Self {
        let lists = HashMap::default();
        let order = VecDeque::new();
        let layer = S::default();
        Self { lists, order, layer, room: Vec::new(), bytes: 0, most }
    }

    /// Calls `lay` if the list is not cached.
    pub(crate) fn list<E>(
        &mut self,
        key: &ListKey,
        lay: impl FnOnce(&mut S, &mut Vec<u8>) -> Result<L, E>,
    ) -> Result<Bytes<L>, E> {
        if let Some((laid, bytes)) = self.lists.get(key) {
            return Ok((*laid, bytes.clone()));
        }
        self.room.clear();
        let laid = lay(&mut self.layer, &mut self.room)?;
        let bytes: Bytes<L> = (laid, self.room.as_slice().into());
        self.put(key.clone(), bytes.clone());
        Ok(bytes)
    }

    fn put(&mut self, key: ListKey, bytes: Bytes<L>) {
        let len = bytes.1.len() as u64;
        if len > self.most || self.lists.contains_key(&key) {
            return;
        }
        while self.bytes + len > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self.lists.remove(&oldest).map_or(0, |(_, bytes)| bytes.len() as u64);
        }
        self.bytes += len;
        self.order.push_back(key.clone());
        self.lists.insert(key, bytes);
    }

    /// Lays out lists that are not cached, by several threads, until all new ones have no room.
    ///
    /// # Errors
    /// What `lay` returns for one of them; others are cached all the same.
    pub(crate) fn lay_ahead<'a, E: Send>(
        &mut self,
        wanted: impl IntoIterator<Item = (&'a ListKey, &'a DevicePart)>,
        crew: &mut Crew,
        threads: usize,
        lay: impl Fn(&mut S, &DevicePart, &mut Vec<u8>) -> Result<L, E> + Sync,
    ) -> Result<(), E> {
        let mut known = HashSet::new();
        let wanted = wanted.into_iter();
        let wanted: Vec<_> = wanted
            .filter(|(key, _)| !self.lists.contains_key(*key) && known.insert(*key))
            .collect();
        let most = self.most;
        let state = Mutex::new((self, 0));
        by_threads(&wanted, crew, threads, |layer, room, (key, list)| {
            let laid = lay(layer, list, room)?;
            let bytes: Bytes<L> = (laid, room.as_slice().into());
            let (kept, new) = &mut *lock(&state);
            *new += bytes.1.len() as u64;
            // New ones must not replace each other: the first are needed first.
            let fits = *new <= most;
            if fits {
                kept.put((*key).clone(), bytes);
            }
            Ok(fits)
        })
    }

    /// If it is cached.
    pub fn bytes_of(&self, key: &ListKey) -> Option<u64> {
        self.lists.get(key).map(|(_, bytes)| bytes.len() as u64)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::lexicon::TermEntry;

    /// The list of a number, which is its place in a run.
    fn part(offset: u8) -> DevicePart {
        DevicePart::whole([Some(TermEntry {
            df: 1,
            offset: offset.into(),
            bytes: 1,
            ..TermEntry::default()
        })])
    }

    /// The list of a number has as many bytes.
    fn lay(bytes: u8, out: &mut Vec<u8>) -> Result<u8, String> {
        out.resize(bytes.into(), bytes);
        if bytes == 99 { Err("damaged".into()) } else { Ok(bytes) }
    }

    #[test]
    fn those_that_came_last_are_kept() {
        let mut kept = KeptLists::<u8, ()>::new(100);
        let mut ask =
            |list: u8| kept.list(&part(list).key(), |(), out| lay(list, out)).map(|(laid, _)| laid);
        for key in [40, 30, 20, 40] {
            assert_eq!(ask(key), Ok(key));
        }
        // The oldest makes room, and a list that is larger than the cache is not cached.
        assert_eq!([ask(25), ask(101), ask(99)], [Ok(25), Ok(101), Err("damaged".into())]);
        let there = [20, 25, 30, 40, 99, 101].map(|list| kept.bytes_of(&part(list).key()));
        assert_eq!(there, [Some(20), Some(25), Some(30), None, None, None]);
        assert_eq!(kept.bytes(), 75);
    }

    #[test]
    fn lists_are_laid_out_ahead_as_far_as_they_have_room() {
        for threads in [1, 3] {
            let mut kept = KeptLists::<u8, ()>::new(100);
            let mut crew = Crew::new("test");
            let mut ahead = |lists: &[u8], threads| {
                let parts: Vec<_> =
                    lists.iter().map(|&list| (part(list).key(), part(list))).collect();
                let wanted = parts.iter().map(|(key, part)| (key, part));
                kept.lay_ahead(wanted, &mut crew, threads, |(), part, out| {
                    lay(part.key()[0] as u8, out)
                })?;
                Ok::<u64, String>(kept.bytes())
            };
            assert_eq!(ahead(&[10, 20, 10, 30], threads), Ok(60));
            assert_eq!(ahead(&[5, 99], 1), Err("damaged".into()));
            assert_eq!(ahead(&[], 1), Ok(65));
            ahead(&[90, 80, 70], threads).unwrap();
            assert!((70..=100).contains(&kept.bytes()), "{}", kept.bytes());
        }
    }

    #[test]
    fn a_batch_has_each_list_once_and_forgets_the_last_ones() {
        let mut batch = Travelling::<u8>::default();
        let place = |batch: &mut Travelling<u8>, key: u8| {
            let list =
                || lay(key, &mut Vec::new()).map(|laid| (laid, vec![key; key.into()].into()));
            batch.place(&part(key).key(), list)
        };
        assert_eq!(place(&mut batch, 5), Ok((0, 5)));
        assert_eq!(place(&mut batch, 17), Ok((16, 17)));
        assert_eq!(place(&mut batch, 5), Ok((0, 5)));
        assert_eq!((batch.len(), batch.bytes()), (2, 48));
        assert!(place(&mut batch, 99).is_err());
        assert_eq!(place(&mut batch, 3), Ok((48, 3)));
        batch.truncate(1);
        assert_eq!((batch.len(), batch.bytes()), (1, 16));
        assert_eq!(place(&mut batch, 3), Ok((16, 3)));
        // One on the device, one that is there, a new one, and one that cannot be laid out.
        let mut all = |keys: &[u8]| {
            let lists: Vec<_> = keys.iter().map(|&key| part(key).key()).collect();
            let asked = lists.iter().map(|key| (key, (key[0] == 1).then_some((1000, 1)), 1.0));
            let list =
                |n: usize| lay(keys[n], &mut Vec::new()).map(|laid| (laid, vec![0; 8].into()));
            batch.place_all(asked, list)
        };
        assert!(all(&[1, 5, 8, 99]).is_err());
        let placed = all(&[1, 5, 9]).unwrap();
        let placed: Vec<_> = placed.iter().map(|of| (of.place, of.laid, of.travels)).collect();
        assert_eq!(placed, [(1000, 1, false), (0, 5, true), (32, 9, true)]);
        batch.truncate(2);
        let parts: Vec<_> = batch.parts().map(<[u8]>::len).collect();
        assert_eq!(parts, [5, 3]);
    }
}

//! Which lists that travel does the host keep laid out? Those that were laid out last, as many as have room: to lay a
//! list out takes longer than to copy it. Who knows the queries that come has their lists laid out ahead, by several
//! threads.

use super::batch::{Bytes, Key};
use super::list::ListLayer;
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::index::lexicon::TermEntry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lists as they lie on a device, whole.
#[derive(Debug)]
pub struct Kept {
    lists: HashMap<Key, Bytes>,
    /// In the order in which they came.
    order: VecDeque<Key>,
    layer: ListLayer,
    room: Vec<u8>,
    bytes: u64,
    most: u64,
}

impl Kept {
    /// Room for so many bytes of lists.
    pub fn new(most: u64) -> Self {
        let (lists, order, layer) = (HashMap::new(), VecDeque::new(), ListLayer::default());
        Self { lists, order, layer, room: Vec::new(), bytes: 0, most }
    }

    /// The list of the only run of a generation.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn list(&mut self, generation: &Generation, entry: TermEntry) -> Result<Bytes, IndexError> {
        if let Some((laid, bytes)) = self.lists.get(&entry.offset) {
            return Ok((*laid, bytes.clone()));
        }
        self.room.clear();
        let laid = self.layer.lay(generation, entry, None, &mut self.room)?;
        let bytes: Bytes = (laid, self.room.as_slice().into());
        self.put(entry.offset, bytes.clone());
        Ok(bytes)
    }

    /// Keeps a list, in the place of those that have been there longest.
    fn put(&mut self, key: Key, bytes: Bytes) {
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
        self.order.push_back(key);
        self.lists.insert(key, bytes);
    }

    /// Lays out those of some lists that are not kept, by so many threads, until these have no more room all together.
    ///
    /// # Errors
    /// When one is damaged; others are kept all the same.
    pub fn lay_ahead(
        &mut self,
        generation: &Generation,
        entries: impl IntoIterator<Item = TermEntry>,
        threads: usize,
    ) -> Result<(), IndexError> {
        let mut wanted = HashSet::new();
        let is_new = |entry: &TermEntry| {
            !self.lists.contains_key(&entry.offset) && wanted.insert(entry.offset)
        };
        let entries: Vec<TermEntry> = entries.into_iter().filter(is_new).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let (threads, most) = (threads.clamp(1, entries.len()), self.most);
        let (next, state) = (AtomicUsize::new(0), Mutex::new((self, 0)));
        let work = || -> Result<(), IndexError> {
            let (mut layer, mut room) = (ListLayer::default(), Vec::new());
            while let Some(&entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                room.clear();
                let laid = layer.lay(generation, entry, None, &mut room)?;
                let bytes: Bytes = (laid, room.as_slice().into());
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                let (kept, new) = &mut *state;
                *new += bytes.1.len() as u64;
                // Those that are laid out now are not to take each other's place: the first are needed first.
                if *new > most {
                    break;
                }
                kept.put(entry.offset, bytes);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let done = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
            done.fold(mine, Result::and)
        })
    }

    /// Bytes that a list takes on a device, if it is kept.
    pub fn bytes_of(&self, key: Key) -> Option<u64> {
        self.lists.get(&key).map(|(_, bytes)| bytes.len() as u64)
    }

    /// Bytes of all lists.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

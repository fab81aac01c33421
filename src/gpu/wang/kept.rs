//! Which lists that travel does the host keep laid out? Those that were laid out first, as many as have room: to lay a
//! list out takes longer than to copy it.

use super::batch::{Bytes, Key};
use super::list::ListLayer;
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::index::lexicon::TermEntry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lists as they lie on a device, whole.
#[derive(Debug)]
pub struct Kept {
    lists: HashMap<Key, Bytes>,
    layer: ListLayer,
    room: Vec<u8>,
    bytes: u64,
    most: u64,
}

impl Kept {
    /// Room for so many bytes of lists.
    pub fn new(most: u64) -> Self {
        let (lists, layer) = (HashMap::new(), ListLayer::default());
        Self { lists, layer, room: Vec::new(), bytes: 0, most }
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
        self.put(entry.offset, &bytes);
        Ok(bytes)
    }

    fn put(&mut self, key: Key, (laid, bytes): &Bytes) {
        let len = bytes.len() as u64;
        if self.bytes + len <= self.most && self.lists.insert(key, (*laid, bytes.clone())).is_none()
        {
            self.bytes += len;
        }
    }

    /// Lays lists out ahead, by so many threads; those that have no room are left out.
    ///
    /// # Errors
    /// When one is damaged.
    pub fn lay_ahead(
        &mut self,
        generation: &Generation,
        entries: &[TermEntry],
        threads: usize,
    ) -> Result<(), IndexError> {
        let (next, state) = (AtomicUsize::new(0), Mutex::new(self));
        let work = || -> Result<(), IndexError> {
            let (mut layer, mut room) = (ListLayer::default(), Vec::new());
            while let Some(&entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                room.clear();
                let laid = layer.lay(generation, entry, None, &mut room)?;
                let bytes = (laid, room.as_slice().into());
                state.lock().unwrap_or_else(PoisonError::into_inner).put(entry.offset, &bytes);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
            done.collect()
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

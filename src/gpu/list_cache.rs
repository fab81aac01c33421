//! Lists that are on a device for good: as many as its memory has room for, those first that matter
//! most. Whoever keeps them says which they are and how they lie there.

use super::query::residency::Ranges;
use crate::crew::lock;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The lists of a device by their keys: where each is, in bytes, and how it lies there.
#[derive(Debug)]
pub struct ListCache<K, L> {
    lists: HashMap<K, (u64, L)>,
    bytes: u64,
    left_out: usize,
}

impl<K, L> Default for ListCache<K, L> {
    fn default() -> Self {
        Self { lists: HashMap::new(), bytes: 0, left_out: 0 }
    }
}

impl<K: Eq + Hash + Send, L: Copy + Send> ListCache<K, L> {
    /// Fills the first `most` bytes of `arena` with the lists that are wanted, by so many threads,
    /// until one has no room. Each thread has a `layer` of its own, by which `lay` writes a list
    /// and says its key; a list that it fails to write is left out: who is asked for it finds that
    /// too.
    pub(in crate::gpu) fn fill<W: Sync, S: Default, E>(
        wanted: &[W],
        (device, arena, most): (&Device, &Slab, u64),
        threads: usize,
        lay: impl Fn(&mut S, &W, &mut Vec<u8>) -> Result<(K, L), E> + Sync,
    ) -> Result<Self, GpuError> {
        let ranges = Ranges::new(most.min(arena.bytes()));
        let state = Mutex::new((ranges, Self::default()));
        let (next, full) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<(), GpuError> {
            let (mut layer, mut bytes) = (S::default(), Vec::new());
            while !full.load(Ordering::Relaxed) {
                let Some(list) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                bytes.clear();
                let Ok((key, laid)) = lay(&mut layer, list, &mut bytes) else {
                    continue;
                };
                let Some(at) = lock(&state).0.take(bytes.len() as u64) else {
                    full.store(true, Ordering::Relaxed);
                    break;
                };
                let written = arena.write(at, &bytes);
                written.map_err(|e| device.call("copy a list to the device", e))?;
                let cache = &mut lock(&state).1;
                cache.lists.insert(key, (at, laid));
                cache.bytes += bytes.len() as u64;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
            done.collect::<Result<(), _>>()
        })?;
        let (_, cache) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self { left_out: wanted.len() - cache.lists.len(), ..cache })
    }

    /// Where a list is, and how it lies there.
    pub(crate) fn place<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<(u64, L)>
    where
        K: Borrow<Q>,
    {
        self.lists.get(key).copied()
    }
}

impl<K, L> ListCache<K, L> {
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lists that were to be there and had no room, or are damaged.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

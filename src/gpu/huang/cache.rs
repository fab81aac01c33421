//! Which lists are on the device for good? Those of more than one block, the longest first, until its memory is full
//! (section 4.1): short ones travel soon, and are nearly all.

use super::batch::Key;
use super::list::{BLOCK, Laid, ListLayer, Worth};
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::query::fetch::NO_LIST;
use crate::gpu::query::residency::Ranges;
use crate::gpu::query::slab::Slab;
use crate::index::browse::for_each_term;
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::index::lexicon::TermEntry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The lists that are on a device for good.
#[derive(Debug, Default)]
pub struct Cache {
    lists: HashMap<Key, (u64, Laid)>,
    bytes: u64,
    left_out: usize,
}

/// The key of the list with these entries.
pub(super) fn write_key(entries: impl IntoIterator<Item = Option<TermEntry>>, key: &mut Vec<u64>) {
    key.clear();
    key.extend(entries.into_iter().map(|entry| entry.map_or(NO_LIST, |entry| entry.offset)));
}

impl Cache {
    /// Fills `arena` with lists, by so many threads. A list that is damaged is left out: who is asked for it finds
    /// that too.
    ///
    /// # Errors
    /// The lexicon is damaged, or the device takes no copy.
    pub(super) fn fill(
        generation: &Generation,
        worth: Worth<'_>,
        (device, arena): (&Device, &Slab),
        threads: usize,
    ) -> Result<Self, GpuError> {
        let mut long = Vec::new();
        let runs = generation.runs().len();
        for_each_term::<IndexError>(generation, |term| {
            let df = term.df();
            if df > BLOCK as u64 {
                let mut entries = vec![None; runs].into_boxed_slice();
                term.lists.iter().for_each(|&(run, entry)| entries[run] = Some(entry));
                long.push((df, entries));
            }
            Ok(())
        })
        .map_err(|source| GpuError::Index {
            device: device.info().to_string(),
            source: Box::new(source),
        })?;
        long.sort_by_key(|&(df, _)| std::cmp::Reverse(df));
        let state = Mutex::new((Ranges::new(arena.bytes()), HashMap::new(), 0));
        let (next, full) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<(), GpuError> {
            let (mut layer, mut bytes, mut key) = (ListLayer::default(), Vec::new(), Vec::new());
            while !full.load(Ordering::Relaxed) {
                let Some((_, entries)) = long.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                bytes.clear();
                let Ok(laid) = layer.lay(generation, entries, worth, &mut bytes) else {
                    continue;
                };
                let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(at) = lock().0.take(bytes.len() as u64) else {
                    full.store(true, Ordering::Relaxed);
                    break;
                };
                let written = arena.write(at, &bytes);
                written.map_err(|e| device.call("copy a list to the device", e))?;
                write_key(entries.iter().copied(), &mut key);
                let mut state = lock();
                state.1.insert(Key::from(&key[..]), (at, laid));
                state.2 += bytes.len() as u64;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
            let done = threads.into_iter().map(|thread| thread.join().expect("a thread panicked"));
            done.collect::<Result<(), _>>()
        })?;
        let (_, lists, bytes) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self { left_out: long.len() - lists.len(), lists, bytes })
    }

    /// Where a list is, and how it lies there.
    pub fn place(&self, key: &[u64]) -> Option<(u64, Laid)> {
        self.lists.get(key).copied()
    }

    /// Lists.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lists of more than one block that had no room, or are damaged.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

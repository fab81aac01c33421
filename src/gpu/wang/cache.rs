//! Which lists are on the device for good? Those of a plan, whole or their first blocks, as many as its memory has room
//! for; without a plan whole lists of more than one block, the longest first.

use super::batch::Key;
use super::list::{Laid, ListLayer};
use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::query::residency::Ranges;
use crate::gpu::query::slab::Slab;
use crate::index::browse::for_each_term;
use crate::index::error::IndexError;
use crate::index::generation::Generation;
use crate::index::lexicon::TermEntry;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A list of the only run that is to be cached: all of it, or so many of its first blocks.
pub type Wanted = (TermEntry, Option<usize>);

/// Whole lists of more than one block, the longest first.
///
/// # Errors
/// When the lexicon is damaged.
///
/// # Panics
/// If the generation has no run.
pub fn longest(generation: &Generation) -> Result<Vec<Wanted>, IndexError> {
    let mut wanted = Vec::new();
    let block_len = generation.runs()[0].postings_header().form.block_len();
    for_each_term::<IndexError>(generation, |term| {
        let long = term.lists.iter().filter(|(_, entry)| entry.df as usize > block_len);
        wanted.extend(long.map(|&(_, entry)| (entry, None)));
        Ok(())
    })?;
    wanted.sort_by_key(|(entry, _)| std::cmp::Reverse(entry.df));
    Ok(wanted)
}

/// The lists that are on a device for good.
#[derive(Debug, Default)]
pub struct Cache {
    lists: HashMap<Key, (u64, Laid)>,
    bytes: u64,
    left_out: usize,
}

impl Cache {
    /// Fills the first `most` bytes of `arena` with lists, by so many threads, until one has no room. A list that is
    /// damaged is left out: who is asked for it finds that too.
    ///
    /// # Errors
    /// The device takes no copy.
    pub(super) fn fill(
        generation: &Generation,
        wanted: &[Wanted],
        (device, arena, most): (&Device, &Slab, u64),
        threads: usize,
    ) -> Result<Self, GpuError> {
        let ranges = Ranges::new(most.min(arena.bytes()));
        let state = Mutex::new((ranges, Self::default()));
        let (next, full) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || -> Result<(), GpuError> {
            let (mut layer, mut bytes) = (ListLayer::default(), Vec::new());
            while !full.load(Ordering::Relaxed) {
                let Some(&(entry, blocks)) = wanted.get(next.fetch_add(1, Ordering::Relaxed))
                else {
                    break;
                };
                bytes.clear();
                let Ok(laid) = layer.lay(generation, entry, blocks, &mut bytes) else {
                    continue;
                };
                let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(at) = lock().0.take(bytes.len() as u64) else {
                    full.store(true, Ordering::Relaxed);
                    break;
                };
                let written = arena.write(at, &bytes);
                written.map_err(|e| device.call("copy a list to the device", e))?;
                let cache = &mut lock().1;
                cache.lists.insert(entry.offset, (at, laid));
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
    pub fn place(&self, key: Key) -> Option<(u64, Laid)> {
        self.lists.get(&key).copied()
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

    /// Lists that were to be there and had no room, or are damaged.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

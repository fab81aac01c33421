//! Lists that are on a device for good: as many as its memory has room for, most important first. A
//! method chooses them and lays them out.

use crate::crew::{Crew, lock};
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::for_each_term;
use crate::index::lexicon::TermEntry;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lists begin at multiples of this, so that no cache line has bytes of two.
const APART: u64 = 256;

/// By run.
pub(crate) type ListEntries = Box<[Option<TermEntry>]>;

/// Where the list begins in each run of the index, or `u64::MAX`.
pub(crate) type ListKey = Box<[u64]>;

/// Of the arrays of a list.
pub(in crate::gpu) const ALIGNMENT: usize = 16;

/// Appends an array, and padding.
pub(in crate::gpu) fn put(out: &mut Vec<u8>, array: &[u8]) {
    out.extend_from_slice(array);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

pub(in crate::gpu) fn key_of(entries: &[Option<TermEntry>]) -> ListKey {
    entries.iter().map(|entry| entry.map_or(u64::MAX, |entry| entry.offset)).collect()
}

/// The lists of more than one block, the longest first: short ones are nearly all, and travel fast.
pub(in crate::gpu) fn longest(generation: &Generation) -> Result<Vec<ListEntries>, IndexError> {
    let runs = generation.runs();
    let Some(first) = runs.first() else { return Ok(Vec::new()) };
    let block_len = first.postings_header().form.block_len() as u64;
    let mut long = Vec::new();
    for_each_term::<IndexError>(generation, |term| {
        let df = term.df();
        if df > block_len {
            let mut entries = vec![None; runs.len()].into_boxed_slice();
            term.lists.iter().for_each(|&(run, entry)| entries[run] = Some(entry));
            long.push((df, entries));
        }
        Ok(())
    })?;
    long.sort_by_key(|&(df, _)| Reverse(df));
    Ok(long.into_iter().map(|(_, entries)| entries).collect())
}

/// Runs `each` on `work` by threads of a crew, each with a layer and a buffer, until it returns
/// false.
///
/// # Errors
/// What `each` returns; nobody begins another piece then.
pub(super) fn by_threads<W: Sync, S: Default, E: Send>(
    work: &[W],
    crew: &mut Crew,
    threads: usize,
    each: impl Fn(&mut S, &mut Vec<u8>, &W) -> Result<bool, E> + Sync,
) -> Result<(), E> {
    let ended = AtomicBool::new(false);
    let done = |(layer, room): &mut (S, Vec<u8>), number: usize| {
        room.clear();
        if !ended.load(Ordering::Relaxed) && !each(layer, room, &work[number])? {
            ended.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    crew.in_order(threads, work.len(), done).map(drop)
}

/// The lists of a device: place and description of each.
#[derive(Debug)]
pub struct ListCache<K, L> {
    lists: HashMap<K, (u64, L)>,
    /// Where the next one may begin.
    end: u64,
    /// One found no room.
    full: bool,
    bytes: u64,
    left_out: usize,
}

impl<K, L> Default for ListCache<K, L> {
    fn default() -> Self {
        Self { lists: HashMap::new(), end: 0, full: false, bytes: 0, left_out: 0 }
    }
}

impl<K: Eq + Hash + Send, L: Copy + Send> ListCache<K, L> {
    /// Brings lists, behind those that are there, to the first `most` bytes of `arena`, by several
    /// threads, until one has no room. `lay` writes a list with the thread's layer and returns its
    /// key; a list on which it fails is left out: whoever asks for it finds that error too.
    pub(super) fn bring<W: Sync, S: Default, E>(
        &mut self,
        wanted: &[W],
        arena: &Slab,
        most: u64,
        crew: &mut Crew,
        threads: usize,
        lay: impl Fn(&mut S, &W, &mut Vec<u8>) -> Result<(K, L), E> + Sync,
    ) -> Result<(), GpuError> {
        let before = self.lists.len();
        let most = most.min(arena.bytes());
        let cache = Mutex::new(&mut *self);
        by_threads(wanted, crew, threads, |layer, bytes, list| {
            let Ok((key, laid)) = lay(layer, list, bytes) else { return Ok(true) };
            let len = bytes.len() as u64;
            let at = {
                let mut cache = lock(&cache);
                let at = cache.end;
                if at + len > most {
                    cache.full = true;
                    return Ok(false);
                }
                cache.end = (at + len).next_multiple_of(APART);
                at
            };
            arena.write(at, bytes)?;
            let mut cache = lock(&cache);
            cache.lists.insert(key, (at, laid));
            cache.bytes += len;
            Ok(true)
        })?;
        self.left_out += before + wanted.len() - self.lists.len();
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub fn place(&self, key: &K) -> Option<(u64, L)> {
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

    /// Lists that had no room, or are damaged.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

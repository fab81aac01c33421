//! Lists that are on a device for good: as many as its memory has room for, those first that matter
//! most. A method says which they are and how they lie there.

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

/// Lists begin at multiples of so many bytes: no line of a cache has bytes of two.
const APART: u64 = 256;

/// The list of a term, by its entries in all runs.
pub(crate) type ListEntries = Box<[Option<TermEntry>]>;

/// A list by where it lies in each run of the index: bytes before it, or `u64::MAX`.
pub(crate) type ListKey = Box<[u64]>;

/// Arrays of a list begin at multiples of so many bytes.
pub(in crate::gpu) const ALIGNMENT: usize = 16;

/// Puts an array of a list behind others, and room up to where the next one begins.
pub(in crate::gpu) fn put(out: &mut Vec<u8>, array: &[u8]) {
    out.extend_from_slice(array);
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
}

/// The key of the list with these entries.
pub(in crate::gpu) fn key_of(entries: &[Option<TermEntry>]) -> ListKey {
    entries.iter().map(|entry| entry.map_or(u64::MAX, |entry| entry.offset)).collect()
}

/// The lists of more than one block, the longest first: short ones travel soon, and are nearly all.
///
/// # Errors
/// When the lexicon is damaged.
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

/// Has so many threads of a crew do work one piece after the other, each with a layer and room of
/// its own, until all is done or `each` says that it was the last.
///
/// # Errors
/// What `each` returns of one of them; nobody begins another one then.
pub(super) fn by_threads<W: Sync, S: Default, E: Send>(
    work: &[W],
    (crew, threads): (&mut Crew, usize),
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

/// The lists of a device by their keys: where each is, in bytes, and how it lies there.
#[derive(Debug)]
pub struct ListCache<K, L> {
    lists: HashMap<K, (u64, L)>,
    /// Where the next one may begin.
    end: u64,
    /// Whether one found no room.
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
    /// Brings lists behind those that are there to the first `most` bytes of `arena`, by so many
    /// threads of a crew, until one has no room. Each thread has a layer of its own, by which `lay`
    /// writes a list and says its key; a list that it fails to write is left out: who is asked for
    /// it finds that too.
    pub(super) fn bring<W: Sync, S: Default, E>(
        &mut self,
        wanted: &[W],
        (arena, most): (&Slab, u64),
        by: (&mut Crew, usize),
        lay: impl Fn(&mut S, &W, &mut Vec<u8>) -> Result<(K, L), E> + Sync,
    ) -> Result<(), GpuError> {
        let (before, most) = (self.lists.len(), most.min(arena.bytes()));
        let cache = Mutex::new(&mut *self);
        by_threads(wanted, by, |layer, bytes, list| {
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

    /// Whether one found no room.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Where a list is, and how it lies there.
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

    /// Lists that were to be there and had no room, or are damaged.
    pub fn left_out(&self) -> usize {
        self.left_out
    }
}

//! Lists that are on a device for good: as many as its memory has room for, most important first. A
//! method chooses them and lays them out.

use crate::crew::{Crew, lock};
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::for_each_term;
use crate::index::lexicon::TermEntry;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lists begin at multiples of this, so that no cache line has bytes of two.
const APART: u64 = 256;

/// The list of a term, or its beginning: one piece of device memory.
#[derive(Clone, Debug)]
pub struct DevicePart {
    /// By run.
    pub entries: SmallVec<[Option<TermEntry>; 1]>,
    /// This many of its first blocks; all if left out.
    pub blocks: Option<usize>,
}

/// Where the list begins in each run of the index, or `u64::MAX`.
pub(crate) type ListKey = SmallVec<[u64; 2]>;

/// Every term of every query is looked up by one thread.
pub(super) type ByList<T> = HashMap<ListKey, T, foldhash::fast::RandomState>;

impl DevicePart {
    pub fn whole(entries: impl IntoIterator<Item = Option<TermEntry>>) -> Self {
        Self { entries: entries.into_iter().collect(), blocks: None }
    }

    pub(super) fn key(&self) -> ListKey {
        self.entries.iter().map(|entry| entry.map_or(u64::MAX, |entry| entry.offset)).collect()
    }
}

/// The lists of more than one block, the longest first: short ones are nearly all, and travel fast.
pub fn longest(generation: &Generation) -> Result<Vec<DevicePart>, IndexError> {
    let runs = generation.runs();
    let Some(first) = runs.first() else { return Ok(Vec::new()) };
    let block_len = first.postings_header().form.block_len() as u64;
    let mut long = Vec::new();
    for_each_term::<IndexError>(generation, |term| {
        let df: u64 = term.lists.iter().map(|(_, entry)| u64::from(entry.df)).sum();
        if df > block_len {
            let mut list = DevicePart::whole(runs.iter().map(|_| None));
            term.lists.iter().for_each(|&(run, entry)| list.entries[run] = Some(entry));
            long.push((df, list));
        }
        Ok(())
    })?;
    long.sort_by_key(|&(df, _)| Reverse(df));
    Ok(long.into_iter().map(|(_, list)| list).collect())
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
pub struct ListCache<L> {
    lists: ByList<(u64, L)>,
    /// Where the next one may begin.
    end: u64,
    /// One found no room.
    full: bool,
    bytes: u64,
    left_out: usize,
}

impl<L> Default for ListCache<L> {
    fn default() -> Self {
        Self { lists: HashMap::default(), end: 0, full: false, bytes: 0, left_out: 0 }
    }
}

impl<L: Copy + Send> ListCache<L> {
    /// Brings lists, behind those that are there, to the first `most` bytes of `arena`, by several
    /// threads, until one has no room. `lay` writes a list with the thread's layer; a list on which
    /// it fails is left out: a query that asks for it finds that error too.
    pub(super) fn bring<S: Default, E>(
        &mut self,
        wanted: &[&DevicePart],
        arena: &Slab,
        most: u64,
        crew: &mut Crew,
        threads: usize,
        lay: impl Fn(&mut S, &DevicePart, &mut Vec<u8>) -> Result<L, E> + Sync,
    ) -> Result<(), GpuError> {
        let before = self.lists.len();
        let most = most.min(arena.bytes());
        let cache = Mutex::new(&mut *self);
        by_threads(wanted, crew, threads, |layer, bytes, list| {
            let Ok(laid) = lay(layer, list, bytes) else { return Ok(true) };
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
            cache.lists.insert(list.key(), (at, laid));
            cache.bytes += len;
            Ok(true)
        })?;
        self.left_out += before + wanted.len() - self.lists.len();
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    pub fn place(&self, key: &ListKey) -> Option<(u64, L)> {
        self.lists.get(key).copied()
    }
}

impl<L> ListCache<L> {
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

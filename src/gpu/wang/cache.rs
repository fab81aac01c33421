//! Which lists are on the device for good? Those of a plan, whole or their first blocks, as many as
//! its memory has room for; without a plan whole lists of more than one block, the longest first.

use super::Cached;
use super::batch::Key;
use super::list::{WangLaid, WangLayer};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use crate::gpu::list_cache::ListCache;
use crate::index::cache_plan::{CachePlan, CachedLists};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::for_each_term;
use crate::index::lexicon::TermEntry;

/// A list of the only run that is to be cached: all of it, or so many of its first blocks.
pub type WantedLists = (TermEntry, Option<usize>);

/// The lists of the only run of a generation that are to be cached, those first that matter most.
///
/// # Errors
/// When the lexicon or the plan is damaged; `Lacks` if the plan is about another generation.
///
/// # Panics
/// If the generation has no run.
pub(crate) fn wanted(
    generation: &Generation,
    cached: Cached,
) -> Result<Vec<WantedLists>, IndexError> {
    let is_planned = cached == Cached::Planned;
    let plan = is_planned.then(|| CachePlan::open(generation)).transpose()?.flatten();
    plan.map_or_else(|| longest(generation), |plan| Ok(of_plan(&plan.cached)))
}

pub fn of_plan(cached: &CachedLists) -> Vec<WantedLists> {
    cached.lists().iter().map(|list| (list.entry, Some(list.blocks as usize))).collect()
}

/// Whole lists of more than one block, the longest first.
///
/// # Errors
/// When the lexicon is damaged.
///
/// # Panics
/// If the generation has no run.
pub fn longest(generation: &Generation) -> Result<Vec<WantedLists>, IndexError> {
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
pub(crate) type Cache = ListCache<Key, WangLaid>;

/// Fills the first bytes of an arena with lists: [`ListCache::fill`].
pub(super) fn fill(
    generation: &Generation,
    wanted: &[WantedLists],
    room: (&Device, &Slab, u64),
    threads: usize,
) -> Result<Cache, GpuError> {
    Cache::fill(wanted, room, threads, |layer: &mut WangLayer, &(entry, blocks), bytes| {
        layer.lay(generation, entry, blocks, bytes).map(|laid| (entry.offset, laid))
    })
}

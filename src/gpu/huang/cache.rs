//! Which lists are on the device for good? Those of more than one block, the longest first, until
//! its memory is full (section 4.1): short ones travel soon, and are nearly all.

use super::batch::Key;
use super::list::{BLOCK, HuangLaid, ListLayer, Worth};
use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::slab::Slab;
use crate::gpu::list_cache::ListCache;
use crate::gpu::query::fetch::NO_LIST;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::for_each_term;
use crate::index::lexicon::TermEntry;
use std::borrow::Borrow;

/// The lists that are on a device for good.
pub(crate) type Cache = ListCache<Key, HuangLaid>;

/// The key of the list with these entries.
pub(super) fn key_of(entries: &[Option<impl Borrow<TermEntry>>]) -> Key {
    let offset = |entry| Borrow::<TermEntry>::borrow(entry).offset;
    entries.iter().map(|entry| entry.as_ref().map_or(NO_LIST, offset)).collect()
}

/// Fills `arena` with lists of more than one block, by so many threads: [`ListCache::fill`].
pub(super) fn fill(
    generation: &Generation,
    worth: Worth<'_>,
    (device, arena): (&Device, &Slab),
    threads: usize,
) -> Result<Cache, GpuError> {
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
    let room = (device, arena, arena.bytes());
    Cache::fill(&long, room, threads, |layer: &mut ListLayer, (_, entries), bytes| {
        let laid = layer.lay(generation, entries, worth, bytes)?;
        Ok::<_, IndexError>((key_of(entries), laid))
    })
}

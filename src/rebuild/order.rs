//! How are the documents of an index numbered that follows its sources? New ones come behind the
//! others, so that an order is made anew whenever a generation was published: its runs are merged
//! to one.

use super::look::Live;
use super::{Rebuild, RebuildError};
use crate::index::merge::{Merged, RankSource, Recode, merge_index};
use crate::index::order::DocumentOrder;

/// Orders the live generation, unless its documents are in that order already. Returns the number
/// of the generation that is.
pub(super) fn order(
    rebuild: &Rebuild<'_>,
    live: &Live,
    order: DocumentOrder,
) -> Result<Option<u32>, RebuildError> {
    let is_whole = matches!(&live.manifest.runs[..], [run] if run.deleted.is_none());
    let is_so = match (&live.manifest.order, order) {
        (None, _) => false,
        (Some(now), DocumentOrder::Global { wang, bm25 }) => {
            let parameters = now.global.as_ref().and_then(|global| global.parameters());
            parameters.is_some_and(|now| (now.wang, now.bm25) == (wang, bm25))
        }
        (Some(now), order) => now.name == order.name(),
    };
    if is_whole && is_so {
        return Ok(None);
    }
    let recode = Recode { order: Some(order), ranks: RankSource::KeepAll, ..Recode::default() };
    let (index, memory) = (&rebuild.job.index, rebuild.job.build.memory);
    let (workers, stop) = (rebuild.workers() as u32, rebuild.control.stop());
    match merge_index(index, memory, &rebuild.command, workers, recode, stop)? {
        Merged::Nothing => Ok(None),
        Merged::Runs { manifest, ranks, .. } => {
            ranks.remark().into_iter().for_each(|remark| rebuild.note_of_ranks(remark));
            Ok(Some(manifest.generation))
        }
    }
}

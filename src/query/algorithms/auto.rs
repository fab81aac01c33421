//! OR by the fastest of three algorithms.
//!
//! Bounds cost something for each block and save something only where the threshold becomes high,
//! that is where k is small against the postings. `docs/engines.md` has the measurements.

use super::{blocks, exhaustive, max_score};
use crate::index::list::ListError;
use crate::query::cursor::RunSearch;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// With so few postings bounds of ranges take longer than scoring all.
const FEW_POSTINGS: u64 = 3000;

/// Likewise with so few postings for each hit.
const FEW_PER_HIT: u64 = 400;

/// Blocks of documents are looked at for up to one hit in so many documents.
const DOCUMENTS_PER_HIT: u64 = 1000;

/// Finds the same as [`exhaustive::search`].
pub(crate) fn search(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let lists = run.terms.iter().filter_map(|term| term.list);
    let (count, postings) =
        lists.fold((0, 0), |(count, sum), list| (count + 1, sum + u64::from(list.df())));
    // For a single list whole blocks are skipped, which pays sooner.
    let few = if count == 1 { top.k() as u64 } else { FEW_PER_HIT.saturating_mul(top.k() as u64) };
    let search = if postings <= few.max(FEW_POSTINGS) {
        exhaustive::search
    } else if run.blocks.is_none() || count == 1 {
        max_score::search
    } else if DOCUMENTS_PER_HIT.saturating_mul(top.k() as u64) <= u64::from(run.span()) {
        blocks::search
    } else {
        exhaustive::search
    };
    search(run, top, scratch)
}

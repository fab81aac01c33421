//! Which algorithm is the fastest for a query with any of its terms?
//!
//! Bounds cost something for each block and save something only where the threshold comes to be
//! high: that is so when k is small against the postings. `docs/engines.md` has the measurements.

use super::{exhaustive, max_score};
use crate::index::list::ListError;
use crate::query::cursor::RunSearch;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// With so few postings, bounds of ranges take longer than scoring all.
const FEW_POSTINGS: u64 = 3000;

/// And with so few for each hit.
const FEW_PER_HIT: u64 = 400;

/// Offers to `top` all documents of a run that have at least one term and may be among the best.
/// Takes the same and finds the same as [`exhaustive::search`].
///
/// As [`max_score::search`].
pub(crate) fn search(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let lists = run.terms.iter().filter_map(|term| term.list);
    let (count, postings) =
        lists.fold((0, 0), |(count, sum), list| (count + 1, sum + u64::from(list.df())));
    // Of a single list, whole blocks are passed over, which pays off sooner.
    let few = if count == 1 { top.k() as u64 } else { FEW_PER_HIT.saturating_mul(top.k() as u64) };
    let search =
        if postings <= few.max(FEW_POSTINGS) { exhaustive::search } else { max_score::search };
    search(run, top, scratch)
}

//! OR by the fastest of three algorithms.
//!
//! Bounds cost something for each list and hit and save something only where the threshold becomes
//! high, that is where k is small against the postings. `docs/inside/engines.md` has measurements.

use super::{blocks, exhaustive};
use crate::index::list::ListError;
use crate::query::cursor::RunSearch;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// With so few postings bounds take longer than scoring all, whatever they are.
const FEW_POSTINGS: u64 = 3000;

/// Blocks of documents cost at least as much as scoring this many postings: the first blocks are
/// read in every list, and more of them for more hits.
fn few_for_blocks(lists: u64, hits: u64) -> u64 {
    hits.saturating_mul(32).saturating_add(2000).saturating_mul(lists)
}

/// The same of ranges: the more lists, the more of them are needed in each range. The lists of
/// learned vectors are more alike than those of words.
fn few_for_ranges(lists: u64, hits: u64, is_linear: bool) -> u64 {
    hits.saturating_mul(if is_linear { 240 } else { 32 } * lists * lists)
}

/// Whether bounds cost more than they save.
pub(crate) fn scores_all(run: &RunSearch<'_>, hits: usize) -> bool {
    let lists = run.lists().count() as u64;
    let hits = hits as u64;
    let few = if run.blocks.is_some() && lists > 1 {
        few_for_blocks(lists, hits)
    } else {
        few_for_ranges(lists, hits, run.terms.iter().any(|term| term.weight.is_linear()))
    };
    run.postings() <= few.max(FEW_POSTINGS)
}

/// Finds the same as [`exhaustive::search`].
pub(crate) fn search(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    if scores_all(run, top.k()) {
        exhaustive::search(run, top, scratch)
    } else {
        // Without bounds of blocks of documents it is MaxScore.
        blocks::search(run, top, scratch)
    }
}

#[cfg(test)]
mod tests {
    use super::{few_for_blocks, few_for_ranges};

    /// What is fastest where ways differ by a fifth or more (docs/measurements/queries.md): the
    /// lists, hits and postings, and whether all are scored.
    #[test]
    fn the_fastest_way_is_taken_where_ways_differ() {
        let check = |name: &str, few: &dyn Fn(u64, u64) -> u64, rows: &[(u64, u64, u64, bool)]| {
            for &(lists, hits, postings, scores_all) in rows {
                let few = few(lists, hits);
                assert_eq!(postings <= few, scores_all, "{name}: {lists} lists, {hits} hits");
            }
        };
        check(
            "blocks",
            &few_for_blocks,
            &[
                (2, 10, 24_000, false),
                (2, 1000, 24_000, true),
                (5, 10, 48_000, false),
                (5, 100, 48_000, false),
                (16, 10, 144_000, false),
                (16, 100, 144_000, false),
                (16, 1000, 144_000, true),
                (63, 10, 552_000, false),
                (63, 100, 552_000, false),
                (63, 1000, 552_000, true),
            ],
        );
        check(
            "vectors",
            &|lists, hits| few_for_ranges(lists, hits, true),
            &[
                (1, 1000, 8_700, true),
                (2, 10, 24_000, false),
                (5, 10, 48_000, true),
                (16, 10, 144_000, true),
                (63, 1000, 552_000, true),
            ],
        );
        check(
            "texts",
            &|lists, hits| few_for_ranges(lists, hits, false),
            &[
                (2, 10, 9_000, false),
                (6, 10, 95_000, false),
                (6, 1000, 95_000, true),
                (16, 10, 225_000, false),
                (16, 100, 225_000, true),
                (63, 10, 660_000, true),
                (63, 1000, 660_000, true),
            ],
        );
        assert_eq!(few_for_blocks(64, u64::MAX), u64::MAX);
    }
}

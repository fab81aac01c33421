//! Makes a list of a device from one of an index, decoded by blocks, whatever its codec, by runs.

use super::list::{Layout, ListMaker, PlacedList, Windows};
use super::unpack::{LEAST_UNPACKED, RunList};
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};
use crate::index::run::Run;
use crate::score::weight::Weight;
use std::ops::Range;

/// The lists of a term in all runs, if a device decodes them: long ones of `bp128`, for bounds of
/// saturations.
pub(super) fn lists_to_unpack<'a>(
    generation: &'a Generation,
    entries: &[Option<TermEntry>],
    windows: Windows,
    weight: Weight,
) -> Result<Option<Vec<RunList<'a>>>, IndexError> {
    let df: u64 = entries.iter().flatten().map(|entry| u64::from(entry.df)).sum();
    let is_made = windows.layout != Layout::Bounds || !weight.is_saturation();
    if df < u64::from(LEAST_UNPACKED) || is_made {
        return Ok(None);
    }
    let mut lists = Vec::with_capacity(entries.len());
    for (run, entry) in generation.runs().iter().zip(entries) {
        let Some(entry) = *entry else { continue };
        let list = run.list(entry)?;
        if !list.form().is_bp128() {
            return Ok(None);
        }
        lists.push(RunList { list, first_docid: run.first_docid(), documents: run.documents() });
    }
    Ok(Some(lists))
}

/// Appends the list of a term, by its `entries` in all runs, to `out`, as far as documents are in
/// `share`, whose `norms` are given; docids count from its first. The `maker` has begun. `None` if
/// it is too great.
///
/// # Panics
/// If there are not as many norms as documents, or not as many entries as runs.
pub(crate) fn make_list(
    generation: &Generation,
    entries: &[Option<TermEntry>],
    windows: Windows,
    share: &Range<u32>,
    norms: &[f32],
    maker: &mut ListMaker,
    out: &mut Vec<u8>,
) -> Result<Option<PlacedList>, IndexError> {
    assert_eq!(norms.len(), windows.documents as usize, "a norm for each document");
    assert_eq!(norms.len(), share.len(), "a norm for each document");
    // Learned weights need no norms but those of deleted documents.
    let needed = windows.layout == Layout::Bounds || generation.has_deletions();
    let norms = if needed { norms } else { &[] };
    generation
        .for_each_list(entries, |run, list| append(run, list, windows, share, norms, maker))?;
    Ok((!maker.is_too_great()).then(|| maker.finish(windows, out)))
}

fn append(
    run: &Run,
    list: &ListView<'_>,
    windows: Windows,
    share: &Range<u32>,
    norms: &[f32],
    maker: &mut ListMaker,
) -> Result<(), ListError> {
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    let first = run.first_docid();
    // Skips blocks that end before the share.
    let before = |block: usize| {
        block < list.full_blocks() && first.saturating_add(list.last_docid(block)) < share.start
    };
    let begin = (0..list.blocks()).take_while(|&block| before(block)).count();
    for block in begin..list.blocks() {
        let count =
            list.decode_postings(block, run.documents(), &mut columns, &mut docids, &mut tfs)?;
        docids[..count].iter_mut().for_each(|docid| *docid += first);
        let from = docids[..count].partition_point(|&docid| docid < share.start);
        let to = docids[..count].partition_point(|&docid| docid < share.end);
        docids[from..to].iter_mut().for_each(|docid| *docid -= share.start);
        maker.push(windows, &docids[from..to], &tfs[from..to], norms);
        if to < count {
            break;
        }
    }
    Ok(())
}

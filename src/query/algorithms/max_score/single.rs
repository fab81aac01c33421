//! MaxScore for one list, whose blocks are its ranges.

use super::AnyOrder;
use crate::index::list::ListError;
use crate::query::algorithms::exhaustive;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::kernels::offer_block;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// Takes the blocks of the greatest bounds first, then all others that reach the threshold.
pub(crate) fn search(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let term = run.terms.iter().find(|term| term.list.is_some());
    let Some(&RunTerm { weight, list: Some(list) }) = term else { return Ok(()) };
    if list.bounds().is_empty() {
        let term = RunTerm { weight, list: Some(list) };
        return exhaustive::search_one(&term, run, top, scratch);
    }
    scratch.reset_cursors(1);
    let Scratch { cursors, of_blocks: mosts, best, .. } = scratch;
    let cursor = &mut cursors[0];
    mosts.clear();
    let norms = run.norms_for(weight).bounds;
    mosts.extend(list.bounds().iter().map(|bound| norms.most(weight, bound)));
    let mut take = |block: u32, most: &mut f32, top: &mut TopK| {
        if *most > top.threshold().next_down() {
            cursor.skip_to(block as usize);
            if run.next_block(cursor, &list, weight)? {
                let part = cursor.at..cursor.len;
                let docids = &cursor.docids;
                let sink = &mut AnyOrder(top);
                offer_block(run.level, docids, &cursor.scores, part, run.first_docid, sink);
                top.tighten();
            }
        }
        // Not again.
        *most = -1.0;
        Ok(())
    };
    // Each block has a document at least, and most have one near the bound.
    let first = top.k().min(mosts.len() / 4);
    if first > 0 && top.threshold() <= 0.0 {
        best.clear();
        best.extend(0..mosts.len() as u32);
        best.select_nth_unstable_by(first, |&a, &b| {
            mosts[b as usize].total_cmp(&mosts[a as usize])
        });
        best[..first].sort_unstable();
        for &block in &best[..first] {
            take(block, &mut mosts[block as usize], top)?;
        }
    }
    for (block, most) in (0..).zip(mosts.iter_mut()).filter(|(_, most)| **most >= 0.0) {
        take(block, most, top)?;
    }
    Ok(())
}

//! OR without skipping: every posting is scored. This is the oracle of the algorithms that skip.
//!
//! Lists are added up by windows of docids; a single list is offered as it is decoded.

use crate::index::list::ListError;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::kernels::offer_block;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// Offers to `top` all documents of a run that have at least one term.
///
/// # Errors
/// If a list is damaged. Some documents may have been offered.
pub fn search(run: &RunSearch<'_>, top: &mut TopK, scratch: &mut Scratch) -> Result<(), ListError> {
    let mut lists = run.terms.iter().filter(|term| term.list.is_some());
    match (lists.next(), lists.next()) {
        (None, _) => Ok(()),
        (Some(term), None) => search_one(term, run, top, scratch),
        _ => {
            let searched = search_all(run, top, scratch);
            if searched.is_err() {
                scratch.windows.clear();
            }
            searched
        }
    }
}

/// Offers all documents of two lists or more.
fn search_all(run: &RunSearch<'_>, top: &mut TopK, scratch: &mut Scratch) -> Result<(), ListError> {
    scratch.reset_cursors(run.terms.len());
    let cursors = &mut scratch.cursors[..run.terms.len()];
    let postings = run.postings();
    let is_sparse = run.is_sparse(postings);
    let longest = run.sparse_window(postings);
    run.begin(cursors)?;
    while run.window(cursors, &mut scratch.windows, is_sparse, longest, top)?.is_some() {}
    Ok(())
}

pub(crate) fn search_one(
    term: &RunTerm<'_>,
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let Some(list) = term.list else { return Ok(()) };
    scratch.reset_cursors(1);
    let cursor = &mut scratch.cursors[0];
    while run.next_block(cursor, &list, term.weight)? {
        let part = cursor.at..cursor.len;
        offer_block(run.level, &cursor.docids, &cursor.scores, part, run.first_docid, top);
    }
    Ok(())
}

//! Searches for any score: every posting is scored and added up by document, on the static part,
//! one list after the other. This is the oracle of AND; it answers OR where bounds do not cover
//! static parts, and queries of very many terms, for which every other algorithm keeps a decoded
//! block of each list.
//!
//! Documents are taken by windows. Where two meet, a block of each list is decoded twice.

#[cfg(test)]
mod tests;

use crate::index::list::{ListError, MAX_BLOCK, SegmentColumns};
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;
use std::ops::Range;

/// A query with more terms is answered here, whatever algorithm it asks for.
pub(crate) const MANY_TERMS: usize = 256;

/// Documents of a window, each of which takes 8 bytes.
const WINDOW: u32 = if cfg!(test) { 50 } else { 1 << 20 };

/// Offers to `top` all documents of a run that have any term. If a list is damaged, those of
/// earlier windows have been offered.
///
/// # Panics
/// If there are fewer norms than `documents`, or the docids do not fit 32 bits.
pub(crate) fn search_any(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    search(run, 1, top, scratch)
}

/// [`search_any`] for the documents that have every term.
pub(crate) fn search_all(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    search(run, run.terms.len().max(1) as u32, top, scratch)
}

fn search(
    run: &RunSearch<'_>,
    least: u32,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let RunSearch { first_docid, norms, .. } = *run;
    let sums = &mut scratch.sums;
    let mut wanted = run.wanted();
    while !wanted.is_empty() {
        let end = wanted.end.min(wanted.start.saturating_add(WINDOW));
        let window = wanted.start..end;
        wanted.start = end;
        sums.clear();
        sums.extend(window.clone().map(|docid| (norms.static_of(docid), 0)));
        add_all(run, window.clone(), sums)?;
        for (docid, &(sum, matched)) in (first_docid + window.start..).zip(sums.iter()) {
            if matched >= least {
                top.offer(docid, sum);
            }
        }
    }
    Ok(())
}

/// Adds up the scores of a window's documents, with the number of terms that each has.
fn add_all(
    run: &RunSearch<'_>,
    window: Range<u32>,
    sums: &mut [(f32, u32)],
) -> Result<(), ListError> {
    let RunSearch { terms, documents, .. } = *run;
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    for RunTerm { weight, list } in terms {
        let norms = run.norms_for(*weight);
        for list in list.iter() {
            columns.close();
            for block in list.block_of(0, window.start)..list.blocks() {
                let count =
                    list.decode_postings(block, documents, &mut columns, &mut docids, &mut tfs)?;
                for (&docid, &tf) in docids[..count].iter().zip(&tfs) {
                    if window.contains(&docid) {
                        let (sum, matched) = &mut sums[(docid - window.start) as usize];
                        *sum += weight.score(tf, norms.documents[docid as usize]);
                        *matched += 1;
                    }
                }
                if block < list.full_blocks() && list.last_docid(block) >= window.end - 1 {
                    break;
                }
            }
        }
    }
    Ok(())
}

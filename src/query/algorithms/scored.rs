//! Searches for any score: every posting is scored and added up by document, on the static part.
//! This is the oracle of AND, and answers OR where bounds do not cover static parts.

#[cfg(test)]
mod tests;

use crate::index::list::{ListError, MAX_BLOCK, SegmentColumns};
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;

/// Offers to `top` all documents of a run that have any term. Needs 8 bytes of `scratch` for each
/// document of the run. If a list is damaged, nothing has been offered.
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
    let RunSearch { terms, first_docid, documents, norms, .. } = *run;
    let sums = &mut scratch.sums;
    sums.clear();
    sums.extend((0..documents).map(|docid| (norms.static_of(docid), 0)));
    let mut docids = [0; MAX_BLOCK];
    let mut tfs = [0; MAX_BLOCK];
    let mut columns = SegmentColumns::default();
    for RunTerm { weight, list } in terms {
        let Some(list) = list else { continue };
        columns.close();
        let block_len = list.block_len();
        let wanted = list.wanted();
        for block in 0..list.blocks() {
            let count = if block < list.full_blocks() {
                list.decode_block(block, documents, &mut columns, &mut docids[..block_len])?;
                list.decode_tfs(block, &mut columns, &mut tfs[..block_len])?;
                block_len
            } else {
                list.decode_tail(documents, &mut docids, &mut tfs)?
            };
            for (&docid, &tf) in docids[..count].iter().zip(&tfs) {
                if wanted.contains(&docid) {
                    let (sum, matched) = &mut sums[docid as usize];
                    *sum += weight.score(tf, norms.documents[docid as usize]);
                    *matched += 1;
                }
            }
        }
    }
    for (docid, &(sum, matched)) in (first_docid..).zip(sums.iter()) {
        if matched >= least {
            top.offer(docid, sum);
        }
    }
    Ok(())
}

//! Which k documents with at least one term of a query have the highest scores, if documents are
//! taken one after another and those that cannot get in are passed over?
//!
//! WAND (Broder, Carmel, Herscovici, Soffer and Zien: Efficient query evaluation using a two-level
//! retrieval process, 2003). The lists are kept in the order of the documents that they stand at.
//! The first of them whose bounds together exceed the threshold end at the *pivot*, the least
//! document that may get in. Lists before it go on to the pivot; when all stand at it, it is scored.
//!
//! Block-max WAND (Ding and Suel: Faster top-k document retrieval using block-max indexes, 2011,
//! algorithm 1), as `huang` uses it: before lists move, the bounds of the blocks that hold the pivot
//! are added up, without decoding. If these do not reach the threshold, nothing gets in before the
//! first of these blocks ends or the next list begins, and lists go on to there.
//!
//! Different from the papers: bounds hold for any parameters, and sums of them are compared with
//! slack for rounding; a document is scored in the order of the query, so that its score is that of
//! every other algorithm to the bit.

use super::cursor::{Cursor, Norms, RunTerm, Scratch, check_run};
use super::daat::{Most, Run, bar};
use super::top_k::TopK;
use crate::index::list::ListError;

/// Offers to `top` all documents of a run that have at least one term and may be among the best, by
/// WAND. Takes the same and finds the same as [`exhaustive::search`](super::exhaustive::search).
///
/// # Errors
///
/// If a list is damaged. Some documents may have been offered. Damage in a part that is skipped is
/// not seen.
///
/// # Panics
///
/// As [`exhaustive::search`](super::exhaustive::search).
pub fn search(
    terms: &[RunTerm<'_>],
    first_docid: u32,
    documents: u32,
    norms: Norms<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    check_run(first_docid, documents, norms);
    go_through::<false>(Run { terms, first_docid, documents, norms }, top, scratch)
}

/// As [`search`], by block-max WAND.
///
/// # Errors
///
/// As [`search`].
///
/// # Panics
///
/// As [`search`].
pub fn search_block_max(
    terms: &[RunTerm<'_>],
    first_docid: u32,
    documents: u32,
    norms: Norms<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    check_run(first_docid, documents, norms);
    go_through::<true>(Run { terms, first_docid, documents, norms }, top, scratch)
}

fn go_through<const BLOCK_MAX: bool>(
    run: Run<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    scratch.reset_cursors(run.terms.len());
    let Scratch { cursors, order, mosts, .. } = scratch;
    let cursors = &mut cursors[..run.terms.len()];
    run.begin(cursors)?;
    mosts.clear();
    mosts.extend(run.terms.iter().map(|term| Most {
        list: run.most(term),
        block: 0.0,
        number: usize::MAX,
    }));
    order.clear();
    order.extend(0..cursors.len());
    loop {
        sort(order, cursors);
        let bar = bar(top, run.terms.len());
        let Some((mut pivot, docid)) = find_pivot(order, cursors, mosts, bar) else {
            return Ok(());
        };
        let at = |number: usize| cursors[order[number]].next_docid();
        while pivot + 1 < order.len() && at(pivot + 1) == Some(docid) {
            pivot += 1;
        }
        let next = order.get(pivot + 1).and_then(|&term| cursors[term].next_docid());
        if BLOCK_MAX {
            let mut sum = 0.0;
            let mut end = next.unwrap_or(u32::MAX);
            for &term in &order[..=pivot] {
                let (cursor, most) = (&cursors[term], &mut mosts[term]);
                let (block, last) = run.block_most(cursor, &run.terms[term], docid, most);
                sum += f64::from(block);
                end = end.min(last.saturating_add(1));
            }
            if sum <= bar {
                // No document before `end` gets in. All lists before it end at the run's end.
                if end >= run.documents && next.is_none() {
                    return Ok(());
                }
                let term = greatest(&order[..=pivot], mosts);
                run.seek(cursors, term, end.max(docid + 1))?;
                continue;
            }
        }
        if at(0) == Some(docid) {
            run.offer(cursors, docid, top)?;
        } else {
            let before = order.iter().take_while(|&&term| cursors[term].next_docid() < Some(docid));
            let term = greatest(&order[..before.count()], mosts);
            run.seek(cursors, term, docid)?;
        }
    }
}

/// Sorts the terms by the documents that their cursors stand at and drops those that have ended.
/// Most are in order already.
fn sort(order: &mut Vec<usize>, cursors: &[Cursor]) {
    order.retain(|&term| cursors[term].next_docid().is_some());
    for end in 1..order.len() {
        let mut at = end;
        while at > 0 && cursors[order[at]].next_docid() < cursors[order[at - 1]].next_docid() {
            order.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// The number in `order` of the first list with which the sum of bounds exceeds the bar, and its
/// document.
fn find_pivot(
    order: &[usize],
    cursors: &[Cursor],
    mosts: &[Most],
    bar: f64,
) -> Option<(usize, u32)> {
    let mut sum = 0.0;
    for (number, &term) in order.iter().enumerate() {
        sum += f64::from(mosts[term].list);
        if sum > bar {
            return Some((number, cursors[term].next_docid()?));
        }
    }
    None
}

/// The term of the greatest bound: its list is likely to be short and to skip far.
fn greatest(terms: &[usize], mosts: &[Most]) -> usize {
    let by_bound = |a: &&usize, b: &&usize| mosts[**a].list.total_cmp(&mosts[**b].list);
    *terms.iter().max_by(by_bound).expect("there is a pivot")
}

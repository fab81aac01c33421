//! Which documents have at least one term of a query, and which k of them have the highest scores?
//! Every posting is scored: this is the oracle of the algorithms that skip some.
//!
//! Term at a time within windows of docids: each list in turn adds what its postings of the window
//! are worth to an accumulator for each document, so that a document's score is added up in the
//! order of the query. Then the matched documents above the threshold are offered.
//!
//! - *Dense* windows are as large as the first-level cache likes; all accumulators are looked at.
//! - *Sparse* windows are larger, and only the accumulators that were touched are looked at: for
//!   queries with few postings among many documents.
//!
//! A query of one list needs no accumulators.

use super::cursor::{Cursor, RunTerm, Scratch, check_run};
use super::kernels::{UNMATCHED, offer_block, sweep};
use super::top_k::TopK;
use crate::codec::level::Level;
use crate::index::list::{ListError, ListView};

/// Documents of a dense window: 16 KiB of accumulators, beside 16 KiB of norms.
const DENSE: usize = 1 << 12;

/// Documents of a sparse window: 256 KiB of accumulators.
const SPARSE: usize = 1 << 16;

/// A window is sparse if there are more than this many documents to a posting.
const SPARSE_FROM: u64 = 16;

/// Offers to `top` all documents of a run that have at least one term. `norms` are those of the
/// run's documents; docids offered begin with `first_docid`.
///
/// # Errors
///
/// If a list is damaged. Some documents may have been offered.
///
/// # Panics
///
/// If there are fewer norms than `documents`, or the docids do not fit 32 bits.
pub fn search(
    terms: &[RunTerm<'_>],
    first_docid: u32,
    documents: u32,
    norms: &[f32],
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    check_run(first_docid, documents, norms);
    let mut lists = terms.iter().filter(|term| term.list.is_some());
    match (lists.next(), lists.next()) {
        (None, _) => Ok(()),
        (Some(term), None) => search_one(term, first_docid, documents, norms, top, scratch),
        _ => {
            let postings: u64 =
                terms.iter().filter_map(|term| term.list).map(|list| u64::from(list.df())).sum();
            scratch.reset_cursors(terms.len());
            let run = Run { documents, norms, level: scratch.level };
            let searched = if postings * SPARSE_FROM < u64::from(documents) {
                run.search::<true>(terms, first_docid, top, scratch)
            } else {
                run.search::<false>(terms, first_docid, top, scratch)
            };
            if searched.is_err() {
                // The sums of the window in which it ended are still there.
                scratch.accumulators.clear();
            }
            searched
        }
    }
}

/// Offers all documents of one list.
pub(super) fn search_one(
    term: &RunTerm<'_>,
    first_docid: u32,
    documents: u32,
    norms: &[f32],
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let Some(list) = term.list else { return Ok(()) };
    scratch.reset_cursors(1);
    let run = Run { documents, norms, level: scratch.level };
    let cursor = &mut scratch.cursors[0];
    while run.next_block(cursor, &list, term.weight)? {
        let postings = (&cursor.docids, &cursor.scores);
        offer_block(run.level, postings, cursor.len, first_docid, top);
    }
    Ok(())
}

/// What all steps of a search need to know.
#[derive(Clone, Copy)]
struct Run<'a> {
    documents: u32,
    norms: &'a [f32],
    level: Level,
}

impl Run<'_> {
    fn search<const IS_SPARSE: bool>(
        &self,
        terms: &[RunTerm<'_>],
        first_docid: u32,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let size = if IS_SPARSE { SPARSE } else { DENSE };
        let Scratch { cursors, accumulators, touched, .. } = scratch;
        let cursors = &mut cursors[..terms.len()];
        for (cursor, term) in cursors.iter_mut().zip(terms) {
            if let Some(list) = &term.list {
                self.next_block(cursor, list, term.weight)?;
            }
        }
        accumulators.resize(DENSE.max(SPARSE), UNMATCHED);
        // One more than there are documents: behind the last is the next.
        touched.resize(SPARSE + 1, 0);
        let sums = &mut accumulators[..size];
        while let Some(start) = cursors.iter().filter_map(Cursor::next_docid).min() {
            let mut count = 0;
            let end = start.saturating_add(size as u32).min(self.documents);
            for (cursor, term) in cursors.iter_mut().zip(terms) {
                let Some(list) = &term.list else { continue };
                let touched = (&mut touched[..], &mut count);
                self.add::<IS_SPARSE>(cursor, list, term.weight, (start, end), sums, touched)?;
            }
            if IS_SPARSE {
                for &slot in &touched[..count] {
                    let sum = &mut sums[slot as usize];
                    top.offer(first_docid + start + slot, *sum);
                    *sum = UNMATCHED;
                }
            } else {
                sweep(self.level, &mut sums[..(end - start) as usize], first_docid + start, top);
            }
        }
        Ok(())
    }

    /// Adds what the postings of one list in a window are worth.
    fn add<const IS_SPARSE: bool>(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        weight: f32,
        (start, end): (u32, u32),
        sums: &mut [f32],
        (touched, count): (&mut [u32], &mut usize),
    ) -> Result<(), ListError> {
        let slots = sums.len() - 1;
        while cursor.at < cursor.len {
            let whole = cursor.docids[cursor.len - 1] < end;
            let rest = &cursor.docids[cursor.at..cursor.len];
            let here = if whole {
                rest.len()
            } else {
                rest.iter().take_while(|&&docid| docid < end).count()
            };
            let scores = &cursor.scores[cursor.at..cursor.len];
            for (&docid, &score) in rest[..here].iter().zip(scores) {
                // The window has a power of two of slots, so this is docid - start.
                let slot = (docid - start) as usize & slots;
                let sum = sums[slot];
                if IS_SPARSE {
                    // Overwritten by the next unless this is the first match of the document.
                    touched[*count] = slot as u32;
                    *count += usize::from(sum.is_sign_negative());
                }
                sums[slot] = sum + score;
            }
            cursor.at += here;
            if !whole || !self.next_block(cursor, list, weight)? {
                break;
            }
        }
        Ok(())
    }

    /// Decodes and scores the next block of a list; `false`, and no postings, behind the last.
    fn next_block(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        weight: f32,
    ) -> Result<bool, ListError> {
        cursor.at = 0;
        let block = cursor.next_block();
        if block > list.full_blocks() {
            cursor.len = 0;
            return Ok(false);
        }
        cursor.load(list, block, self.documents)?;
        cursor.score(list, weight, self.norms, self.level)?;
        Ok(cursor.len > 0)
    }
}

//! How do lists stand side by side when documents are taken one after another? The steps that all
//! document-at-a-time algorithms have in common.

use super::cursor::{Cursor, Norms, RunTerm};
use super::kernels::first_block;
use super::top_k::TopK;
use crate::index::list::{ListError, ListView};
use crate::score::bm25::score;

/// What all steps of a search need to know.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) terms: &'a [RunTerm<'a>],
    pub(super) first_docid: u32,
    pub(super) documents: u32,
    pub(super) norms: Norms<'a>,
}

/// What a list may add to a score, as far as is known where it stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Most {
    /// In the whole list.
    pub(super) list: f32,
    /// In the block that was looked at last.
    pub(super) block: f32,
    /// Number of that block.
    pub(super) number: usize,
}

impl Run<'_> {
    /// Brings each cursor to the first posting of its list.
    pub(super) fn begin(&self, cursors: &mut [Cursor]) -> Result<(), ListError> {
        for (cursor, term) in cursors.iter_mut().zip(self.terms) {
            if let Some(list) = &term.list {
                cursor.seek(list, self.documents, 0)?;
            }
        }
        Ok(())
    }

    /// Brings the cursor of a term to the first posting from `docid` on.
    pub(super) fn seek(
        &self,
        cursors: &mut [Cursor],
        term: usize,
        docid: u32,
    ) -> Result<(), ListError> {
        match &self.terms[term].list {
            Some(list) => cursors[term].seek(list, self.documents, docid),
            None => Ok(()),
        }
    }

    /// Offers a document with the terms whose cursors stand at it, added up in the order of the
    /// query, and moves these on.
    pub(super) fn offer(
        &self,
        cursors: &mut [Cursor],
        docid: u32,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        let norm = self.norms.documents[docid as usize];
        let mut sum = 0.0;
        for (cursor, term) in cursors.iter_mut().zip(self.terms) {
            if cursor.next_docid() == Some(docid)
                && let Some(list) = &term.list
            {
                sum += score(term.weight, cursor.tf(list)?, norm);
                cursor.seek(list, self.documents, docid + 1)?;
            }
        }
        top.offer(self.first_docid + docid, sum);
        Ok(())
    }

    /// What a term may add to a score in any document.
    pub(super) fn most(&self, term: &RunTerm<'_>) -> f32 {
        term.list.as_ref().map_or(0.0, |list| list_most(list, term.weight, &self.norms))
    }

    /// What a term may add in the block that holds the first of its postings from `docid` on, and
    /// the last docid for which that is so.
    pub(super) fn block_most(
        &self,
        cursor: &Cursor,
        term: &RunTerm<'_>,
        docid: u32,
        most: &mut Most,
    ) -> (f32, u32) {
        let Some(list) = &term.list else { return (0.0, u32::MAX) };
        let last_docids = list.last_docids();
        let number = first_block(last_docids, cursor.block.min(last_docids.len()), docid);
        if most.number != number {
            most.number = number;
            most.block = match list.bounds().get(number) {
                Some(bound) => self.norms.bounds.most(term.weight, bound).min(most.list),
                // A list that is a tail alone, or the end of one that has none.
                None if list.tail_len() > 0 => most.list,
                None => 0.0,
            };
        }
        let last = last_docids.get(number).map_or(u32::MAX, |last| u32::from_le_bytes(*last));
        (most.block, last)
    }
}

/// What a list may add to a score in any document.
pub(super) fn list_most(list: &ListView<'_>, weight: f32, norms: &Norms<'_>) -> f32 {
    // No score is above its weight, but for rounding.
    let weight_most = weight * (1.0 + 2.0 * f32::EPSILON);
    let bounds = list.list_bounds().iter().map(|bound| norms.bounds.most(weight, bound));
    bounds.reduce(f32::max).map_or(weight_most, |most| most.min(weight_most))
}

/// Sums of bounds have to exceed this for a document to get in that is offered behind all smaller
/// docids: `terms` scores may be rounded up when they are added.
pub(super) fn bar(top: &TopK, terms: usize) -> f64 {
    f64::from(top.threshold()) / rounding(terms)
}

/// How much rounding may add to a sum of scores, as a factor.
pub(super) fn rounding(terms: usize) -> f64 {
    1.0 + (terms + 4) as f64 * f64::from(f32::EPSILON)
}

//! Term-at-a-time scoring by windows of docids, in the order of the query: each list in turn adds
//! the scores of its postings in the window to an accumulator for each document, and then the
//! matched documents with enough are passed on.
//!
//! - *Dense* windows fit the first-level cache; all accumulators are swept.
//! - *Sparse* windows are larger, and only the accumulators that were touched are read: for few
//!   postings among many documents.
//! - Where only documents above a bar count, postings mark *lines* of sixteen accumulators, and
//!   marked lines are swept in the order of docids.

use std::ops::Range;

use crate::index::list::{ListError, ListView};
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::kernels::{
    LINE, ScoredDocuments, SumSink, UNMATCHED, collect, first_block, sweep,
};
use crate::query::scratch::WindowMemory;
use crate::score::weight::Weight;

/// Documents of a dense window: 16 KiB of accumulators, beside 16 KiB of norms.
pub(crate) const DENSE: u32 = 1 << 12;

/// Documents of a sparse window: 256 KiB of accumulators.
const SPARSE: usize = 1 << 16;

pub(crate) const LONGEST: u32 = SPARSE as u32;

/// A window is sparse if there are more than this many documents to a posting.
const SPARSE_FROM: u64 = 16;

/// Postings that deserve a window of their own.
const MANY: u64 = 512;

impl<'a> RunSearch<'a> {
    pub(crate) fn lists(&self) -> impl Iterator<Item = ListView<'a>> {
        self.terms.iter().filter_map(|term| term.list)
    }

    /// Of all lists.
    pub(crate) fn postings(&self) -> u64 {
        self.lists().map(|list| u64::from(list.df())).sum()
    }

    /// Whether windows for this many postings should be sparse.
    pub(crate) fn is_sparse(&self, postings: u64) -> bool {
        postings * SPARSE_FROM < u64::from(self.span())
    }

    /// Documents of a sparse window with this many postings in all: enough for [`MANY`] of them.
    /// The more postings, the smaller the window.
    pub(crate) fn sparse_window(&self, postings: u64) -> u32 {
        let documents = u64::from(self.span()) * MANY / postings.max(1);
        (documents.min(u64::from(LONGEST)) as u32).next_power_of_two().clamp(DENSE, LONGEST)
    }

    /// The wanted documents, which all lists agree on.
    pub(crate) fn wanted(&self) -> Range<u32> {
        let wanted = self.lists().next().map(|list| list.wanted());
        wanted.map_or(0..self.documents, |wanted| wanted.start..wanted.end.min(self.documents))
    }

    /// Whether no document is left out.
    pub(crate) fn wants_all(&self) -> bool {
        self.lists().all(|list| list.wanted() == (0..u32::MAX))
    }

    pub(crate) fn span(&self) -> u32 {
        self.wanted().len() as u32
    }

    /// Passes on the documents of one window of at most `longest` docids, which begins at the first
    /// docid that a cursor has left, and uses up its postings. Returns its range; `None` if no
    /// cursor has postings. Cursors are in the order of the terms; one with no postings left takes
    /// no part. `first_docid` is added to docids passed on. If a list is damaged, `memory` must be
    /// [`cleared`](WindowMemory::clear).
    pub(crate) fn window<S: SumSink>(
        &self,
        cursors: &mut [Cursor],
        memory: &mut WindowMemory,
        is_sparse: bool,
        longest: u32,
        sink: &mut S,
    ) -> Result<Option<Range<u32>>, ListError> {
        let Some(start) = cursors.iter().filter_map(Cursor::next_docid).min() else {
            return Ok(None);
        };
        let size = longest.min(if is_sparse { SPARSE as u32 } else { DENSE });
        let end = start.saturating_add(size).min(self.documents);
        self.window_of(cursors, memory, is_sparse, start..end, sink)?;
        Ok(Some(start..end))
    }

    /// [`window`](Self::window) of given docids, at most [`DENSE`], or [`LONGEST`] if it is sparse.
    /// No cursor has postings before them.
    pub(crate) fn window_of<S: SumSink>(
        &self,
        cursors: &mut [Cursor],
        memory: &mut WindowMemory,
        is_sparse: bool,
        docids: Range<u32>,
        sink: &mut S,
    ) -> Result<(), ListError> {
        let WindowMemory { accumulators, touched, .. } = memory;
        let first = self.first_docid + docids.start;
        accumulators.resize(SPARSE, UNMATCHED);
        if is_sparse {
            // One more than there are documents: the next slot is written behind the last.
            touched.resize(SPARSE + 1, 0);
            let touched = self.add_all::<true>(cursors, docids, accumulators, touched)?;
            for &slot in touched.iter() {
                let sum = &mut accumulators[slot as usize];
                sink.push(first + slot, *sum);
                *sum = UNMATCHED;
            }
        } else {
            let sums = &mut accumulators[..DENSE as usize];
            let len = docids.len();
            self.add_all::<false>(cursors, docids, sums, &mut [])?;
            sweep(self.level, &mut sums[..len], first, sink);
        }
        Ok(())
    }

    /// Adds given documents, at most [`LONGEST`], to `found` if their sums are above `bar`, which
    /// is not below zero. No cursor has postings before them. Damage is as in
    /// [`window`](Self::window).
    pub(crate) fn collect(
        &self,
        cursors: &mut [Cursor],
        memory: &mut WindowMemory,
        docids: Range<u32>,
        bar: f32,
        found: &mut ScoredDocuments,
    ) -> Result<(), ListError> {
        let WindowMemory { accumulators, lines, .. } = memory;
        accumulators.resize(SPARSE, UNMATCHED);
        lines.resize(SPARSE / LINE, 0);
        let slots =
            (docids.len() as u32).next_power_of_two().clamp(64 * LINE as u32, LONGEST) as usize;
        let sums = &mut accumulators[..slots];
        let lines = &mut lines[..slots / LINE];
        for (cursor, term) in cursors.iter_mut().zip(self.terms) {
            let Some(list) = &term.list else { continue };
            let add = |slot: usize, score: f32| {
                sums[slot] += score;
                lines[slot / LINE] = 1;
            };
            self.each(cursor, list, term.weight, docids.clone(), slots, add)?;
        }
        collect(self.level, sums, lines, docids.start, bar, found);
        Ok(())
    }

    /// Adds the scores of all lists in a window; returns the touched slots of a sparse one.
    fn add_all<'t, const IS_SPARSE: bool>(
        &self,
        cursors: &mut [Cursor],
        docids: Range<u32>,
        sums: &mut [f32],
        touched: &'t mut [u32],
    ) -> Result<&'t [u32], ListError> {
        let mut count = 0;
        for (cursor, term) in cursors.iter_mut().zip(self.terms) {
            let docids = docids.clone();
            self.add::<IS_SPARSE>(cursor, term, docids, sums, touched, &mut count)?;
        }
        Ok(&touched[..count])
    }

    fn add<const IS_SPARSE: bool>(
        &self,
        cursor: &mut Cursor,
        term: &RunTerm<'_>,
        docids: Range<u32>,
        sums: &mut [f32],
        touched: &mut [u32],
        count: &mut usize,
    ) -> Result<(), ListError> {
        let Some(list) = &term.list else { return Ok(()) };
        self.each(cursor, list, term.weight, docids, sums.len(), |slot, score| {
            let sum = sums[slot];
            if IS_SPARSE {
                // Overwritten by the next unless this is the first match of the document.
                touched[*count] = slot as u32;
                *count += usize::from(sum.is_sign_negative());
            }
            sums[slot] = sum + score;
        })
    }

    /// Passes on the slot and score of each posting of one list in a window. `slots` is a power of
    /// two and at least the number of documents.
    #[inline(always)]
    fn each(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        weight: Weight,
        docids: Range<u32>,
        slots: usize,
        mut take: impl FnMut(usize, f32),
    ) -> Result<(), ListError> {
        let Range { start, end } = docids;
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
                // This is docid - start.
                take((docid - start) as usize & (slots - 1), score);
            }
            cursor.at += here;
            if !whole || !self.next_block(cursor, list, weight)? {
                break;
            }
        }
        Ok(())
    }

    /// Decodes and scores the next block of a list; `false`, and no postings, behind the last.
    pub(crate) fn next_block(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        weight: Weight,
    ) -> Result<bool, ListError> {
        let more = cursor.load_next(list, self.documents)?;
        if more {
            cursor.score(list, weight, self.norms_for(weight).documents, self.level)?;
        }
        Ok(more)
    }

    /// Brings a cursor to the first posting from `docid` on, wherever it stood.
    pub(crate) fn seek_scored(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        weight: Weight,
        docid: u32,
    ) -> Result<(), ListError> {
        let last_docids = list.last_docids();
        let before = cursor.block.checked_sub(1).and_then(|block| last_docids.get(block));
        let from = if before.is_some_and(|last| u32::from_le_bytes(*last) >= docid) {
            Some(0)
        } else {
            (cursor.docids[..cursor.len].last() < Some(&docid)).then(|| cursor.next_block())
        };
        // Behind the last block there is nothing, but a cursor may go back from there.
        if let Some(from) = from.filter(|from| *from <= list.full_blocks()) {
            cursor.skip_to(first_block(last_docids, from, docid));
            self.next_block(cursor, list, weight)?;
        }
        cursor.at = cursor.docids[..cursor.len].partition_point(|&other| other < docid);
        Ok(())
    }

    pub(crate) fn begin(&self, cursors: &mut [Cursor]) -> Result<(), ListError> {
        for (cursor, term) in cursors.iter_mut().zip(self.terms) {
            if let Some(list) = &term.list {
                self.next_block(cursor, list, term.weight)?;
            }
        }
        Ok(())
    }
}

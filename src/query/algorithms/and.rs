//! AND: the k best documents that have all terms of a query.
//!
//! The shortest list drives: four of its blocks of 128 give candidates, which the other lists thin
//! out, shorter before longer. A list skips by its last docids to the block that may hold the next
//! candidate and decodes no other. Term frequencies are read last, for full matches alone, and
//! scores are added in the order of the query.

use super::auto;
use crate::index::list::{ListError, ListView, MAX_BLOCK};
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::kernels::{
    BlockRoom, FoundDocids, NO_DOCID, SoughtDocids, add_scores, offer_block, test_bits,
};
use crate::query::scratch::{Candidates, Scratch};
use crate::query::top_k::TopK;
use std::ops::Range;

/// Offers to `top` all documents of a run that have every term; of one term, the best of them.
///
/// # Errors
/// If a list is damaged. Some documents may have been offered.
pub fn search(run: &RunSearch<'_>, top: &mut TopK, scratch: &mut Scratch) -> Result<(), ListError> {
    if run.terms.iter().any(|term| term.list.is_none()) {
        return Ok(());
    }
    match run.terms {
        [] => Ok(()),
        [term] if !run.norms.statics.is_empty() => run.offer_all(term, top, scratch),
        [_] => auto::search(run, top, scratch),
        _ => run.intersect(top, scratch).map(|_| ()),
    }
}

/// Offers all documents of a run that have each of two terms or more to `top`, if it is given, and
/// returns their number. None may be deleted, and all of the lists wanted.
pub(crate) fn search_counted(
    run: &RunSearch<'_>,
    top: Option<&mut TopK>,
    scratch: &mut Scratch,
) -> Result<u64, ListError> {
    if run.terms.iter().any(|term| term.list.is_none()) {
        return Ok(0);
    }
    if let Some(top) = top {
        return run.intersect(top, scratch);
    }
    if run.has_bitmaps() {
        return Ok(run.count_bitmaps());
    }
    let mut all = 0;
    run.each_match(scratch, |_, count, _| {
        all += count as u64;
        Ok(())
    })?;
    Ok(all)
}

impl RunSearch<'_> {
    /// Of two terms or more, all of which have a list.
    fn intersect(&self, top: &mut TopK, scratch: &mut Scratch) -> Result<u64, ListError> {
        if self.has_bitmaps() {
            return self.offer_bitmaps(top, scratch);
        }
        let mut all = 0;
        self.each_match(scratch, |cursors, count, candidates| {
            all += count as u64;
            self.offer(cursors, count, candidates, top)
        })?;
        Ok(all)
    }

    /// Passes on all documents that have every term, some at a time: the cursors of the terms,
    /// where the places of the documents in their lists are, how many, and their docids.
    pub(crate) fn each_match(
        &self,
        scratch: &mut Scratch,
        mut each: impl FnMut(&mut [Cursor], usize, &mut Candidates) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        if self.has_bitmaps() {
            return self.each_of_bitmaps(scratch, each);
        }
        let terms = self.terms;
        scratch.reset_cursors(terms.len());
        let Scratch { cursors, order, candidates, .. } = scratch;
        self.sort(order);
        let Some(shortest) = terms[order[0]].list else { return Ok(()) };

        let blocks = shortest.full_blocks() + usize::from(shortest.tail_len() > 0);
        // As many blocks as there is room for: each list prefetches for all before it decodes.
        let at_once = MAX_BLOCK / shortest.block_len();
        for block in (0..blocks).step_by(at_once) {
            let these = block..blocks.min(block + at_once);
            let count = self.take(&mut cursors[order[0]], &shortest, these, candidates)?;
            if count == 0 {
                // All the rest is outside of the wanted docids.
                break;
            }
            let find = |cursor: &mut Cursor,
                        term: usize,
                        list: &ListView<'_>,
                        sought: SoughtDocids<'_>,
                        found: FoundDocids<'_>| {
                let Some(bitmap) = self.bitmap(term) else {
                    return cursor.find(list, self.documents, sought, found, self.level);
                };
                let FoundDocids { docids, kept } = found;
                let into = FoundDocids { docids: &mut *docids, kept };
                let count = test_bits(self.level, &bitmap.bits, sought, into);
                docids[count..count + 16].fill(NO_DOCID);
                Ok((count, true))
            };
            let (count, more) = if terms.len() == 1 {
                let all = (0..).zip(&mut candidates.kept);
                all.for_each(|(number, kept)| *kept = number);
                cursors[0].number_positions(block, &candidates.kept[..count]);
                (count, true)
            } else {
                self.thin_out(cursors, order, block, count, candidates, find)?
            };
            if count > 0 {
                self.place(&order[1..], cursors, count, candidates)?;
                each(cursors, count, candidates)?;
            }
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Offers all documents of the only list, whose scores begin with static parts.
    fn offer_all(
        &self,
        term: &RunTerm<'_>,
        top: &mut TopK,
        scratch: &mut Scratch,
    ) -> Result<(), ListError> {
        let Some(list) = term.list else { return Ok(()) };
        scratch.reset_cursors(1);
        let cursor = &mut scratch.cursors[0];
        while cursor.load_next(&list, self.documents)? {
            cursor.score(&list, term.weight, self.norms.documents, self.level)?;
            let postings = cursor.docids.iter().zip(&mut cursor.scores);
            for (&docid, score) in postings.take(cursor.len).skip(cursor.at) {
                *score += self.norms.static_of(docid);
            }
            let part = cursor.at..cursor.len;
            let docids = &cursor.docids;
            offer_block(self.level, docids, &cursor.scores, part, self.first_docid, top);
        }
        Ok(())
    }

    pub(crate) fn sort(&self, order: &mut Vec<usize>) {
        let df = |term: usize| self.terms[term].list.map_or(0, |list| list.df());
        order.clear();
        order.extend(0..self.terms.len());
        order.sort_unstable_by_key(|&term| (df(term), term));
    }

    /// Makes the documents of blocks of the shortest list the candidates; returns their number.
    pub(crate) fn take(
        &self,
        cursor: &mut Cursor,
        list: &ListView<'_>,
        blocks: Range<usize>,
        candidates: &mut Candidates,
    ) -> Result<usize, ListError> {
        let room = &mut candidates.docids[0];
        let mut count = 0;
        for block in blocks.clone() {
            list.line_ahead(block + 1);
        }
        for block in blocks {
            cursor.load(list, block, self.documents)?;
            let end = count + cursor.len;
            room[count..end].copy_from_slice(&cursor.docids[..cursor.len]);
            count = end;
            if cursor.len < list.block_len() {
                // The tail, or the last of what is wanted.
                break;
            }
        }
        room[count..count + 16].fill(NO_DOCID);
        Ok(count)
    }

    /// Looks for the `count` candidates from block `block` of the shortest list on in all others,
    /// by `find`, which does what [`Cursor::find`] does. Leaves the full matches in the last room
    /// of `candidates` and their positions in the cursors. Returns their number, and `false` if a
    /// list has ended, so that no more can come.
    #[inline]
    pub(crate) fn thin_out(
        &self,
        cursors: &mut [Cursor],
        order: &[usize],
        block: usize,
        mut count: usize,
        candidates: &mut Candidates,
        mut find: impl FnMut(
            &mut Cursor,
            usize,
            &ListView<'_>,
            SoughtDocids<'_>,
            FoundDocids<'_>,
        ) -> Result<(usize, bool), ListError>,
    ) -> Result<(usize, bool), ListError> {
        let mut more = true;
        let Candidates { docids: [from, to], kept, .. } = candidates;
        let mut from = from;
        let mut to = to;
        for (number, &term) in order.iter().enumerate().skip(1) {
            let Some(list) = self.terms[term].list else { return Ok((0, false)) };
            let has_more;
            let sought = SoughtDocids { docids: from, count };
            let found = FoundDocids { docids: to, kept };
            (count, has_more) = find(&mut cursors[term], term, &list, sought, found)?;
            more &= has_more;
            if count == 0 {
                break;
            }
            if number == 1 {
                cursors[order[0]].number_positions(block, &kept[..count]);
            } else {
                for &earlier in &order[..number] {
                    keep(&mut cursors[earlier].positions, &kept[..count]);
                }
            }
            (from, to) = (to, from);
        }
        Ok((count, more))
    }

    /// Sets the places of full matches in the lists of those terms that have bitmaps.
    fn place(
        &self,
        terms: &[usize],
        cursors: &mut [Cursor],
        count: usize,
        candidates: &Candidates,
    ) -> Result<(), ListError> {
        let docids = &candidates.docids[(self.terms.len() - 1) % 2];
        for &term in terms {
            if let (Some(bitmap), Some(list)) = (self.bitmap(term), self.terms[term].list) {
                let docids = &docids[..count];
                cursors[term].go_to_documents(&list, self.documents, bitmap, docids, self.level)?;
            }
        }
        Ok(())
    }

    /// Scores full matches, whose places are in the cursors.
    pub(crate) fn offer(
        &self,
        cursors: &mut [Cursor],
        count: usize,
        candidates: &mut Candidates,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        self.offer_by(count, candidates, top, |term, list, tfs| {
            cursors[term].tfs_of_positions(list, &mut tfs[..count])
        })
    }

    /// Scores full matches; `tfs_of` gives their term frequencies in a list.
    pub(super) fn offer_by(
        &self,
        count: usize,
        candidates: &mut Candidates,
        top: &mut TopK,
        mut tfs_of: impl FnMut(usize, &ListView<'_>, &mut BlockRoom) -> Result<(), ListError>,
    ) -> Result<(), ListError> {
        let Candidates { docids, norms, tfs, sums, .. } = candidates;
        let docids = &docids[(self.terms.len() - 1) % 2];
        for (norm, &docid) in norms.iter_mut().zip(&docids[..count]) {
            *norm = self.norms.documents[docid as usize];
        }
        sums[..count].fill(0.0);
        if !self.norms.statics.is_empty() {
            for (sum, &docid) in sums.iter_mut().zip(&docids[..count]) {
                *sum = self.norms.static_of(docid);
            }
        }
        for (number, term) in self.terms.iter().enumerate() {
            let Some(list) = term.list else { continue };
            tfs_of(number, &list, tfs)?;
            add_scores(self.level, term.weight, tfs, norms, count, sums);
        }
        offer_block(self.level, docids, sums, 0..count, self.first_docid, top);
        Ok(())
    }
}

/// Keeps the numbers at rising places.
#[inline]
fn keep(numbers: &mut BlockRoom, kept: &[u32]) {
    for (to, &from) in kept.iter().enumerate() {
        // A number moves forwards or stays, so none is overwritten before it is read.
        numbers[to] = numbers[from as usize];
    }
}

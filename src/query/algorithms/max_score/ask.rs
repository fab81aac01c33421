//! Second half of MaxScore: looks for candidates in optional lists and offers those left.

use std::ops::Range;

use super::Search;
use super::asking::Asking;
use crate::index::list::{ListError, MAX_BLOCK};
use crate::query::algorithms::ranges::DocidRanges;
use crate::query::cursor::RunTerm;
use crate::query::kernels::{FoundDocids, NO_DOCID, SoughtDocids, narrow, scores, test_bits};
use crate::query::top_k::TopK;

impl Search<'_> {
    /// Searches this many optional lists for their candidates and offers those that may be hits.
    pub(crate) fn complete(
        &mut self,
        optional: usize,
        ranges: &DocidRanges,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        let found = self.found[optional].len();
        for start in (0..found).step_by(MAX_BLOCK) {
            let part = start..found.min(start + MAX_BLOCK);
            self.complete_part(optional, part, ranges, top)?;
            top.tighten();
        }
        self.found[optional].clear();
        Ok(())
    }

    fn complete_part(
        &mut self,
        optional: usize,
        part: Range<usize>,
        ranges: &DocidRanges,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        let bar = self.bar(top) as f32;
        let Asking { left, scores, .. } = &mut *self.asking;
        let (docids, sums) = self.found[optional].part(part);
        let count = docids.len();
        left.docids[..count].copy_from_slice(docids);
        left.sums[..count].copy_from_slice(sums);
        for (slot, number) in left.slots[..count].iter_mut().zip(0..) {
            *slot = number;
        }
        left.count = count;
        scores.resize(self.run.terms.len().max(scores.len()), [0.0; MAX_BLOCK]);
        for &term in &self.order[..] {
            scores[term][..count].fill(0.0);
        }
        if let [term] = self.order[optional..] {
            scores[term][..count].copy_from_slice(sums);
        }
        for number in (0..optional).rev() {
            narrow(self.run.level, bar, ranges.rest(number), &mut self.asking.left);
            if self.asking.left.count == 0 {
                return Ok(());
            }
            self.ask(self.order[number])?;
        }
        let left = &mut self.asking.left;
        let mut count = 0;
        for at in 0..left.count {
            left.docids[count] = left.docids[at];
            left.slots[count] = left.slots[at];
            count += usize::from(left.sums[at] > bar);
        }
        left.docids[count..count + 16].fill(NO_DOCID);
        left.count = count;
        if count > 0 {
            // Of several needed lists only the sum is known.
            if optional + 1 < self.order.len() {
                for number in optional..self.order.len() {
                    self.ask(self.order[number])?;
                }
            }
            self.offer(top);
        }
        Ok(())
    }

    /// Finds the candidates in a list and adds their scores there to the sums.
    fn ask(&mut self, term: usize) -> Result<(), ListError> {
        let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { return Ok(()) };
        let level = self.run.level;
        let Asking { left, met, kept, tfs, worth, scores: all } = &mut *self.asking;
        let cursor = &mut self.asked[term];
        let documents = self.run.documents;
        let sought = SoughtDocids { docids: &left.docids, count: left.count };
        let into = FoundDocids { docids: &mut *met, kept };
        let found = if let Some(bitmap) = self.run.bitmap(term) {
            let found = test_bits(level, &bitmap.bits, sought, into);
            cursor.go_to_documents(&list, documents, bitmap, &met[..found], level)?;
            found
        } else {
            cursor.go_back(&list, left.docids[0]);
            cursor.find(&list, documents, sought, into, level)?.0
        };
        if found == 0 {
            return Ok(());
        }
        cursor.tfs_of_positions(&list, &mut tfs[..found])?;
        let norms = self.run.norms_for(weight).documents;
        scores(level, weight, met, tfs, found, norms, worth);
        let scores = &mut all[term];
        for (&number, &score) in kept[..found].iter().zip(&*worth) {
            left.sums[number as usize] += score;
            scores[left.slots[number as usize] as usize] = score;
        }
        Ok(())
    }

    /// Offers the candidates that are left with their scores, added up in the order of the query. A
    /// zero where a document lacks a term changes no bit of a sum.
    fn offer(&mut self, top: &mut TopK) {
        let Asking { left, scores, .. } = &*self.asking;
        for (&docid, &slot) in left.docids[..left.count].iter().zip(&left.slots) {
            let mut sum = 0.0;
            for (term, scores) in self.run.terms.iter().zip(scores) {
                if term.list.is_some() {
                    sum += scores[slot as usize];
                }
            }
            top.offer(self.run.first_docid + docid, sum);
        }
    }
}

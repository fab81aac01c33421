//! The second half of MaxScore: lists are asked for the candidates, and those that are left are
//! offered.

use std::ops::Range;

use super::{AnyOrder, Search};
use crate::index::list::{BLOCK, ListError};
use crate::query::cursor::{Candidates, RunTerm};
use crate::query::kernels::{NO_DOCID, offer_block, scores};
use crate::query::top_k::TopK;

impl Search<'_> {
    /// Asks the optional lists for the documents found and offers those that may be hits.
    pub(super) fn complete(&mut self, top: &mut TopK) -> Result<(), ListError> {
        let found = std::mem::take(self.found);
        let done = found.chunks(BLOCK).try_for_each(|chunk| self.complete_block(chunk, top));
        *self.found = found;
        done
    }

    fn complete_block(&mut self, found: &[(u32, f32)], top: &mut TopK) -> Result<(), ListError> {
        let bar = self.bar(top);
        let mut count = found.len();
        for (i, &(docid, sum)) in found.iter().enumerate() {
            self.candidates.docids[0][i] = docid;
            self.candidates.sums[i] = sum;
        }
        self.candidates.docids[0][count..count + 16].fill(NO_DOCID);
        let needed = self.order.len() - self.optional;
        if needed == 1 {
            let scores = &mut self.asked[self.order[self.optional]].scores;
            scores[..count].copy_from_slice(&self.candidates.sums[..count]);
        }
        // Those that have been asked, and the needed one if it is alone.
        let with_scores = self.optional + usize::from(needed == 1);
        for number in (0..self.optional).rev() {
            let enough = bar - self.bounds[number];
            count = self.drop_below(enough, count, number + 1..with_scores);
            if count == 0 {
                return Ok(());
            }
            self.ask(self.order[number], count, true)?;
        }
        count = self.drop_below(bar, count, 0..with_scores);
        if count == 0 {
            return Ok(());
        }
        if needed > 1 {
            for number in self.optional..self.order.len() {
                self.ask(self.order[number], count, false)?;
            }
        }
        self.offer(count, top);
        Ok(())
    }

    /// Drops the candidates whose sums are not above the bar, with their scores in some lists.
    fn drop_below(&mut self, bar: f64, count: usize, lists: Range<usize>) -> usize {
        let Candidates { docids: [docids, _], kept, sums, .. } = &mut *self.candidates;
        let mut left = 0;
        for (number, &sum) in (0..).zip(&sums[..count]) {
            kept[left] = number;
            left += usize::from(f64::from(sum) > bar);
        }
        if left == count {
            return count;
        }
        for (to, &from) in kept[..left].iter().enumerate() {
            docids[to] = docids[from as usize];
            sums[to] = sums[from as usize];
        }
        docids[left..left + 16].fill(NO_DOCID);
        for &term in &self.order[lists] {
            let scores = &mut self.asked[term].scores;
            for (to, &from) in kept[..left].iter().enumerate() {
                scores[to] = scores[from as usize];
            }
        }
        left
    }

    /// Looks for the candidates in a list and sets what each is worth there, which is added to the
    /// sums if they do not have it yet.
    fn ask(&mut self, term: usize, count: usize, adds: bool) -> Result<(), ListError> {
        let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { return Ok(()) };
        let level = self.run.level;
        let Candidates { docids: [docids, met], kept, tfs, sums, worth, .. } =
            &mut *self.candidates;
        self.questions += count;
        let cursor = &mut self.asked[term];
        let lists = (&list, self.run.documents);
        let (found, _) = cursor.find(lists, (docids, count), (met, kept), level)?;
        cursor.scores[..count].fill(0.0);
        if found == 0 {
            return Ok(());
        }
        cursor.tfs_of_positions(&list, &mut tfs[..found])?;
        for _ in 0..=cursor.again.score {
            scores(level, weight + 0.0, (met, tfs), found, self.run.norms, worth);
        }
        for (&number, &score) in kept[..found].iter().zip(&*worth) {
            cursor.scores[number as usize] = score;
            if adds {
                sums[number as usize] += score;
            }
        }
        Ok(())
    }

    /// Adds up the scores in the order of the query. A zero where a document does not have the term
    /// changes no bit of a sum.
    fn offer(&mut self, count: usize, top: &mut TopK) {
        let Candidates { docids, sums, .. } = &mut *self.candidates;
        sums[..count].fill(0.0);
        for (term, cursor) in self.run.terms.iter().zip(&*self.asked) {
            if term.list.is_some() {
                for (sum, score) in sums[..count].iter_mut().zip(&cursor.scores) {
                    *sum += score;
                }
            }
        }
        let postings = (&docids[0], &*sums);
        offer_block(self.run.level, postings, 0..count, self.first_docid, &mut AnyOrder(top));
    }
}

//! Which k documents with at least one term of a query have the highest scores, without scoring
//! every posting?
//!
//! MaxScore (Turtle and Flood: Query evaluation: strategies and optimizations, 1995). No posting is
//! worth more than the weight of its term, for any k1 and b. So documents that have only terms of
//! little weight, whose weights together do not reach the threshold, cannot be hits: such lists are
//! *optional*, and only the documents of the other, *needed* lists are candidates. The optional
//! lists are asked for those candidates alone, the greatest weight first, and candidates that
//! cannot reach the threshold any more are dropped. The threshold rises and more lists become
//! optional.
//!
//! Asking pays off only where candidates are few. Where the first of them took longer than adding
//! up the optional lists would have, all lists are added up for some windows; then it is tried
//! again.
//!
//! Different from the paper: needed lists are added up by windows, as in `exhaustive.rs`, and a
//! single needed list block by block; a lower bound of the threshold is found first, in the rarest
//! list that has k documents; scores of the last candidates are added up again in the order of the
//! query, so that they are those of every other algorithm to the bit.

use super::cursor::{Candidates, Cursor, RunTerm, Scratch, WindowMemory, check_run};
use super::exhaustive;
use super::kernels::{NO_DOCID, Sink, offer_block, scores};
use super::top_k::TopK;
use super::windows::{LONGEST, Run};
use crate::index::list::{BLOCK, ListError};

/// To ask a list for a document takes as long as to add up this many postings.
const ASKING: f64 = 15.0;

/// To ask all lists for a few documents takes as long as this many postings besides.
const BEGINNING: f64 = 200.0;

/// Documents of the window with which asking is tried.
const SHORT: u32 = 128;

/// For so many windows all lists are added up after asking took too long once, or many times.
const SHORTEST_PAUSE: u32 = 4;
const LONGEST_PAUSE: u32 = 64;

/// The rarest list is read ahead for a threshold if all others have this many times its postings.
const RARE: u64 = 10;

/// Offers to `top` all documents of a run that have at least one term and may be among the best.
/// Takes the same and finds the same as [`exhaustive::search`].
///
/// # Errors
///
/// If a list is damaged. Some documents may have been offered. Damage in a part that is skipped is
/// not seen.
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
    if terms.iter().filter(|term| term.list.is_some()).count() < 2 {
        return exhaustive::search(terms, first_docid, documents, norms, top, scratch);
    }
    let run = Run { terms, documents, norms, level: scratch.level };
    // Each term has a cursor for when it is needed and one for when it is asked.
    scratch.reset_cursors(2 * terms.len());
    let Scratch { cursors, order, windows, candidates, bounds, found, ahead, .. } = scratch;
    let (needed, asked) = cursors[..2 * terms.len()].split_at_mut(terms.len());
    let mut search = Search {
        run,
        first_docid,
        rounding: 1.0 + (terms.len() + 4) as f64 * f64::from(f32::EPSILON),
        order,
        bounds,
        optional: 0,
        floor: f32::NEG_INFINITY,
        next: 0,
        questions: 0,
        longest: SHORT,
        pause: 0,
        next_pause: SHORTEST_PAUSE,
        needed,
        asked,
        candidates,
        found,
    };
    search.rank();
    let searched = search.look_ahead(ahead, top).and_then(|()| search.run_all(windows, top));
    if searched.is_err() {
        windows.clear();
    }
    searched
}

/// A search and how far it has come.
struct Search<'a> {
    run: Run<'a>,
    first_docid: u32,
    /// How much rounding may add to a sum of scores, as a factor.
    rounding: f64,
    /// The terms that have lists, by rising weight.
    order: &'a mut Vec<usize>,
    /// For each of those, the weight of all terms up to it.
    bounds: &'a mut Vec<f64>,
    /// The first of those that is needed; those before it are optional.
    optional: usize,
    /// Documents with scores below this are not among the best, whatever has been offered.
    floor: f32,
    /// Hits with docids below this have been offered.
    next: u32,
    /// How many documents lists were asked for in the last step, counted for each list.
    questions: usize,
    /// Documents of the next window whose candidates are asked for: it becomes longer as long as
    /// that pays off.
    longest: u32,
    /// Windows left in which all lists are added up.
    pause: u32,
    next_pause: u32,
    needed: &'a mut [Cursor],
    asked: &'a mut [Cursor],
    candidates: &'a mut Candidates,
    /// Documents of the needed lists, with the sum of their scores there.
    found: &'a mut Vec<(u32, f32)>,
}

impl Search<'_> {
    /// Puts the terms into order.
    fn rank(&mut self) {
        let terms = self.run.terms;
        self.order.clear();
        self.order.extend((0..terms.len()).filter(|&term| terms[term].list.is_some()));
        let df = |term: usize| terms[term].list.map_or(0, |list| list.df());
        self.order.sort_unstable_by(|&a, &b| {
            let by_weight = terms[a].weight.total_cmp(&terms[b].weight);
            by_weight.then(df(b).cmp(&df(a))).then(a.cmp(&b))
        });
        let mut sum = 0.0;
        self.bounds.clear();
        self.bounds.extend(self.order.iter().map(|&term| {
            sum += f64::from(terms[term].weight);
            sum
        }));
    }

    /// Sums have to exceed this, rounding set aside, for a document to get in.
    fn bar(&self, top: &TopK) -> f64 {
        f64::from(top.threshold().max(self.floor)) / self.rounding
    }

    /// Finds a floor in the list of the greatest weight: its k-th score, since no score falls by
    /// what the other terms add.
    fn look_ahead(&mut self, ahead: &mut TopK, top: &TopK) -> Result<(), ListError> {
        let term = self.order[self.order.len() - 1];
        let Some(list) = self.run.terms[term].list else { return Ok(()) };
        let df = u64::from(list.df());
        if df < top.k() as u64 || df * RARE > self.postings(0) - df {
            return Ok(());
        }
        ahead.reset(top.k());
        let weight = self.run.terms[term].weight;
        let cursor = &mut self.asked[term];
        while self.run.next_block(cursor, (&list, weight))? {
            offer_block(self.run.level, (&cursor.docids, &cursor.scores), 0..cursor.len, 0, ahead);
        }
        cursor.reset();
        // Documents with just this score may be hits.
        self.floor = ahead.least().next_down();
        Ok(())
    }

    /// Goes through the lists.
    fn run_all(&mut self, windows: &mut WindowMemory, top: &mut TopK) -> Result<(), ListError> {
        self.run.begin(self.needed)?;
        loop {
            let bar = self.bar(top);
            while self.bounds.get(self.optional).is_some_and(|&bound| bound <= bar) {
                self.optional += 1;
            }
            let more = if self.optional == self.order.len() {
                false
            } else if self.optional == 0 || self.pause > 0 {
                self.pause = self.pause.saturating_sub(1);
                self.add_up(windows, top)?
            } else {
                self.ask_for_candidates(windows, top)?
            };
            if !more {
                return Ok(());
            }
        }
    }

    /// Offers the documents of a window of all lists; `false` if there are none left.
    fn add_up(&mut self, windows: &mut WindowMemory, top: &mut TopK) -> Result<bool, ListError> {
        for &term in &self.order[..self.optional] {
            let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { continue };
            self.run.seek(&mut self.needed[term], (&list, weight), self.next)?;
        }
        let size = (self.run.is_sparse(self.postings(0)), LONGEST);
        let window = self.run.window(self.needed, windows, size, self.first_docid, top)?;
        self.next = window.map_or(self.run.documents, |(_, end)| end);
        Ok(window.is_some())
    }

    /// Takes the candidates of some documents, and sees whether that pays off; `false` if there are
    /// none left.
    fn ask_for_candidates(
        &mut self,
        windows: &mut WindowMemory,
        top: &mut TopK,
    ) -> Result<bool, ListError> {
        let start = self.next;
        self.questions = 0;
        let more = match self.order[self.optional..] {
            [term] => self.one_block(term, top)?,
            _ => self.one_window(windows, top)?,
        };
        let optional = self.postings(0) - self.postings(self.optional);
        let share = f64::from(self.next - start) / f64::from(self.run.documents);
        if self.questions as f64 * ASKING + BEGINNING < optional as f64 * share {
            self.longest = (4 * self.longest).min(LONGEST);
            self.next_pause = SHORTEST_PAUSE;
        } else {
            self.longest = SHORT;
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
        }
        Ok(more)
    }

    /// Postings of the lists from number `from` on, by weight.
    fn postings(&self, from: usize) -> u64 {
        let df = |&term: &usize| self.run.terms[term].list.map_or(0, |list| u64::from(list.df()));
        self.order[from..].iter().map(df).sum()
    }

    /// The sums of needed lists that documents have to exceed, if they have all optional terms.
    fn bar_of_needed(&self, top: &TopK) -> f32 {
        let rest = if self.optional == 0 { 0.0 } else { self.bounds[self.optional - 1] };
        ((self.bar(top) - rest) as f32).next_down()
    }

    /// Takes the candidates of a window of the needed lists.
    fn one_window(
        &mut self,
        windows: &mut WindowMemory,
        top: &mut TopK,
    ) -> Result<bool, ListError> {
        for &term in &self.order[..self.optional] {
            let cursor = &mut self.needed[term];
            cursor.at = cursor.len;
        }
        let bar = self.bar_of_needed(top);
        let is_sparse = self.run.is_sparse(self.postings(self.optional));
        let size = (is_sparse, self.longest);
        self.found.clear();
        let mut sink = Found { bar, found: self.found };
        let window = self.run.window(self.needed, windows, size, 0, &mut sink)?;
        self.next = window.map_or(self.run.documents, |(_, end)| end);
        if is_sparse {
            self.found.sort_unstable_by_key(|&(docid, _)| docid);
        }
        self.complete(top)?;
        Ok(window.is_some())
    }

    /// Takes the candidates of a few blocks of the only needed list.
    fn one_block(&mut self, term: usize, top: &mut TopK) -> Result<bool, ListError> {
        let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { return Ok(false) };
        let bar = self.bar_of_needed(top);
        let cursor = &mut self.needed[term];
        let mut more = cursor.at < cursor.len;
        self.found.clear();
        let mut sink = Found { bar, found: self.found };
        // The threshold does not rise before the candidates are complete, so they are not many.
        while more && sink.found.len() < BLOCK / 2 {
            let postings = (&cursor.docids, &cursor.scores);
            offer_block(self.run.level, postings, cursor.at..cursor.len, 0, &mut sink);
            more = self.run.next_block(cursor, (&list, weight))?;
        }
        self.next = cursor.next_docid().unwrap_or(self.run.documents);
        self.complete(top)?;
        Ok(more)
    }

    /// Asks the optional lists for the documents found and offers those that may be hits.
    fn complete(&mut self, top: &mut TopK) -> Result<(), ListError> {
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
            self.asked[self.order[self.optional]].scores = self.candidates.sums;
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
    fn drop_below(&mut self, bar: f64, count: usize, lists: std::ops::Range<usize>) -> usize {
        let Candidates { docids: [docids, _], kept, sums, .. } = &mut *self.candidates;
        let mut left = 0;
        for i in 0..count {
            kept[left] = i as u32;
            left += usize::from(f64::from(sums[i]) > bar);
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
        scores(level, weight + 0.0, (met, tfs), found, self.run.norms, worth);
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
        offer_block(self.run.level, (&docids[0], sums), 0..count, self.first_docid, top);
    }
}

/// Collects the documents of a window.
struct Found<'a> {
    bar: f32,
    found: &'a mut Vec<(u32, f32)>,
}

impl Sink for Found<'_> {
    fn bar(&self) -> f32 {
        self.bar
    }

    fn push(&mut self, docid: u32, sum: f32) {
        // Sparse windows hand on every document.
        if sum > self.bar {
            self.found.push((docid, sum));
        }
    }
}

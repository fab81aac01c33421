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

mod ask;

use super::cursor::{Candidates, Cursor, Norms, RunTerm, Scratch, WindowMemory, check_run};
use super::exhaustive;
use super::kernels::{Sink, offer_block};
use super::top_k::TopK;
use super::windows::{LONGEST, Run};
use crate::index::list::{BLOCK, ListError};

/// To ask a list for a document takes as long as to add up this many postings.
const ASKING: f64 = 15.0;

/// To ask all lists for a few documents takes as long as this many postings besides.
const BEGINNING: f64 = 200.0;

/// Documents of the shortest window with which asking is tried.
const SHORT: u32 = 1024;

/// Such a window has so many postings of optional lists, if it may be that long.
const WORTH_TRYING: f64 = 1000.0;

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
    norms: Norms<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    check_run(first_docid, documents, norms);
    if terms.iter().filter(|term| term.list.is_some()).count() < 2 {
        return exhaustive::search(terms, first_docid, documents, norms, top, scratch);
    }
    let run = Run { terms, documents, norms: norms.documents, level: scratch.level };
    // Each term has a cursor for when it is needed and one for when it is asked.
    scratch.reset_cursors(2 * terms.len());
    let Scratch { cursors, order, windows, candidates, bounds, found, places, ahead, .. } = scratch;
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
        longest: 0,
        places,
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
    /// Where those were: block and number in the block; `None` behind the last posting.
    places: &'a mut Vec<Option<(usize, usize)>>,
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
            let postings = (&cursor.docids, &cursor.scores);
            offer_block(self.run.level, postings, cursor.at..cursor.len, 0, ahead);
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
        self.questions = 0;
        let optional = (self.postings(0) - self.postings(self.optional)) as f64;
        let per_document = optional / f64::from(self.run.span().max(1));
        let start = self.next;
        let more = match self.order[self.optional..] {
            [term] => Some(self.one_block(term, top)?),
            _ => self.one_window(windows, per_document, top)?,
        };
        let gain = f64::from(self.next.saturating_sub(start)) * per_document;
        if more.is_some() && self.questions as f64 * ASKING + BEGINNING < gain {
            self.longest = self.next.saturating_sub(start).saturating_mul(4);
            self.next_pause = SHORTEST_PAUSE;
        } else {
            self.longest = 0;
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
        }
        Ok(more != Some(false))
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

    /// Takes the candidates of a window of the needed lists; `false` if there are none left. `None`,
    /// and nothing is done, if they are more than can pay off.
    fn one_window(
        &mut self,
        windows: &mut WindowMemory,
        per_document: f64,
        top: &mut TopK,
    ) -> Result<Option<bool>, ListError> {
        for &term in &self.order[..self.optional] {
            let cursor = &mut self.needed[term];
            cursor.at = cursor.len;
        }
        self.places.clear();
        self.places.extend(self.needed.iter().map(Cursor::place));
        let bar = self.bar_of_needed(top);
        let is_sparse = self.run.is_sparse(self.postings(self.optional));
        let least = (WORTH_TRYING / per_document).min(f64::from(LONGEST)) as u32;
        let size = (is_sparse, self.longest.max(least).max(SHORT));
        self.found.clear();
        let mut sink = Found { bar, found: self.found };
        let window = self.run.window(self.needed, windows, size, 0, &mut sink)?;
        let Some((_, end)) = window else { return Ok(Some(false)) };
        let questions = (self.found.len() * self.optional) as f64;
        if questions * ASKING
            > 2.0 * f64::from(end.saturating_sub(self.next)) * per_document + BEGINNING
        {
            for &term in &self.order[self.optional..] {
                let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { continue };
                if let Some(place) = self.places[term] {
                    self.run.rewind(&mut self.needed[term], (&list, weight), place)?;
                }
            }
            return Ok(None);
        }
        self.next = end;
        if is_sparse {
            self.found.sort_unstable_by_key(|&(docid, _)| docid);
        }
        self.complete(top)?;
        Ok(Some(true))
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

//! MaxScore: OR without scoring every posting (Turtle and Flood: Query evaluation: strategies and
//! optimizations, 1995), by ranges of docids with the bounds of blocks (Dimopoulos, Nepomnyachiy
//! and Suel, 2013; `ranges.rs`).
//!
//! 1. The sum of the lists' bounds in a range bounds the scores of its documents. Ranges below the
//!    threshold are skipped: nothing is decoded there.
//! 2. The ranges of the greatest sums come first, until there is a threshold; then all others in
//!    the order of docids.
//! 3. In a range, lists whose bounds together do not reach the threshold are *optional*: documents
//!    that have only their terms cannot be hits. Only the documents of the other, *needed* lists
//!    are candidates. The optional lists are searched for those candidates alone, the greatest
//!    bound first, and candidates that can no longer reach the threshold are dropped.
//!
//! Candidates wait until there are many with the same optional lists (`ask.rs`), which are then
//! searched for all of them at once: that costs about the decoding of some blocks.
//!
//! Different from the papers: needed lists are added up by windows, as in `exhaustive.rs`, of which
//! only lines that were touched are swept. A single needed list goes block by block. A lower bound
//! of the threshold is found first, in the rarest list that has k documents. Scores of the last
//! candidates are added up again in the order of the query, so that they equal those of every other
//! algorithm to the bit.

mod ask;
pub(crate) mod asking;
mod bounds;
mod single;

use super::daat::{list_most, rounding};
use super::ranges::DocidRanges;
use super::windows::{DENSE, LONGEST};
use crate::index::list::ListError;
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::kernels::{ScoredDocuments, SumSink, collect_block, offer_block};
use crate::query::scratch::{Scratch, WindowMemory};
use crate::query::top_k::TopK;
use asking::Asking;
use std::ops::Range;

/// The rarest list is read ahead for a threshold if all others have this many times its postings.
const RARE: u64 = 10;

/// Postings of a range, about, within the shortest and the longest range.
const RANGE_POSTINGS: u64 = 256;

/// Binary logarithms of the documents of a range.
const SHORTEST_RANGE: u32 = 9;
const LONGEST_RANGE: u32 = LONGEST.ilog2();

/// Candidates that are searched for together, at least.
const BATCH: usize = 256;

/// Documents of a dense window of needed lists: only touched lines need the cache.
const WINDOW: u32 = 1 << 15;

/// To begin a window takes as long as to add up this many postings.
const JOINING: u64 = 100;

/// Ranges that come first beside those that are enough for k documents.
const MORE: usize = 4;

/// At most one range in this many comes first.
const FIRST_SHARE: usize = 8;

/// Offers to `top` all documents of a run that have at least one term and may be among the best.
/// Finds the same as [`exhaustive::search`](super::exhaustive::search).
///
/// # Errors
///
/// If a list is damaged. Some documents may have been offered. Damage in a part that is skipped is
/// not seen.
pub fn search(run: &RunSearch<'_>, top: &mut TopK, scratch: &mut Scratch) -> Result<(), ListError> {
    let terms = run.terms;
    let run = *run;
    if run.lists().nth(1).is_none() {
        return single::search(&run, top, scratch);
    }
    let postings = run.postings();
    // Each term has a cursor for when it is needed and one for when it is optional.
    scratch.reset_cursors(2 * terms.len());
    let Scratch { cursors, order, windows, asking, found, ranges, best, ahead, .. } = scratch;
    found.resize_with(terms.len().max(found.len()), ScoredDocuments::default);
    found.iter_mut().for_each(ScoredDocuments::clear);
    let (needed, asked) = cursors[..2 * terms.len()].split_at_mut(terms.len());
    let documents_of_range = u64::from(run.span()) * RANGE_POSTINGS / postings;
    let shift = documents_of_range.max(1).ilog2().clamp(SHORTEST_RANGE, LONGEST_RANGE);
    let mut search = Search {
        run,
        rounding: rounding(terms.len()),
        postings,
        is_sparse: 1 << shift > DENSE,
        order,
        optional: 0,
        rest: 0.0,
        floor: f32::NEG_INFINITY,
        needed,
        asked,
        asking,
        found,
    };
    search.rank();
    ranges.begin(search.order.len(), shift, run.wanted());
    let searched =
        search.look_ahead(ahead, top).and_then(|()| search.run_all(ranges, best, windows, top));
    if searched.is_err() {
        windows.clear();
    }
    searched
}

/// Offers documents in any order: one with the threshold's score may still get in.
pub(super) struct AnyOrder<'a>(pub(super) &'a mut TopK);

impl SumSink for AnyOrder<'_> {
    #[inline(always)]
    fn bar(&self) -> f32 {
        self.0.threshold().next_down()
    }

    #[inline(always)]
    fn push(&mut self, docid: u32, sum: f32) {
        self.0.offer(docid, sum);
    }
}

struct Search<'a> {
    run: RunSearch<'a>,
    /// How much rounding may add to a sum of scores, as a factor.
    rounding: f64,
    postings: u64,
    is_sparse: bool,
    /// The terms that have lists, by rising bounds.
    order: &'a mut Vec<usize>,
    /// The number of optional lists, which come before the needed ones.
    optional: usize,
    /// The most that the optional lists together add in the window.
    rest: f64,
    /// Documents with scores up to this are not among the best, whatever has been offered.
    floor: f32,
    needed: &'a mut [Cursor],
    asked: &'a mut [Cursor],
    asking: &'a mut Asking,
    /// Documents with their sums in the needed lists, by the number of optional lists.
    found: &'a mut Vec<ScoredDocuments>,
}

impl Search<'_> {
    fn rank(&mut self) {
        let terms = self.run.terms;
        let most = |term: usize| {
            let RunTerm { weight, list } = &terms[term];
            list.as_ref().map_or(0.0, |list| list_most(list, *weight, self.run.norms_for(*weight)))
        };
        let df = |term: usize| terms[term].list.map_or(0, |list| list.df());
        self.order.clear();
        self.order.extend((0..terms.len()).filter(|&term| terms[term].list.is_some()));
        self.order.sort_unstable_by(|&a, &b| {
            let by_bound = most(a).total_cmp(&most(b));
            by_bound.then(df(b).cmp(&df(a))).then(a.cmp(&b))
        });
    }

    /// Sums of scores, and of bounds with rounding, must exceed this for a document to get in.
    fn bar(&self, top: &TopK) -> f64 {
        let threshold = top.threshold().next_down().max(self.floor);
        // A number below zero admits any score.
        if threshold < 0.0 { -1.0 } else { f64::from(threshold) / self.rounding }
    }

    /// Takes the k-th score of the list with the greatest bound as floor: others only add to it.
    fn look_ahead(&mut self, ahead: &mut TopK, top: &TopK) -> Result<(), ListError> {
        let term = self.order[self.order.len() - 1];
        let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { return Ok(()) };
        let df = u64::from(list.df());
        if self.bar(top) >= 0.0 || df < top.k() as u64 || df * RARE > self.postings - df {
            return Ok(());
        }
        ahead.reset(top.k());
        let cursor = &mut self.asked[term];
        while self.run.next_block(cursor, &list, weight)? {
            let part = cursor.at..cursor.len;
            offer_block(self.run.level, &cursor.docids, &cursor.scores, part, 0, ahead);
        }
        cursor.reset();
        // Documents with just this score may be hits.
        self.floor = ahead.least().next_down();
        Ok(())
    }

    fn run_all(
        &mut self,
        ranges: &mut DocidRanges,
        best: &mut Vec<u32>,
        windows: &mut WindowMemory,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        while ranges.advance(&self.run, self.order, self.needed)? {
            self.take_best(ranges, best, windows, top)?;
            let mut from = 0;
            while let Some(range) = ranges.next_above(from, self.bar(top) as f32) {
                let end = self.divide(ranges, range, top);
                let window = ranges.start(range)..ranges.start(end);
                if self.optional == 0 {
                    self.add_up(window, windows, top)?;
                    top.tighten();
                } else {
                    self.find_candidates(window, windows, top)?;
                    if self.found[self.optional].len() >= BATCH {
                        self.complete(self.optional, ranges, top)?;
                    }
                }
                from = end;
            }
            for optional in 1..self.order.len() {
                self.complete(optional, ranges, top)?;
            }
        }
        Ok(())
    }

    /// Takes the ranges of the greatest sums, enough for k documents, if there is no threshold.
    fn take_best(
        &mut self,
        ranges: &mut DocidRanges,
        best: &mut Vec<u32>,
        windows: &mut WindowMemory,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        let per_range = self.postings * u64::from(ranges.start(1) - ranges.start(0))
            / u64::from(self.run.span().max(1));
        let enough = 2 * top.k() as u64 / per_range.max(1) + 2;
        let most = ranges.len() / FIRST_SHARE;
        if self.bar(top) >= 0.0 || enough > most as u64 {
            return Ok(());
        }
        let count = most.min(enough as usize + MORE);
        best.clear();
        best.extend(0..ranges.len() as u32);
        let sum = |range: &u32| ranges.sums()[*range as usize];
        best.select_nth_unstable_by(count, |a, b| sum(b).total_cmp(&sum(a)));
        best.truncate(count);
        best.sort_unstable();
        for &range in &*best {
            let range = range as usize;
            if ranges.sums()[range] as f64 > self.bar(top) {
                self.add_up(ranges.start(range)..ranges.start(range + 1), windows, top)?;
                top.tighten();
            }
            ranges.remove(range);
        }
        Ok(())
    }

    /// Finds which lists are optional in a range and up to which range after it they stay so,
    /// within a window. Sets `rest` and returns the first range behind.
    fn divide(&mut self, ranges: &DocidRanges, range: usize, top: &TopK) -> usize {
        let bar = self.bar(top) as f32;
        let optional = |range: usize| {
            (0..self.order.len()).take_while(|&n| ranges.upto(n, range) <= bar).count()
        };
        self.optional = optional(range);
        let start = ranges.start(range);
        let longest = if self.is_sparse {
            LONGEST
        } else if self.optional == 0 {
            DENSE
        } else {
            WINDOW
        };
        let mut end = range + 1;
        while end < ranges.len()
            && ranges.sums()[end] > bar
            && ranges.start(end + 1) - start <= longest
            && self.may_join(optional(end), ranges.start(end + 1) - ranges.start(end))
        {
            end += 1;
        }
        self.rest = match self.optional.checked_sub(1) {
            None => 0.0,
            Some(last) => {
                (range..end).map(|range| ranges.upto(last, range)).fold(0.0, f32::max).into()
            }
        };
        end
    }

    /// Whether a range with this many documents and optional lists may join the window.
    fn may_join(&self, optional: usize, documents: u32) -> bool {
        if optional <= self.optional || self.optional == 0 {
            return optional == self.optional;
        }
        let df = |&term: &usize| self.run.terms[term].list.map_or(0, |list| u64::from(list.df()));
        let more: u64 = self.order[self.optional..optional].iter().map(df).sum();
        more * u64::from(documents) <= JOINING * u64::from(self.run.span())
    }

    fn add_up(
        &mut self,
        window: Range<u32>,
        windows: &mut WindowMemory,
        top: &mut TopK,
    ) -> Result<(), ListError> {
        self.seek(0, window.start)?;
        let mut sink = AnyOrder(top);
        self.run.window_of(self.needed, windows, self.is_sparse, window, &mut sink)
    }

    /// Moves the cursors of the lists from number `from` on to a document; the others take no part.
    fn seek(&mut self, from: usize, docid: u32) -> Result<(), ListError> {
        for (number, &term) in self.order.iter().enumerate() {
            let cursor = &mut self.needed[term];
            if number < from {
                cursor.at = cursor.len;
                continue;
            }
            let RunTerm { weight, list: Some(list) } = self.run.terms[term] else { continue };
            self.run.seek_scored(cursor, &list, weight, docid)?;
        }
        Ok(())
    }

    /// Collects the documents of the needed lists in a window that may be hits.
    fn find_candidates(
        &mut self,
        window: Range<u32>,
        windows: &mut WindowMemory,
        top: &TopK,
    ) -> Result<(), ListError> {
        self.seek(self.optional, window.start)?;
        // Documents with this sum or less cannot be hits.
        let bar = ((self.bar(top) - self.rest) as f32).next_down().max(0.0);
        let found = &mut self.found[self.optional];
        match self.order[self.optional..] {
            [term] => one_list(&self.run, &mut self.needed[term], term, window.end, bar, found),
            _ => self.run.collect(self.needed, windows, window, bar, found),
        }
    }
}

/// Collects the documents of one list before `end` with scores above `bar`.
fn one_list(
    run: &RunSearch<'_>,
    cursor: &mut Cursor,
    term: usize,
    end: u32,
    bar: f32,
    found: &mut ScoredDocuments,
) -> Result<(), ListError> {
    let RunTerm { weight, list: Some(list) } = run.terms[term] else { return Ok(()) };
    while cursor.at < cursor.len {
        let rest = &cursor.docids[cursor.at..cursor.len];
        let here = cursor.at + rest.partition_point(|&docid| docid < end);
        collect_block(run.level, &cursor.docids, &cursor.scores, cursor.at..here, bar, found);
        cursor.at = here;
        if here < cursor.len || !run.next_block(cursor, &list, weight)? {
            break;
        }
    }
    Ok(())
}

//! OR by blocks of 64 documents (Mallia, Suel and Tonellotto: Faster learned sparse retrieval with
//! block-max pruning, 2024): where a run has bounds of such blocks, one byte for each list and
//! block (`index::block_bounds`).
//!
//! 1. For every block of documents the bounds of all lists are added up, as whole numbers of 16
//!    bits. A list without bounds is decoded, and each of its postings is its own bound.
//! 2. The blocks of the greatest sums are searched first, which gives a threshold. The others are
//!    looked at by falling sums, as long as these reach it.
//! 3. A batch of blocks is searched list by list, in the order of the query, so that scores equal
//!    those of every other algorithm to the bit. Of a list only those of its own blocks are decoded
//!    that may have documents of the batch.
//! 4. If too many blocks are left once there is a threshold, all is scored after all
//!    (`exhaustive.rs`).
//!
//! Sums are safe for any weights: each bound is rounded up, the sum stays at the greatest number of
//! 16 bits if it would exceed it, and the threshold is rounded down.

pub(crate) mod memory;

use super::daat::{list_most, rounding};
use super::exhaustive;
use super::max_score::{self, AnyOrder};
use super::scored::MANY_TERMS;
use crate::codec::prefetch::prefetch_bytes;
use crate::index::block_bounds::{BLOCK_DOCUMENTS, BlockCodes, WORD_DOCUMENTS, words_of};
use crate::index::list::{ListError, ListView};
use crate::query::cursor::{BlockBounds, Cursor, RunSearch};
use crate::query::kernels::{add_codes, first_block, scale_up, sweep};
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;
use crate::score::block_codes::SCALE_SLACK;
use memory::{BlockMemory, BlockVisit};
use std::ops::Range;

/// Blocks of documents that are searched together, at most: 16 KiB of accumulators.
const BATCH: usize = 64;

/// Blocks that are searched before there is a threshold, at least.
const FIRST: usize = 8;

/// The greatest sum that the scale leaves room for; the rest is for rounding.
const MOST_SUM: f64 = 65_000.0;

/// What a posting costs where all is scored, and what a list costs in a block of documents, in
/// nanoseconds.
const POSTING_NS: f64 = 1.7;
const VISIT_NS: f64 = 120.0;

/// What is spent on blocks times what is left, as shares of what scoring everything costs: with
/// more, everything is scored after all. Much that is left seldom becomes little.
const TRIED: f64 = 0.15;

/// Offers to `top` all documents of a run that have at least one term and may be among the best.
/// Finds the same as [`exhaustive::search`]; a run without bounds is searched by MaxScore.
///
/// # Errors
/// If a list is damaged. Some documents may have been offered. Damage in a part that is skipped is
/// not seen.
pub(crate) fn search(
    run: &RunSearch<'_>,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    let Some(bounds) = run.blocks.filter(|_| run.lists().nth(1).is_some()) else {
        return max_score::search(run, top, scratch);
    };
    scratch.reset_cursors(1);
    let Scratch { cursors, ahead, blocks: memory, .. } = scratch;
    let mut search = Search { run, bounds, memory, cursor: &mut cursors[0], scale: 0.0 };
    let searched = search.run(top, ahead);
    if searched.is_err() {
        scratch.blocks.accumulators.clear();
    }
    if searched? { Ok(()) } else { exhaustive::search(run, top, scratch) }
}

struct Search<'a> {
    run: &'a RunSearch<'a>,
    bounds: BlockBounds<'a>,
    memory: &'a mut BlockMemory,
    cursor: &'a mut Cursor,
    /// What bounds are multiplied by, without slack.
    scale: f64,
}

impl<'a> Search<'a> {
    /// Whether all documents were offered that may be among the best; else none was, but `top` may
    /// have a higher threshold. `ahead` has those that were found so far.
    fn run(&mut self, top: &mut TopK, ahead: &mut TopK) -> Result<bool, ListError> {
        let wanted = self.run.wanted();
        let words = words_of(wanted.end);
        self.memory.begin();
        self.memory.sums.begin((wanted.start / WORD_DOCUMENTS) as usize..words);
        if wanted.is_empty() || !self.add_bounds()? {
            return Ok(wanted.is_empty());
        }
        ahead.begin_as(top, top.k());
        let all_ns = self.run.postings() as f64 * POSTING_NS;
        let level = self.run.level;
        let mut count = FIRST.max(2 * top.k() / BLOCK_DOCUMENTS as usize + 1);
        let mut searched = 0;
        let mut visits = 0;
        loop {
            let least = self.least(ahead);
            let bar = self.memory.sums.reached_by(level, count).max(least);
            let BlockMemory { sums, left, .. } = &mut *self.memory;
            sums.collect(level, bar, left);
            if bar > least {
                sums.keep_best(count, left);
            }
            sums.remove(left);
            searched += left.len();
            for from in (0..self.memory.left.len()).step_by(BATCH) {
                self.search_part(from, ahead)?;
                visits += self.memory.visits.len();
            }
            if bar == least {
                break;
            }
            let threshold = ahead.least();
            ahead.raise(threshold);
            let least = self.least(ahead);
            let BlockMemory { sums, left, .. } = &mut *self.memory;
            sums.collect(level, least, left);
            let spent_ns = visits as f64 * VISIT_NS;
            let left_ns = spent_ns * left.len() as f64 / searched.max(1) as f64;
            if left_ns > all_ns && spent_ns * left_ns > TRIED * all_ns * all_ns {
                top.raise(threshold);
                return Ok(false);
            }
            count *= 2;
        }
        ahead.pour_into(top);
        Ok(true)
    }

    /// Adds up the bounds of all lists; false if there is nothing to go by.
    fn add_bounds(&mut self) -> Result<bool, ListError> {
        let mut sum = 0.0;
        for (number, term) in self.run.terms.iter().enumerate() {
            let mut most = 0f32;
            if let Some(list) = &term.list {
                if self.coded(number).is_some() {
                    list.prefetch_arrays();
                    most = list_most(list, term.weight, &self.run.norms);
                } else {
                    let from = self.memory.scores.len();
                    self.decode(number)?;
                    most = self.memory.scores[from..].iter().copied().fold(0.0, f32::max);
                }
            }
            self.memory.ends.push(self.memory.docids.len());
            sum += f64::from(most);
        }
        if !(sum > 0.0 && sum < f64::from(f32::MAX)) {
            return Ok(false);
        }
        self.scale = MOST_SUM / sum;
        let scale = (self.scale * SCALE_SLACK) as f32;
        let level = self.run.level;
        for (number, term) in self.run.terms.iter().enumerate() {
            let Some((codes, _)) = self.coded(number) else { continue };
            let BlockMemory { sums, of_codes, .. } = &mut *self.memory;
            let scores = self.bounds.impacts.map(|impact| term.weight.factor() * impact as f32);
            of_codes.fill(level, &scores, scale);
            add_codes(level, codes, sums.from, of_codes, &mut sums.sums);
        }
        let BlockMemory { sums, docids, scores, scaled, .. } = &mut *self.memory;
        scale_up(level, scores, scale, scaled);
        for (&docid, &score) in docids.iter().zip(&*scaled) {
            sums.add(docid, score);
        }
        Ok(true)
    }

    /// A term's list that has bounds, with these.
    fn coded(&self, number: usize) -> Option<(&'a BlockCodes<'a>, &'a ListView<'a>)> {
        let list = self.run.terms[number].list.as_ref()?;
        let codes = self.bounds.lists[number].as_ref()?;
        // Without bounds of its own nothing tells the scale.
        (!list.list_bounds().is_empty()).then_some((codes, list))
    }

    /// Decodes all postings of a term's list.
    fn decode(&mut self, number: usize) -> Result<(), ListError> {
        let term = &self.run.terms[number];
        let Some(list) = &term.list else { return Ok(()) };
        self.cursor.reset();
        while self.run.next_block(self.cursor, list, term.weight)? {
            let part = self.cursor.at..self.cursor.len;
            self.memory.docids.extend_from_slice(&self.cursor.docids[part.clone()]);
            self.memory.scores.extend_from_slice(&self.cursor.scores[part]);
        }
        Ok(())
    }

    /// Blocks with smaller sums have no documents that get in.
    fn least(&self, top: &TopK) -> u16 {
        let threshold = f64::from(top.threshold()) / rounding(self.run.terms.len());
        // A document with the threshold's score may get in. Minus infinity becomes 1.
        (threshold * self.scale).clamp(1.0, 65_535.0) as u16
    }

    /// Searches the next blocks that are left, at most [`BATCH`].
    fn search_part(&mut self, from: usize, top: &mut TopK) -> Result<(), ListError> {
        let first_block = self.memory.sums.first_block();
        let end = self.memory.left.len().min(from + BATCH);
        let mut batch = [0; BATCH];
        for (block, left) in batch.iter_mut().zip(&self.memory.left[from..end]) {
            *block = first_block + left;
            let norms = &self.run.norms.documents[(BLOCK_DOCUMENTS * *block) as usize..];
            prefetch_bytes(bytemuck::cast_slice(norms), 4 * BLOCK_DOCUMENTS as usize);
        }
        let batch = &batch[..end - from];
        self.memory.visits.clear();
        let mut ends = [0; MANY_TERMS];
        for (number, end) in ends[..self.run.terms.len()].iter_mut().enumerate() {
            if let Some((codes, list)) = self.coded(number) {
                self.find_visits(batch, codes, list);
            }
            *end = self.memory.visits.len();
        }
        let mut from = 0;
        for (number, &end) in ends[..self.run.terms.len()].iter().enumerate() {
            if self.coded(number).is_some() {
                self.visit(number, batch, from..end)?;
            } else {
                self.add_decoded(number, batch);
            }
            from = end;
        }
        for (&block, sums) in batch.iter().zip(&mut self.memory.accumulators) {
            let first = self.run.first_docid + BLOCK_DOCUMENTS * block;
            sweep(self.run.level, sums, first, &mut AnyOrder(top));
        }
        Ok(())
    }

    /// Finds the blocks of a list that may have documents of the batch, and fetches them.
    fn find_visits(&mut self, batch: &[u32], codes: &BlockCodes<'_>, list: &ListView<'_>) {
        let visits = &mut self.memory.visits;
        let last_docids = list.last_docids();
        let mut finder = codes.finder();
        let mut from = 0;
        for (slot, &number) in (0..).zip(batch) {
            if !finder.has(number) {
                continue;
            }
            let first = BLOCK_DOCUMENTS * number;
            from = first_block(last_docids, from, first);
            for block in from..list.blocks() {
                let line = list.line_ahead(block);
                visits.push(BlockVisit { block: block as u32, slot, line });
                let last = first + (BLOCK_DOCUMENTS - 1);
                if block >= list.full_blocks() || list.last_docid(block) >= last {
                    break;
                }
            }
        }
    }

    /// Adds the scores of a list's documents of the batch.
    fn visit(
        &mut self,
        number: usize,
        batch: &[u32],
        visits: Range<usize>,
    ) -> Result<(), ListError> {
        let term = &self.run.terms[number];
        let Some(list) = &term.list else { return Ok(()) };
        let BlockMemory { visits: all, accumulators, .. } = &mut *self.memory;
        let RunSearch { norms, level, documents, .. } = *self.run;
        let cursor = &mut *self.cursor;
        cursor.reset();
        let mut loaded = None;
        for &BlockVisit { block, slot, line } in &all[visits] {
            if loaded != Some(block) {
                match line {
                    Some(line) => cursor.load_line(list, block as usize, line, documents)?,
                    None => cursor.load(list, block as usize, documents)?,
                }
                loaded = Some(block);
            }
            let first = BLOCK_DOCUMENTS * batch[slot as usize];
            let norms = &norms.documents[first as usize..];
            let mut last = [0.0; 64];
            let norms = norms.first_chunk().unwrap_or_else(|| {
                last[..norms.len()].copy_from_slice(norms);
                &last
            });
            let sums = &mut accumulators[slot as usize];
            cursor.add_documents(list, term.weight, first, norms, level, sums)?;
        }
        Ok(())
    }

    /// Adds the scores of the documents of the batch that a decoded list has.
    fn add_decoded(&mut self, number: usize, batch: &[u32]) {
        let BlockMemory { docids, scores, ends, accumulators, .. } = &mut *self.memory;
        let mut from = number.checked_sub(1).map_or(0, |before| ends[before]);
        let end = ends[number];
        for (&block, sums) in batch.iter().zip(accumulators) {
            let first = BLOCK_DOCUMENTS * block;
            from += below(&docids[from..end], first);
            while from < end && docids[from] - first < BLOCK_DOCUMENTS {
                sums[(docids[from] - first) as usize] += scores[from];
                from += 1;
            }
        }
    }
}

/// How many of rising docids are below one; near ones are found soon.
fn below(docids: &[u32], end: u32) -> usize {
    let mut step = 1;
    while docids.get(step - 1).is_some_and(|docid| *docid < end) {
        step *= 2;
    }
    let from = step / 2;
    let until = docids.len().min(step);
    from + docids[from..until].partition_point(|docid| *docid < end)
}

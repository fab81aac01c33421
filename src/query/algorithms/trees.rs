//! Searches and counts for any tree of terms, by bitmaps of a window of documents after the other.
//!
//! Each part of the tree is only looked at for the documents that may still match: where these are
//! few against the postings of a list, the list is searched for each of them by skipping, and
//! otherwise all of its blocks in the window become a bitmap. Only documents that match are scored:
//! term by term in the order of the query.

pub(crate) mod best;
pub(crate) mod blends;
pub(crate) mod few;
pub(crate) mod memory;
mod phrases;
#[cfg(test)]
mod tests;
mod windows;

use self::memory::{Bits, TreeMemory};
use crate::index::deletions::ones as ones_of;
use crate::index::list::{ListError, ListView};
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::kernels::count_bits;
use crate::query::reading::syntax::Sign;
use crate::query::scratch::{Candidates, Scratch};
use crate::query::top_k::TopK;
use crate::query::tree::{Group, QueryNode};
use crate::score::weight::Weight;
use std::ops::Range;

/// Documents of a window: the bitmaps of a tree and the sums stay in the cache.
const WINDOW: u32 = if cfg!(test) { 192 } else { 1 << 16 };

/// A document is looked for in the time in which this many postings become bits.
const POSTINGS_A_SEARCH: u64 = 24;

/// What is done with the documents that match.
pub(crate) enum Wish<'w> {
    Count,
    /// All are scored and offered.
    Offer(&'w mut TopK),
    /// The best are; nobody asks how many match.
    Best(&'w mut TopK),
    /// Of these docids of the run, which rise, those that match are appended with their scores.
    Rank(&'w [u32], &'w mut Vec<(u32, f32)>),
}

/// Finds the documents of a run that match a tree, in their order; returns how many there are. If
/// some are `deleted`, they have infinite norms, and do not count.
pub(crate) fn search(
    run: &RunSearch<'_>,
    tree: &Group,
    deleted: bool,
    mut wish: Wish<'_>,
    scratch: &mut Scratch,
) -> Result<u64, ListError> {
    if let (Some(phrase), false) = (phrase_alone(tree), matches!(wish, Wish::Rank(..))) {
        return phrases::search(run, phrase, &mut wish, scratch);
    }
    let mut memory = std::mem::take(&mut scratch.trees);
    let words = run.phrases.iter().map(|phrase| phrase.words.len()).max().unwrap_or(0);
    scratch.reset_cursors(1 + words);
    let Scratch { cursors, candidates, .. } = &mut *scratch;
    let Some((cursor, cursors)) = cursors.split_first_mut() else { return Ok(0) };
    let memory_of = &mut memory;
    let mut matching =
        Matching { run, deleted, window: 0..0, cursor, cursors, candidates, memory: memory_of };
    let wanted = run.wanted();
    let mut start = wanted.start;
    let mut count = 0;
    while start < wanted.end {
        start = matching.next(tree, start).min(wanted.end);
        // Bitmaps of lists have whole words.
        let first = start / 64 * 64;
        let end = wanted.end.min(first.saturating_add(WINDOW));
        matching.window = first..end;
        if start < end {
            count += matching.window(tree, start, &mut wish)?;
        }
        start = end;
    }
    scratch.trees = memory;
    Ok(count)
}

struct Matching<'m> {
    run: &'m RunSearch<'m>,
    deleted: bool,
    window: Range<u32>,
    /// For one list after the other, and for those of a phrase.
    cursor: &'m mut Cursor,
    cursors: &'m mut [Cursor],
    candidates: &'m mut Candidates,
    memory: &'m mut TreeMemory,
}

impl<'m> Matching<'m> {
    /// The first document from `start` on that may match, by the blocks of required terms; the end
    /// if there is none.
    fn next(&self, tree: &Group, start: u32) -> u32 {
        let mut next = start;
        for (sign, node) in &tree.clauses {
            let one;
            let words = match node {
                _ if *sign != Sign::Required && tree.clauses.len() > 1 => continue,
                QueryNode::Leaf(term) => {
                    one = [(0, *term)];
                    &one[..]
                }
                QueryNode::Phrase(number) => &self.run.phrases[*number].words,
                QueryNode::Group(_) | QueryNode::Blend(_) => continue,
            };
            for (_, term) in words {
                let Some(list) = &self.run.terms[*term].list else { return self.run.documents };
                let block = list.block_of(0, next);
                if let Some(before) = block.checked_sub(1) {
                    next = next.max(list.last_docid(before).saturating_add(1));
                }
            }
        }
        next.min(self.run.documents)
    }

    /// Finds what matches in the window from document `from` on.
    fn window(&mut self, tree: &Group, from: u32, wish: &mut Wish<'_>) -> Result<u64, ListError> {
        let Range { start, end } = self.window;
        let mut within = self.take();
        match wish {
            Wish::Rank(given, _) => {
                part(given, &(from..end)).for_each(|docid| set(&mut within, docid - start));
            }
            _ => fill(&mut within, from - start, end - start),
        }
        let mut found = self.group(tree, within)?;
        if self.deleted {
            let norms = &self.run.norms.documents[start as usize..];
            retain(&mut found, |offset| norms[offset as usize] < f32::INFINITY);
        }
        let count = u64::from(count_bits(self.run.level, &found));
        if count > 0 && !matches!(wish, Wish::Count) {
            self.memory.sums.resize(WINDOW as usize, 0.0);
            for offset in ones(&found) {
                self.memory.sums[offset as usize] = self.run.norms.static_of(start + offset);
            }
            self.add(tree, &found)?;
        }
        let sums = &self.memory.sums;
        match wish {
            Wish::Count => {}
            Wish::Offer(top) | Wish::Best(top) => {
                let first = self.run.first_docid + start;
                ones(&found).for_each(|offset| top.offer(first + offset, sums[offset as usize]));
                top.tighten();
            }
            Wish::Rank(_, scores) => {
                scores.extend(ones(&found).map(|at| (start + at, sums[at as usize])));
            }
        }
        self.memory.spare.push(found);
        Ok(count)
    }

    fn take(&mut self) -> Bits {
        let mut bits = self.memory.spare.pop().unwrap_or_default();
        bits.clear();
        bits.resize(self.window.len().div_ceil(64), 0);
        bits
    }

    fn copy(&mut self, of: &Bits) -> Bits {
        let mut bits = self.memory.spare.pop().unwrap_or_default();
        bits.clone_from(of);
        bits
    }

    /// The postings of a part of the tree, at most.
    fn postings(&self, node: &QueryNode) -> u64 {
        match node {
            QueryNode::Leaf(term) => self.run.terms[*term].list.map_or(0, |list| list.df().into()),
            QueryNode::Phrase(number) => {
                let words = self.run.phrases[*number].words.iter();
                words.map(|word| self.postings(&QueryNode::Leaf(word.1))).min().unwrap_or(0)
            }
            QueryNode::Group(group) => {
                let parts = group.clauses.iter().map(|(_, node)| self.postings(node));
                parts.fold(1, u64::saturating_add)
            }
            QueryNode::Blend(parts) => {
                parts.iter().map(|node| self.postings(node)).fold(1, u64::saturating_add)
            }
        }
    }

    /// Drops documents that were not found.
    fn keep(&mut self, within: &mut Bits, found: Bits) {
        combine(within, &found, |all, found| all & found);
        self.memory.spare.push(found);
    }

    /// The documents of `within` that match a group.
    fn group(&mut self, group: &Group, mut within: Bits) -> Result<Bits, ListError> {
        let of = |sign| group.clauses.iter().filter(move |part| part.0 == sign).map(|part| &part.1);
        if !group.has(Sign::Required) && !group.has(Sign::Optional) {
            within.fill(0);
        }
        // Terms lead, those of phrases too, and where these stand is looked at last.
        let mut terms: Vec<usize> = Vec::new();
        for node in of(Sign::Required) {
            match node {
                QueryNode::Leaf(term) => terms.push(*term),
                QueryNode::Phrase(number) => {
                    terms.extend(self.run.phrases[*number].words.iter().map(|word| word.1));
                }
                QueryNode::Group(_) | QueryNode::Blend(_) => {}
            }
        }
        terms.sort_by_key(|&term| (self.postings(&QueryNode::Leaf(term)), term));
        terms.dedup();
        let is_leaf = |node: &&QueryNode| matches!(node, QueryNode::Leaf(_));
        let mut nodes: Vec<&QueryNode> = of(Sign::Required).filter(|node| !is_leaf(node)).collect();
        nodes.sort_by_key(|node| (matches!(node, QueryNode::Phrase(_)), self.postings(node)));
        for term in terms {
            if is_empty(&within) {
                return Ok(within);
            }
            let found = self.leaf(term, &within)?;
            self.keep(&mut within, found);
        }
        for node in nodes {
            if is_empty(&within) {
                return Ok(within);
            }
            let found = match node {
                QueryNode::Phrase(number) => self.phrase_with_words(*number, &within)?,
                node => self.node(node, &within)?,
            };
            self.keep(&mut within, found);
        }
        if group.at_least > 0 && !is_empty(&within) {
            let found = self.optional(of(Sign::Optional), group.at_least, &within)?;
            self.keep(&mut within, found);
        }
        for node in of(Sign::Excluded) {
            if is_empty(&within) {
                break;
            }
            let found = self.node(node, &within)?;
            combine(&mut within, &found, |all, found| all & !found);
            self.memory.spare.push(found);
        }
        Ok(within)
    }

    /// The documents of `within` that match this many parts.
    fn optional<'n>(
        &mut self,
        nodes: impl Iterator<Item = &'n QueryNode>,
        at_least: usize,
        within: &Bits,
    ) -> Result<Bits, ListError> {
        let mut any = self.take();
        if at_least > 1 {
            self.memory.matched.clear();
            self.memory.matched.resize(64 * within.len(), 0);
        }
        // Groups below use the same counts.
        let mut counts = std::mem::take(&mut self.memory.matched);
        for node in nodes {
            let found = self.node(node, within)?;
            combine(&mut any, &found, |all, found| all | found);
            if at_least > 1 {
                ones(&found).for_each(|offset| counts[offset as usize] += 1);
            }
            self.memory.spare.push(found);
        }
        if at_least > 1 {
            let least = u32::try_from(at_least).unwrap_or(u32::MAX);
            retain(&mut any, |offset| counts[offset as usize] >= least);
        }
        self.memory.matched = counts;
        Ok(any)
    }

    fn node(&mut self, node: &QueryNode, within: &Bits) -> Result<Bits, ListError> {
        match node {
            QueryNode::Leaf(term) => self.leaf(*term, within),
            QueryNode::Phrase(number) => self.phrase(*number, within),
            QueryNode::Group(group) => {
                let within = self.copy(within);
                self.group(group, within)
            }
            QueryNode::Blend(parts) => self.optional(parts.iter(), 1, within),
        }
    }

    /// The bitmap of a list in the window.
    fn dense(&self, term: usize) -> Option<&'m [u64]> {
        let dense = self.run.dense.get(term)?.as_ref()?;
        Some(&dense.bits[self.window.start as usize / 64..][..self.window.len().div_ceil(64)])
    }

    /// The blocks of a list that reach into the window.
    fn blocks(&self, list: &ListView<'_>) -> Range<usize> {
        let first = list.block_of(0, self.window.start);
        let last = list.block_of(first.min(list.full_blocks()), self.window.end - 1);
        first..(last + 1).min(list.full_blocks() + 1)
    }

    /// Whether documents are looked for one by one.
    fn is_sparse(&self, documents: &Bits, blocks: &Range<usize>, list: &ListView<'_>) -> bool {
        let postings = (blocks.len() * list.block_len()) as u64;
        u64::from(count_bits(self.run.level, documents)) * POSTINGS_A_SEARCH < postings
    }

    /// The documents of `within` that have a term; others may be among them.
    fn leaf(&mut self, term: usize, within: &Bits) -> Result<Bits, ListError> {
        let mut found = self.take();
        let Some(list) = &self.run.terms[term].list else { return Ok(found) };
        if let Some(dense) = self.dense(term) {
            found.copy_from_slice(dense);
            return Ok(found);
        }
        let blocks = self.blocks(list);
        let is_sparse = self.is_sparse(within, &blocks, list);
        let cursor = &mut *self.cursor;
        cursor.reset();
        let Range { start, end } = self.window;
        if is_sparse {
            for offset in ones(within) {
                cursor.seek(list, self.run.documents, start + offset, self.run.level)?;
                if cursor.next_docid() == Some(start + offset) {
                    set(&mut found, offset);
                }
            }
            return Ok(found);
        }
        for block in blocks {
            cursor.load(list, block, self.run.documents)?;
            let docids = &cursor.docids[..cursor.len];
            if docids.first().is_some_and(|&first| first >= start)
                && docids.last().is_some_and(|&last| last < end)
            {
                docids.iter().for_each(|docid| set(&mut found, docid - start));
            } else {
                let docids = docids.iter().filter(|docid| (start..end).contains(docid));
                docids.for_each(|docid| set(&mut found, docid - start));
            }
        }
        Ok(found)
    }

    /// Adds the scores of what matches in documents that match the group.
    fn add(&mut self, group: &Group, documents: &Bits) -> Result<(), ListError> {
        for (sign, node) in &group.clauses {
            match (sign, node) {
                (Sign::Excluded, _) => {}
                (_, QueryNode::Leaf(term)) => {
                    self.add_leaf(*term, self.run.terms[*term].weight, documents)?;
                }
                (sign, QueryNode::Phrase(number)) => {
                    // Nobody has looked for it.
                    if *sign == Sign::Optional && group.at_least == 0 {
                        let found = self.phrase(*number, documents)?;
                        self.memory.spare.push(found);
                    }
                    self.add_phrase(*number, self.run.phrases[*number].weight, documents);
                }
                (_, QueryNode::Blend(parts)) => self.add_blend(parts, documents)?,
                (Sign::Required, QueryNode::Group(inner)) => self.add(inner, documents)?,
                (Sign::Optional, QueryNode::Group(inner)) => {
                    let within = self.copy(documents);
                    let matched = self.group(inner, within)?;
                    self.add(inner, &matched)?;
                    self.memory.spare.push(matched);
                }
            }
        }
        Ok(())
    }

    fn add_phrase(&mut self, number: usize, weight: Weight, documents: &Bits) {
        let norms = &self.run.norms_for(weight).documents[self.window.start as usize..];
        let found = std::mem::take(self.memory.phrase(number));
        for &(offset, tf) in found.iter().filter(|(offset, _)| has(documents, *offset)) {
            self.memory.sums[offset as usize] += weight.score(tf, norms[offset as usize]);
        }
        *self.memory.phrase(number) = found;
    }

    fn add_leaf(&mut self, term: usize, weight: Weight, documents: &Bits) -> Result<(), ListError> {
        let Some(list) = &self.run.terms[term].list else { return Ok(()) };
        let mut here = self.copy(documents);
        if let Some(dense) = self.dense(term) {
            combine(&mut here, dense, |all, dense| all & dense);
        }
        let blocks = self.blocks(list);
        let norms = self.run.norms_for(weight).documents;
        let start = self.window.start;
        let is_sparse = self.is_sparse(&here, &blocks, list);
        let sums = &mut self.memory.sums;
        self.cursor.reset();
        if is_sparse {
            for offset in ones(&here) {
                let docid = start + offset;
                self.cursor.seek(list, self.run.documents, docid, self.run.level)?;
                if self.cursor.next_docid() == Some(docid) {
                    let tf = self.cursor.tf(list)?;
                    sums[offset as usize] += weight.score(tf, norms[docid as usize]);
                }
            }
        } else {
            for block in blocks {
                self.cursor.load(list, block, self.run.documents)?;
                if self.cursor.len == 0 {
                    continue;
                }
                self.cursor.score(list, weight, norms, self.run.level)?;
                let Cursor { docids, scores, len, .. } = &*self.cursor;
                for (&docid, &score) in docids[..*len].iter().zip(scores) {
                    let offset = docid.wrapping_sub(start);
                    if (offset as usize) < 64 * here.len() && has(&here, offset) {
                        sums[offset as usize] += score;
                    }
                }
            }
        }
        self.memory.spare.push(here);
        Ok(())
    }
}

/// The phrase that is all of a query.
fn phrase_alone(tree: &Group) -> Option<usize> {
    match tree.clauses[..] {
        [(Sign::Required | Sign::Optional, QueryNode::Phrase(number))] => Some(number),
        _ => None,
    }
}

/// The docids of a window, of some that rise.
fn part<'g>(given: &'g [u32], window: &Range<u32>) -> impl Iterator<Item = u32> + use<'g> {
    let place = |docid: u32| given.partition_point(|&given| given < docid);
    given[place(window.start)..place(window.end)].iter().copied()
}

#[inline]
fn set(bits: &mut Bits, offset: u32) {
    bits[offset as usize / 64] |= 1 << (offset % 64);
}

#[inline]
fn has(bits: &Bits, offset: u32) -> bool {
    bits[offset as usize / 64] >> (offset % 64) & 1 == 1
}

/// Sets the bits from `from`, which is in the first word, to `documents`.
fn fill(bits: &mut Bits, from: u32, documents: u32) {
    bits.fill(u64::MAX);
    let rest = documents % 64;
    if rest > 0
        && let Some(last) = bits.last_mut()
    {
        *last = (1 << rest) - 1;
    }
    if let Some(first) = bits.first_mut() {
        *first &= u64::MAX << from;
    }
}

fn is_empty(bits: &Bits) -> bool {
    bits.iter().all(|&word| word == 0)
}

fn combine(bits: &mut Bits, other: &[u64], by: impl Fn(u64, u64) -> u64) {
    for (word, other) in bits.iter_mut().zip(other) {
        *word = by(*word, *other);
    }
}

/// Drops the documents at offsets that are not to be kept.
fn retain(bits: &mut Bits, keep: impl Fn(u32) -> bool) {
    for (at, word) in bits.iter_mut().enumerate() {
        ones_of(at, *word)
            .filter(|&offset| !keep(offset))
            .for_each(|at| *word &= !(1 << (at % 64)));
    }
}

/// The offsets of the documents, rising.
fn ones(bits: &Bits) -> impl Iterator<Item = u32> {
    bits.iter().enumerate().flat_map(|(at, &word)| ones_of(at, word))
}

//! Trees of one level that need a part which few documents have: its postings are candidates, and
//! what is left of them part by part is scored. No bitmap of a window is made.
//!
//! A part is a term, or any of some terms, as a word that is looked for in several fields.

use super::Wish;
use super::memory::FewMemory;
use crate::index::list::ListError;
use crate::query::cursor::{Cursor, RunSearch};
use crate::query::reading::syntax::Sign;
use crate::query::scratch::Scratch;
use crate::query::tree::{Group, QueryNode};
use crate::score::weight::Weight;

/// One document in this many may be a candidate, at most.
const FEW_SHARE: u64 = if cfg!(test) { 4 } else { 32 };

/// Candidates at most: of more, bitmaps are as fast.
const MOST: u64 = 4096;

/// A part of a tree.
struct FlatPart {
    sign: Sign,
    terms: Vec<usize>,
    /// The frequencies of its terms are added up before they score.
    blends: bool,
}

/// Finds the documents of a run that match a tree, in their order, if it is one of these; returns
/// how many there are. If some are `deleted`, they have infinite norms, and do not count.
pub(crate) fn search(
    run: &RunSearch<'_>,
    tree: &Group,
    deleted: bool,
    wish: &mut Wish<'_>,
    scratch: &mut Scratch,
) -> Result<Option<u64>, ListError> {
    let wanted = run.wanted();
    let Some(parts) = parts_of(tree) else { return Ok(None) };
    let postings = |part: &FlatPart| -> u64 {
        let df = |&term: &usize| run.terms[term].list.map_or(0, |list| u64::from(list.df()));
        part.terms.iter().map(df).sum()
    };
    let mut tests: Vec<&FlatPart> =
        parts.iter().filter(|part| part.sign != Sign::Optional).collect();
    // Those that are needed first, the rarest before others.
    tests.sort_by_key(|part| (part.sign != Sign::Required, postings(part)));
    let [rarest, rest @ ..] = &tests[..] else { return Ok(None) };
    let most = MOST.min(u64::from(run.documents) / FEW_SHARE);
    if rarest.sign != Sign::Required || postings(rarest) > most || matches!(wish, Wish::Rank(..)) {
        return Ok(None);
    }
    scratch.reset_cursors(1);
    let Scratch { cursors, trees, .. } = &mut *scratch;
    let (cursor, memory) = (&mut cursors[0], &mut trees.few);
    memory.docids.clear();
    for &term in &rarest.terms {
        let Some(list) = &run.terms[term].list else { continue };
        cursor.reset();
        for block in 0..=list.full_blocks() {
            cursor.load(list, block, run.documents)?;
            let docids = cursor.docids[..cursor.len].iter();
            memory.docids.extend(docids.filter(|docid| wanted.contains(docid)));
        }
    }
    if rarest.terms.len() > 1 {
        memory.docids.sort_unstable();
        memory.docids.dedup();
    }
    if deleted {
        memory.docids.retain(|&docid| run.norms.documents[docid as usize] < f32::INFINITY);
    }
    for part in rest {
        if memory.docids.is_empty() {
            return Ok(Some(0));
        }
        memory.test(run, part, cursor)?;
    }
    if let Wish::Offer(top) | Wish::Best(top) = wish {
        memory.score(run, &parts, cursor)?;
        for (&docid, &score) in memory.docids.iter().zip(&memory.scores) {
            top.offer(run.first_docid + docid, score);
        }
        top.tighten();
    }
    Ok(Some(memory.docids.len() as u64))
}

/// The parts of a tree in their order, if it has one level.
fn parts_of(tree: &Group) -> Option<Vec<FlatPart>> {
    let leaf = |node: &QueryNode| match *node {
        QueryNode::Leaf(term) => Some(term),
        _ => None,
    };
    let part = |(sign, node): &(Sign, QueryNode)| {
        let (terms, blends) = match node {
            QueryNode::Leaf(term) => (vec![*term], false),
            QueryNode::Blend(parts) => (parts.iter().map(leaf).collect::<Option<_>>()?, true),
            QueryNode::Group(group) if group.at_least == 1 && group.is_all(Sign::Optional) => {
                let terms = group.clauses.iter().map(|(_, node)| leaf(node));
                (terms.collect::<Option<_>>()?, false)
            }
            _ => return None,
        };
        Some(FlatPart { sign: *sign, terms, blends })
    };
    let needs = tree.has(Sign::Required) && tree.at_least == 0;
    needs.then(|| tree.clauses.iter().map(part).collect()).flatten()
}

impl FewMemory {
    /// Drops the candidates that do not pass a part.
    fn test(
        &mut self,
        run: &RunSearch<'_>,
        part: &FlatPart,
        cursor: &mut Cursor,
    ) -> Result<(), ListError> {
        self.marks.clear();
        self.marks.resize(self.docids.len(), false);
        for &term in &part.terms {
            let Some(list) = &run.terms[term].list else { continue };
            let marks = self.docids.iter().zip(&mut self.marks);
            if let Some(dense) = run.dense.get(term).and_then(Option::as_ref) {
                for (&docid, mark) in marks {
                    *mark |= dense.bits[docid as usize / 64] >> (docid % 64) & 1 == 1;
                }
                continue;
            }
            cursor.reset();
            for (&docid, mark) in marks.filter(|(_, mark)| !**mark) {
                cursor.seek(list, run.documents, docid, run.level)?;
                *mark = cursor.next_docid() == Some(docid);
            }
        }
        let keeps = part.sign == Sign::Required;
        let mut marks = self.marks.iter();
        self.docids.retain(|_| marks.next() == Some(&keeps));
        Ok(())
    }

    /// The scores of all candidates, added up in the order of the query.
    fn score(
        &mut self,
        run: &RunSearch<'_>,
        parts: &[FlatPart],
        cursor: &mut Cursor,
    ) -> Result<(), ListError> {
        self.scores.clear();
        self.scores.extend(self.docids.iter().map(|&docid| run.norms.static_of(docid)));
        for part in parts.iter().filter(|part| part.sign != Sign::Excluded) {
            self.frequencies.clear();
            self.frequencies.resize(self.docids.len(), 0.0);
            for &term in &part.terms {
                let weight = run.terms[term].weight;
                let to = if part.blends { &mut self.frequencies } else { &mut self.scores };
                let weight = if part.blends { weight.ratio() } else { weight };
                add(run, term, weight, &self.docids, to, cursor)?;
            }
            if let (true, Some(&first)) = (part.blends, part.terms.first()) {
                let weight = run.terms[first].weight;
                let found = self.scores.iter_mut().zip(&self.frequencies);
                found.filter(|of| *of.1 > 0.0).for_each(|(score, &frequency)| {
                    *score += weight.blend(frequency);
                });
            }
        }
        Ok(())
    }
}

/// Adds what a term scores in some documents that have it.
fn add(
    run: &RunSearch<'_>,
    term: usize,
    weight: Weight,
    docids: &[u32],
    scores: &mut [f32],
    cursor: &mut Cursor,
) -> Result<(), ListError> {
    let Some(list) = &run.terms[term].list else { return Ok(()) };
    let norms = run.norms_for(weight).documents;
    let dense = run.dense.get(term).and_then(Option::as_ref);
    cursor.reset();
    for (&docid, score) in docids.iter().zip(scores) {
        if dense.is_some_and(|dense| dense.bits[docid as usize / 64] >> (docid % 64) & 1 == 0) {
            continue;
        }
        cursor.seek(list, run.documents, docid, run.level)?;
        if cursor.next_docid() == Some(docid) {
            *score += weight.score(cursor.tf(list)?, norms[docid as usize]);
        }
    }
    Ok(())
}

//! The best documents with any of some words whose frequencies in several fields are added up.
//!
//! Saturation is concave: a word scores no more than its fields would score one by one, each as a
//! term with the norms of its field. So a search for any of these terms gives bounds. The documents
//! of the greatest bounds are scored first; then all whose bounds reach the k-th of these scores.

use super::best::suits;
use super::memory::{Bits, TreeMemory};
use super::{Matching, WINDOW, ones};
use crate::index::list::ListError;
use crate::query::algorithms::auto;
use crate::query::algorithms::scored::MANY_TERMS;
use crate::query::cursor::{RunSearch, RunTerm};
use crate::query::reading::syntax::Sign;
use crate::query::scratch::Scratch;
use crate::query::top_k::{Hit, TopK};
use crate::query::tree::{Group, QueryNode};
use crate::score::weight::Weight;

/// The most by which a score may exceed the sum of its bounds: each has some roundings a term.
const SLACK: f32 = 1.0 + 4.0 * MANY_TERMS as f32 * f32::EPSILON;

/// The terms of each word.
type Words = Vec<(bool, Vec<usize>)>;

/// Offers the best documents of a run to `top`, if this way finds them; tells whether it did.
pub(crate) fn search(
    run: &RunSearch<'_>,
    tree: &Group,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<bool, ListError> {
    let Some(words) = words_of(tree) else { return Ok(false) };
    let terms: Vec<RunTerm<'_>> =
        words.iter().flat_map(|(_, terms)| terms.iter().map(|&term| run.terms[term])).collect();
    if !suits(run, &terms, top) {
        return Ok(false);
    }
    let bounds = RunSearch { terms: &terms, dense: &[], ..*run };
    let mut hits: Vec<Hit> = Vec::new();
    let first = 2 * top.k() + 32;
    // Documents whose bounds reach the threshold may be too many to score them one by one.
    for (most, is_last) in [(first, false), (16 * first, true)] {
        let mut any = TopK::new();
        any.begin_as(top, most);
        any.lower(top.threshold() / SLACK);
        auto::search(&bounds, &mut any, scratch)?;
        any.take(&mut hits);
        let are_all = hits.len() < most;
        if is_last && !are_all {
            return Ok(false);
        }
        score(run, &words, &mut hits, scratch)?;
        if are_all {
            hits.iter().for_each(|hit| top.offer(hit.docid, hit.score));
            top.tighten();
            break;
        }
        // Those of the last round are offered then.
        hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        if let Some(kth) = top.k().checked_sub(1).and_then(|last| hits.get(last)) {
            top.raise(kth.score);
        }
    }
    Ok(true)
}

impl Matching<'_> {
    /// Adds the score of a word or a phrase of several fields: what these add to its frequency is
    /// added up in their order first.
    pub(super) fn add_blend(
        &mut self,
        parts: &[QueryNode],
        documents: &Bits,
    ) -> Result<(), ListError> {
        let frequencies = std::mem::take(&mut self.memory.frequencies);
        let sums = std::mem::replace(&mut self.memory.sums, frequencies);
        self.memory.sums.resize(WINDOW as usize, 0.0);
        ones(documents).for_each(|offset| self.memory.sums[offset as usize] = 0.0);
        let mut weight = Weight::default();
        for part in parts {
            match *part {
                QueryNode::Leaf(term) => {
                    weight = self.run.terms[term].weight;
                    self.add_leaf(term, weight.ratio(), documents)?;
                }
                QueryNode::Phrase(number) => {
                    weight = self.run.phrases[number].weight;
                    let found = self.phrase(number, documents)?;
                    self.memory.spare.push(found);
                    self.add_phrase(number, weight.ratio(), documents);
                }
                QueryNode::Group(_) | QueryNode::Blend(_) => {}
            }
        }
        self.memory.frequencies = std::mem::replace(&mut self.memory.sums, sums);
        let TreeMemory { sums, frequencies, .. } = &mut *self.memory;
        for offset in ones(documents).map(|offset| offset as usize) {
            if frequencies[offset] > 0.0 {
                sums[offset] += weight.blend(frequencies[offset]);
            }
        }
        Ok(())
    }
}

/// The words of a tree of which any is asked for, and whether each has several fields.
fn words_of(tree: &Group) -> Option<Words> {
    let leaf = |node: &QueryNode| match *node {
        QueryNode::Leaf(term) => Some(term),
        _ => None,
    };
    let word = |(sign, node): &(Sign, QueryNode)| match node {
        _ if *sign != Sign::Optional => None,
        QueryNode::Blend(parts) => Some((true, parts.iter().map(leaf).collect::<Option<_>>()?)),
        node => Some((false, vec![leaf(node)?])),
    };
    let words: Words = tree.clauses.iter().map(word).collect::<Option<_>>()?;
    (tree.at_least <= 1 && words.iter().any(|word| word.0)).then_some(words)
}

/// Replaces bounds by scores, as the tree adds them up.
fn score(
    run: &RunSearch<'_>,
    words: &Words,
    hits: &mut [Hit],
    scratch: &mut Scratch,
) -> Result<(), ListError> {
    hits.sort_unstable_by_key(|hit| hit.docid);
    hits.iter_mut().for_each(|hit| hit.score = 0.0);
    scratch.reset_cursors(1);
    let cursor = &mut scratch.cursors[0];
    let mut frequencies = vec![0f32; hits.len()];
    for (blends, terms) in words {
        frequencies.fill(0.0);
        let Some(&first) = terms.first() else { continue };
        for &term in terms {
            let RunTerm { weight, list } = &run.terms[term];
            let Some(list) = list else { continue };
            let weight = if *blends { weight.ratio() } else { *weight };
            let norms = run.norms_for(weight).documents;
            cursor.reset();
            for (hit, frequency) in hits.iter().zip(&mut frequencies) {
                let docid = hit.docid - run.first_docid;
                cursor.seek(list, run.documents, docid, run.level)?;
                if cursor.next_docid() == Some(docid) {
                    *frequency += weight.score(cursor.tf(list)?, norms[docid as usize]);
                }
            }
        }
        let weight = run.terms[first].weight;
        for (hit, &frequency) in hits.iter_mut().zip(&frequencies).filter(|of| *of.1 > 0.0) {
            hit.score += if *blends { weight.blend(frequency) } else { frequency };
        }
    }
    Ok(())
}

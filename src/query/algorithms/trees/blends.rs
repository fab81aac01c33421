//! The best documents with any of some words whose frequencies in several fields are added up.
//!
//! Words are what lists are in MaxScore (Turtle and Flood 1995), a window of documents after the
//! other: saturation keeps the score of a word below its weight, however often it occurs, so that
//! words of small weights are looked up only in documents which may reach the best with them. What
//! each word scores is kept apart, so that sums are added up in the order of the query in the end.

use super::memory::{Bits, BlendMemory, TreeMemory};
use super::{Matching, POSTINGS_A_SEARCH, WINDOW, ones};
use crate::index::list::ListError;
use crate::query::cursor::{Cursor, RunSearch, RunTerm};
use crate::query::kernels::{add_all, blend_all, collect_reaching};
use crate::query::reading::syntax::Sign;
use crate::query::scratch::Scratch;
use crate::query::top_k::TopK;
use crate::query::tree::{Group, QueryNode};
use crate::score::weight::Weight;
use std::ops::Range;

/// Words that are searched for so, at most: each takes room for the scores of a window.
const MOST_WORDS: usize = 32;

/// Documents of the first window, and of the largest: scores of some words stay in the cache.
const FIRST_DOCUMENTS: u32 = if cfg!(test) { 16 } else { 1 << 12 };
const MOST_DOCUMENTS: u32 = if cfg!(test) { 64 } else { 1 << 14 };

/// The most by which sums of this many words differ that are added up in different orders, as a
/// factor.
const SLACK: f32 = 1.0 + 4.0 * MOST_WORDS as f32 * f32::EPSILON;

/// A word of the query.
struct Word {
    terms: Vec<usize>,
    /// The frequencies of its terms are added up before they score.
    blends: bool,
    /// It scores less.
    weight: Weight,
}

/// Offers the best documents of a run to `top`, if this way finds them; tells whether it did.
pub(crate) fn search(
    run: &RunSearch<'_>,
    tree: &Group,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<bool, ListError> {
    let Some(words) = words_of(run, tree) else { return Ok(false) };
    // By their weights, which rise; and what those before each score at most.
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by(|&a, &b| words[a].weight.factor().total_cmp(&words[b].weight.factor()));
    let mut before = vec![0.0];
    for &word in &order {
        before.push(before[before.len() - 1] + words[word].weight.factor() * SLACK);
    }
    scratch.reset_cursors(1);
    let Scratch { cursors, trees, .. } = &mut *scratch;
    let (cursor, memory) = (&mut cursors[0], &mut trees.blends);
    let wanted = run.wanted();
    let (mut start, mut documents) = (wanted.start, FIRST_DOCUMENTS);
    while start < wanted.end {
        let end = wanted.end.min(start.saturating_add(documents));
        let mut window = BlendWindow { run, words: &words, window: start..end, cursor, memory };
        window.search(&order, &before, top)?;
        top.tighten();
        start = end;
        documents = (2 * documents).min(MOST_DOCUMENTS);
    }
    Ok(true)
}

struct BlendWindow<'w> {
    run: &'w RunSearch<'w>,
    words: &'w [Word],
    window: Range<u32>,
    cursor: &'w mut Cursor,
    memory: &'w mut BlendMemory,
}

impl BlendWindow<'_> {
    fn search(&mut self, order: &[usize], before: &[f32], top: &mut TopK) -> Result<(), ListError> {
        let bar = top.threshold() / SLACK;
        // Documents that have only words before this one cannot reach it.
        let small = before[1..].iter().take_while(|&&sum| sum < bar).count();
        if small == order.len() {
            return Ok(());
        }
        let documents = self.window.len();
        self.memory.begin(self.words.len(), documents);
        let level = self.run.level;
        for &word in &order[small..] {
            self.frequencies_of(word)?;
            let BlendMemory { sums, words, .. } = &mut *self.memory;
            let Word { blends, weight, .. } = self.words[word];
            match blends {
                true => blend_all(level, weight, &mut words[word], sums),
                false => add_all(level, &words[word], sums),
            }
        }
        let BlendMemory { sums, found, .. } = &mut *self.memory;
        collect_reaching(level, sums, before[small], bar, found);
        for (at, &word) in order[..small].iter().enumerate().rev() {
            self.some_of(word)?;
            let BlendMemory { sums, words, found, .. } = &mut *self.memory;
            found.retain(|&offset| {
                let sum = &mut sums[offset as usize];
                *sum += words[word][offset as usize];
                *sum + before[at] >= bar
            });
        }
        let BlendMemory { words, found, .. } = &*self.memory;
        for &offset in found {
            let mut score = 0.0;
            for word in words {
                score += word[offset as usize];
            }
            top.offer(self.run.first_docid + self.window.start + offset, score);
        }
        Ok(())
    }

    /// The scores of a word in all documents of the window, or its frequencies if they are to be
    /// blended.
    fn frequencies_of(&mut self, word: usize) -> Result<(), ListError> {
        let Word { terms, blends, .. } = &self.words[word];
        let scores = &mut self.memory.words[word];
        scores.fill(0.0);
        let Range { start, end } = self.window;
        for &term in terms {
            let RunTerm { weight, list: Some(list) } = &self.run.terms[term] else { continue };
            let weight = if *blends { weight.ratio() } else { *weight };
            let norms = self.run.norms_for(weight).documents;
            self.cursor.reset();
            let first = list.block_of(0, start);
            for block in first..=list.full_blocks() {
                self.cursor.load(list, block, self.run.documents)?;
                let len = self.cursor.len;
                if len == 0 || self.cursor.docids[0] >= end {
                    break;
                }
                self.cursor.score(list, weight, norms, self.run.level)?;
                let Cursor { docids, scores: of_block, .. } = &*self.cursor;
                for (&docid, &score) in docids[..len].iter().zip(of_block) {
                    if let Some(sum) = scores.get_mut(docid.wrapping_sub(start) as usize) {
                        *sum += score;
                    }
                }
            }
        }
        Ok(())
    }

    /// The scores of a word in the documents that are left.
    fn some_of(&mut self, word: usize) -> Result<(), ListError> {
        let Word { terms, blends, weight } = &self.words[word];
        let postings = |&term: &usize| self.run.terms[term].list.map_or(0, |list| list.df().into());
        let of_run: u64 = terms.iter().map(postings).sum();
        let here = of_run * self.window.len() as u64 / u64::from(self.run.documents.max(1));
        if self.memory.found.len() as u64 * POSTINGS_A_SEARCH > here {
            self.frequencies_of(word)?;
        } else {
            self.look_up(word)?;
        }
        if *blends {
            let BlendMemory { words, found, .. } = &mut *self.memory;
            for &offset in found.iter() {
                let score = &mut words[word][offset as usize];
                if *score > 0.0 {
                    *score = weight.blend(*score);
                }
            }
        }
        Ok(())
    }

    /// The same as [`frequencies_of`](Self::frequencies_of), in the documents that are left alone.
    fn look_up(&mut self, word: usize) -> Result<(), ListError> {
        let Word { terms, blends, .. } = &self.words[word];
        let BlendMemory { words, found, .. } = &mut *self.memory;
        let scores = &mut words[word];
        found.iter().for_each(|&offset| scores[offset as usize] = 0.0);
        for &term in terms {
            let RunTerm { weight, list: Some(list) } = &self.run.terms[term] else { continue };
            let weight = if *blends { weight.ratio() } else { *weight };
            let norms = self.run.norms_for(weight).documents;
            self.cursor.reset();
            for &offset in found.iter() {
                let docid = self.window.start + offset;
                self.cursor.seek(list, self.run.documents, docid, self.run.level)?;
                if self.cursor.next_docid() == Some(docid) {
                    let tf = self.cursor.tf(list)?;
                    scores[offset as usize] += weight.score(tf, norms[docid as usize]);
                }
            }
        }
        Ok(())
    }
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

/// The words of a tree of which any is asked for, if some have several fields, and scores saturate.
fn words_of(run: &RunSearch<'_>, tree: &Group) -> Option<Vec<Word>> {
    let leaf = |node: &QueryNode| match *node {
        QueryNode::Leaf(term) => Some(term),
        _ => None,
    };
    let word = |(sign, node): &(Sign, QueryNode)| {
        let (terms, blends): (Vec<usize>, bool) = match node {
            _ if *sign != Sign::Optional => return None,
            QueryNode::Blend(parts) => (parts.iter().map(leaf).collect::<Option<_>>()?, true),
            node => (vec![leaf(node)?], false),
        };
        let weight = run.terms[*terms.first()?].weight;
        weight.is_saturation().then_some(Word { terms, blends, weight })
    };
    let fits =
        tree.at_least <= 1 && tree.clauses.len() <= MOST_WORDS && run.norms.statics.is_empty();
    let clauses = tree.clauses.iter().filter(|_| fits);
    let words: Vec<Word> = clauses.map(word).collect::<Option<_>>()?;
    words.iter().any(|word| word.blends).then_some(words)
}

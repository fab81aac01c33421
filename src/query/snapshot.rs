//! Snapshots that queries are answered from: one generation, with what every query needs of it: the
//! analysis of texts, the statistics of the whole collection, and a norm for each document.
//!
//! All workers share a snapshot, and it travels with the queries: a query is answered from the
//! snapshot that it was planned with, even if the index has moved on. It says nothing of what a
//! query asks for.

#![warn(missing_docs)]

mod fields;
mod filtered;
#[cfg(test)]
mod tests;

use self::fields::FieldNorms;
use super::top_k::TopK;
use crate::index::error::IndexError;
use crate::index::generations::generation::{Generation, with_live};
use crate::index::lexicon::TermEntry;
use crate::index::scores::{RunScores, join_ranks};
use crate::query::engines::share::{ALL, share_of};
use crate::score::bm25::IdfKind;
use crate::score::bounds::BoundNorms;
use crate::score::fields::{ALL_TEXT, FieldScoring};
use crate::score::named::Score;
use crate::score::wang::{GlobalParameters, Wang};
use crate::text::analysis::Analysis;
use crate::text::fields::IndexFields;
use crate::text::unspaced::{LetterCounts, Unspaced};
use filtered::{Filtered, KnownFilters};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub(crate) use crate::score::scoring::{Scoring, WholeCollection};

impl Scoring {
    /// The score by which documents of a generation are in global order, with the weights of its
    /// paper (`wang`, section 2.1.3); BM25 without such an order.
    pub fn of_order(generation: &Generation) -> Self {
        let of = |GlobalParameters { wang, bm25, .. }| Self {
            bm25,
            idf: IdfKind::Robertson,
            score: Score::Wang(wang),
            fields: FieldScoring::default(),
        };
        global_order(generation).map(of).unwrap_or_default()
    }
}

/// The least score above 0: that of every document with a term is greater (`score::bm25`,
/// `score::weight`).
const LEAST_SCORE: f32 = f32::from_bits(1);

/// A generation that is ready for queries. Every query counts as one of its owners, on whichever
/// core it is: that must not touch the lines of memory that all read.
#[derive(Debug)]
#[repr(align(128))]
pub struct Snapshot {
    generation: Arc<Generation>,
    whole: WholeCollection,
    analysis: Analysis,
    scoring: Scoring,
    /// The documents that are searched, and by their docids in the whole index those that were to
    /// be.
    share: Range<u32>,
    docids: Range<u32>,
    /// The length norm of every document.
    norms: Arc<Vec<f32>>,
    bounds: BoundNorms,
    fields: IndexFields,
    /// By number from 1, those that a query has asked for.
    field_norms: Vec<OnceLock<FieldNorms>>,
    /// Tokens of the whole collection, by number from 1.
    field_tokens: Vec<u64>,
    /// The fields that words are looked for in if the query names none, by number, with their
    /// weights; 0 is all text.
    boosted: Vec<(u8, f64)>,
    /// Static parts by docid; empty if 0.
    statics: Vec<f32>,
    /// Global scores by docid, if the index is in the order of them for the score; else empty.
    globals: Vec<f32>,
    /// Whether the runs have PageRanks; false if the score does not need them.
    has_ranks: bool,
    filters: KnownFilters,
    /// If it is one under a filter.
    filtered: Option<Filtered>,
}

impl Snapshot {
    /// Prepares a generation for queries.
    ///
    /// # Errors
    /// If its recorded analysis is unknown.
    pub fn new(
        generation: impl Into<Arc<Generation>>,
        scoring: Scoring,
    ) -> Result<Arc<Self>, IndexError> {
        Self::of_range(generation, scoring, ALL)
    }

    /// Prepares a generation whose documents outside of `docids`, which are those of the whole
    /// index, are left out of all answers, though scores are those of the whole collection.
    ///
    /// # Errors
    /// If its recorded analysis is unknown.
    pub fn of_range(
        generation: impl Into<Arc<Generation>>,
        scoring: Scoring,
        docids: Range<u32>,
    ) -> Result<Arc<Self>, IndexError> {
        Self::prepare(generation.into(), scoring, docids, None)
    }

    /// The live generation of the index in the folder `index`, prepared as this one was. Runs that
    /// both have are not opened again. If it is the same generation, this is returned.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn follow(self: &Arc<Self>, index: &Path) -> Result<Arc<Self>, IndexError> {
        let next = with_live(index, |folder| self.generation.next(folder))?;
        next.map_or(Ok(self.clone()), |next| self.after(next))
    }

    /// Prepares a generation in the same way that was made after that of this snapshot, such as the
    /// one of a [`Writer`](crate::Writer::generation).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn after(&self, generation: impl Into<Arc<Generation>>) -> Result<Arc<Self>, IndexError> {
        let docids = self.docids.clone();
        Self::prepare(generation.into(), self.scoring.clone(), docids, Some(self))
    }

    /// Prepares a generation of which some runs are open, or all: scores are those of the whole
    /// collection. Takes 4 bytes of memory a document; 8 with a score that has
    /// static parts. Norms of a snapshot `before` are shared if they are the same.
    ///
    /// # Errors
    /// If its recorded analysis is unknown; `Lacks` if the score needs PageRanks and only some runs
    /// have them, or not all are open; `Damaged`.
    fn prepare(
        generation: Arc<Generation>,
        scoring: Scoring,
        docids: Range<u32>,
        before: Option<&Self>,
    ) -> Result<Arc<Self>, IndexError> {
        let all = generation.whole_statistics();
        let field_tokens = all.field_tokens.clone();
        // The manifest's reader has compared it with the runs, which have docids.
        let whole = WholeCollection { documents: all.documents as u32, tokens: all.tokens };
        let analysis = generation.manifest().analysis(generation.path())?;
        let mean = whole.mean();
        let fields = generation.manifest().settings.index_fields();
        let boosted = fields::boosted(&generation, &scoring, &fields)?;
        let same = before.filter(|before| {
            let are_norms =
                !before.is_filtered() && before.scoring == scoring && before.whole.mean() == mean;
            are_norms && before.generation.has_documents_of(&generation)
        });
        let norms = same.map(|before| before.norms.clone());
        let of_text = || {
            let lengths = generation.documents().runs().map(|run| run.lengths());
            fields::norms_of(&generation, &scoring, ALL_TEXT, mean, lengths)
        };
        let norms = norms.unwrap_or_else(|| Arc::new(of_text()));
        let bounds = scoring.bounds(mean);
        let (statics, has_ranks) = match scoring.score {
            Score::Wang(wang) if whole.documents == generation.live_documents() => {
                static_parts(&generation, &wang)?
            }
            Score::Wang(_) => {
                let reason = "the score wang needs all runs of an index in one process";
                return Err(IndexError::lacks(generation.path(), reason));
            }
            _ => (Vec::new(), false),
        };
        let globals = Vec::new();
        let share = generation.own_docids(&docids);
        let snapshot = Self {
            generation,
            whole,
            analysis,
            scoring,
            share,
            docids,
            norms,
            bounds,
            field_norms: fields.names().iter().map(|_| OnceLock::new()).collect(),
            fields,
            field_tokens,
            boosted,
            statics,
            globals,
            has_ranks,
            filters: KnownFilters::default(),
            filtered: None,
        };
        Ok(Arc::new(snapshot.with_globals()?))
    }

    /// Takes global scores, if documents are in the order of those of this score.
    fn with_globals(mut self) -> Result<Self, IndexError> {
        if self.check_global().is_ok() {
            for run in 0..self.generation.runs().len() {
                let scores = self.generation.scores(run)?;
                let globals = scores.map(RunScores::globals).transpose()?.flatten();
                self.globals.extend_from_slice(globals.unwrap_or_default());
            }
        }
        Ok(self)
    }

    /// Opens the live generation of the index in the folder `index`; see [`Generation::open`].
    ///
    /// # Errors
    /// As [`Generation::open`], and if its recorded analysis is unknown.
    pub fn open(index: &Path, scoring: Scoring) -> Result<Arc<Self>, IndexError> {
        Self::new(Generation::open(index)?, scoring)
    }

    /// The same documents with another score.
    pub(super) fn scored_by(&self, scoring: Scoring) -> Result<Arc<Self>, IndexError> {
        Self::of_range(self.generation.clone(), scoring, self.docids.clone())
    }

    /// The generation that is searched.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// The collection's counts for scores.
    pub fn whole(&self) -> WholeCollection {
        self.whole
    }

    /// What most letters of a query are, if the analysis does not cut a text of them.
    pub fn unspaced(&self, text: &str) -> Option<Unspaced> {
        let mut letters = LetterCounts::default();
        letters.add(text.as_bytes());
        let found = letters.over(2, self.analysis.tokenizer).next();
        found.filter(|_| !self.has_given_terms())
    }

    /// The analysis of texts.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The scoring function.
    pub fn scoring(&self) -> &Scoring {
        &self.scoring
    }

    /// Norms by docid.
    pub fn norms(&self) -> &[f32] {
        &self.norms
    }

    pub(crate) fn norms_of(&self, docids: &Range<u32>) -> &[f32] {
        &self.norms[docids.start as usize..docids.end as usize]
    }

    pub(crate) fn bounds(&self) -> &BoundNorms {
        &self.bounds
    }

    /// Static parts by docid; empty if 0.
    pub(crate) fn statics(&self) -> &[f32] {
        &self.statics
    }

    /// Falling global scores by docid; empty if [`check_global`](Self::check_global) fails.
    pub(crate) fn globals(&self) -> &[f32] {
        &self.globals
    }

    /// Checks that searches may stop early by global scores.
    ///
    /// # Errors
    /// `Lacks` if the documents are not in global order, or in that for another parameter, which is
    /// named.
    pub fn check_global(&self) -> Result<(), IndexError> {
        let lacks = |reason: String| Err(IndexError::lacks(self.generation.path(), reason));
        let Score::Wang(wang) = self.scoring.score else {
            return lacks("the algorithm wang needs the score wang".into());
        };
        let Some(order) = global_order(&self.generation) else {
            return lacks(
                "documents are not in global order: merge with the order global first".into(),
            );
        };
        let bm25 = self.scoring.bm25;
        for (name, of_order, asked) in [
            ("alpha", order.wang.alpha().to_string(), wang.alpha().to_string()),
            ("k1", order.bm25.k1().to_string(), bm25.k1().to_string()),
            ("b", order.bm25.b().to_string(), bm25.b().to_string()),
            ("static-scale", order.wang.scale().name().into(), wang.scale().name().into()),
        ] {
            if of_order != asked {
                return lacks(format!(
                    "documents are in global order for {name} {of_order}, and {asked} is asked for: ask for \
                     --{name} {of_order}, or give an order for the other (millrace merge --order global --{name} {asked})"
                ));
            }
        }
        Ok(())
    }

    /// The frequency of a term in all documents, by its lists; reads those not summed yet.
    pub(super) fn cf<'a>(
        &self,
        lists: impl Iterator<Item = &'a Option<TermEntry>>,
    ) -> Result<u64, IndexError> {
        let mut sum = 0;
        for (run, entry) in self.generation.runs().iter().zip(lists) {
            sum += entry.as_ref().map_or(Ok(0), |entry| run.live_cf(entry))?;
        }
        Ok(sum)
    }

    /// Whether queries are terms with weights: those of a model that has learned vectors.
    pub(crate) fn has_given_terms(&self) -> bool {
        self.generation.manifest().settings.has_impacts()
    }

    /// Whether the score has PageRanks; without them all documents have equal ones.
    pub fn has_ranks(&self) -> bool {
        self.has_ranks
    }

    /// Begins a search. Documents that are left out have score 0, or minus infinity with static
    /// parts.
    pub(super) fn begin(&self, top: &mut TopK, k: usize) {
        top.reset(k);
        if self.leaves_out() {
            top.raise(if self.statics.is_empty() { LEAST_SCORE } else { f32::MIN });
        }
    }

    pub(crate) fn share(&self) -> &Range<u32> {
        &self.share
    }

    /// The docids of share `number` of `shares` of the documents that are searched.
    pub(crate) fn docids_of_share(&self, number: usize, shares: usize) -> Range<u32> {
        let documents = self.generation.documents().len();
        let end = self.share.end.min(documents);
        share_of(&(self.share.start.min(end)..end), number, shares)
    }
}

fn global_order(generation: &Generation) -> Option<GlobalParameters> {
    generation.manifest().order.as_ref()?.global.as_ref()?.parameters()
}

/// Static parts, minus infinity for deleted documents; and whether the index has PageRanks.
fn static_parts(generation: &Generation, wang: &Wang) -> Result<(Vec<f32>, bool), IndexError> {
    let scores = |run| generation.scores(run);
    let ranks = join_ranks(generation.path(), generation.manifest(), scores)?;
    let has_ranks = ranks.is_some();
    let mut parts = ranks.unwrap_or_else(|| vec![1.0; generation.documents().len() as usize]);
    for docid in generation.deleted() {
        parts[docid as usize] = f32::NEG_INFINITY;
    }
    // Scores are those of an index without deleted documents.
    wang.scale().put(&mut parts);
    let greatest = parts.iter().copied().fold(0.0, f32::max);
    for part in parts.iter_mut().filter(|part| part.is_finite()) {
        *part = wang.static_part(*part, greatest);
    }
    Ok((parts, has_ranks))
}

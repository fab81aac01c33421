//! What are the best documents for the text of a query? Analyses it as the index was analysed,
//! looks its terms up in every run, and lets an algorithm find the best k.

mod tasks;
#[cfg(test)]
mod tests;

pub use tasks::{Begun, Combined, Cut, Cutting};

use super::cursor::{Again, Norms, RunTerm, Scratch};
use super::share::Share;
use super::top_k::{Hit, TopK};
use super::{and, auto, exhaustive, max_score, small_adaptive, wand};
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::generation::Generation;
use crate::index::lexicon::{TermEntry, TermPlace};
use crate::index::list::{ListError, ListView};
use crate::index::run::Run;
use crate::score::bm25::{Bm25, IdfKind, idf};
use crate::score::bounds::BoundNorms;
use crate::text::analysis::Analysis;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use std::ops::Range;
use std::sync::Arc;

/// Which documents a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Documents with any of its terms.
    Or,
    /// Documents with all of its terms.
    And,
    /// As `And`, and if that finds fewer than k, as `Or`.
    AndOr,
}

/// How the best documents are found; all find the same. One that is for `Or` alone does not change
/// how `And` is answered, and the other way round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// What is the fastest for the query.
    #[default]
    Auto,
    /// `Or`: every posting is scored.
    Exhaustive,
    /// `Or`: lists that cannot lift a document to the threshold are only asked for candidates.
    MaxScore,
    /// `Or`: document at a time, by bounds of the lists.
    Wand,
    /// `Or`: document at a time, by bounds of the lists and of their blocks.
    Bmw,
    /// `And`: blocks of the shortest list are looked for in the others, by skipping.
    Galloping,
    /// `And`: document at a time, the list with the fewest postings left first.
    SmallAdaptive,
}

/// How queries are answered.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most hits.
    pub k: usize,
    /// Which documents.
    pub mode: Mode,
    /// How they are found.
    pub algorithm: Algorithm,
    /// The scoring function.
    pub bm25: Bm25,
    /// Its weight of rare terms.
    pub idf: IdfKind,
}

/// The collection that scores are about; a generation may be a shard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// Documents.
    pub documents: u32,
    /// Indexed tokens.
    pub tokens: u64,
}

/// The least score above 0: that of every document with a term is greater (`score::bm25`).
const LEAST_SCORE: f32 = f32::from_bits(1);

/// The docids of all documents.
pub const ALL: Range<u32> = 0..u32::MAX;

/// What all searchers of one generation share.
pub struct Shared {
    generation: Generation,
    whole: Whole,
    analysis: Analysis,
    settings: Settings,
    /// The documents that are searched, by docids of the generation.
    docids: Range<u32>,
    /// The length norm of every document.
    norms: Vec<f32>,
    /// What bounds are worth.
    bounds: BoundNorms,
}

impl Shared {
    /// Prepares a generation for queries.
    ///
    /// # Errors
    /// When its recorded analysis is not known to this program.
    pub fn new(generation: Generation, settings: Settings) -> Result<Arc<Self>, IndexError> {
        let documents = generation.live_documents();
        let tokens = generation.manifest().statistics.tokens;
        Self::of_shard(generation, settings, Whole { documents, tokens }, ALL)
    }

    /// Prepares a generation that holds a shard of a collection, or all of it; documents whose docids
    /// in the generation are not among `docids` are left out of all answers, though scores are those
    /// of the whole collection.
    ///
    /// # Errors
    /// When its recorded analysis is not known to this program.
    pub fn of_shard(
        generation: Generation,
        settings: Settings,
        whole: Whole,
        docids: Range<u32>,
    ) -> Result<Arc<Self>, IndexError> {
        let analysis = generation.manifest().analysis(generation.path())?;
        let mean = match whole.documents {
            0 => 0.0,
            n => whole.tokens as f64 / f64::from(n),
        };
        let mut norms = Vec::new();
        settings.bm25.norms(generation.documents().lengths(), mean, &mut norms);
        // Each of its postings is worth 0, and no other posting is.
        for docid in generation.deleted() {
            norms[docid as usize] = f32::INFINITY;
        }
        let bounds = BoundNorms::new(&settings.bm25, mean);
        Ok(Arc::new(Self { generation, whole, analysis, settings, docids, norms, bounds }))
    }

    /// The collection that scores are about.
    pub fn whole(&self) -> Whole {
        self.whole
    }

    /// How queries are answered.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Share `number` of `shares` of the documents that are searched, as a range of docids.
    pub fn share(&self, number: usize, shares: usize) -> Range<u32> {
        let documents = self.generation.documents().len();
        let end = self.docids.end.min(documents);
        let start = self.docids.start.min(end);
        let share = Share::range(end - start, number, shares);
        start + share.start..start + share.end
    }

    /// Begins a search for the best k. Documents with score 0 are deleted ones, and are left out.
    fn begin(&self, top: &mut TopK) {
        top.reset(self.settings.k);
        if self.generation.has_deletions() {
            top.raise(LEAST_SCORE);
        }
    }

    /// The generation that is searched.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }
}

/// A distinct term of a query.
#[derive(Clone, Debug)]
struct QueryTerm {
    /// Where its bytes end in the query's strings.
    end: usize,
    /// How often the query has it.
    times: u32,
}

/// What one of several searchers finds that answer a query together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Partial {
    /// Whether any term of the query is in the index.
    pub known: bool,
    /// The best hits of the mode that was asked for; of AND+OR, those with all terms.
    pub hits: Vec<Hit>,
    /// Of AND+OR, the best hits with any term, if there are fewer than k with all here.
    pub any: Vec<Hit>,
}

impl Partial {
    /// The best k hits of all parts, best first.
    pub fn merge(parts: &[Partial], settings: &Settings) -> Vec<Hit> {
        let mut all: Vec<Hit> = parts.iter().flat_map(|part| &part.hits).copied().collect();
        if settings.mode == Mode::AndOr && all.len() < settings.k {
            all = parts.iter().flat_map(|part| &part.any).copied().collect();
        }
        all.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
        all.truncate(settings.k);
        all
    }
}

/// Answers queries one after the other; a search allocates nothing once its buffers have grown. The
/// analysis makes a string for a stem that is no part of its token, and for what is not lower-case
/// ASCII.
pub struct Searcher {
    shared: Arc<Shared>,
    share: Share,
    strings: String,
    terms: Vec<QueryTerm>,
    /// Documents of the whole collection with each term, and its weight.
    dfs: Vec<u32>,
    /// Of each term in one run: the block of the lexicon, and the list.
    places: Vec<Option<TermPlace>>,
    found: Vec<Option<TermEntry>>,
    weights: Vec<f32>,
    /// Room for the terms' lists, run by run, and for those of one run; empty between queries.
    lists: Vec<Option<ListView<'static>>>,
    run_terms: Vec<RunTerm<'static>>,
    scratch: Scratch,
    top: TopK,
    hits: Vec<Hit>,
}

/// Hands the room of a vector, emptied, on to items of another lifetime.
fn recycle<A, B>(mut items: Vec<A>) -> Vec<B> {
    items.clear();
    items.into_iter().map(|_| unreachable!("the vector was emptied")).collect()
}

impl Searcher {
    /// Makes a searcher of all documents that are searched.
    pub fn new(shared: Arc<Shared>) -> Self {
        let share = match shared.docids.clone() {
            ALL => Share::Whole,
            docids => Share::Range(docids),
        };
        Self::of_share(shared, share)
    }

    /// Makes a searcher that looks at a share of the documents alone; weights are those of all.
    pub fn of_share(shared: Arc<Shared>, share: Share) -> Self {
        Self {
            shared,
            share,
            strings: String::new(),
            terms: Vec::new(),
            dfs: Vec::new(),
            places: Vec::new(),
            found: Vec::new(),
            weights: Vec::new(),
            lists: Vec::new(),
            run_terms: Vec::new(),
            scratch: Scratch::new(),
            top: TopK::new(),
            hits: Vec::new(),
        }
    }

    /// From now on does stages of searches more than once, so that it can be measured what they take.
    pub fn repeat(&mut self, again: Again) {
        self.scratch.again = again;
    }

    /// What this searcher shares with others.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the best hits for `text`, best first, and whether any of its terms is in the index.
    ///
    /// # Errors
    /// When the index is damaged.
    pub fn search(&mut self, text: &str) -> Result<(&[Hit], bool), IndexError> {
        let (shared, share) = (self.shared.clone(), self.share.clone());
        let lists = self.look_up(&shared, &share, text)?;
        self.answer(&shared, &lists, shared.settings.mode)?;
        self.lists = recycle(lists);
        Ok((&self.hits, self.is_known()))
    }

    /// Finds what is needed of this share to answer `text`: see [`Partial`].
    ///
    /// # Errors
    /// When the index is damaged.
    pub fn search_share(&mut self, text: &str) -> Result<Partial, IndexError> {
        let (shared, share) = (self.shared.clone(), self.share.clone());
        let lists = self.look_up(&shared, &share, text)?;
        let Settings { mode, k, .. } = shared.settings;
        let first = if mode == Mode::AndOr { Mode::And } else { mode };
        self.answer(&shared, &lists, first)?;
        let mut partial = Partial { known: self.is_known(), hits: self.hits.clone(), any: vec![] };
        if mode == Mode::AndOr && partial.hits.len() < k {
            self.answer(&shared, &lists, Mode::Or)?;
            partial.any.extend_from_slice(&self.hits);
        }
        self.lists = recycle(lists);
        Ok(partial)
    }

    /// Whether any term of the query is in the index.
    fn is_known(&self) -> bool {
        self.dfs.iter().any(|&df| df > 0)
    }

    /// Returns how many documents of this generation have each distinct term of `text`, by first
    /// appearance.
    ///
    /// # Errors
    /// When the index is damaged.
    pub fn frequencies(&mut self, text: &str) -> Result<&[u32], IndexError> {
        let (shared, share) = (self.shared.clone(), self.share.clone());
        let lists = self.look_up(&shared, &share, text)?;
        self.lists = recycle(lists);
        Ok(&self.dfs)
    }

    /// Returns the best hits of this shard for `text`, best first, with docids of the shard. `dfs`
    /// are the [`frequencies`](Self::frequencies) added up over all shards.
    ///
    /// # Errors
    /// When the index is damaged.
    pub fn search_shard(
        &mut self,
        text: &str,
        dfs: &[u32],
        mode: Mode,
    ) -> Result<&[Hit], IndexError> {
        let (shared, share) = (self.shared.clone(), self.share.clone());
        let lists = self.look_up(&shared, &share, text)?;
        self.dfs.clear();
        self.dfs.extend_from_slice(dfs);
        self.dfs.resize(self.terms.len(), 0);
        self.answer(&shared, &lists, mode)?;
        self.lists = recycle(lists);
        Ok(&self.hits)
    }

    /// Finds the hits of the analysed query, whose dfs are known.
    fn answer<'a>(
        &mut self,
        shared: &'a Shared,
        lists: &[Option<ListView<'a>>],
        mode: Mode,
    ) -> Result<(), IndexError> {
        self.hits.clear();
        self.weigh();
        let all_known = self.dfs.iter().all(|&df| df > 0);
        if self.dfs.iter().all(|&df| df == 0) {
            return Ok(());
        }
        match mode {
            Mode::Or => self.run_all(shared, lists, Mode::Or),
            Mode::And if all_known => self.run_all(shared, lists, Mode::And),
            Mode::And => Ok(()),
            Mode::AndOr => {
                if all_known {
                    self.run_all(shared, lists, Mode::And)?;
                }
                if self.hits.len() < shared.settings.k {
                    self.run_all(shared, lists, Mode::Or)?;
                }
                Ok(())
            }
        }
    }

    /// Finds the distinct terms, in order of their first appearance.
    fn analyze(&mut self, text: &str) {
        let Self { shared, strings, terms, .. } = self;
        strings.clear();
        terms.clear();
        shared.analysis.terms(text.as_bytes(), |term| {
            let mut start = 0;
            for old in terms.iter_mut() {
                if &strings[start..old.end] == term {
                    old.times += 1;
                    return;
                }
                start = old.end;
            }
            strings.push_str(term);
            terms.push(QueryTerm { end: strings.len(), times: 1 });
        });
    }

    /// The terms of the query: trie collection and suffix.
    fn split_terms(&self) -> impl Iterator<Item = (u16, &[u8])> {
        split_terms(&self.strings, &self.terms)
    }

    /// Analyses a query and looks all terms up in all runs, the lists of a run side by side. Counts
    /// the documents of the generation that have each term.
    fn look_up<'a>(
        &mut self,
        shared: &'a Shared,
        share: &'a Share,
        text: &str,
    ) -> Result<Vec<Option<ListView<'a>>>, IndexError> {
        self.analyze(text);
        let mut lists = recycle(std::mem::take(&mut self.lists));
        let mut dfs = std::mem::take(&mut self.dfs);
        dfs.clear();
        dfs.resize(self.terms.len(), 0);
        let mut places = std::mem::take(&mut self.places);
        let mut found = std::mem::take(&mut self.found);
        for (number, run) in shared.generation.runs().iter().enumerate() {
            // Each step fetches what the next one reads, for all terms before it is read of one.
            places.clear();
            for (collection, suffix) in self.split_terms() {
                places.push(run.lexicon().locate(collection, suffix)?);
            }
            found.clear();
            for (place, (_, suffix)) in places.iter().zip(self.split_terms()) {
                let term = place.map(|place| run.lexicon().scan(place, suffix)).transpose()?;
                found.push(term.flatten().inspect(|term| run.prefetch(term)));
            }
            for (df, term) in dfs.iter_mut().zip(&found) {
                lists.push(match *term {
                    None => None,
                    Some(term) => {
                        // A damaged index may claim more postings than there are documents.
                        let most = shared.generation.documents().len();
                        *df = df.saturating_add(run.live_df(&term)).min(most);
                        share.list(run, number, term)?
                    }
                });
            }
        }
        (self.places, self.found, self.dfs) = (places, found, dfs);
        Ok(lists)
    }

    /// Weighs each term by its df in the whole collection.
    fn weigh(&mut self) {
        let Settings { bm25, idf: kind, .. } = self.shared.settings;
        let documents = self.shared.whole.documents;
        self.weights.clear();
        let terms = self.terms.iter().zip(&self.dfs);
        self.weights
            .extend(terms.map(|(term, &df)| bm25.weight(idf(documents, df, kind), term.times)));
    }

    /// Searches all runs in docid order, so that ties go to the smaller docid.
    fn run_all<'a>(
        &mut self,
        shared: &'a Shared,
        lists: &[Option<ListView<'a>>],
        mode: Mode,
    ) -> Result<(), IndexError> {
        shared.begin(&mut self.top);
        self.top.only(self.share.docids());
        let weights = std::mem::take(&mut self.weights);
        let runs = shared.generation.runs().iter().enumerate();
        for (run, lists) in runs.zip(lists.chunks(self.terms.len())) {
            self.search_run(shared, run, (&weights, lists), mode)
                .map_err(|e| blame(run.1, self.split_terms(), e))?;
        }
        self.weights = weights;
        self.top.take(&mut self.hits);
        Ok(())
    }

    /// Offers the documents of a run to `top`; weights and lists are those of the query's terms.
    fn search_run<'a>(
        &mut self,
        shared: &'a Shared,
        (number, run): (usize, &Run),
        (weights, lists): (&[f32], &[Option<ListView<'a>>]),
        mode: Mode,
    ) -> Result<(), ListError> {
        let mut terms = recycle(std::mem::take(&mut self.run_terms));
        let weighted = weights.iter().zip(lists);
        terms.extend(weighted.map(|(&weight, &list)| RunTerm { weight, list }));
        let (first, documents) = self.share.place(run, number);
        let norms = Norms {
            documents: &shared.norms[first as usize..][..documents as usize],
            bounds: &shared.bounds,
        };
        let (top, scratch) = (&mut self.top, &mut self.scratch);
        let search = match (mode, shared.settings.algorithm) {
            (Mode::And, Algorithm::SmallAdaptive) => small_adaptive::search,
            (Mode::And, _) => and::search,
            (_, Algorithm::Exhaustive) => exhaustive::search,
            (_, Algorithm::Wand) => wand::search,
            (_, Algorithm::Bmw) => wand::search_block_max,
            (_, Algorithm::MaxScore) => max_score::search,
            _ => auto::search,
        };
        let searched = search(&terms, first, documents, norms, top, scratch);
        self.run_terms = recycle(terms);
        searched
    }
}

/// The terms of a query: trie collection and suffix.
fn split_terms<'a>(
    strings: &'a str,
    terms: &'a [QueryTerm],
) -> impl Iterator<Item = (u16, &'a [u8])> {
    let starts = std::iter::once(0).chain(terms.iter().map(|term| term.end));
    starts.zip(terms).map(|(start, term)| split(&strings[start..term.end]))
}

/// Finds out which of some terms' lists is damaged, after an algorithm has met `source` in one of
/// them.
#[cold]
fn blame<'t>(
    run: &Run,
    terms: impl Iterator<Item = (u16, &'t [u8])>,
    source: ListError,
) -> IndexError {
    let list_error = |offset: u64, source| {
        IndexError::list(run.postings_path(), HEADER_BYTES as u64 + offset)(source)
    };
    for (collection, suffix) in terms {
        let term = match run.lexicon().find(collection, suffix) {
            Ok(Some(term)) => term,
            Ok(None) => continue,
            Err(error) => return error,
        };
        match run.list(term).map(|list| list.check(run.documents(), None, |_, _| ())) {
            Ok(Ok(())) => {}
            Ok(Err(source)) => return list_error(term.offset, source),
            Err(error) => return error,
        }
    }
    list_error(0, source)
}

fn split(term: &str) -> (u16, &[u8]) {
    let collection = trie_collection(term);
    (collection, &term.as_bytes()[implied_prefix_len(collection)..])
}

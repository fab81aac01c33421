//! The searcher, which answers planned queries: it takes the query's lists of every run, or a share
//! or a part of them, and lets an algorithm find the best k.

#![warn(missing_docs)]

mod known;
mod listed;
mod runs;
pub(crate) mod tasks;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use tasks::{Begun, Cutting, QueryCut};

use self::known::{fields_of, norms_of, positions_of};
use super::cursor::{BlockBounds, RunSearch, RunTerm};
use super::listing::Listing;
use super::listing::facets::FoundFacets;
use super::plan::{FieldSpan, Plan, Planner};
use super::reading::asked::GivenDocids;
use super::scratch::Scratch;
use super::snapshot::Snapshot;
use super::top_k::{Hit, TopK};
use super::tree::Group;
use super::wanted::{Algorithm, Mode, Stage, Syntax, Wanted};
use crate::index::block_bounds::BlockCodes;
use crate::index::error::IndexError;
use crate::index::format::HEADER_BYTES;
use crate::index::list::{ListError, ListView};
use crate::index::run::Run;
use crate::index::run::dense::DenseList;
use crate::query::algorithms::handed::{LastSearcher, SearchAlgorithm};
use crate::query::algorithms::scored::MANY_TERMS;
use crate::query::algorithms::trees::{self, Wish};
use crate::query::algorithms::{and, auto, blocks, exhaustive, max_score, scored};
use crate::query::engines::share::SearchedLists;
use crate::score::named::Score;
use std::ops::Range;
use std::sync::Arc;

/// Answers queries one after the other, without allocation once its buffers have grown, except for
/// the analysis, which makes a string for a stem that is no part of its token and for what is not
/// lower-case ASCII.
#[derive(Default)]
pub struct Searcher {
    /// The documents that are looked at; all that the snapshot of a query has, if none are given.
    share: Option<Range<u32>>,
    planner: Planner,
    plan: Option<Plan>,
    /// Buffers for the terms' lists, run by run, and for those of one run; empty between queries.
    lists: Vec<Option<ListView<'static>>>,
    run_terms: Vec<RunTerm<'static>>,
    codes: Vec<Option<BlockCodes<'static>>>,
    numbers: Vec<Option<usize>>,
    dense: Vec<Option<DenseList>>,
    scratch: Scratch,
    /// Of an algorithm that was handed in.
    handed: LastSearcher,
    top: TopK,
    hits: Vec<Hit>,
    /// Documents that match, if that is asked for.
    found: Option<u64>,
    facets: FoundFacets,
}

/// Offers the documents of a run that may be among the best.
type SearchRun = fn(&RunSearch<'_>, &mut TopK, &mut Scratch) -> Result<(), ListError>;

/// What finds a stage of a query for this many terms, which may be what was handed in.
fn search_of(
    stage: Stage,
    algorithm: Algorithm,
    has_statics: bool,
    terms: usize,
) -> Result<SearchRun, &'static dyn SearchAlgorithm> {
    Ok(match (stage, algorithm) {
        // No bound knows what scores begin with.
        (Stage::Any, _) if has_statics => scored::search_any,
        (Stage::Any, _) if terms > MANY_TERMS => scored::search_any,
        (Stage::All, _) if terms > MANY_TERMS => scored::search_all,
        (Stage::All, Algorithm::Exhaustive) if has_statics => scored::search_all,
        (Stage::All, Algorithm::Handed(handed)) if handed.finds_all() => return Err(handed),
        (Stage::All, _) => and::search,
        (_, Algorithm::Exhaustive) => exhaustive::search,
        (_, Algorithm::MaxScore) => max_score::search,
        (_, Algorithm::Blocks) => blocks::search,
        (_, Algorithm::Handed(handed)) if !handed.finds_all() => return Err(handed),
        _ => auto::search,
    })
}

/// Reuses the buffer of a vector, emptied, for items of another lifetime.
fn recycle<A, B>(mut items: Vec<A>) -> Vec<B> {
    items.clear();
    items.into_iter().map(|_| unreachable!("the vector was emptied")).collect()
}

impl Searcher {
    /// Searches all documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on looks at a share of the documents alone; weights are those of all.
    pub(crate) fn take_share(&mut self, share: Range<u32>) {
        self.share = Some(share);
    }

    /// The best hits for `text`, best first, and whether any of its terms is in the index.
    pub fn search(
        &mut self,
        snapshot: &Arc<Snapshot>,
        wanted: &Wanted,
        text: &str,
    ) -> Result<(&[Hit], bool), IndexError> {
        let known = self.with_plan(snapshot, wanted, text, None, |searcher, plan| {
            searcher.answer(plan)?;
            Ok(plan.known())
        })?;
        Ok((&self.hits, known))
    }

    /// The given documents, ranked for `text`, and whether any of its terms is in the index.
    pub(crate) fn rank_given(
        &mut self,
        snapshot: &Arc<Snapshot>,
        wanted: &Wanted,
        text: &str,
        given: &GivenDocids,
    ) -> Result<(&[Hit], bool), IndexError> {
        let mut plan = self.planner.plan(snapshot, *wanted, text)?;
        plan.give(Some(given.clone()));
        self.answer(&plan)?;
        Ok((&self.hits, plan.known()))
    }

    /// Analyses `text` and looks its terms up, as a search does first; returns its number of
    /// distinct terms.
    pub fn look_up(
        &mut self,
        snapshot: &Arc<Snapshot>,
        wanted: &Wanted,
        text: &str,
    ) -> Result<usize, IndexError> {
        self.with_plan(snapshot, wanted, text, None, |_, plan| Ok(plan.terms().len()))
    }

    fn with_plan<R>(
        &mut self,
        snapshot: &Arc<Snapshot>,
        wanted: &Wanted,
        text: &str,
        listing: Option<Arc<Listing>>,
        work: impl FnOnce(&mut Self, &Plan) -> Result<R, IndexError>,
    ) -> Result<R, IndexError> {
        let room = self.plan.take().filter(|plan| Arc::ptr_eq(plan.snapshot(), snapshot));
        let mut plan = room.unwrap_or_else(|| Plan::empty(snapshot.clone()));
        let planned = self.planner.plan_anew(&mut plan, *wanted, text);
        plan.list(listing);
        let worked = planned.and_then(|()| work(self, &plan));
        self.plan = Some(plan);
        worked
    }

    /// The best hits for a query, best first, through all stages that it needs.
    pub fn answer(&mut self, plan: &Plan) -> Result<&[Hit], IndexError> {
        let share = self.share_of(plan);
        self.with_lists(plan, &share, |searcher, lists| {
            if let Some(given) = plan.given() {
                return searcher.rank(plan, &share, lists, given, None);
            }
            let few = plan.snapshot().few().filter(|_| !plan.is_of_all());
            let mut stage = Some(Stage::first(plan.wanted().mode));
            while let Some(now) = stage {
                match few {
                    Some(few) => searcher.rank(plan, &share, lists, few, Some(now))?,
                    None => searcher.find(plan, &share, lists, now)?,
                }
                stage = now.next(plan.wanted(), searcher.hits.len());
            }
            Ok(())
        })?;
        Ok(&self.hits)
    }

    /// The best hits of one stage of a query, best first.
    pub(crate) fn answer_stage(&mut self, plan: &Plan, stage: Stage) -> Result<&[Hit], IndexError> {
        let share = self.share_of(plan);
        self.find_in(plan, &share, stage)
    }

    /// [`answer_stage`](Self::answer_stage) in other lists, such as a copy of postings.
    pub(crate) fn find_in(
        &mut self,
        plan: &Plan,
        source: &impl SearchedLists,
        stage: Stage,
    ) -> Result<&[Hit], IndexError> {
        self.with_lists(plan, source, |searcher, lists| searcher.find(plan, source, lists, stage))?;
        Ok(&self.hits)
    }

    /// The hits of the last query or tasks.
    pub fn hits(&self) -> &[Hit] {
        &self.hits
    }

    /// How many documents match the last query, if it asks for that.
    pub fn found(&self) -> Option<u64> {
        self.found
    }

    /// The documents that are looked at for a query.
    fn share_of(&self, plan: &Plan) -> Range<u32> {
        self.share.clone().unwrap_or_else(|| plan.snapshot().share().clone())
    }

    /// Calls `work` with the query's lists in `source`, run by run.
    fn with_lists<R, S: SearchedLists>(
        &mut self,
        plan: &Plan,
        source: &S,
        work: impl for<'a> FnOnce(&mut Self, &[Option<ListView<'a>>]) -> Result<R, IndexError>,
    ) -> Result<R, IndexError> {
        let mut lists = recycle(std::mem::take(&mut self.lists));
        for (number, run) in plan.snapshot().generation().runs().iter().enumerate() {
            for entry in plan.lists_of(number) {
                let list = entry.map(|entry| source.list(run, number, entry)).transpose()?;
                lists.push(list.flatten());
            }
        }
        let worked = work(self, &lists);
        self.lists = recycle(lists);
        worked
    }

    /// Finds the hits of a stage in all runs, in docid order, so that ties go to the smaller docid.
    fn find<'a>(
        &mut self,
        plan: &Plan,
        source: &impl SearchedLists,
        lists: &[Option<ListView<'a>>],
        stage: Stage,
    ) -> Result<(), IndexError> {
        self.hits.clear();
        self.found = plan.wanted().count.then_some(0);
        if plan.is_of_all() {
            self.find_all(plan, source);
            return self.arrange(plan);
        }
        if !plan.may_find(stage) {
            return self.arrange(plan);
        }
        plan.snapshot().begin(&mut self.top, plan.depth());
        self.top.raise(plan.floor());
        self.top.only(source.docids());
        let runs = plan.snapshot().generation().runs().iter().enumerate();
        for ((number, run), lists) in runs.zip(lists.chunks(plan.terms().len())) {
            self.search_run(plan, source, number, run, lists, stage)?;
        }
        self.top.take(&mut self.hits);
        self.arrange(plan)
    }

    /// Ranks the given documents that the share has: those with any term by score, then the others,
    /// or those alone that a stage finds.
    fn rank<'a>(
        &mut self,
        plan: &Plan,
        share: &Range<u32>,
        lists: &[Option<ListView<'a>>],
        given: &[u32],
        stage: Option<Stage>,
    ) -> Result<(), IndexError> {
        self.hits.clear();
        let mut without = Vec::new();
        self.found = plan.wanted().count.then_some(0);
        if stage.is_some_and(|stage| !plan.may_find(stage)) {
            return self.arrange(plan);
        }
        // Words match by any of them, and operators as they say.
        let wanted = plan.wanted();
        let flat = (stage.is_none() && wanted.syntax != Syntax::Words && wanted.mode == Mode::And)
            .then(|| Group::of_terms(wanted.mode, plan.terms().len()));
        let tree = plan.tree_of_given().or(flat.as_ref());
        for (number, run) in plan.snapshot().generation().runs().iter().enumerate() {
            let docids = share.place(run, number);
            let within = docids.start.max(share.start)..docids.end.min(share.end);
            let place = |docid: u32| given.partition_point(|&given| given < docid);
            let given = &given[place(within.start)..place(within.end).max(place(within.start))];
            let count = plan.terms().len();
            let of_run = plan.terms().iter().zip(&lists[number * count..]);
            let terms: Vec<RunTerm<'_>> =
                of_run.map(|(term, &list)| RunTerm { weight: term.weight, list }).collect();
            let norms = norms_of(plan, &docids);
            let fields = fields_of(plan, &docids);
            let mut search = self.scratch.run(&terms, docids.clone(), norms);
            search.fields = &fields;
            let positions = positions_of(plan, number, run)?;
            search.phrases = plan.phrases();
            search.positions = &positions;
            let failed = |error| blame(run, plan.split_terms(), error);
            if let Some(tree) = tree {
                let given: Vec<u32> = given.iter().map(|docid| docid - docids.start).collect();
                let mut found = Vec::new();
                let wish = Wish::Rank(&given, &mut found);
                trees::search(&search, tree, false, wish, &mut self.scratch).map_err(failed)?;
                let mut found = found.into_iter().peekable();
                for place in given {
                    let docid = docids.start + place;
                    match found.next_if(|(matched, _)| *matched == place) {
                        Some((_, score)) => self.hits.push(Hit { docid, score }),
                        None => without.push(Hit { docid, score: 0.0 }),
                    }
                }
                continue;
            }
            search.score_given(given, &mut self.scratch).map_err(failed)?;
            let least = if stage == Some(Stage::All) { terms.len() as u32 } else { 1 };
            for (&docid, &(score, matched)) in given.iter().zip(&self.scratch.sums) {
                match matched {
                    _ if matched < least => without.push(Hit { docid, score: 0.0 }),
                    _ => self.hits.push(Hit { docid, score }),
                }
            }
        }
        self.found = plan.wanted().count.then_some(self.hits.len() as u64);
        self.hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        if stage.is_none() {
            self.hits.append(&mut without);
        }
        self.hits.truncate(plan.depth());
        self.arrange(plan)
    }

    /// Offers the documents of a run to `top`; the lists are those of the query's terms.
    fn search_run<'a>(
        &mut self,
        plan: &Plan,
        source: &impl SearchedLists,
        number: usize,
        run: &Run,
        lists: &[Option<ListView<'a>>],
        stage: Stage,
    ) -> Result<(), IndexError> {
        let mut terms = recycle(std::mem::take(&mut self.run_terms));
        let weighted = plan.terms().iter().zip(lists);
        terms.extend(weighted.map(|(term, &list)| RunTerm { weight: term.weight, list }));
        let docids = source.place(run, number);
        let norms = norms_of(plan, &docids);
        let has_statics = !norms.statics.is_empty();
        let top = &mut self.top;
        let scratch = &mut self.scratch;
        // What is handed in knows no fields.
        let wanted = match plan.wanted().algorithm {
            _ if plan.listing_of_all().is_some() => Algorithm::Exhaustive,
            Algorithm::Handed(_) if plan.span() != FieldSpan::AllText => Algorithm::Auto,
            algorithm => algorithm,
        };
        let mut codes = recycle(std::mem::take(&mut self.codes));
        // Bounds are of blocks of all documents of the run, and of impacts.
        if stage == Stage::Any
            && matches!(wanted, Algorithm::Auto | Algorithm::Blocks)
            && plan.snapshot().scoring().score == Score::Impact
            && docids.len() == run.documents() as usize
            && let Some(bounds) = run.bounds()
        {
            let entries = plan.lists_of(number).iter();
            self.numbers.clear();
            // All are fetched before the first is read.
            self.numbers.extend(entries.map(|entry| bounds.number(entry.as_ref()?)));
            for number in &self.numbers {
                codes.push(number.map(|number| bounds.codes(number)).transpose()?);
            }
        }
        let bounds = run.bounds().filter(|_| !codes.is_empty());
        let docids_here = docids.len();
        let fields = fields_of(plan, &docids);
        let mut search_of_run = scratch.run(&terms, docids, norms);
        search_of_run.fields = &fields;
        search_of_run.blocks =
            bounds.map(|bounds| BlockBounds { impacts: bounds.impacts(), lists: &codes });
        let mut dense = std::mem::take(&mut self.dense);
        let is_and = stage == Stage::All && terms.len() > 1;
        let by_bitmaps =
            plan.is_whole() || search_of_run.wants_bitmaps(stage, wanted, plan.depth());
        if by_bitmaps && docids_here == run.documents() as usize {
            for entry in plan.lists_of(number) {
                dense.push(entry.map(|entry| run.dense(&entry)).transpose()?.flatten());
            }
        }
        search_of_run.dense = &dense;
        let positions = positions_of(plan, number, run)?;
        search_of_run.phrases = plan.phrases();
        search_of_run.positions = &positions;
        let search = &search_of_run;
        let deleted = plan.snapshot().leaves_out();
        let counts_alone = plan.depth() == 0;
        let counted = self.found.is_some();
        let tree = plan.tree_of(stage);
        let of_stage = search_of(stage, wanted, has_statics, terms.len());
        // AND goes through all that match.
        let counts_too = counted && is_and && !deleted && search.wants_all();
        let counts_too = counts_too && terms.len() <= MANY_TERMS && of_stage.is_ok();
        let searched = match (tree, of_stage) {
            (None, _) if counts_too => {
                and::search_counted(search, (!counts_alone).then_some(top), scratch)
            }
            (Some(tree), _) => by_tree(search, tree, deleted, counted, top, scratch),
            _ if counts_alone => Ok(0),
            (None, Ok(of_run)) => of_run(search, top, scratch).map(|()| 0),
            (None, Err(handed)) => self.handed.of(handed).search(search, top, scratch).map(|()| 0),
        };
        let counted = searched.and_then(|found| match (self.found, tree) {
            (Some(_), None) if !counts_too => count(search, stage, deleted, scratch),
            _ => Ok(found),
        });
        self.run_terms = recycle(terms);
        self.codes = recycle(codes);
        dense.clear();
        self.dense = dense;
        let counted = counted.map_err(|source| blame(run, plan.split_terms(), source))?;
        self.found = self.found.map(|found| found + counted);
        Ok(())
    }
}

/// Offers the documents of a run that match a tree, or the best of them; tells how many match if
/// that is to be `counted`.
fn by_tree(
    search: &RunSearch<'_>,
    tree: &Group,
    deleted: bool,
    counted: bool,
    top: &mut TopK,
    scratch: &mut Scratch,
) -> Result<u64, ListError> {
    let mut wish = if top.k() == 0 { Wish::Count } else { Wish::Offer(top) };
    if let Some(count) = trees::few::search(search, tree, deleted, &mut wish, scratch)? {
        return Ok(count);
    }
    let found = top.k() == 0
        || trees::best::search(search, tree, top, scratch)?
        || trees::blends::search(search, tree, top, scratch)?;
    if !found {
        let wish = if counted { Wish::Offer(top) } else { Wish::Best(top) };
        return trees::search(search, tree, deleted, wish, scratch);
    }
    if counted { trees::search(search, tree, deleted, Wish::Count, scratch) } else { Ok(0) }
}

/// How many documents of a run match a stage of a query without a tree.
fn count(
    search: &RunSearch<'_>,
    stage: Stage,
    deleted: bool,
    scratch: &mut Scratch,
) -> Result<u64, ListError> {
    // A list whose postings are all of documents that are there and wanted.
    if let [RunTerm { list: Some(list), .. }] = search.terms
        && !deleted
        && search.wants_all()
    {
        return Ok(list.df().into());
    }
    let mode = if stage == Stage::All { Mode::And } else { Mode::Or };
    let tree = Group::of_terms(mode, search.terms.len());
    trees::search(search, &tree, deleted, Wish::Count, scratch)
}

/// Finds which of some terms' lists is damaged, after an algorithm has met `source` in one of them.
#[cold]
fn blame<'t>(
    run: &Run,
    terms: impl Iterator<Item = (u16, &'t [u8])>,
    source: ListError,
) -> IndexError {
    if let (ListError::Positions { .. }, Some(of_run)) = (&source, run.run_positions()) {
        return IndexError::list(of_run.path(), HEADER_BYTES as u64)(source);
    }
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

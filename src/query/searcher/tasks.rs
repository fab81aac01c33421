//! The cutting of a query into independent tasks.
//!
//! An AND query is cut as in `tatikonda11` (section 3.2.3, algorithm 4): each skip of the shortest
//! list is a task, with those skips of every other list that may hold docids of its range. A skip
//! is a number of neighbouring blocks, whose last docids are in memory uncompressed; tasks share
//! blocks of the longer lists at their borders, and no others. An OR query has no list that every
//! hit is in: it is cut by docid, at borders of blocks of its longest list, into tasks of about
//! equal work.
//!
//! Different from the paper: the skips of each run are cut separately; neighbouring tasks may be
//! done as one, which spares the shared blocks; documents are scored where they are found, so that
//! there are no separate scoring tasks; a query that is short, or has very many terms, is not cut.
//! A task begins with the k-th score that other tasks of its query have found, so that little is
//! lost where lists are skipped by score.

use std::ops::Range;
use std::sync::Arc;

use super::{Searcher, recycle};
use crate::index::error::IndexError;
use crate::index::lexicon::TermEntry;
use crate::index::list::ListView;
use crate::query::algorithms::scored::MANY_TERMS;
use crate::query::engines::share::SearchedLists;
use crate::query::plan::Plan;
use crate::query::wanted::{Algorithm, Stage};

/// How queries are cut into tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cutting {
    /// Blocks of a skip, at least 1.
    pub skip: usize,
    /// Queries with a lower [estimate](QueryCut::cost_ns) in nanoseconds are answered whole.
    pub least_ns: f64,
}

impl Cutting {
    /// The same where this many queries wait behind one for each worker: a query that is cut is
    /// answered sooner but takes more work, and others wait.
    pub(crate) fn before(&self, waiting: usize) -> Self {
        Self { least_ns: self.least_ns * (1 + waiting) as f64, ..*self }
    }

    /// About how many tasks the first stage of a query is cut into, from its lists' lengths alone;
    /// 0 if it stays whole.
    pub(crate) fn tasks_of(&self, plan: &Plan) -> usize {
        let terms = plan.terms().len();
        if self.least_ns.is_infinite() || terms == 0 || terms > MANY_TERMS || plan.is_whole() {
            return 0;
        }
        let stage = Stage::first(plan.wanted().mode);
        let block_len = plan.snapshot().generation().manifest().settings.block_size.max(1);
        let size = |entry: &Option<TermEntry>| {
            entry.map(|TermEntry { df, .. }| ListSize {
                postings: df.into(),
                blocks: df.div_ceil(block_len).into(),
            })
        };
        let (mut cost, mut tasks) = (0.0, 0.0);
        for lists in plan.lists().chunks(terms) {
            let sizes = lists.iter().map(size);
            let of_run = cost_ns(plan, stage, sizes.clone());
            cost += of_run;
            tasks += match stage {
                Stage::Any => (of_run / OR_TASK_NS).ceil(),
                Stage::All => {
                    let blocks = sizes.map(|size| size.map_or(0.0, |size| size.blocks));
                    (blocks.fold(f64::INFINITY, f64::min) / self.skip.max(1) as f64).ceil()
                }
            };
        }
        if cost < self.least_ns { 0 } else { tasks as usize }
    }
}

impl Default for Cutting {
    /// Skips of a block; queries of less than 100 microseconds stay whole.
    fn default() -> Self {
        Cutting { skip: 1, least_ns: 100_000.0 }
    }
}

// Nanoseconds, measured as `estimate_over_whole` of `experiments parallelism --only skips`, on 3
// million documents.

/// Decoding a block of a list and looking for documents in it.
const BLOCK_NS: f64 = 25.0;

/// Taking a document of the shortest list through another.
const CANDIDATE_NS: f64 = 0.7;

/// A posting of an OR query, most of which are skipped.
const POSTING_NS: f64 = 1.5;

/// The aim for a task of an OR query.
const OR_TASK_NS: f64 = 15_000.0;

/// A stage of a query that was cut, for any number of searchers.
#[derive(Debug)]
pub struct QueryCut {
    plan: Arc<Plan>,
    stage: Stage,
    /// Of each run with tasks, its number and the number of the first task behind it.
    runs: Vec<(usize, usize)>,
    /// Of each task, the docids of its hits, relative to the run's first.
    docids: Vec<Range<u32>>,
    /// Of each task that looks for all terms, the blocks of each term's list.
    blocks: Vec<Range<u32>>,
    cost_ns: f64,
}

impl QueryCut {
    /// At least one.
    pub fn tasks(&self) -> usize {
        self.docids.len()
    }

    /// An estimate for all tasks together, in nanoseconds.
    pub(crate) fn cost_ns(&self) -> f64 {
        self.cost_ns
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// The blocks of each term's list in a task of an AND query.
    ///
    /// # Panics
    /// If there is no such task, or this is an OR query.
    pub fn blocks(&self, task: usize) -> &[Range<u32>] {
        let terms = self.plan.terms().len();
        &self.blocks[task * terms..][..terms]
    }

    /// The end of the tasks that may be done together with this one.
    pub(crate) fn end_of_run(&self, task: usize) -> usize {
        self.run_of(task).1
    }

    /// The run of a task, and the first task behind that run.
    fn run_of(&self, task: usize) -> (usize, usize) {
        self.runs[self.runs.partition_point(|&(_, end)| end <= task)]
    }
}

/// What came of a query that was begun.
#[derive(Debug)]
pub enum Begun {
    /// [`Searcher::hits`] has the hits.
    Answered,
    /// A stage of it was cut. [`Stage::next`] tells whether another follows its tasks.
    Cut(QueryCut),
}

impl Searcher {
    /// Answers a query from `stage` on if it is short, and else cuts it into tasks.
    pub fn begin(
        &mut self,
        plan: &Arc<Plan>,
        stage: Stage,
        cutting: &Cutting,
    ) -> Result<Begun, IndexError> {
        let share = self.share_of(plan);
        self.with_lists(plan, &share, |searcher, lists| {
            let mut stage = Some(stage);
            while let Some(now) = stage {
                if plan.may_find(now)
                    && !plan.is_whole()
                    && let Some(cut) = cut(plan, lists, now, cutting)
                {
                    return Ok(Begun::Cut(cut));
                }
                searcher.find(plan, &share, lists, now)?;
                stage = now.next(plan.wanted(), searcher.hits.len());
            }
            Ok(Begun::Answered)
        })
    }

    /// Does neighbouring tasks of one run. [`hits`](Self::hits) then has the best k hits of these
    /// tasks, without those with scores below `floor`.
    ///
    /// # Panics
    /// If there are no such tasks, or they are of several runs.
    pub(crate) fn work(
        &mut self,
        cut: &QueryCut,
        tasks: Range<usize>,
        floor: f32,
    ) -> Result<(), IndexError> {
        let plan = &*cut.plan;
        let share = self.share_of(&cut.plan);
        let (number, end) = cut.run_of(tasks.start);
        assert!(!tasks.is_empty() && tasks.end <= end, "tasks {tasks:?} of a run up to {end}");
        let run = &plan.snapshot().generation().runs()[number];
        let docids = cut.docids[tasks.start].start..cut.docids[tasks.end - 1].end;
        let mut lists = recycle(std::mem::take(&mut self.lists));
        for (i, entry) in plan.lists_of(number).iter().enumerate() {
            // Blocks are counted in the share's part of the list.
            let list = entry.map(|entry| share.list(run, number, entry)).transpose()?;
            let part = match list.flatten() {
                None => None,
                Some(list) if cut.stage == Stage::Any => list.within(docids.clone()),
                Some(list) => {
                    let first = &cut.blocks(tasks.start)[i];
                    let last = &cut.blocks(tasks.end - 1)[i];
                    list.part(first.start as usize..last.end as usize, docids.clone())
                }
            };
            lists.push(part);
        }
        let first = run.first_docid();
        plan.snapshot().begin(&mut self.top, plan.wanted().k);
        self.top.raise(floor);
        let wanted = share.docids();
        let start = first.saturating_add(docids.start).max(wanted.start);
        self.top.only(start..first.saturating_add(docids.end).min(wanted.end));
        let searched = self.search_run(plan, &share, number, run, &lists, cut.stage);
        self.lists = recycle(lists);
        searched?;
        self.top.take(&mut self.hits);
        Ok(())
    }
}

/// Cuts a stage of a query, unless it is short.
fn cut(
    plan: &Arc<Plan>,
    lists: &[Option<ListView<'_>>],
    stage: Stage,
    cutting: &Cutting,
) -> Option<QueryCut> {
    let terms = plan.terms().len();
    let cost_of = |lists: &[Option<ListView<'_>>]| cost_ns(plan, stage, lists.iter().map(size_of));
    let cost_ns = lists.chunks(terms).map(cost_of).sum();
    // Each task would go through all of many terms again.
    if cost_ns < cutting.least_ns || terms > MANY_TERMS {
        return None;
    }
    let mut cut = QueryCut {
        plan: plan.clone(),
        stage,
        runs: Vec::new(),
        docids: Vec::new(),
        blocks: Vec::new(),
        cost_ns,
    };
    let runs = plan.snapshot().generation().runs().iter();
    for (number, (run, lists)) in runs.zip(lists.chunks(terms)).enumerate() {
        if stage == Stage::All {
            cut.by_skips(lists, cutting.skip.max(1));
        } else {
            cut.by_docids(lists, run.documents());
        }
        if cut.docids.len() > cut.runs.last().map_or(0, |&(_, end)| end) {
            cut.runs.push((number, cut.docids.len()));
        }
    }
    (!cut.docids.is_empty()).then_some(cut)
}

impl QueryCut {
    /// Algorithm 4: adds a task for each skip of a run's shortest list, until a longer list ends.
    fn by_skips(&mut self, lists: &[Option<ListView<'_>>], skip: usize) {
        let Some(lists) = lists.iter().copied().collect::<Option<Vec<_>>>() else { return };
        let shortest = (0..lists.len()).min_by_key(|&term| (lists[term].df(), term)).unwrap_or(0);
        let of_shortest = lists[shortest];
        let mut ends = vec![0; lists.len()];
        let mut block = 0;
        let mut least = 0;
        while block < of_shortest.blocks() {
            let next = (block + skip).min(of_shortest.blocks());
            // The last docid of the skip; that of the tail is not known.
            let last = match of_shortest.last_docids().get(next - 1) {
                Some(last) => u32::from_le_bytes(*last),
                None => u32::MAX - 1,
            };
            for (term, list) in lists.iter().enumerate() {
                let (start, end) = if term == shortest {
                    (block, next)
                } else {
                    let start = list.block_of(ends[term], least);
                    let start = start.min(list.full_blocks());
                    (start, (list.block_of(start, last) + 1).min(list.blocks()))
                };
                // The next skip may begin in the block in which this one ends.
                ends[term] = end.saturating_sub(1);
                self.blocks.push(start as u32..end as u32);
            }
            let from = self.blocks.len() - lists.len();
            if self.blocks[from..].iter().any(Range::is_empty) {
                self.blocks.truncate(from);
                return;
            }
            self.docids.push(least..last.saturating_add(1));
            block = next;
            least = last.saturating_add(1);
        }
    }

    /// Adds tasks of about equal work, between borders of blocks of the longest list of a run.
    fn by_docids(&mut self, lists: &[Option<ListView<'_>>], documents: u32) {
        let Some(longest) = lists.iter().flatten().max_by_key(|list| list.df()) else { return };
        let cost = or_cost(lists.iter().map(size_of));
        let tasks = (cost / OR_TASK_NS).ceil().max(1.0) as usize;
        let blocks = longest.full_blocks();
        let step = (blocks / tasks).max(1);
        let mut block = 0;
        let mut least = 0;
        while block + 2 * step <= blocks {
            block += step;
            let end = longest.last_docid(block - 1).saturating_add(1);
            if end > least && end < documents {
                self.docids.push(least..end);
                least = end;
            }
        }
        self.docids.push(least..documents);
    }
}

/// What a list of a run costs by.
#[derive(Clone, Copy)]
struct ListSize {
    postings: f64,
    blocks: f64,
}

fn size_of(list: &Option<ListView<'_>>) -> Option<ListSize> {
    list.map(|list| ListSize { postings: list.df().into(), blocks: list.blocks() as f64 })
}

/// Estimate for a stage of a query in one run, from the sizes of all terms' lists, in nanoseconds.
fn cost_ns(
    plan: &Plan,
    stage: Stage,
    lists: impl Iterator<Item = Option<ListSize>> + Clone,
) -> f64 {
    let candidate_ns = match plan.wanted().algorithm {
        Algorithm::Handed(handed) if handed.finds_all() => handed.candidate_ns(),
        _ => None,
    };
    if stage == Stage::Any {
        return or_cost(lists);
    }
    let postings = lists.clone().map(|list| list.map_or(0.0, |list| list.postings));
    let shortest = postings.fold(f64::INFINITY, f64::min);
    if let Some(ns) = candidate_ns {
        return shortest * ns;
    }
    let terms = lists.clone().count() as f64;
    let blocks: f64 = lists.flatten().map(|list| list.blocks.min(shortest)).sum();
    blocks * BLOCK_NS + shortest * terms * CANDIDATE_NS
}

/// The same for an OR query.
fn or_cost(lists: impl Iterator<Item = Option<ListSize>>) -> f64 {
    lists.flatten().map(|list| list.postings * POSTING_NS).sum()
}

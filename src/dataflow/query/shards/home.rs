//! The home of a query: the worker, of any process, that asks the shards, merges what they find and
//! lays the answer out. Queries go to all workers of all processes in turn, so that this costs as
//! much in every process.
//!
//! The operators of a worker share its home. It holds the queries that are open there; a batch
//! stays open by the messages that are under way, so no operator keeps a capability for it.

use super::messages::{About, CountedTerms, PostedQuery, Question, ShardHits, UnknownTerms};
use super::shares::{Again, Found, first_shard, first_share, parts, with_matches};
use crate::crew::lock;
use crate::dataflow::control::Cause;
use crate::dataflow::query::batch::NumberedQuery;
use crate::dataflow::query::context::{AnswerLayout, Context, number_of};
use crate::dataflow::query::lay_out::{LaidOutAnswer, tell};
use crate::query::engines::engine::Answer;
use crate::query::listing::facets::FoundFacets;
use crate::query::plan::{FieldSpan, Plan, PlanTerm};
use crate::query::reading::lines::Query;
use crate::query::wanted::{Algorithm, Mode, Stage, Wanted};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Document frequencies by term, one for each shard, that a process knows.
#[derive(Debug, Default)]
pub(crate) struct KnownTerms {
    generation: u64,
    dfs: HashMap<String, Arc<[u64]>>,
    bytes: usize,
}

/// Of [`KnownTerms`], beyond which they are forgotten.
const MOST_BYTES: usize = 64 << 20;

impl KnownTerms {
    /// Forgets those of another generation.
    fn are_of(&mut self, generation: u64) {
        if self.generation != generation {
            *self = Self { generation, ..Self::default() };
        }
    }

    fn add(&mut self, term: &str, dfs: Arc<[u64]>) {
        let bytes = term.len() + size_of_val(&*dfs) + 96;
        if self.bytes + bytes > MOST_BYTES {
            *self = Self { generation: self.generation, ..Self::default() };
        }
        self.bytes += bytes;
        self.dfs.insert(term.to_string(), dfs);
    }
}

#[derive(Debug)]
struct OpenTerm {
    text: String,
    times: f64,
    /// In each shard, once they are known.
    dfs: Option<Arc<[u64]>>,
}

/// A query that is open.
#[derive(Debug)]
struct OpenQuery {
    query: NumberedQuery,
    wanted: Wanted,
    came: Instant,
    terms: Vec<OpenTerm>,
    /// Whether documents match that have any of the terms, or all; none if that is not the rule.
    flat: Option<Stage>,
    counted: Vec<CountedTerms>,
    /// The shards that may have matches.
    shards: Vec<usize>,
    found: Found,
    /// The shard that was asked before the others, until these are.
    first: Option<usize>,
    /// Shards that have not answered.
    left: usize,
    /// Whether shards were asked again.
    asked_again: bool,
}

/// See the [module](self).
pub(super) struct Home {
    context: Arc<Context>,
    known: Arc<Mutex<KnownTerms>>,
    /// The number of this worker among all.
    number: u32,
    /// Whether one shard is asked before the others.
    looks_first: bool,
    open: HashMap<u64, OpenQuery>,
}

/// This many queries in a row have one home: their messages travel together.
const ROW: u64 = 64;

/// What the operators of a worker share.
pub(super) type SharedHome = Rc<RefCell<Home>>;

/// What a home does next.
pub(super) enum HomeStep {
    Nothing,
    Count(Vec<UnknownTerms>),
    Ask(Vec<Question>),
    Answer(LaidOutAnswer),
}

/// The home of a query.
pub(super) fn home_of(context: &Context, query: &NumberedQuery) -> u32 {
    let handed = |of: &Query| matches!(of.algorithm, Some(Algorithm::Handed(_)));
    let crosses = matches!(context.layout, AnswerLayout::Text(_))
        && query.waiter.is_none()
        && query.query.as_ref().is_ok_and(|query| !handed(query));
    let processes = if crosses { context.shard.processes } else { 1 };
    (query.number / ROW % (context.workers * processes) as u64) as u32
}

impl Home {
    pub(super) fn new(
        context: &Arc<Context>,
        known: &Arc<Mutex<KnownTerms>>,
        number: usize,
        looks_first: bool,
    ) -> SharedHome {
        let (context, known) = (context.clone(), known.clone());
        let (number, open) = (number as u32, HashMap::new());
        Rc::new(RefCell::new(Self { context, known, number, looks_first, open }))
    }

    /// Takes a query in.
    pub(super) fn take(&mut self, posted: PostedQuery) -> Result<HomeStep, Cause> {
        let came = Instant::now();
        let PostedQuery { place, number, generation, query, waiter, .. } = posted;
        let snapshot = self.context.snapshot_of(generation)?;
        let settings = &snapshot.generation().manifest().settings;
        let listing = query.as_ref().map_or(Ok(None), |query| query.listing(settings))?;
        let query = NumberedQuery { place, number, query, snapshot, listing, came, waiter };
        let Ok(asked) = &query.query else {
            let refused = |query| Ok(self.context.lay_out_refused(query));
            return tell(query, false, refused).map(HomeStep::Answer);
        };
        let wanted = self.context.wanted_of(asked);
        let plan = Plan::of_terms(&query.snapshot, wanted, &asked.text)?;
        let mut known = lock(&self.known);
        known.are_of(generation);
        let open = |(text, term): (&str, &PlanTerm)| OpenTerm {
            text: text.to_string(),
            times: term.times,
            dfs: known.dfs.get(text).cloned(),
        };
        let terms: Vec<OpenTerm> = plan.term_strings().zip(plan.terms()).map(open).collect();
        drop(known);
        let unknown: Vec<String> = unknown_of(&terms).map(|term| term.text.clone()).collect();
        let is_flat = plan.tree().is_none() && plan.span() == FieldSpan::AllText;
        let flat = (is_flat && !terms.is_empty()).then(|| match plan.wanted().mode {
            Mode::And => Stage::All,
            Mode::Or | Mode::AndOr => Stage::Any,
        });
        let (counted, shards, found) = Default::default();
        let open = OpenQuery {
            query,
            wanted,
            came,
            terms,
            flat,
            counted,
            shards,
            found,
            first: None,
            left: 0,
            asked_again: false,
        };
        self.open.insert(number, open);
        if unknown.is_empty() {
            return self.ask(number);
        }
        let count = |process| UnknownTerms {
            worker: self.context.first_of(process),
            home: self.number,
            number,
            generation,
            terms: unknown.clone(),
        };
        Ok(HomeStep::Count((0..self.context.shard.processes).map(count).collect()))
    }

    /// Takes the counts of a shard.
    pub(super) fn count(&mut self, counted: CountedTerms) -> Result<HomeStep, Cause> {
        let number = counted.number;
        let open = self.open.get_mut(&number).ok_or("counts came without their query")?;
        open.counted.push(counted);
        if open.counted.len() < self.context.shard.processes {
            return Ok(HomeStep::Nothing);
        }
        open.counted.sort_unstable_by_key(|counted| counted.process);
        let mut known = lock(&self.known);
        known.are_of(number_of(&open.query.snapshot));
        let unknown = open.terms.iter_mut().filter(|term| term.dfs.is_none());
        for (at, term) in unknown.enumerate() {
            let df = |counted: &CountedTerms| counted.dfs.get(at).copied();
            let dfs: Option<Arc<[u64]>> = open.counted.iter().map(df).collect();
            let dfs = dfs.ok_or("a shard has not counted all terms of a query")?;
            known.add(&term.text, dfs.clone());
            term.dfs = Some(dfs);
        }
        drop(known);
        self.ask(number)
    }

    /// Asks the shards, each for its part of the hits, or one of them before the others.
    fn ask(&mut self, number: u64) -> Result<HomeStep, Cause> {
        let processes = self.context.shard.processes;
        let open = self.open.get_mut(&number).ok_or("a query was lost")?;
        let wanted = open.wanted;
        let counted = open.terms.iter().filter(|term| term.times > 0.0);
        let counted: Vec<&[u64]> = counted.filter_map(|term| term.dfs.as_deref()).collect();
        open.shards = match open.flat {
            Some(stage) => with_matches(&counted, stage == Stage::All, processes),
            None => (0..processes).collect(),
        };
        let of_all = open.query.listing.as_ref().is_some_and(|listing| listing.is_of_all());
        let parts = if of_all { None } else { parts(counted.into_iter(), processes, wanted.k) };
        let asked = (0..processes).map(|process| match &parts {
            Some(parts) => first_share(wanted.k, parts[process]),
            None => wanted.k,
        });
        open.found = Found::new(asked.collect());
        let looks_first = self.looks_first && wanted.mode == Mode::Or && !wanted.count;
        let first = |parts: Vec<f64>| first_shard(&open.shards, &parts, number / ROW);
        open.first = parts.filter(|_| looks_first).map(first);
        let shards = open.first.map_or_else(|| open.shards.clone(), |first| vec![first]);
        let floor = f32::NEG_INFINITY;
        let asked = Again { shards, mode: wanted.mode, whole: true, floor };
        self.send(number, &asked)
    }

    /// Makes the questions to some shards.
    fn send(&mut self, number: u64, again: &Again) -> Result<HomeStep, Cause> {
        let open = self.open.get_mut(&number).ok_or("a query was lost")?;
        open.left = again.shards.len();
        questions(&self.context, self.number, open, again).map(HomeStep::Ask)
    }

    /// Takes what a shard has found.
    pub(super) fn hear(&mut self, found: ShardHits) -> Result<HomeStep, Cause> {
        let number = found.number;
        let open = self.open.get_mut(&number).ok_or("hits came without their query")?;
        open.found.take(found)?;
        open.left = open.left.checked_sub(1).ok_or("a shard has answered twice")?;
        if open.left > 0 {
            return Ok(HomeStep::Nothing);
        }
        if let Some(first) = open.first.take() {
            let rest = open.found.rest(&open.shards, first, open.wanted.k);
            if !rest.shards.is_empty() {
                return self.send(number, &rest);
            }
        }
        if !std::mem::replace(&mut open.asked_again, true)
            && let Some(again) = open.found.again(&open.wanted)
        {
            again.shards.iter().for_each(|&shard| open.found.asked[shard] = open.wanted.k);
            self.context.tally.asked_again.fetch_add(1, Ordering::Relaxed);
            return self.send(number, &again);
        }
        let open = self.open.remove(&number).ok_or("a query was lost")?;
        let context = &self.context;
        let OpenQuery { query, wanted, came, found, .. } = open;
        tell(query, false, |query| Ok(lay_out(context, query, &wanted, came, &found)))
            .map(HomeStep::Answer)
    }
}

fn unknown_of(terms: &[OpenTerm]) -> impl Iterator<Item = &OpenTerm> {
    terms.iter().filter(|term| term.dfs.is_none())
}

/// Questions to some shards.
fn questions(
    context: &Context,
    home: u32,
    open: &OpenQuery,
    again: &Again,
) -> Result<Vec<Question>, Cause> {
    let Wanted { algorithm, syntax, count, .. } = open.wanted;
    let asked = open.query.query.as_ref().map_err(|refused| refused.to_string())?;
    let dfs = |term: &OpenTerm| term.dfs.iter().flat_map(|dfs| dfs.iter()).sum();
    let dfs = open.terms.iter().map(dfs).collect();
    let algorithm = algorithm.name().to_string();
    let generation = number_of(&open.query.snapshot);
    let about = Arc::new(About { generation, syntax, algorithm, dfs, query: asked.for_shards() });
    let question = |&process: &usize| Question {
        worker: context.first_of(process),
        home,
        number: open.query.number,
        k: open.found.asked[process],
        mode: again.mode,
        count: count && again.whole,
        floor: again.floor,
        about: about.clone(),
    };
    Ok(again.shards.iter().map(question).collect())
}

/// Merges what the shards have found, and lays it out.
fn lay_out(
    context: &Context,
    query: NumberedQuery,
    wanted: &Wanted,
    came: Instant,
    found: &Found,
) -> LaidOutAnswer {
    let falls = query.listing.as_ref().and_then(|listing| listing.falls());
    let (merged, any) = found.merge(wanted, falls);
    let stage = |shard: usize| {
        let of = found.hits.get(shard)?.as_ref()?;
        Some(if any { &of.any } else { &of.first })
    };
    let mut facets = FoundFacets::default();
    let mut matching: u64 = 0;
    let mut known = false;
    for of in found.hits.iter().flatten() {
        known |= of.known;
        let stage = if any { &of.any } else { &of.first };
        // Overflow is a wrong message.
        matching = matching.saturating_add(stage.found);
        facets.add(stage.facets.clone());
    }
    let hits = merged.iter().map(|merged| merged.hit).collect();
    let value = |at: usize, shard: usize| stage(shard)?.values.get(at).cloned();
    // None are asked for, or one for each.
    let values: Vec<_> = merged.iter().filter_map(|of| value(of.at, of.shard)).collect();
    let name = |at: usize| {
        let of = merged.get(at);
        let name = of.and_then(|of| Some(stage(of.shard)?.names.get(of.at)));
        Cow::Borrowed(name.unwrap_or_default())
    };
    let matching = wanted.count.then_some(matching);
    let answer = Answer { hits, found: matching, known, facets, ..Answer::default() };
    let NumberedQuery { place, number, query, snapshot, .. } = query;
    context.lay_out((place, number, query), &snapshot, &answer, &values, came.elapsed(), name)
}

//! What all engines have in common: planned queries, the CPU's answers, lists, batches, time.

use super::Args;
use crate::numbers::quantile;
use crate::rows::print;
use crate::threads::{in_turn, threads};
use anyhow::ensure;
use millrace::inside::gpu::{Device, DeviceInfo, ModuleCache, Toolchain};
use millrace::inside::index::TermEntry;
use millrace::inside::papers::{
    AskedPart, DeviceMethod, FoundHits, MethodBatch, MethodDevice, MethodMemory,
};
use millrace::inside::query::{Plan, Planner};
use millrace::{Algorithm, Generation, Hit, Mode, Query, Scoring, Searcher, Snapshot, Wanted};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Instant;

/// Queries before the first one that is timed alone.
const WARM: usize = 64;

/// A term of a query: its lists, run by run.
pub(super) struct PlannedTerm {
    pub(super) entries: Vec<Option<TermEntry>>,
    pub(super) df: u32,
    pub(super) weight: f32,
}

/// A query that has terms of the index.
pub(super) struct PlannedQuery {
    /// Its number among the queries.
    pub(super) number: usize,
    pub(super) plan: Plan,
    pub(super) terms: Vec<PlannedTerm>,
}

impl PlannedQuery {
    fn new(number: usize, plan: Plan) -> Self {
        let len = plan.terms().len();
        let terms = plan.terms().iter().enumerate().map(|(t, term)| PlannedTerm {
            entries: plan.lists().iter().skip(t).step_by(len).copied().collect(),
            df: term.df,
            weight: term.weight.factor(),
        });
        Self { number, terms: terms.collect(), plan }
    }

    /// Its terms, as a method asks for them.
    pub(super) fn asked(&self) -> Vec<AskedPart> {
        AskedPart::of_plan(&self.plan)
    }

    pub(super) fn postings(&self) -> u64 {
        self.terms.iter().map(|term| u64::from(term.df)).sum()
    }
}

/// An index, queries about it, and the devices that are asked.
pub(super) struct PreparedBench<'a> {
    pub(super) args: &'a Args,
    pub(super) queries: &'a [Query],
    pub(super) snapshot: Arc<Snapshot>,
    beside: Arc<Snapshot>,
    pub(super) planned: Vec<PlannedQuery>,
    pub(super) devices: Vec<DeviceInfo>,
    pub(super) toolchain: Toolchain,
}

impl<'a> PreparedBench<'a> {
    /// Plans the queries that have as many distinct terms as is said, all of them in the index; and
    /// documents with all of them, where these are wanted.
    pub(super) fn new(
        args: &'a Args,
        queries: &'a [Query],
        scoring: Scoring,
        wanted: Wanted,
        most_terms: usize,
    ) -> anyhow::Result<Self> {
        let snapshot = Snapshot::new(Generation::open(&args.index)?, scoring.clone())?;
        if wanted.algorithm.is_for_global_order() {
            snapshot.check_global()?;
        }
        let beside = match &args.beside {
            Some(index) => Snapshot::new(Generation::open(index)?, scoring)?,
            None => snapshot.clone(),
        };
        let begin = || Ok((Planner::default(), Searcher::new()));
        let all = in_turn(threads(), begin, |(planner, searcher), number| {
            let Some(query) = queries.get(number) else { return Ok(None) };
            let least = args.least_hits;
            let mut plan = planner.plan(&snapshot, Wanted { k: least, ..wanted }, &query.text)?;
            let fits = (args.terms.0..=args.terms.1.min(most_terms)).contains(&plan.terms().len())
                && plan.terms().iter().all(|term| term.df > 0)
                && (wanted.mode != Mode::And || searcher.answer(&plan)?.len() >= least);
            plan.want(wanted);
            Ok(Some(fits.then(|| PlannedQuery::new(number, plan))))
        })?;
        let planned: Vec<PlannedQuery> = all.into_iter().flatten().collect();
        ensure!(!planned.is_empty(), "no query has terms of the index, as many as --terms says");
        let (devices, toolchain) = Toolchain::of_machine(ModuleCache::of_user())?;
        Ok(Self { args, queries, snapshot, beside, planned, devices, toolchain })
    }

    pub(super) fn device(&self, number: usize) -> anyhow::Result<Device> {
        Ok(Device::open(&self.devices[number], 1)?)
    }

    /// A device that answers batches of this many queries by a method, by its number. Most ask for
    /// the best k, and this many bytes of lists travel with a batch at most, or as many as is
    /// usual; none is there yet.
    pub(super) fn open<M: DeviceMethod>(
        &self,
        number: usize,
        queries: usize,
        k: usize,
        travelling: Option<u64>,
    ) -> anyhow::Result<MethodDevice<M>> {
        let memory = MethodMemory { lists: self.args.gpu_memory, travelling, queries, k };
        let device = self.device(number)?;
        let toolchain = &self.toolchain;
        Ok(MethodDevice::open(device, toolchain, &self.snapshot, memory, threads())?)
    }

    /// Prints what there is, and what an engine says of its lists.
    pub(super) fn load(&self, row: &str, device: &Device, lists: Value) -> anyhow::Result<()> {
        let postings: u64 = self.planned.iter().map(PlannedQuery::postings).sum();
        let row = json!({
            "row": row, "device": device.info().to_string(),
            "documents": self.snapshot.norms().len(), "queries": self.planned.len(),
            "postings_per_query": postings / self.planned.len() as u64,
        });
        print(with(row, lists))
    }

    /// What queries take on the CPU: by an algorithm in the index that the device has, and by the
    /// best one in the index that suits the CPU best; in microseconds, on one core, which has at
    /// most this many of them, and on all cores.
    pub(super) fn beside(
        &self,
        asked: &[&PlannedQuery],
        wanted: Wanted,
        alone: usize,
    ) -> anyhow::Result<Value> {
        let best = Wanted { algorithm: Algorithm::Auto, ..wanted };
        let mut row = json!({"cpu": wanted.algorithm.name()});
        for (name, wanted, snapshot) in
            [("cpu", wanted, &self.snapshot), ("best", best, &self.beside)]
        {
            let mut planner = Planner::default();
            let plan =
                |of: &&PlannedQuery| planner.plan(snapshot, wanted, &self.queries[of.number].text);
            let plans = asked.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
            let all: Vec<&Plan> = plans.iter().collect();
            let some: Vec<&Plan> = plans.iter().step_by(plans.len().div_ceil(alone)).collect();
            // The first time is left out: lists come from wherever they are.
            answer_all(&all, threads())?;
            row[format!("{name}_all_cores_us")] = answer_all(&all, threads())?.into();
            row[format!("{name}_one_core_us")] = answer_all(&some, 1)?.into();
        }
        let form = self.beside.generation().runs()[0].postings_header().form;
        row["best"] = format!("auto, {}", form.name()).into();
        Ok(row)
    }

    /// At most this many of the queries, spread over all.
    pub(super) fn some(&self, count: usize) -> Vec<&PlannedQuery> {
        self.planned.iter().step_by(self.planned.len().div_ceil(count.max(1))).collect()
    }

    /// The queries whose answers are compared.
    pub(super) fn sample(&self) -> Vec<&PlannedQuery> {
        self.some(self.args.sample)
    }

    /// Prints how many answers are not those of the CPU, and a query that has such a one.
    pub(super) fn compare(
        &self,
        row: Value,
        sample: &[&PlannedQuery],
        found: &[Vec<Hit>],
        expected: &[Vec<Hit>],
    ) -> anyhow::Result<()> {
        let bits = |hit: &Hit| (hit.docid, hit.score.to_bits());
        let differ =
            |&number: &usize| !found[number].iter().map(bits).eq(expected[number].iter().map(bits));
        let wrong: Vec<usize> = (0..sample.len()).filter(differ).collect();
        let text = wrong.first().map(|&number| &*self.queries[sample[number].number].text);
        let more = json!({"queries": found.len(), "wrong": wrong.len(), "such_as": text});
        print(with(row.clone(), more))?;
        ensure!(wrong.is_empty(), "{} answers differ from the CPU's: {row}", wrong.len());
        Ok(())
    }
}

pub(super) fn with(mut row: Value, more: Value) -> Value {
    if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
        row.extend(more);
    }
    row
}

/// The same queries, of which something else is wanted.
pub(super) fn wanting<'a>(
    plans: impl IntoIterator<Item = &'a PlannedQuery>,
    wanted: Wanted,
) -> Vec<Plan> {
    let mut plans: Vec<Plan> = plans.into_iter().map(|planned| planned.plan.clone()).collect();
    plans.iter_mut().for_each(|plan| plan.want(wanted));
    plans
}

/// Answers queries by this many threads of the CPU; returns the microseconds of a query.
pub(super) fn answer_all(plans: &[&Plan], threads: usize) -> anyhow::Result<f64> {
    let start = Instant::now();
    let begin = || Ok(Searcher::new());
    in_turn(threads, begin, |searcher, number| {
        let Some(plan) = plans.get(number) else { return Ok(None) };
        std::hint::black_box(searcher.answer(plan)?);
        Ok(Some(()))
    })?;
    Ok(1e6 * start.elapsed().as_secs_f64() / plans.len().max(1) as f64)
}

/// The answers of the CPU's exhaustive search, by all its threads.
pub(super) fn expected(
    sample: &[&PlannedQuery],
    mode: Mode,
    k: u32,
) -> anyhow::Result<Vec<Vec<Hit>>> {
    let wanted =
        Wanted { k: k as usize, mode, algorithm: Algorithm::Exhaustive, ..Wanted::default() };
    let plans = wanting(sample.iter().copied(), wanted);
    in_turn(
        threads(),
        || Ok(Searcher::new()),
        |searcher, number| {
            let Some(plan) = plans.get(number) else { return Ok(None) };
            Ok(Some(searcher.answer(plan)?.to_vec()))
        },
    )
}

/// Where the lists of a term begin, run by run.
pub(super) type TermOffsets = Vec<Option<u64>>;

fn key(term: &PlannedTerm) -> TermOffsets {
    term.entries.iter().map(|entry| entry.map(|entry| entry.offset)).collect()
}

/// The lists of all terms, each once, the longest first.
pub(super) fn distinct(planned: &[PlannedQuery]) -> Vec<(TermOffsets, &PlannedTerm)> {
    let mut lists: HashMap<TermOffsets, &PlannedTerm> = HashMap::new();
    for term in planned.iter().flat_map(|query| &query.terms) {
        lists.entry(key(term)).or_insert(term);
    }
    let mut lists: Vec<(TermOffsets, &PlannedTerm)> = lists.into_iter().collect();
    lists.sort_by_key(|(_, term)| std::cmp::Reverse(term.df));
    lists
}

/// All lists of the queries, in the memory of a device.
pub(super) struct DeviceLists<P> {
    places: HashMap<TermOffsets, (u64, P)>,
    bytes: u64,
}

impl<P: Copy> DeviceLists<P> {
    /// Of each list its key, where it is, what is known of it, and its bytes.
    pub(super) fn new(made: Vec<(TermOffsets, u64, P, u64)>) -> Self {
        let bytes = made.iter().map(|(.., bytes)| bytes).sum();
        let places = made.into_iter().map(|(key, at, place, _)| (key, (at, place)));
        Self { places: places.collect(), bytes }
    }

    pub(super) fn at(&self, term: &PlannedTerm) -> (u64, P) {
        self.places[&key(term)]
    }

    /// What is reported of them, with the seconds since they were begun.
    pub(super) fn row(&self, start: Instant) -> Value {
        json!({
            "lists": self.places.len(), "bytes": self.bytes,
            "load_s": start.elapsed().as_secs_f64(),
        })
    }
}

/// Batches of at most this many queries: each query goes into the last one, if that has room for
/// it.
pub(super) fn batches<D, B, Q>(
    device: &mut D,
    queries: impl IntoIterator<Item = Q>,
    size: usize,
    empty: impl Fn(&D) -> B,
    mut add: impl FnMut(&mut D, &mut B, &Q) -> anyhow::Result<bool>,
) -> anyhow::Result<Vec<B>> {
    let mut batches: Vec<B> = Vec::new();
    let mut len: usize = 0;
    for query in queries {
        let has_room = match batches.last_mut() {
            Some(last) if len < size => add(device, last, &query)?,
            _ => false,
        };
        if !has_room {
            let mut next = empty(device);
            ensure!(add(device, &mut next, &query)?, "a query has no room in a batch");
            batches.push(next);
            len = 0;
        }
        len += 1;
    }
    Ok(batches)
}

/// Finished batches of at most this many queries for the best k, to be answered by a method.
pub(super) fn batches_of<M: DeviceMethod>(
    device: &mut MethodDevice<M>,
    how: M,
    all_terms: bool,
    queries: impl IntoIterator<Item = Vec<AskedPart>>,
    k: u32,
    size: usize,
) -> anyhow::Result<Vec<MethodBatch<M>>> {
    let empty = |device: &MethodDevice<M>| device.batch(how, all_terms);
    let mut made = batches(device, queries, size, empty, |device, batch, terms| {
        Ok(device.add(batch, terms, k, 0..u32::MAX)?)
    })?;
    made.iter_mut().for_each(MethodBatch::finish);
    Ok(made)
}

/// The hits of queries that are answered as a whole.
pub(super) fn hits(found: Vec<FoundHits>) -> impl Iterator<Item = Vec<Hit>> {
    found.into_iter().map(|found| found.hits)
}

/// What queries of a device come to.
#[derive(Clone, Copy, Default)]
pub(super) struct AnswerTimes {
    pub(super) queries: f64,
    /// From the launch of the batch that a query is in to its hits.
    pub(super) latency_s: f64,
    pub(super) device_ms: f64,
    /// Until batches were there, if that is measured.
    pub(super) prepare_s: f64,
    /// Of the wall clock.
    pub(super) seconds: f64,
}

impl AddAssign for AnswerTimes {
    fn add_assign(&mut self, other: Self) {
        self.queries += other.queries;
        self.latency_s += other.latency_s;
        self.device_ms += other.device_ms;
        self.prepare_s += other.prepare_s;
    }
}

impl AnswerTimes {
    /// Answers a batch of this many queries; `answer` returns the milliseconds of the device.
    pub(super) fn of(
        queries: usize,
        answer: impl FnOnce() -> anyhow::Result<f32>,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let queries = queries as f64;
        let device_ms = f64::from(answer()?);
        let latency_s = queries * start.elapsed().as_secs_f64();
        Ok(Self { queries, latency_s, device_ms, ..Self::default() })
    }

    pub(super) fn us(&self) -> f64 {
        1e6 * self.seconds / self.queries
    }

    pub(super) fn device_us(&self) -> f64 {
        1e3 * self.device_ms / self.queries
    }
}

/// The sum of passes behind one that does not count: at least one, and for this many seconds.
pub(super) fn passes(
    seconds: f64,
    mut pass: impl FnMut() -> anyhow::Result<AnswerTimes>,
) -> anyhow::Result<AnswerTimes> {
    pass()?;
    let mut all = AnswerTimes::default();
    let start = Instant::now();
    while all.seconds == 0.0 || all.seconds < seconds {
        all += pass()?;
        all.seconds = start.elapsed().as_secs_f64();
    }
    Ok(all)
}

/// Microseconds of each query, one after the other; the first ones are answered before, too.
pub(super) fn alone<Q>(
    queries: &[Q],
    mut answer: impl FnMut(&Q) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<f64>> {
    queries.iter().take(WARM).try_for_each(&mut answer)?;
    let mut micros = Vec::with_capacity(queries.len());
    for query in queries {
        let start = Instant::now();
        answer(query)?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(micros)
}

/// The median and the 99th percentile.
pub(super) fn spread(micros: &[f64]) -> [f64; 2] {
    let mut sorted = micros.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    [0.5, 0.99].map(|q| quantile(&sorted, q))
}

/// Whether a device has this many bytes of shared memory; says so if not.
pub(super) fn has_room(needs: u32, room: u32, what: &str, count: u32) -> bool {
    if needs > room {
        eprintln!(
            "{count} {what} are left out: they need {needs} bytes of shared memory, not {room}"
        );
    }
    needs <= room
}

type EngineExperiment<B> = fn(&mut B) -> anyhow::Result<()>;

pub(super) fn run_wanted<B>(
    args: &Args,
    bench: &mut B,
    experiments: &[(&str, EngineExperiment<B>)],
) -> anyhow::Result<()> {
    for (name, experiment) in experiments {
        if args.wants(name) {
            experiment(bench)?;
        }
    }
    Ok(())
}

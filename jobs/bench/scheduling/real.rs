//! Streams of queries through real engines: what the simulation says of these, beside it.
//!
//! A sample of the queries is measured one by one; a model learns from three quarters of it, and the rest is the
//! stream. Each schedule has a query job of its own, with the dataflow of `millrace query`.

use super::super::rig::{Rig, stretched};
use super::super::rows::print;
use super::{Args, Bench};
use crate::query::gpus;
use anyhow::Context as _;
use millrace::gpu::query::choose::Devices;
use millrace::query::engines::engine::hybrid::{Predict, Scheduling};
use millrace::query::engines::engine::measure::costs;
use millrace::query::engines::engine::whole::WholeEngines;
use millrace::query::engines::engine::{Engines, Wakers};
use millrace::query::plan::{Plan, Planner};
use millrace::query::reading::lines::Query;
use millrace::query::snapshot::Snapshot;
use millrace::schedule::features::{Cost, CostModel, Features};
use millrace::schedule::policy::{Policy, Processor};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Which lists a query reads.
type Key = Vec<Option<u64>>;

fn key(plan: &Plan) -> Key {
    plan.lists().iter().map(|list| list.map(|list| list.offset)).collect()
}

/// A sample of queries with what they cost, and what they are to be answered by.
pub(super) struct Measured {
    snapshot: Arc<Snapshot>,
    devices: Devices,
    queries: Vec<(Query, Key)>,
    pub(super) costs: Vec<Cost>,
}

/// Measures a sample of the queries.
pub(super) fn measure(args: &Args) -> anyhow::Result<Measured> {
    let Args { ranking, place, .. } = args;
    let devices = place.chosen(ranking.k, ranking.algorithm)?;
    let snapshot = ranking.open_for_any()?;
    let queries = super::super::all_queries(args.input.as_deref())?;
    let step = queries.len().div_ceil(args.sample.max(1)).max(1);
    let (mut planner, mut plans, mut sampled) = (Planner::default(), Vec::new(), Vec::new());
    for query in queries.into_iter().step_by(step) {
        let plan = planner.plan(&snapshot, ranking.wanted(), &query.text)?;
        if plan.known() {
            sampled.push((query, key(&plan)));
            plans.push(plan);
        }
    }
    let engines = gpus::open(&devices, &snapshot, &Wakers::new(1), false, &Arc::default())?;
    let costs = costs(&mut *engines.engine(0, &snapshot)?, &plans)?;
    Ok(Measured { snapshot, devices, queries: sampled, costs })
}

/// What a stream came to.
struct Row {
    /// Queries a second that were answered.
    rate: f64,
    /// Seconds, in the order of the queries.
    latencies: Vec<f64>,
}

impl Row {
    fn sorted(mut self) -> Vec<f64> {
        self.latencies.sort_unstable_by(f64::total_cmp);
        self.latencies
    }
}

/// Real runs of the queries behind the first of them.
pub(super) struct Real<'a> {
    bench: &'a Bench<'a>,
    measured: &'a Measured,
    queries: Vec<&'a Query>,
    /// Of these queries.
    costs: &'a [Cost],
    predict: Predict,
    known: Predict,
}

impl<'a> Real<'a> {
    pub(super) fn new(
        bench: &'a Bench<'a>,
        measured: &'a Measured,
        (first, model): (usize, &CostModel),
    ) -> Self {
        let costs: HashMap<Key, Cost> = measured
            .queries
            .iter()
            .map(|(_, key)| key.clone())
            .zip(measured.costs.iter().copied())
            .collect();
        let model = model.clone();
        let predict: Predict = Arc::new(move |plan| {
            model.costs(&Features::of(plan.terms().iter().map(|term| term.df)))
        });
        let learned = predict.clone();
        let known: Predict = Arc::new(move |plan| match costs.get(&key(plan)) {
            Some(cost) => cost.known(),
            None => learned(plan),
        });
        let queries = measured.queries[first..].iter().map(|(query, _)| query).collect();
        Self { bench, measured, queries, costs: &measured.costs[first..], predict, known }
    }

    /// A query job by a schedule; `cpu` and `gpu` are engines without a scheduler.
    fn start(&self, policy: Policy, known: bool) -> anyhow::Result<Rig> {
        let Measured { snapshot, devices, .. } = self.measured;
        let (args, mut failed) = (self.bench.args, None);
        let workers = self.bench.machine.threads;
        let open = |wakers: &Arc<Wakers>| -> anyhow::Result<Box<dyn Engines>> {
            if policy == Policy::Only(Processor::Cpu) {
                return Ok(Box::new(WholeEngines));
            }
            let engines = gpus::open(devices, snapshot, wakers, false, &Arc::default())?;
            if policy == Policy::Only(Processor::Device) {
                return Ok(Box::new(engines));
            }
            let predict = if known { &self.known } else { &self.predict }.clone();
            let deadline = args.place.deadline();
            let scheduling = Scheduling {
                policy,
                deadline,
                shed: false,
                predict,
                on_slow: None,
                shares: Arc::default(),
            };
            Ok(Box::new(devices.schedule(engines, scheduling, wakers)?))
        };
        let workers = match policy {
            Policy::Only(Processor::Device) => devices.workers(false, workers),
            _ => workers,
        };
        let engines = |wakers: &Arc<Wakers>| {
            open(wakers).unwrap_or_else(|error| {
                failed = Some(error);
                Box::new(WholeEngines)
            })
        };
        let first: Vec<Query> = self.queries.iter().map(|query| (*query).clone()).collect();
        let rig = Rig::start_with((snapshot, args.ranking.wanted()), engines, workers, &first);
        match failed {
            Some(error) => Err(error),
            None => rig,
        }
    }

    fn run(&self, rig: &mut Rig, rate: f64, seconds: f64, most: usize) -> anyhow::Result<Row> {
        let count = if rate.is_finite() { ((rate * seconds) as usize).max(50) } else { most };
        let queries: Vec<&Query> = self.queries.iter().copied().cycle().take(count).collect();
        let times = match &self.bench.arrivals {
            _ if rate.is_infinite() => vec![0.0; count],
            Some(times) => stretched(times, rate, count),
            None => super::poisson(rate, count),
        };
        let timings = rig.run(&queries, times)?;
        let latencies = timings.latencies.iter().map(|us| us / 1e6).collect();
        Ok(Row { rate: timings.queries_per_s, latencies })
    }

    /// All queries at once, streams at rising rates, and the highest rate at which none is late.
    pub(super) fn schedule(
        &self,
        (name, policy, known): (&str, Policy, bool),
        rates: &[f64],
    ) -> anyhow::Result<()> {
        let args = self.bench.args;
        let mut rig = self.start(policy, known).with_context(|| name.to_owned())?;
        // The first run brings lists to devices; the second says how many queries are a second's.
        let mut at_once = self.run(&mut rig, f64::INFINITY, 0.0, self.queries.len())?;
        for _ in 0..2 {
            let count = ((at_once.rate * args.seconds) as usize).clamp(200, 1 << 19);
            at_once = self.run(&mut rig, f64::INFINITY, 0.0, count)?;
        }
        print(json!({
            "row": "together", "run": "real", "schedule": name, "queries": at_once.latencies.len(),
            "queries_per_s": at_once.rate, "us_per_query": 1e6 / at_once.rate,
        }))?;
        if args.at_once {
            return rig.end();
        }
        self.light(&mut rig, name)?;
        let deadline = args.place.deadline().as_secs_f64();
        let (mut good, mut bad) = (0.0_f64, f64::INFINITY);
        for &rate in rates {
            let latencies = self.run(&mut rig, rate, args.seconds, 0)?.sorted();
            print(self.bench.load(("real", name), rate, &latencies))?;
            match self.bench.missed(&latencies) {
                0 if rate < bad => good = good.max(rate),
                0 => {}
                _ => bad = bad.min(rate),
            }
            if super::super::mean(&latencies) > 2.0 * deadline {
                break;
            }
        }
        // A queue that grows has to be seen: some deadlines at least.
        let seconds = args.seconds.max(4.0 * deadline);
        for _ in 0..PROBES {
            let rate = match bad {
                f64::INFINITY => at_once.rate.max(1.2 * good),
                bad => (good + bad) / 2.0,
            };
            let latencies = self.run(&mut rig, rate, seconds, 0)?.sorted();
            match self.bench.missed(&latencies) {
                0 => good = rate,
                _ => bad = rate,
            }
        }
        print(self.bench.highest(("real", name), good))?;
        rig.end()
    }

    /// Each query once, so seldom that they hardly meet.
    fn light(&self, rig: &mut Rig, name: &str) -> anyhow::Result<()> {
        let cpu = super::super::mean(&self.costs.iter().map(|it| it.alone[0]).collect::<Vec<_>>());
        let rate = LIGHT * self.bench.machine.threads as f64 / cpu;
        let row = self.run(rig, rate, self.costs.len() as f64 / rate, 0)?;
        let of = |at: usize| self.costs[at % self.costs.len()].features.blocks;
        let mut by_blocks: Vec<usize> = (0..row.latencies.len()).collect();
        by_blocks.sort_by_key(|&at| of(at));
        for class in by_blocks.chunks(by_blocks.len().div_ceil(CLASSES)) {
            let latencies: Vec<f64> = class.iter().map(|&at| row.latencies[at]).collect();
            print(json!({
                "row": "light", "run": "real", "schedule": name, "queries_per_s": rate, "queries": class.len(),
                "blocks": [of(class[0]), of(class[class.len() - 1])], "mean_ms": 1e3 * super::super::mean(&latencies),
            }))?;
        }
        Ok(())
    }
}

/// Classes of queries at light load.
const CLASSES: usize = 5;

/// The part of what all threads can do that is light load.
const LIGHT: f64 = 0.02;

/// Rates that are tried to find the highest.
const PROBES: usize = 5;

//! Streams of queries through real engines: what the simulation says of these, beside it.
//!
//! A sample of the queries is measured one by one; a model learns from three quarters of it, and
//! the rest is the stream. Each schedule has a query job of its own, with the dataflow of `millrace
//! query`.

use super::{Args, Scheduled, SchedulingBench};
use crate::args::explain;
use crate::rig::{Rig, Timings};
use crate::rows::print;
use anyhow::Context as _;
use millrace::inside::gpu::{Devices, GpuEngines, OnLost};
use millrace::inside::papers::{
    Cost, CostModel, Features, Hybrid, Policy, Predict, Processor, Scheduling, costs,
};
use millrace::inside::query::{Engines, Planner, Wakers, WholeEngines};
use millrace::inside::shown::chain;
use millrace::{Query, Snapshot};
use serde_json::json;
use std::sync::Arc;

/// A sample of queries with what they cost, and what they are to be answered by.
pub(super) struct MeasuredSample {
    snapshot: Arc<Snapshot>,
    devices: Devices,
    queries: Vec<Query>,
    pub(super) costs: Vec<Cost>,
}

pub(super) fn measure(args: &Args) -> anyhow::Result<MeasuredSample> {
    let devices = args.devices()?;
    let snapshot = args.ranking.open()?;
    let queries = crate::args::all_queries(args.input.as_deref())?;
    let step = queries.len().div_ceil(args.sample.max(1)).max(1);
    let mut planner = Planner::default();
    let mut plans = Vec::new();
    let mut sampled = Vec::new();
    for query in queries.into_iter().step_by(step) {
        let plan = planner.plan(&snapshot, args.ranking.wanted(), &query.text)?;
        if plan.known() {
            sampled.push(query);
            plans.push(plan);
        }
    }
    let engines = open(&devices, &snapshot, &Wakers::new(1))?;
    let costs = costs(&mut *engines.engine(0, &snapshot)?, &plans)?;
    Ok(MeasuredSample { snapshot, devices, queries: sampled, costs })
}

/// Opens devices, and says so if one is lost later.
fn open(
    devices: &Devices,
    snapshot: &Arc<Snapshot>,
    wakers: &Arc<Wakers>,
) -> anyhow::Result<GpuEngines> {
    let on_lost: OnLost = Arc::new(|error| {
        eprintln!("{}; its queries are answered by the CPU from now on", chain(error));
    });
    devices.open(snapshot, wakers, &on_lost, &Arc::default()).map_err(explain)
}

/// Real runs of the queries behind the first of them.
pub(super) struct Real<'a> {
    bench: &'a SchedulingBench<'a>,
    measured: &'a MeasuredSample,
    queries: Vec<&'a Query>,
    predict: Predict,
}

impl<'a> Real<'a> {
    pub(super) fn new(
        bench: &'a SchedulingBench<'a>,
        measured: &'a MeasuredSample,
        first: usize,
        model: &CostModel,
    ) -> Self {
        let model = model.clone();
        let predict: Predict = Arc::new(move |plan| {
            model.costs(&Features::of(plan.terms().iter().map(|term| term.df)))
        });
        let queries = measured.queries[first..].iter().collect();
        Self { bench, measured, queries, predict }
    }

    /// A query job by a schedule; `cpu` and `gpu` are engines without a scheduler.
    fn start(&self, policy: Policy) -> anyhow::Result<Rig> {
        let MeasuredSample { snapshot, devices, .. } = self.measured;
        let args = self.bench.args;
        let mut failed = None;
        let workers = self.bench.machine.threads;
        let open = |wakers: &Arc<Wakers>| -> anyhow::Result<Box<dyn Engines>> {
            if policy == Policy::Only(Processor::Cpu) {
                return Ok(Box::new(WholeEngines));
            }
            let engines = open(devices, snapshot, wakers)?;
            if policy == Policy::Only(Processor::Device) {
                return Ok(Box::new(engines));
            }
            let scheduling = Scheduling {
                policy,
                deadline: args.deadline(),
                shed: false,
                predict: self.predict.clone(),
                on_slow: None,
                shares: Arc::default(),
            };
            let engines = Box::new(engines);
            Ok(Box::new(Hybrid::new(engines, devices.number(), scheduling, wakers)?))
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
        let wanted = args.ranking.wanted();
        let rig = Rig::start(snapshot, wanted, engines, workers, &self.queries);
        failed.map_or(rig, Err)
    }

    /// Has this many queries answered at a rate.
    fn run(&self, rig: &mut Rig, rate: f64, count: usize) -> anyhow::Result<Timings> {
        let queries: Vec<&Query> = self.queries.iter().copied().cycle().take(count).collect();
        let times = if rate.is_finite() { super::poisson(rate, count) } else { vec![0.0; count] };
        rig.run(&queries, times)
    }

    /// Sorted latencies, in seconds, of a stream that is this many seconds long.
    fn stream(&self, rig: &mut Rig, rate: f64, seconds: f64) -> anyhow::Result<Vec<f64>> {
        let timings = self.run(rig, rate, ((rate * seconds) as usize).max(50))?;
        let mut latencies: Vec<f64> = timings.latencies.iter().map(|us| us / 1e6).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        Ok(latencies)
    }

    /// All queries at once, streams at rising rates, and the highest rate at which none is late.
    pub(super) fn schedule(&self, (name, policy): &Scheduled) -> anyhow::Result<()> {
        let args = self.bench.args;
        let mut rig = self.start(*policy).with_context(|| name.to_owned())?;
        // The first run brings lists to devices; the second says how many queries are a second's.
        let mut at_once = self.run(&mut rig, f64::INFINITY, self.queries.len())?;
        for _ in 0..2 {
            let count = ((at_once.queries_per_s * args.seconds) as usize).clamp(200, 1 << 19);
            at_once = self.run(&mut rig, f64::INFINITY, count)?;
        }
        let at_once_rate = at_once.queries_per_s;
        print(json!({
            "row": "together", "run": "real", "schedule": name, "queries": at_once.latencies.len(),
            "distinct": self.queries.len(), "queries_per_s": at_once_rate,
        }))?;
        let mut good = 0.0_f64;
        let mut bad = f64::INFINITY;
        for rate in SchedulingBench::rates(at_once_rate) {
            let latencies = self.stream(&mut rig, rate, args.seconds)?;
            self.bench.print_load("real", name, rate, &latencies)?;
            match self.bench.missed(&latencies) {
                0 if rate < bad => good = good.max(rate),
                0 => {}
                _ => bad = bad.min(rate),
            }
            if crate::numbers::mean(&latencies) > 2.0 * self.bench.deadline {
                break;
            }
        }
        // A queue that grows has to be seen: some deadlines at least.
        let seconds = args.seconds.max(4.0 * self.bench.deadline);
        let above = |good: f64| at_once_rate.max(1.2 * good);
        let sorted = |rate| self.stream(&mut rig, rate, seconds);
        let highest = self.bench.highest(PROBES, good, bad, above, sorted)?;
        self.bench.print_highest("real", name, highest)?;
        rig.end()
    }
}

/// Rates that are tried to find the highest.
const PROBES: usize = 5;

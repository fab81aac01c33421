//! `millrace bench scheduling`: how would streams of queries fare under each schedule? The experiments of `ding09`, section 9
//! (figure 7), and `huang`, section 3.2 (figure 6, table 2), simulated with costs that `millrace calibrate --costs` has
//! measured: on any machine, at rates that a run would take hours for.
//!
//! A model learns from the first three quarters of the queries; the others are the stream, again and again, as in
//! the paper (3,000 and 1,000). Rows:
//!
//! | row | |
//! | --- | --- |
//! | model | errors of the predictions, of queries that nothing was learned from |
//! | load | latency and missed deadlines at a rate of Poisson arrivals |
//! | highest | the highest rate at which no query misses its deadline |
//! | together | seconds of all queries that are there at once, as a part of those of `sd` |
//!
//! A name followed by `, known` is the same schedule with costs that are known: an oracle.

use anyhow::{Context as _, ensure};
use millrace::schedule::features::{Cost, CostModel, Costs};
use millrace::schedule::model_tree::ModelTree;
use millrace::schedule::policy::Policy;
use millrace::schedule::simulate::{Arrival, Machine, latencies};
use serde_json::{Value, json};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use synthetic::arrivals::Poisson;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Threads of the CPU that answer queries (default: all cores).
    #[arg(short = 'w', long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Devices.
    #[arg(long, default_value = "1", value_name = "N")]
    gpus: NonZeroUsize,
    /// Schedules, such as ding09,lbd:30000.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(default_value = "cpu,gpu,best-serial,best,sd,ding09")]
    schedules: Vec<String>,
    /// Answers have to be there after so many milliseconds.
    #[arg(long, default_value_t = 500.0, value_name = "MS")]
    deadline_ms: f64,
    /// Queries of a stream; more where these would come in less than ten deadlines.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    queries: usize,
    /// Rates, in queries a second (default: parts of what all processors together could do).
    #[arg(long, value_name = "R,...", value_delimiter = ',')]
    rates: Vec<f64>,
    /// Blocks below which queries go to devices, for the rows of lbd (default: 16 that cut the queries evenly).
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    thresholds: Vec<u64>,
    /// What queries cost: the file that `millrace calibrate --costs` has written.
    #[arg(value_name = "COSTS")]
    costs: PathBuf,
}

struct Bench<'a> {
    args: &'a Args,
    stream: Vec<(Cost, Costs)>,
    machine: Machine,
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(&args.costs).with_context(|| args.costs.display().to_string())?;
    let costs = text.lines().enumerate().map(|(at, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{}: line {}", args.costs.display(), at + 1))
    });
    let costs = costs.collect::<anyhow::Result<Vec<Cost>>>()?;
    let (learned, stream) = costs.split_at(costs.len() * 3 / 4);
    let model = CostModel::learn(learned).context("too few queries, or one that took no time")?;
    ensure!(!stream.is_empty(), "too few queries");
    let errors = |kind: usize, tree: &ModelTree| {
        tree.errors(&stream.iter().map(|cost| cost.example(kind)).collect::<Vec<_>>())
    };
    print(json!({
        "row": "model", "learned_from": learned.len() - learned.len() / 4, "queries": stream.len(),
        "cpu": errors(0, &model.cpu), "device": errors(1, &model.device), "paper": {"cpu": 0.20, "device": 0.22},
        "leaves": [model.cpu.leaves(), model.device.leaves()],
    }))?;
    let stream = stream.iter().map(|cost| (*cost, model.costs(&cost.features))).collect();
    let threads = args.workers.or_else(|| std::thread::available_parallelism().ok());
    let machine =
        Machine { threads: threads.map_or(1, NonZeroUsize::get), devices: args.gpus.get() };
    let bench = Bench { args, stream, machine };
    for name in &args.schedules {
        let policy: Policy = name.parse().map_err(crate::Usage)?;
        bench.by_load(name, policy, false)?;
        if policy == Policy::Groups {
            bench.by_load(name, policy, true)?;
        }
    }
    bench.together()
}

impl Bench<'_> {
    /// Queries a second that all processors together could do, if each query went to either by its share.
    fn capacity(&self) -> f64 {
        let mean = |kind: usize| {
            self.stream.iter().map(|(cost, _)| cost.seconds[kind]).sum::<f64>()
                / self.stream.len() as f64
        };
        self.machine.threads as f64 / mean(0) + self.machine.devices as f64 / mean(1)
    }

    /// The queries, again and again, at Poisson arrivals; all at once if the rate is infinite. A stream is ten deadlines
    /// long at least: else queues that grow would not be seen.
    fn arrivals(&self, rate: f64, known: bool) -> Vec<Arrival> {
        let least = (rate * self.args.deadline_ms / 100.0) as usize;
        let times: Vec<f64> = match rate.is_finite() {
            true => Poisson::new(7, rate).take(self.args.queries.max(least)).collect(),
            false => vec![0.0; self.args.queries],
        };
        let arrival = |(at, (cost, predicted)): (f64, &(Cost, Costs))| {
            let real = cost.known();
            Arrival { at, predicted: if known { real } else { *predicted }, real }
        };
        times.into_iter().zip(self.stream.iter().cycle()).map(arrival).collect()
    }

    fn at_rate(&self, policy: Policy, rate: f64, known: bool) -> Vec<f64> {
        let deadline = self.args.deadline_ms / 1e3;
        let mut found = latencies(&self.arrivals(rate, known), policy, deadline, self.machine);
        found.sort_unstable_by(f64::total_cmp);
        found
    }

    fn missed(&self, sorted: &[f64]) -> usize {
        sorted.len() - sorted.partition_point(|latency| *latency * 1e3 <= self.args.deadline_ms)
    }

    fn by_load(&self, name: &str, policy: Policy, known: bool) -> anyhow::Result<()> {
        let capacity = self.capacity();
        let name = if known { format!("{name}, known") } else { name.to_owned() };
        let rates = match &self.args.rates[..] {
            [] => (1..=12).map(|part| f64::from(part) * capacity / 10.0).collect(),
            rates => rates.to_vec(),
        };
        for rate in rates {
            let found = self.at_rate(policy, rate, known);
            let at = |part: f64| 1e3 * super::quantile(&found, part);
            print(json!({
                "row": "load", "schedule": name, "queries_per_s": rate, "of_capacity": rate / capacity,
                "mean_ms": 1e3 * super::mean(&found), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99),
                "missed": self.missed(&found),
            }))?;
        }
        let (mut good, mut bad) = (0.0, 2.0 * capacity);
        for _ in 0..14 {
            let rate = (good + bad) / 2.0;
            match self.missed(&self.at_rate(policy, rate, known)) {
                0 => good = rate,
                _ => bad = rate,
            }
        }
        print(json!({
            "row": "highest", "schedule": name, "deadline_ms": self.args.deadline_ms,
            "queries_per_s": good, "of_capacity": good / capacity, "threads": self.machine.threads,
        }))
    }

    /// All queries at once: by threshold, and beside halves.
    fn together(&self) -> anyhow::Result<()> {
        let seconds =
            |policy| *self.at_rate(policy, f64::INFINITY, false).last().expect("there are queries");
        let halves = seconds(Policy::Halves);
        let mut blocks: Vec<u64> =
            self.stream.iter().map(|(cost, _)| cost.features.blocks).collect();
        blocks.sort_unstable();
        let thresholds = match &self.args.thresholds[..] {
            [] => (0..=16).map(|part| blocks[part * (blocks.len() - 1) / 16] + 1).collect(),
            thresholds => thresholds.to_vec(),
        };
        let lbd = thresholds.iter().flat_map(|n| [format!("lbd:{n}"), format!("lbd-reverse:{n}")]);
        for name in lbd.chain(self.args.schedules.iter().cloned()) {
            let took = seconds(name.parse().map_err(crate::Usage)?);
            print(json!({
                "row": "together", "schedule": name, "seconds": took, "of_sd": took / halves,
                "us_per_query": 1e6 * took / self.args.queries as f64,
            }))?;
        }
        Ok(())
    }
}

fn print(row: Value) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{row}")?)
}

//! `millrace bench scheduling`: how do streams of queries fare under each schedule? The experiments of `ding09`, section 9
//! (figure 7), `huang`, section 3.2 (figures 6 and 7, table 2), and `wang`, figure 10 (combined).
//!
//! With the file that `millrace calibrate --costs` has written, streams are simulated: on any machine, at rates that a
//! run would take hours for. With `--index` and queries, a sample of these is measured first; then streams of the rest
//! are simulated, and run through real engines ([`real`]).
//!
//! A model learns from the first three quarters of the queries; the others are the stream, again and again, as in
//! the paper (3,000 and 1,000). Rows, each of a `run` that is `simulated` or `real`:
//!
//! | row | |
//! | --- | --- |
//! | model | errors of the predictions, of queries that nothing was learned from |
//! | load | latency and missed deadlines at a rate of Poisson arrivals, or of others stretched to it |
//! | highest | the highest rate at which no query misses its deadline |
//! | together | seconds of all queries that are there at once, as a part of those of `sd` |
//! | light | mean latency at a rate at which queries hardly meet, by the number of blocks that they read |
//!
//! A name followed by `, known` is the same schedule with costs that are known: an oracle.

mod real;

use super::rig::{read_arrivals, stretched};
use super::rows::print;
use crate::query::gpus::Where;
use crate::query::ranking::Ranking;
use anyhow::{Context as _, ensure};
use millrace::schedule::features::{Cost, CostModel, Costs};
use millrace::schedule::machine::Machine;
use millrace::schedule::model_tree::ModelTree;
use millrace::schedule::policy::{Choice, Policy, Processor, Schedule};
use millrace::schedule::simulate::{Arrival, choose, latencies, thresholds};
use real::{Measured, Real};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use synthetic::arrivals::Poisson;

/// In the place of an index, where there is none.
const NO_INDEX: &str = "-";

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("index", |index| index.required(false).default_value(NO_INDEX).hide_default_value(true)))]
#[command(mut_arg("mode", |mode| mode.default_value("and")))]
pub(crate) struct Args {
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    place: Where,
    /// Threads that answer queries (default: all cores).
    #[arg(short = 'w', long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Schedules, such as ding09,lbd:30000.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(default_value = "cpu,gpu,best-serial,best,sd,lbd,ding09")]
    schedules: Vec<String>,
    /// Number of queries in a simulated stream. It is raised if the stream would be shorter than ten deadlines.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    queries: usize,
    /// Rates, in queries a second (default: parts of what all processors together could do).
    #[arg(long, value_name = "R,...", value_delimiter = ',')]
    rates: Vec<f64>,
    /// Blocks below which queries go to devices, for simulated rows of lbd (default: 17 that cut the queries evenly).
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    thresholds: Vec<u64>,
    /// File of arrival times in seconds, one on each line, in place of random ones. They are scaled to each rate.
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// Queries that are measured at most with --index, taken from all over the file.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    sample: usize,
    /// Seconds of a real stream.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Only all queries at once, no streams.
    #[arg(long)]
    at_once: bool,
    /// Where what the queries of --index cost goes, as JSON lines, for simulations later.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Costs of queries: the file that `millrace calibrate --costs` has written. With --index: queries, as `millrace
    /// query` reads them.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
}

struct Bench<'a> {
    args: &'a Args,
    stream: Vec<(Cost, Costs)>,
    machine: Machine,
    arrivals: Option<Vec<f64>>,
}

fn poisson(rate: f64, count: usize) -> Vec<f64> {
    Poisson::new(7, rate).take(count).collect()
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let is_real = args.ranking.index.as_os_str() != NO_INDEX;
    let measured: Option<Measured> = is_real.then(|| real::measure(args)).transpose()?;
    let costs = match &measured {
        Some(measured) => {
            if let Some(path) = &args.costs {
                crate::calibrate::write(path, &measured.costs)?;
            }
            measured.costs.clone()
        }
        None => read_costs(args)?,
    };
    let first = costs.len() * 3 / 4;
    let (learned, stream) = costs.split_at(first);
    let model = CostModel::learn(learned).context("too few queries, or one that took no time")?;
    ensure!(!stream.is_empty(), "too few queries");
    let errors = |kind: usize, tree: &ModelTree| {
        tree.errors(&stream.iter().map(|cost| cost.example(kind)).collect::<Vec<_>>())
    };
    let threads = args.workers.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let machine = Machine { threads, devices: args.place.gpus().unwrap_or(1) };
    let deadline = args.place.deadline().as_secs_f64();
    let choice = choose(learned, &model, (deadline, machine), || poisson(1.0, 4000));
    let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
    print(json!({
        "row": "model", "learned_from": learned.len() - learned.len() / 4, "queries": stream.len(),
        "cpu": errors(0, &model.cpu), "device": errors(1, &model.device), "paper": {"cpu": 0.20, "device": 0.22},
        "leaves": [model.cpu.leaves(), model.device.leaves()], "threads": threads, "devices": machine.devices,
        "mean_us": {"cpu": 1e6 * mean(|cost| cost.seconds[0]), "device": 1e6 * mean(|cost| cost.seconds[1]), "cpu_alone": 1e6 * mean(|cost| cost.alone[0]), "device_alone": 1e6 * mean(|cost| cost.alone[1])},
        "deadline_ms": 1e3 * deadline, "best": choice.best, "lbd": choice.by_blocks,
    }))?;
    let stream = stream.iter().map(|cost| (*cost, model.costs(&cost.features))).collect();
    let arrivals = args.arrivals.as_deref().map(read_arrivals).transpose()?;
    let bench = Bench { args, stream, machine, arrivals };
    let schedules = bench.schedules(&choice)?;
    if let Some(measured) = &measured {
        let real = Real::new(&bench, measured, (first, &model));
        for (name, policy, known) in &schedules {
            real.schedule((name, *policy, *known), &bench.rates())?;
        }
    }
    if !args.at_once {
        for (name, policy, known) in &schedules {
            bench.by_load(name, *policy, *known)?;
        }
    }
    bench.together(&schedules)
}

fn read_costs(args: &Args) -> anyhow::Result<Vec<Cost>> {
    let path = args.input.as_deref().context("give a file of costs, or --index and queries")?;
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let costs = text.lines().enumerate().map(|(at, line)| {
        serde_json::from_str(line).with_context(|| format!("{}: line {}", path.display(), at + 1))
    });
    costs.collect()
}

impl Bench<'_> {
    /// The schedules by name, and whether costs are known; ding09 with costs that are, too.
    fn schedules(&self, choice: &Choice) -> anyhow::Result<Vec<(String, Policy, bool)>> {
        let mut found = Vec::new();
        for name in &self.args.schedules {
            let schedule: Schedule = name.parse().map_err(crate::Usage)?;
            let policy = schedule.policy(Some(choice)).context("a choice was made")?;
            found.push((name.clone(), policy, false));
            if policy == Policy::Groups && !self.args.at_once {
                found.push((format!("{name}, known"), policy, true));
            }
        }
        Ok(found)
    }

    /// Queries a second that all processors together could do, if each query went to either by its share.
    fn capacity(&self) -> f64 {
        let mean = |kind: usize| {
            self.stream.iter().map(|(cost, _)| cost.seconds[kind]).sum::<f64>()
                / self.stream.len() as f64
        };
        self.machine.threads as f64 / mean(0) + self.machine.devices as f64 / mean(1)
    }

    fn rates(&self) -> Vec<f64> {
        match &self.args.rates[..] {
            [] => (1..=11).map(|part| f64::from(part) * self.capacity() / 10.0).collect(),
            rates => rates.to_vec(),
        }
    }

    /// The queries, again and again; all at once if the rate is infinite. A stream is ten deadlines long at least: else
    /// queues that grow would not be seen.
    fn arrivals(&self, rate: f64, known: bool) -> Vec<Arrival> {
        let least = (10.0 * rate * self.args.place.deadline().as_secs_f64()) as usize;
        let times = match &self.arrivals {
            _ if rate.is_infinite() => vec![0.0; self.args.queries],
            Some(times) => stretched(times, rate, self.args.queries.max(least)),
            None => poisson(rate, self.args.queries.max(least)),
        };
        let arrival = |(at, (cost, predicted)): (f64, &(Cost, Costs))| {
            let real = cost.known();
            Arrival { at, predicted: if known { real } else { *predicted }, real }
        };
        times.into_iter().zip(self.stream.iter().cycle()).map(arrival).collect()
    }

    fn at_rate(&self, policy: Policy, rate: f64, known: bool) -> Vec<f64> {
        let deadline = self.args.place.deadline().as_secs_f64();
        let mut found = latencies(&self.arrivals(rate, known), policy, deadline, self.machine);
        found.sort_unstable_by(f64::total_cmp);
        found
    }

    fn missed(&self, sorted: &[f64]) -> usize {
        let deadline = self.args.place.deadline().as_secs_f64();
        sorted.len() - sorted.partition_point(|latency| *latency <= deadline)
    }

    fn load(&self, (run, name): (&str, &str), rate: f64, sorted: &[f64]) -> Value {
        let at = |part: f64| 1e3 * super::quantile(sorted, part);
        json!({
            "row": "load", "run": run, "schedule": name, "queries_per_s": rate, "of_capacity": rate / self.capacity(),
            "mean_ms": 1e3 * super::mean(sorted), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99),
            "queries": sorted.len(), "missed": self.missed(sorted),
        })
    }

    fn highest(&self, (run, name): (&str, &str), rate: f64) -> Value {
        json!({
            "row": "highest", "run": run, "schedule": name, "deadline_ms": 1e3 * self.args.place.deadline().as_secs_f64(),
            "queries_per_s": rate, "of_capacity": rate / self.capacity(), "threads": self.machine.threads,
        })
    }

    fn by_load(&self, name: &str, policy: Policy, known: bool) -> anyhow::Result<()> {
        for rate in self.rates() {
            let found = self.at_rate(policy, rate, known);
            print(self.load(("simulated", name), rate, &found))?;
        }
        // Who gets what suits him can do more than twice what all do by their shares.
        let (mut good, mut bad) = (0.0, f64::INFINITY);
        for _ in 0..14 {
            let rate = match bad {
                f64::INFINITY => self.capacity().max(2.0 * good),
                bad => (good + bad) / 2.0,
            };
            match self.missed(&self.at_rate(policy, rate, known)) {
                0 => good = rate,
                _ => bad = rate,
            }
        }
        print(self.highest(("simulated", name), good))
    }

    /// All queries at once: by threshold, and beside halves.
    fn together(&self, schedules: &[(String, Policy, bool)]) -> anyhow::Result<()> {
        let seconds =
            |policy| *self.at_rate(policy, f64::INFINITY, false).last().expect("there are queries");
        let halves = seconds(Policy::Halves);
        let cuts = match &self.args.thresholds[..] {
            [] => thresholds(&self.stream.iter().map(|(cost, _)| *cost).collect::<Vec<_>>()),
            cuts => cuts.to_vec(),
        };
        let kinds = [Processor::Device, Processor::Cpu];
        let lbd = cuts.into_iter().flat_map(|threshold| {
            kinds
                .map(|below| Policy::ByBlocks { threshold, below })
                .map(|lbd| (lbd.to_string(), lbd, Some(threshold)))
        });
        let named = schedules.iter().filter(|(.., known)| !known);
        let named = named.map(|(name, policy, _)| (name.clone(), *policy, None));
        for (name, policy, threshold) in lbd.chain(named) {
            let took = seconds(policy);
            // With a threshold, which side of it devices have.
            let swept = threshold.and_then(|_| Some(name.split_once(':')?.0));
            print(json!({
                "row": "together", "run": "simulated", "schedule": name, "threshold": threshold, "swept": swept, "seconds": took, "of_sd": took / halves,
                "us_per_query": 1e6 * took / self.args.queries as f64, "queries_per_s": self.args.queries as f64 / took,
            }))?;
        }
        Ok(())
    }
}

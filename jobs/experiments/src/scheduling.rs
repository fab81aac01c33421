//! `experiments scheduling`: how streams of queries fare under each schedule. The experiments of
//! `ding09`, section 9 (figure 7), `huang`, section 3.2 (figures 6 and 7, table 2), and `wang`,
//! figure 10 (combined).
//!
//! With the file that `millrace calibrate --costs` has written, streams are simulated: on any
//! machine, at rates that a run would take hours for. With `--index` and queries, a sample of these
//! is measured first; then streams of the rest are simulated, and run through real engines
//! ([`real`]).
//!
//! A model learns from the first three quarters of the queries; the others are the stream, again
//! and again, as in the paper (3,000 and 1,000). Rows, each of a `run` that is `simulated` or
//! `real`:
//!
//! | row | |
//! | --- | --- |
//! | model | errors of the predictions, of queries that nothing was learned from |
//! | load | latency and missed deadlines at a rate of Poisson arrivals |
//! | highest | the highest rate at which no query misses its deadline |
//! | together | seconds of all queries that are there at once, as a part of those of `sd` |
//!
//! A name followed by `, known` is the same schedule simulated with costs that are known: an
//! oracle.

mod real;

use crate::Usage;
use crate::args::{AskedRanking, explain, size, workers_or_cores};
use crate::rows::print;
use anyhow::{Context as _, ensure};
use millrace::inside::gpu::{Devices, GivenDevices, Traversal, given};
use millrace::inside::schedule::{
    Arrival, Cost, CostModel, Costs, Hardware, ModelTree, Policy, PolicyChoice, Processor,
    Schedule, choose, latencies, thresholds,
};
use real::{MeasuredSample, Real};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use synthetic::arrivals::Poisson;

/// In the place of an index, where there is none.
const NO_INDEX: &str = "-";

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("index", |index| index.required(false).default_value(NO_INDEX).hide_default_value(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    ranking: AskedRanking,
    /// Milliseconds within which a query should be answered.
    #[arg(long, default_value_t = 500, value_name = "MS")]
    deadline_ms: u64,
    /// Number of GPUs to use (default: all, of a simulation one).
    #[arg(long, value_name = "N")]
    gpus: Option<NonZeroUsize>,
    /// Memory for postings lists on each GPU, such as 40G (default: most of what is free).
    #[arg(long, value_name = "SIZE", value_parser = size)]
    gpu_memory: Option<u64>,
    /// GPU threads for each query, with --algorithm huang or wang.
    #[arg(long, value_name = "N", value_parser = given::threads)]
    query_threads: Option<u32>,
    /// With --algorithm huang and --mode or: how each thread finds documents: exhaustive, wand or
    /// bmw (default: bmw).
    #[arg(long, value_name = "NAME", value_parser = given::traversal)]
    traversal: Option<Traversal>,
    /// Threads that answer queries (default: all cores).
    #[arg(short = 'w', long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Schedules, such as ding09,lbd:30000.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(default_value = "cpu,gpu,best-serial,best,sd,lbd,ding09")]
    schedules: Vec<String>,
    /// Number of queries in a simulated stream. It is raised if the stream would be shorter than
    /// ten deadlines.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    queries: usize,
    /// Queries that are measured at most with --index, taken from all over the file.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    sample: usize,
    /// Seconds of a real stream.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Only all queries at once, no streams.
    #[arg(long)]
    at_once: bool,
    /// Costs of queries: the file that `millrace calibrate --costs` has written. With --index:
    /// queries, as `millrace query` reads them.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Args {
    fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The devices that are asked for.
    fn devices(&self) -> anyhow::Result<Devices> {
        let given = GivenDevices {
            devices: self.gpus,
            memory: self.gpu_memory,
            threads: self.query_threads,
            traversal: self.traversal,
            ..GivenDevices::default()
        };
        let algorithm = self.ranking.algorithm;
        given.check(algorithm, true).map_err(|misfit| Usage(misfit.on_command_line()))?;
        let choice = given.choice(self.ranking.k, given.method(algorithm));
        Devices::of_machine(&choice).map_err(explain)
    }
}

/// A schedule by name, and whether it knows the costs.
struct Scheduled {
    name: String,
    policy: Policy,
    known: bool,
}

struct SchedulingBench<'a> {
    args: &'a Args,
    stream: Vec<(Cost, Costs)>,
    machine: Hardware,
    /// Seconds.
    deadline: f64,
}

fn poisson(rate: f64, count: usize) -> Vec<f64> {
    Poisson::new(7, rate).take(count).collect()
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let is_real = args.ranking.index.as_os_str() != NO_INDEX;
    let measured: Option<MeasuredSample> = is_real.then(|| real::measure(args)).transpose()?;
    let costs = match &measured {
        Some(measured) => measured.costs.clone(),
        None => read_costs(args)?,
    };
    let first = costs.len() * 3 / 4;
    let (learned, stream) = costs.split_at(first);
    let model = CostModel::learn(learned).context("too few queries, or one that took no time")?;
    ensure!(!stream.is_empty(), "too few queries");
    let errors = |kind: usize, tree: &ModelTree| {
        tree.errors(&stream.iter().map(|cost| cost.example(kind)).collect::<Vec<_>>())
    };
    let threads = workers_or_cores(args.workers);
    let machine = Hardware { threads, devices: args.gpus.map_or(1, NonZeroUsize::get) };
    let deadline = args.deadline().as_secs_f64();
    let choice = choose(learned, &model, deadline, machine, || poisson(1.0, 4000));
    let mean = |of: fn(&Cost) -> f64| 1e6 * costs.iter().map(of).sum::<f64>() / costs.len() as f64;
    print(json!({
        "row": "model", "learned_from": learned.len() - learned.len() / 4, "queries": stream.len(),
        "cpu": errors(0, &model.cpu), "device": errors(1, &model.device), "paper": {"cpu": 0.20, "device": 0.22},
        "leaves": [model.cpu.leaves(), model.device.leaves()], "threads": threads, "devices": machine.devices,
        "mean_us": {
            "cpu": mean(|cost| cost.seconds[0]), "device": mean(|cost| cost.seconds[1]),
            "cpu_alone": mean(|cost| cost.alone[0]), "device_alone": mean(|cost| cost.alone[1]),
        },
        "deadline_ms": 1e3 * deadline, "best": choice.best, "lbd": choice.by_blocks,
    }))?;
    let stream = stream.iter().map(|cost| (*cost, model.costs(&cost.features))).collect();
    let bench = SchedulingBench { args, stream, machine, deadline };
    let schedules = bench.schedules(&choice)?;
    if let Some(measured) = &measured {
        let real = Real::new(&bench, measured, first, &model);
        let mut usual = schedules.iter().filter(|scheduled| !scheduled.known);
        usual.try_for_each(|scheduled| real.schedule(scheduled))?;
    }
    if !args.at_once {
        schedules.iter().try_for_each(|scheduled| bench.by_load(scheduled))?;
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

impl SchedulingBench<'_> {
    /// The schedules that are asked for; ding09 with costs that are known, too.
    fn schedules(&self, choice: &PolicyChoice) -> anyhow::Result<Vec<Scheduled>> {
        let mut found = Vec::new();
        for name in &self.args.schedules {
            let schedule: Schedule = name.parse().map_err(Usage)?;
            let policy = schedule.policy(Some(choice)).context("a choice was made")?;
            found.push(Scheduled { name: name.clone(), policy, known: false });
            if policy == Policy::Groups && !self.args.at_once {
                found.push(Scheduled { name: format!("{name}, known"), policy, known: true });
            }
        }
        Ok(found)
    }

    /// Queries a second that all processors together could do, if each query went to either by its
    /// share.
    fn capacity(&self) -> f64 {
        let all = self.stream.len() as f64;
        let mean = |kind| self.stream.iter().map(|(cost, _)| cost.seconds[kind]).sum::<f64>() / all;
        self.machine.threads as f64 / mean(0) + self.machine.devices as f64 / mean(1)
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        (1..=11).map(|part| f64::from(part) * self.capacity() / 10.0)
    }

    /// Sorted latencies of the queries, again and again; all at once if the rate is infinite. A
    /// stream is ten deadlines long at least: else queues that grow would not be seen.
    fn at_rate(&self, policy: Policy, rate: f64, known: bool) -> Vec<f64> {
        let times = if rate.is_infinite() {
            vec![0.0; self.args.queries]
        } else {
            poisson(rate, self.args.queries.max((10.0 * rate * self.deadline) as usize))
        };
        let arrival = |(at, (cost, predicted)): (f64, &(Cost, Costs))| {
            let real = cost.known();
            Arrival { at, predicted: if known { real } else { *predicted }, real }
        };
        let arrivals: Vec<Arrival> =
            times.into_iter().zip(self.stream.iter().cycle()).map(arrival).collect();
        let mut found = latencies(&arrivals, policy, self.deadline, self.machine);
        found.sort_unstable_by(f64::total_cmp);
        found
    }

    fn missed(&self, sorted: &[f64]) -> usize {
        sorted.len() - sorted.partition_point(|latency| *latency <= self.deadline)
    }

    fn print_load(&self, run: &str, name: &str, rate: f64, sorted: &[f64]) -> anyhow::Result<()> {
        let at = |part: f64| 1e3 * crate::numbers::quantile(sorted, part);
        print(json!({
            "row": "load", "run": run, "schedule": name, "queries_per_s": rate,
            "of_capacity": rate / self.capacity(), "mean_ms": 1e3 * crate::numbers::mean(sorted),
            "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "queries": sorted.len(),
            "missed": self.missed(sorted),
        }))
    }

    fn print_highest(&self, run: &str, name: &str, rate: f64) -> anyhow::Result<()> {
        print(json!({
            "row": "highest", "run": run, "schedule": name, "deadline_ms": 1e3 * self.deadline,
            "queries_per_s": rate, "of_capacity": rate / self.capacity(), "threads": self.machine.threads,
        }))
    }

    /// The highest of rates at which nothing is late, found in so many steps: each looks between a
    /// `good` one and a `bad` one, or at what `above` says of the good one as long as none was bad.
    fn highest(
        &self,
        steps: usize,
        mut good: f64,
        mut bad: f64,
        above: impl Fn(f64) -> f64,
        mut sorted: impl FnMut(f64) -> anyhow::Result<Vec<f64>>,
    ) -> anyhow::Result<f64> {
        for _ in 0..steps {
            let rate = if bad.is_infinite() { above(good) } else { (good + bad) / 2.0 };
            match self.missed(&sorted(rate)?) {
                0 => good = rate,
                _ => bad = rate,
            }
        }
        Ok(good)
    }

    fn by_load(&self, Scheduled { name, policy, known }: &Scheduled) -> anyhow::Result<()> {
        for rate in self.rates() {
            self.print_load("simulated", name, rate, &self.at_rate(*policy, rate, *known))?;
        }
        // Who gets what suits him can do more than twice what all do by their shares.
        let above = |good: f64| self.capacity().max(2.0 * good);
        let sorted = |rate| Ok(self.at_rate(*policy, rate, *known));
        let highest = self.highest(14, 0.0, f64::INFINITY, above, sorted)?;
        self.print_highest("simulated", name, highest)
    }

    /// All queries at once: by threshold, and beside halves.
    fn together(&self, schedules: &[Scheduled]) -> anyhow::Result<()> {
        let seconds =
            |policy| *self.at_rate(policy, f64::INFINITY, false).last().expect("there are queries");
        let halves = seconds(Policy::Halves);
        let print = |name: &str, policy, threshold: Option<u64>| {
            let took = seconds(policy);
            let queries = self.args.queries as f64;
            // With a threshold, which side of it devices have.
            let swept = threshold.and_then(|_| Some(name.split_once(':')?.0));
            print(json!({
                "row": "together", "run": "simulated", "schedule": name, "threshold": threshold,
                "swept": swept, "seconds": took, "of_sd": took / halves,
                "us_per_query": 1e6 * took / queries, "queries_per_s": queries / took,
            }))
        };
        let costs: Vec<Cost> = self.stream.iter().map(|(cost, _)| *cost).collect();
        for threshold in thresholds(&costs) {
            for below in [Processor::Device, Processor::Cpu] {
                let policy = Policy::ByBlocks { threshold, below };
                print(&policy.to_string(), policy, Some(threshold))?;
            }
        }
        for scheduled in schedules.iter().filter(|scheduled| !scheduled.known) {
            print(&scheduled.name, scheduled.policy, None)?;
        }
        Ok(())
    }
}

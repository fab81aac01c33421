//! `experiments scheduling`: how streams of queries fare under each schedule. The experiments of
//! `ding09`, section 9 (figure 7).
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
//! | together | queries a second of all that are there at once |

mod real;

use crate::Usage;
use crate::args::{AskedRanking, explain, size, workers_or_cores};
use crate::rows::print;
use anyhow::{Context as _, ensure};
use millrace::inside::gpu::{Devices, GivenDevices};
use millrace::inside::papers::{
    Arrival, Cost, CostModel, Costs, GivenMethods, Hardware, ModelTree, Policy, PolicyChoice,
    Schedule, choose, latencies,
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
    /// Threads that answer queries (default: all cores).
    #[arg(short = 'w', long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Schedules, such as ding09,lbd:30000.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(default_value = "cpu,gpu,best-serial,ding09")]
    schedules: Vec<String>,
    /// Number of queries in a simulated stream. It is raised if the stream would be shorter than
    /// ten deadlines.
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    queries: usize,
    /// Queries that are measured at most with --index, taken from all over the file.
    #[arg(long, default_value_t = 4000, value_name = "N")]
    sample: usize,
    /// Seconds of a real stream.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Costs of queries: the file that `millrace calibrate --costs` has written. With --index:
    /// queries, as `millrace query` reads them.
    #[arg(value_name = "FILE")]
    input: Option<PathBuf>,
}

impl Args {
    fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    fn devices(&self) -> anyhow::Result<Devices> {
        let given =
            GivenDevices { devices: self.gpus, memory: self.gpu_memory, ..GivenDevices::default() };
        let algorithm = self.ranking.algorithm;
        given.check(algorithm, true).map_err(|misfit| Usage(misfit.on_command_line()))?;
        let choice = given.choice(self.ranking.k, GivenMethods::default().method(algorithm));
        Devices::of_machine(&choice).map_err(explain)
    }
}

type Scheduled = (String, Policy);

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
        schedules.iter().try_for_each(|scheduled| real.schedule(scheduled))?;
    }
    schedules.iter().try_for_each(|scheduled| bench.by_load(scheduled))
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
    fn schedules(&self, choice: &PolicyChoice) -> anyhow::Result<Vec<Scheduled>> {
        let named = self.args.schedules.iter().map(|name| {
            let schedule: Schedule = name.parse().map_err(Usage)?;
            Ok((name.clone(), schedule.policy(Some(choice)).context("a choice was made")?))
        });
        named.collect()
    }

    /// Parts of the queries that a schedule does in a second if all are there at once.
    fn rates(most: f64) -> impl Iterator<Item = f64> {
        (1..=11).map(move |part| f64::from(part) * most / 10.0)
    }

    /// Sorted latencies of the queries, again and again; all at once if the rate is infinite. A
    /// stream is ten deadlines long at least: else queues that grow would not be seen.
    fn at_rate(&self, policy: Policy, rate: f64) -> Vec<f64> {
        let times = if rate.is_infinite() {
            vec![0.0; self.args.queries]
        } else {
            poisson(rate, self.args.queries.max((10.0 * rate * self.deadline) as usize))
        };
        let arrival = |(at, (cost, predicted)): (f64, &(Cost, Costs))| Arrival {
            at,
            predicted: *predicted,
            real: cost.known(),
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
            "mean_ms": 1e3 * crate::numbers::mean(sorted), "p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "queries": sorted.len(),
            "missed": self.missed(sorted),
        }))
    }

    fn print_highest(&self, run: &str, name: &str, rate: f64) -> anyhow::Result<()> {
        print(json!({
            "row": "highest", "run": run, "schedule": name, "deadline_ms": 1e3 * self.deadline,
            "queries_per_s": rate, "threads": self.machine.threads,
        }))
    }

    /// The highest of rates at which nothing is late, found in this many steps: each looks between
    /// a `good` one and a `bad` one, or at what `above` says of the good one as long as none was
    /// bad.
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

    fn by_load(&self, (name, policy): &Scheduled) -> anyhow::Result<()> {
        let all = self.at_rate(*policy, f64::INFINITY);
        let most = all.len() as f64 / all.last().context("there are queries")?;
        print(json!({
            "row": "together", "run": "simulated", "schedule": name, "queries": all.len(),
            "queries_per_s": most,
        }))?;
        for rate in Self::rates(most) {
            self.print_load("simulated", name, rate, &self.at_rate(*policy, rate))?;
        }
        let above = |good: f64| most.max(1.2 * good);
        let highest =
            self.highest(14, 0.0, f64::INFINITY, above, |rate| Ok(self.at_rate(*policy, rate)))?;
        self.print_highest("simulated", name, highest)
    }
}

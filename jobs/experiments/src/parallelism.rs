//! `experiments parallelism`: what the parallel models of `tatikonda11` gain and cost.
//!
//! Isolated: how queries are spread over workers. Every model runs the same query job on the same
//! index in memory; a query's latency is from the moment it is sent to the moment its answer is
//! formatted, waiting included. Axes: model, workers, load, query length, `delta`, size of a skip
//! (figures 4 to 7). Points that are compared are measured in turn, pass by pass. Expected: `inter`
//! has the best throughput, `fgqp` nearly that with the lowest latency, `docp` loses where shares
//! are uneven.

mod figures;
mod tasks;

use crate::Usage;
use crate::args::{AskedRanking, all_queries, workers_or_cores};
use crate::numbers::{fastest, mean, median, quantile};
use crate::rig::{MOST_QUERIES, Rig, Timings};
use anyhow::Context;
use millrace::inside::gpu::without_devices;
use millrace::inside::query::{Cutting, Model, patience};
use millrace::{Query, Searcher, Snapshot};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use synthetic::arrivals::Poisson;

/// Arguments of the experiment. Queries are AND, by small-adaptive, as in the paper, unless others
/// are asked for.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("algorithm", |algorithm| algorithm.default_value("small-adaptive")))]
pub(crate) struct Args {
    #[command(flatten)]
    ranking: AskedRanking,
    /// Worker threads, such as 1,2,4 (default: powers of two up to all cores).
    #[arg(short, long, value_name = "N,...", value_delimiter = ',')]
    workers: Vec<NonZeroUsize>,
    /// Which models are compared (default: all that the figure has). inter always is there, since
    /// the others are compared with it. docp has the paper's barrier, or none if it is free; fgqp
    /// leaves short queries whole, and fgqp-always cuts every query, as in the paper.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = MODELS)]
    models: Vec<String>,
    /// What to measure, of models, delta, load, length and skips (default: all).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Seconds of a point in a pass, of the most workers that it is compared with.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Passes over all points that are compared.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// Light load, as a part of what one worker can do.
    #[arg(long, default_value_t = 0.2, value_name = "F")]
    light: f64,
    /// --cut-us of fgqp: 0 cuts every query, as in the paper.
    #[arg(long, value_name = "US")]
    cut_us: Option<u32>,
    /// Number of postings in a skip, a multiple of the block size (default: one block; the paper
    /// has 512). The meaning of delta depends on it.
    #[arg(long, value_name = "N")]
    skip: Option<NonZeroUsize>,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out
    /// or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

const MODELS: [&str; 7] =
    ["inter", "docp-ui", "docp-pi", "docp-ui-free", "docp-pi-free", "fgqp", "fgqp-always"];

fn name(model: Model) -> &'static str {
    match model {
        Model::Inter => "inter",
        Model::DocpUi { barrier: true } => "docp-ui",
        Model::DocpPi { barrier: true } => "docp-pi",
        Model::DocpUi { barrier: false } => "docp-ui-free",
        Model::DocpPi { barrier: false } => "docp-pi-free",
        Model::Fgqp { cutting, .. } if cutting.least_ns == 0.0 => "fgqp-always",
        Model::Fgqp { .. } => "fgqp",
    }
}

/// A query with its latency on one worker, in microseconds, and its number of terms.
struct Timed {
    query: Query,
    us: f64,
    terms: usize,
}

/// What all figures need.
struct ParallelismBench {
    args: Args,
    snapshot: Arc<Snapshot>,
    queries: Vec<Timed>,
    workers: Vec<usize>,
    /// Postings of a block of the index.
    block_len: usize,
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !(args.seconds > 0.0 && args.light > 0.0) {
        return Err(Usage("--seconds and --light are above 0".into()).into());
    }
    without_devices(args.ranking.algorithm).map_err(|misfit| Usage(misfit.on_command_line()))?;
    let snapshot = args.ranking.open()?;
    let block_len = snapshot.generation().manifest().settings.block_size as usize;
    if args.skip.is_some_and(|skip| skip.get() % block_len > 0) {
        let text = format!("--skip is a multiple of {block_len}, the block size of the index");
        return Err(Usage(text).into());
    }
    let queries = timed(&snapshot, args)?;
    let mut workers: Vec<usize> = args.workers.iter().map(|n| n.get()).collect();
    if workers.is_empty() {
        let cores = workers_or_cores(None);
        workers = (0..).map(|power| 1 << power).take_while(|&n| n < cores).collect();
        workers.push(cores);
    }
    workers.sort_unstable();
    let bench = ParallelismBench { args: args.clone(), snapshot, queries, workers, block_len };
    crate::args::figures(&bench, figures::FIGURES, &args.only)
}

/// Times each query alone, on the better of two passes behind a first.
fn timed(snapshot: &Arc<Snapshot>, args: &Args) -> anyhow::Result<Vec<Timed>> {
    let mut searcher = Searcher::new();
    let twice = NonZeroUsize::new(2).context("above 0")?;
    let mut time = |query: Query| {
        let wanted = query.wanted(&args.ranking.wanted());
        let terms = searcher.look_up(snapshot, &wanted, &query.text)?;
        searcher.search(snapshot, &wanted, &query.text)?;
        let search = || -> anyhow::Result<f64> {
            let start = Instant::now();
            std::hint::black_box(searcher.search(snapshot, &wanted, &query.text)?);
            Ok(start.elapsed().as_secs_f64() * 1e6)
        };
        Ok(Timed { us: fastest(twice, |&us| us, search)?, query, terms })
    };
    all_queries(args.queries.as_deref())?.into_iter().map(&mut time).collect()
}

fn mean_us(queries: &[&Timed]) -> f64 {
    queries.iter().map(|timed| timed.us).sum::<f64>() / queries.len().max(1) as f64
}

/// A way to run a query job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JobWay {
    model: Model,
    workers: usize,
}

/// How a way does at a load.
struct LoadPoint {
    way: JobWay,
    /// Queries a second that arrive; infinity if all are there from the beginning.
    rate: f64,
    runs: Vec<Timings>,
}

impl LoadPoint {
    fn throughput(&self) -> f64 {
        median(&mut self.runs.iter().map(|run| run.queries_per_s).collect::<Vec<_>>())
    }

    /// Sorted microseconds of all queries in all runs.
    fn sorted(&self, of: impl Fn(&Timings) -> &Vec<f64>) -> Vec<f64> {
        let mut all: Vec<f64> = self.runs.iter().flat_map(of).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    fn mean_us(&self) -> f64 {
        mean(&self.sorted(|run| &run.latencies))
    }

    /// The mean time from when a worker took a query to its answer.
    fn processing_us(&self) -> f64 {
        mean(&self.sorted(|run| &run.processing))
    }
}

impl ParallelismBench {
    /// How queries are cut.
    fn cutting(&self) -> Cutting {
        let usual = Cutting::default();
        let skip = self.args.skip.map_or(usual.skip, |skip| skip.get() / self.block_len);
        let least_ns = self.args.cut_us.map_or(usual.least_ns, |us| f64::from(us) * 1e3);
        Cutting { skip, least_ns }
    }

    /// `fgqp` with our rule of which queries gain by cuts, and with all of them cut, as in the
    /// paper: the same where --cut-us is 0.
    fn fgqp_both(&self, delta: usize, cutting: Cutting) -> Vec<Model> {
        let always = Cutting { least_ns: 0.0, ..cutting };
        let fgqp = |cutting| Model::Fgqp { delta, cutting, patience: patience(None) };
        let mut both = vec![fgqp(cutting), fgqp(always)];
        both.dedup();
        both
    }

    /// Those of some models that are asked for, on so many workers.
    fn ways(&self, models: impl IntoIterator<Item = Model>, workers: usize) -> Vec<JobWay> {
        let names = &self.args.models;
        let wanted = |model: &Model| {
            let name = name(*model);
            names.is_empty() || name == "inter" || names.iter().any(|other| other == name)
        };
        models.into_iter().filter(wanted).map(|model| JobWay { model, workers }).collect()
    }

    fn all(&self) -> Vec<&Timed> {
        self.queries.iter().collect()
    }

    fn most_workers(&self) -> usize {
        self.workers.last().copied().unwrap_or(1)
    }

    /// Measures ways with all queries there, and at light load.
    fn both_loads(&self, ways: &[JobWay], queries: &[&Timed]) -> anyhow::Result<Vec<LoadPoint>> {
        let light = self.args.light * 1e6 / mean_us(queries);
        let loads = [f64::INFINITY, light];
        let wanted = loads.iter().flat_map(|&rate| ways.iter().map(move |&way| (way, rate)));
        self.points(&wanted.collect::<Vec<_>>(), queries)
    }

    /// Measures points, given by way and rate, in turn, so many passes.
    fn points(
        &self,
        wanted: &[(JobWay, f64)],
        queries: &[&Timed],
    ) -> anyhow::Result<Vec<LoadPoint>> {
        let texts: Vec<&Query> = queries.iter().map(|timed| &timed.query).collect();
        let mut rigs: Vec<(JobWay, Rig)> = Vec::new();
        for &(way, _) in wanted {
            if rigs.iter().all(|(other, _)| *other != way) {
                let engines = |wakers: &_| way.model.engines(wakers);
                rigs.push((
                    way,
                    Rig::start(
                        &self.snapshot,
                        self.args.ranking.wanted(),
                        engines,
                        way.workers,
                        &texts,
                    )?,
                ));
            }
        }
        let of = |&(way, rate): &(JobWay, f64)| LoadPoint { way, rate, runs: Vec::new() };
        let mut points: Vec<LoadPoint> = wanted.iter().map(of).collect();
        // All answer the same queries: so few of them differ much in what they take.
        let most = rigs.iter().map(|(way, _)| way.workers).max().unwrap_or(1);
        let most_rate = 1e6 / mean_us(queries) * most as f64;
        for pass in 0..self.args.passes.get() {
            for point in &mut points {
                let seconds = self.args.seconds;
                let count = (point.rate.min(most_rate) * seconds) as usize;
                let count = count.clamp(50, MOST_QUERIES / 2);
                // Every point and pass begins elsewhere, so that all queries are measured.
                let first = pass * count % texts.len();
                let texts: Vec<&Query> =
                    texts.iter().copied().cycle().skip(first).take(count).collect();
                let times: Vec<f64> = if point.rate.is_infinite() {
                    vec![0.0; count]
                } else {
                    Poisson::new(1 + pass as u64, point.rate).take(count).collect()
                };
                let rig = rigs.iter_mut().find(|(way, _)| *way == point.way);
                point.runs.push(rig.context("every way has a rig")?.1.run(&texts, times)?);
            }
        }
        Ok(points)
    }

    /// Prints a point with more fields.
    fn print(&self, figure: &str, point: &LoadPoint, more: Value) -> anyhow::Result<()> {
        let all = point.sorted(|run| &run.latencies);
        let JobWay { model, workers } = point.way;
        let (delta, skip) = match model {
            Model::Fgqp { delta, cutting, .. } => {
                (Some(delta), Some(cutting.skip * self.block_len))
            }
            _ => (None, None),
        };
        let mut row = json!({
            "figure": figure,
            "model": name(model),
            "workers": workers,
            "delta": delta,
            "skip": skip,
            "rate": point.rate.is_finite().then_some(point.rate),
            "queries": all.len(),
            "queries_per_s": point.throughput(),
            "mean_us": mean(&all),
            "p50_us": quantile(&all, 0.50),
            "p95_us": quantile(&all, 0.95),
            "p99_us": quantile(&all, 0.99),
            "processing_us": point.processing_us(),
        });
        if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
            row.extend(more);
        }
        crate::rows::print(row)
    }
}

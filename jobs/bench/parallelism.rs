//! `millrace bench parallelism`: what do the parallel models of `tatikonda11` gain and cost?
//!
//! Isolated: how queries are spread over workers. Every model runs the same query job on the same
//! index in memory; a query's latency is from the moment it is sent to the moment its answer is laid
//! out, waiting included. Axes: model, workers, load, query length, `delta`, size of a skip (figures
//! 4 to 7). Points that are compared are measured in turn, pass by pass. Expected: `inter` has the
//! best throughput, `fgqp` nearly that with the lowest latency, `docp` loses where shares are uneven.

mod figures;

use super::rig::{MOST_QUERIES, Rig, Timings, read_arrivals, stretched};
use super::{all_queries, quantile};
use crate::Usage;
use crate::query::ranking::Ranking;
use anyhow::Context;
use millrace::query::engines::engine::Model;
use millrace::query::engines::spreading::patience;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::{Cutting, Searcher};
use millrace::query::snapshot::Snapshot;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use synthetic::arrivals::Poisson;

/// Arguments of the experiment. Queries are AND, by small-adaptive, as in the paper, unless others are
/// asked for.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_arg("mode", |mode| mode.default_value("and")))]
#[command(mut_arg("algorithm", |algorithm| algorithm.default_value("small-adaptive")))]
pub(crate) struct Args {
    #[command(flatten)]
    ranking: Ranking,
    /// Worker threads, such as 1,2,4 (default: powers of two up to all cores).
    #[arg(short, long, value_name = "N,...", value_delimiter = ',')]
    workers: Vec<NonZeroUsize>,
    /// Which models are compared, such as inter,fgqp-always (default: all that the figure has). inter
    /// always is there, since the others are compared with it.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    models: Vec<ModelName>,
    /// What to measure, such as models,delta (default: all).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<Figure>,
    /// Seconds of a point in a pass, of the most workers that it is compared with.
    #[arg(long, default_value_t = 1.0, value_name = "S")]
    seconds: f64,
    /// Passes over all points that are compared.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// Light load, as a part of what one worker can do.
    #[arg(long, default_value_t = 0.2, value_name = "F")]
    light: f64,
    /// Only queries that take at least so many microseconds on one worker.
    #[arg(long, default_value_t = 0.0, value_name = "US")]
    least_us: f64,
    /// Only queries that take at most so many microseconds on one worker.
    #[arg(long, default_value_t = f64::INFINITY, value_name = "US", hide_default_value = true)]
    most_us: f64,
    /// --spin-us of fgqp.
    #[arg(long, value_name = "US")]
    spin_us: Option<u32>,
    /// --cut-us of fgqp: 0 cuts every query, as in the paper.
    #[arg(long, value_name = "US")]
    cut_us: Option<u32>,
    /// Number of postings in a skip, a multiple of the block size (default: one block; the paper has 512). The
    /// meaning of delta depends on it.
    #[arg(long, value_name = "N")]
    skip: Option<NonZeroUsize>,
    /// Another seed makes other arrivals.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// File of arrival times in seconds, one on each line, in place of random ones. They are scaled to the rate of
    /// each point.
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// Throughput and processing time in a closed loop by workers (figures 4a, 4b), and latency at
    /// light load.
    Models,
    /// Pool thresholds (figure 4c).
    Delta,
    /// Latency by arrival rate (figure 5a).
    Load,
    /// Latency and throughput by query length (figures 5b, 5c, 6).
    Length,
    /// Tasks by size of a skip (figure 7).
    Skips,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum ModelName {
    Inter,
    /// With the paper's barrier.
    DocpUi,
    /// With the paper's barrier.
    DocpPi,
    /// Workers that are ahead go on with the next query.
    DocpUiFree,
    /// Workers that are ahead go on with the next query.
    DocpPiFree,
    /// Short queries stay whole (--cut-us), and more of them the more queries wait.
    Fgqp,
    /// Every query is cut, as in the paper.
    FgqpAlways,
}

impl ModelName {
    fn of(model: Model) -> Self {
        match model {
            Model::Inter => Self::Inter,
            Model::DocpUi { barrier: true } => Self::DocpUi,
            Model::DocpPi { barrier: true } => Self::DocpPi,
            Model::DocpUi { barrier: false } => Self::DocpUiFree,
            Model::DocpPi { barrier: false } => Self::DocpPiFree,
            Model::Fgqp { cutting, .. } if cutting.least_ns == 0.0 => Self::FgqpAlways,
            Model::Fgqp { .. } => Self::Fgqp,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Inter => "inter",
            Self::DocpUi => "docp-ui",
            Self::DocpPi => "docp-pi",
            Self::DocpUiFree => "docp-ui-free",
            Self::DocpPiFree => "docp-pi-free",
            Self::Fgqp => "fgqp",
            Self::FgqpAlways => "fgqp-always",
        }
    }
}

/// What all figures need.
struct Bench<'a> {
    args: &'a Args,
    snapshot: Arc<Snapshot>,
    /// The queries with their latency on one worker, in microseconds, and their number of terms.
    queries: Vec<(Query, f64, usize)>,
    workers: Vec<usize>,
    arrivals: Option<Vec<f64>>,
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !(args.seconds > 0.0 && args.light > 0.0) {
        return Err(Usage("--seconds and --light are above 0".into()).into());
    }
    let snapshot = args.ranking.open()?;
    let block_len = snapshot.generation().manifest().settings.block_size as usize;
    if args.skip.is_some_and(|skip| skip.get() % block_len > 0) {
        let text = format!("--skip is a multiple of {block_len}, the block size of the index");
        return Err(Usage(text).into());
    }
    let arrivals = args.arrivals.as_deref().map(read_arrivals).transpose()?;
    let queries = timed(&snapshot, all_queries(args.queries.as_deref())?, args)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut workers: Vec<usize> = args.workers.iter().map(|n| n.get()).collect();
    if workers.is_empty() {
        workers = (0..).map(|power| 1 << power).take_while(|&n| n < cores).collect();
        workers.push(cores);
    }
    workers.sort_unstable();
    let bench = Bench { args, snapshot, queries, workers, arrivals };
    let mean = bench.mean_us(&bench.all());
    say!(
        "{} queries of {mean:.0} us in the mean on one worker, on {} cores",
        bench.queries.len(),
        cores
    );
    let wants = |figure| args.only.is_empty() || args.only.contains(&figure);
    if wants(Figure::Models) {
        bench.models()?;
    }
    if wants(Figure::Delta) {
        bench.delta()?;
    }
    if wants(Figure::Load) {
        bench.load("load", &bench.all())?;
    }
    if wants(Figure::Length) {
        bench.length()?;
    }
    if wants(Figure::Skips) {
        bench.skips()?;
    }
    Ok(())
}

/// Times each query alone, on the better of two passes behind a first, and keeps those that are
/// wanted.
fn timed(
    snapshot: &Arc<Snapshot>,
    queries: Vec<Query>,
    args: &Args,
) -> anyhow::Result<Vec<(Query, f64, usize)>> {
    let mut searcher = Searcher::new();
    let mut kept = Vec::new();
    for query in queries {
        let wanted = query.wanted(&args.ranking.wanted());
        searcher.search(snapshot, &wanted, &query.text)?;
        let mut us = f64::INFINITY;
        for _ in 0..2 {
            let start = Instant::now();
            std::hint::black_box(searcher.search(snapshot, &wanted, &query.text)?);
            us = us.min(start.elapsed().as_secs_f64() * 1e6);
        }
        let terms = searcher.look_up(snapshot, &wanted, &query.text)?;
        if us >= args.least_us && us <= args.most_us {
            kept.push((query, us, terms));
        }
    }
    anyhow::ensure!(!kept.is_empty(), "no query takes that long, or that short");
    Ok(kept)
}

/// A way to run a query job.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    model: Model,
    workers: usize,
}

impl Way {
    fn name(self) -> String {
        let name = format!("{}-{}", ModelName::of(self.model).name(), self.workers);
        match self.model {
            Model::Fgqp { delta, cutting, .. } if cutting.skip > 1 => {
                format!("{name}-delta-{delta}-skip-{}-blocks", cutting.skip)
            }
            Model::Fgqp { delta, .. } => format!("{name}-delta-{delta}"),
            _ => name,
        }
    }
}

/// How a way does at a load.
struct Point {
    way: Way,
    /// Queries a second that arrive; infinity if all are there from the beginning.
    rate: f64,
    runs: Vec<Timings>,
}

impl Point {
    fn throughput(&self) -> f64 {
        let mut rates: Vec<f64> = self.runs.iter().map(|run| run.queries_per_s).collect();
        super::median(&mut rates)
    }

    fn latencies(&self) -> Vec<f64> {
        self.sorted(|run| &run.latencies)
    }

    /// Sorted microseconds of all queries in all runs.
    fn sorted(&self, of: impl Fn(&Timings) -> &Vec<f64>) -> Vec<f64> {
        let mut all: Vec<f64> = self.runs.iter().flat_map(of).copied().collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    fn mean_us(&self) -> f64 {
        super::mean(&self.latencies())
    }

    /// The mean time from when a worker took a query to its answer.
    fn processing_us(&self) -> f64 {
        super::mean(&self.sorted(|run| &run.processing))
    }

    /// Prints the point as a JSON line, and as a row of a table on standard error.
    fn print(&self, figure: &str, block_len: usize, more: Value) -> anyhow::Result<()> {
        let all = self.latencies();
        let Way { model, workers } = self.way;
        let (delta, skip) = match model {
            Model::Fgqp { delta, cutting, .. } => (Some(delta), Some(cutting.skip * block_len)),
            _ => (None, None),
        };
        let mut line = json!({
            "figure": figure,
            "model": ModelName::of(model).name(),
            "workers": workers,
            "delta": delta,
            "skip": skip,
            "rate": self.rate.is_finite().then_some(self.rate),
            "queries": all.len(),
            "queries_per_s": self.throughput(),
            "mean_us": self.mean_us(),
            "p50_us": quantile(&all, 0.50),
            "p95_us": quantile(&all, 0.95),
            "p99_us": quantile(&all, 0.99),
            "processing_us": self.processing_us(),
        });
        let mut notes = String::new();
        if let (Value::Object(line), Value::Object(more)) = (&mut line, more) {
            for (key, value) in &more {
                let short = value.as_f64().map_or(value.to_string(), |value| format!("{value:.3}"));
                notes += &format!("  {key} {short}");
            }
            line.extend(more);
        }
        super::rows::print(line)?;
        let rate = if self.rate.is_finite() { format!("{:.0}/s", self.rate) } else { "all".into() };
        say!(
            "{figure:<10} {:<22} {rate:>9} {:>9.0} q/s  mean {:>9.0}  p50 {:>9.0}  p95 {:>9.0}  p99 {:>9.0}  taken to answered {:>9.0} us{notes}",
            self.way.name(),
            self.throughput(),
            self.mean_us(),
            quantile(&all, 0.50),
            quantile(&all, 0.95),
            quantile(&all, 0.99),
            self.processing_us(),
        );
        Ok(())
    }
}

impl Bench<'_> {
    fn fgqp(&self, delta: usize) -> Model {
        self.fgqp_cut(delta, self.cutting())
    }

    /// How queries are cut.
    fn cutting(&self) -> Cutting {
        let usual = Cutting::default();
        let skip = self.args.skip.map_or(usual.skip, |skip| skip.get() / self.block_len());
        let least_ns = self.args.cut_us.map_or(usual.least_ns, |us| f64::from(us) * 1e3);
        Cutting { skip, least_ns }
    }

    fn fgqp_cut(&self, delta: usize, cutting: Cutting) -> Model {
        Model::Fgqp { delta, cutting, patience: patience(self.args.spin_us) }
    }

    /// `fgqp` with our rule of which queries are worth cutting, and with all of them cut, as in the
    /// paper: the same where --cut-us is 0.
    fn fgqp_both(&self, delta: usize) -> Vec<Model> {
        let always = Cutting { least_ns: 0.0, ..self.cutting() };
        let mut both = vec![self.fgqp(delta), self.fgqp_cut(delta, always)];
        both.dedup();
        both
    }

    /// Those of some models that are asked for, on so many workers.
    fn ways(&self, models: impl IntoIterator<Item = Model>, workers: usize) -> Vec<Way> {
        let names = &self.args.models;
        let wanted = |model: &Model| {
            let name = ModelName::of(*model);
            names.is_empty() || name == ModelName::Inter || names.contains(&name)
        };
        models.into_iter().filter(wanted).map(|model| Way { model, workers }).collect()
    }

    fn all(&self) -> Vec<&Query> {
        self.queries.iter().map(|(query, ..)| query).collect()
    }

    /// Postings of a block of the index.
    fn block_len(&self) -> usize {
        self.snapshot.generation().manifest().settings.block_size as usize
    }

    fn most_workers(&self) -> usize {
        self.workers.last().copied().unwrap_or(1)
    }

    /// The mean latency of some of the queries on one worker.
    fn mean_us(&self, queries: &[&Query]) -> f64 {
        let of = |query: &&Query| self.queries.iter().find(|(other, ..)| other == *query);
        let us: Vec<f64> = queries.iter().filter_map(of).map(|&(_, us, _)| us).collect();
        us.iter().sum::<f64>() / us.len().max(1) as f64
    }

    /// Starts the jobs of some ways. Each is there once.
    fn rigs(&self, ways: &[Way], queries: &[&Query]) -> anyhow::Result<Vec<Rig>> {
        let mut rigs: Vec<Rig> = Vec::new();
        let queries: Vec<Query> = queries.iter().map(|&query| query.clone()).collect();
        for &Way { model, workers } in ways {
            if rigs.iter().all(|rig| (rig.model, rig.workers) != (model, workers)) {
                let start = Instant::now();
                let wanted = self.args.ranking.wanted();
                rigs.push(Rig::start((&self.snapshot, wanted), model, workers, &queries)?);
                if matches!(model, Model::DocpPi { .. }) {
                    let seconds = start.elapsed().as_secs_f64();
                    let name = Way { model, workers }.name();
                    say!("{name}: copied the shares in {seconds:.1} s");
                }
            }
        }
        Ok(rigs)
    }

    /// Measures points, given by way and rate, in turn, so many passes.
    fn points(&self, wanted: &[(Way, f64)], queries: &[&Query]) -> anyhow::Result<Vec<Point>> {
        let ways: Vec<Way> = wanted.iter().map(|&(way, _)| way).collect();
        let mut rigs = self.rigs(&ways, queries)?;
        let mut points: Vec<Point> =
            wanted.iter().map(|&(way, rate)| Point { way, rate, runs: Vec::new() }).collect();
        let alone = 1e6 / self.mean_us(queries);
        // All answer the same queries: so few of them differ much in what they take.
        let most = ways.iter().map(|way| way.workers).max().unwrap_or(1);
        for pass in 0..self.args.passes.get() {
            for point in &mut points {
                let Way { model, workers } = point.way;
                let rate = point.rate.min(alone * most as f64);
                let count = ((rate * self.args.seconds) as usize).clamp(50, MOST_QUERIES / 2);
                // Every point and pass begins elsewhere, so that all queries have their turn.
                let queries: Vec<&Query> = queries
                    .iter()
                    .cycle()
                    .skip(pass * count % queries.len())
                    .take(count)
                    .copied()
                    .collect();
                let times = self.times(point.rate, pass as u64, count);
                let rig = rigs.iter_mut().find(|rig| (rig.model, rig.workers) == (model, workers));
                point.runs.push(rig.context("every way has a rig")?.run(&queries, times)?);
            }
        }
        Ok(points)
    }

    /// When queries arrive.
    fn times(&self, rate: f64, pass: u64, count: usize) -> Vec<f64> {
        match &self.arrivals {
            _ if rate.is_infinite() => vec![0.0; count],
            None => Poisson::new(self.args.seed + pass, rate).take(count).collect(),
            Some(times) => stretched(times, rate, count),
        }
    }

    /// Queries a second of `inter` on so many workers, about.
    fn capacity(&self, workers: usize, queries: &[&Query]) -> anyhow::Result<f64> {
        let way = Way { model: Model::Inter, workers };
        Ok(self.points(&[(way, f64::INFINITY)], queries)?[0].throughput())
    }
}

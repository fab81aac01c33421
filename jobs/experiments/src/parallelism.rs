//! `experiments parallelism`: what the parallel models of `tatikonda11` gain and cost.
//!
//! Isolated: how queries are spread over workers. Every model runs the same query job on the same
//! index in memory, with every query once a pass; a query's latency is from the moment it is sent
//! to the moment its answer is formatted, waiting included. Axes: model, workers, load, query
//! length, `delta`, size of a skip (figures 4 to 7). Points that are compared are measured in turn,
//! pass by pass, each alone on the machine: what one worker does is the base. Expected: `inter` has
//! the best throughput, `fgqp` nearly that with the lowest latency, `docp` loses where shares are
//! uneven.

mod figures;
mod tasks;

use crate::Usage;
use crate::args::{AskedRanking, all_queries, workers_or_cores};
use crate::numbers::{mean, median};
use crate::rig::{Rig, Timings};
use anyhow::Context;
use millrace::inside::papers::MODELS as MODELS_OF_PAPERS;
use millrace::inside::query::{Cutting, Model, patience};
use millrace::{Query, Snapshot};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
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
    /// the others are compared with it. docp has the paper's barrier; fgqp leaves short queries
    /// whole, and fgqp-always cuts every query, as in the paper.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = MODELS)]
    models: Vec<String>,
    /// What to measure, of models, delta, load, length and skips (default: all).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Passes over all points that are compared.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// Number of postings in a skip, a multiple of the block size (default: one block; the paper
    /// has 512). The meaning of delta depends on it.
    #[arg(long, value_name = "N")]
    skip: Option<NonZeroUsize>,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out
    /// or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

const MODELS: [&str; 5] = ["inter", "docp-ui", "docp-pi", "fgqp", "fgqp-always"];

fn name(model: Model) -> &'static str {
    match model {
        Model::Fgqp { cutting, .. } if cutting.least_ns == 0.0 => "fgqp-always",
        model => model.name(),
    }
}

/// With the paper's barrier: `docp-ui` and `docp-pi`.
fn docp() -> impl Iterator<Item = Model> {
    MODELS_OF_PAPERS.iter().map(|&model| Model::Handed { model, barrier: true })
}

/// What all figures need.
struct ParallelismBench {
    args: Args,
    snapshot: Arc<Snapshot>,
    queries: Vec<Query>,
    workers: Vec<usize>,
    /// Postings of a block of the index.
    block_len: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.ranking.algorithm.without_devices().map_err(|misfit| Usage(misfit.on_command_line()))?;
    let snapshot = args.ranking.open()?;
    let block_len = snapshot.generation().manifest().settings.block_size as usize;
    if args.skip.is_some_and(|skip| skip.get() % block_len > 0) {
        let text = format!("--skip is a multiple of {block_len}, the block size of the index");
        return Err(Usage(text).into());
    }
    let queries = all_queries(args.queries.as_deref())?;
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
    /// What all passes come to, sorted: medians are compared, and the ends tell how sure they are.
    fn passes(&self, of: impl Fn(&Timings) -> f64) -> Vec<f64> {
        let mut all: Vec<f64> = self.runs.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }

    fn throughput(&self) -> f64 {
        median(&mut self.passes(|run| run.queries_per_s))
    }

    /// The mean time from when a worker took a query to its answer.
    fn processing_us(&self) -> f64 {
        median(&mut self.passes(|run| mean(&run.processing)))
    }
}

impl ParallelismBench {
    /// How queries are cut.
    fn cutting(&self) -> Cutting {
        let usual = Cutting::default();
        let skip = self.args.skip.map_or(usual.skip, |skip| skip.get() / self.block_len);
        Cutting { skip, ..usual }
    }

    /// `fgqp` with our rule of which queries gain by cuts, and with all of them cut, as in the
    /// paper.
    fn fgqp_both(&self, delta: usize) -> [Model; 2] {
        let always = Cutting { least_ns: 0.0, ..self.cutting() };
        [self.cutting(), always].map(|cutting| Model::Fgqp {
            delta,
            cutting,
            patience: patience(None),
        })
    }

    /// Those of some models that are asked for, on this many workers.
    fn ways(&self, models: impl IntoIterator<Item = Model>, workers: usize) -> Vec<JobWay> {
        let names = &self.args.models;
        let wanted = |model: &Model| {
            let name = name(*model);
            names.is_empty() || name == "inter" || names.iter().any(|other| other == name)
        };
        models.into_iter().filter(wanted).map(|model| JobWay { model, workers }).collect()
    }

    fn all(&self) -> Vec<&Query> {
        self.queries.iter().collect()
    }

    fn most_workers(&self) -> usize {
        self.workers.last().copied().unwrap_or(1)
    }

    /// Measures points, given by way and rate, in turn, this many passes.
    fn points(&self, wanted: &[(JobWay, f64)], texts: &[&Query]) -> anyhow::Result<Vec<LoadPoint>> {
        let mut rigs: Vec<(JobWay, Rig)> = Vec::new();
        for &(way, _) in wanted {
            if rigs.iter().all(|(other, _)| *other != way) {
                let engines = |wakers: &_| way.model.engines(wakers);
                let wanted = self.args.ranking.wanted();
                rigs.push((way, Rig::start(&self.snapshot, wanted, engines, way.workers, texts)?));
            }
        }
        let of = |&(way, rate): &(JobWay, f64)| LoadPoint { way, rate, runs: Vec::new() };
        let mut points: Vec<LoadPoint> = wanted.iter().map(of).collect();
        for pass in 0..self.args.passes.get() {
            for point in &mut points {
                let times: Vec<f64> = if point.rate.is_infinite() {
                    vec![0.0; texts.len()]
                } else {
                    Poisson::new(1 + pass as u64, point.rate).take(texts.len()).collect()
                };
                let rig = rigs.iter_mut().find(|(way, _)| *way == point.way);
                point.runs.push(rig.context("every way has a rig")?.1.run(texts, times)?);
            }
        }
        Ok(points)
    }

    fn print(&self, figure: &str, point: &LoadPoint, more: Value) -> anyhow::Result<()> {
        let JobWay { model, workers } = point.way;
        let delta = if let Model::Fgqp { delta, .. } = model { Some(delta) } else { None };
        let throughputs = point.passes(|run| run.queries_per_s);
        let mut row = json!({
            "figure": figure,
            "model": name(model),
            "workers": workers,
            "delta": delta,
            "rate": point.rate.is_finite().then_some(point.rate),
            "queries": point.runs[0].latencies.len(),
            "passes": throughputs.len(),
            "queries_per_s": point.throughput(),
            "queries_per_s_from_to": [throughputs[0], throughputs[throughputs.len() - 1]],
            "mean_us": median(&mut point.passes(|run| mean(&run.latencies))),
            "processing_us": point.processing_us(),
        });
        if let (Value::Object(row), Value::Object(more)) = (&mut row, more) {
            row.extend(more);
        }
        crate::rows::print(row)
    }
}

//! `millrace bench`: measurements, as JSON lines or tables on standard output.

mod bounds;
mod btree;
mod ceilings;
mod codecs;
mod cpu_queries;
mod figures;
mod generate;
mod gpu_indexing;
mod gpu_queries;
mod parallelism;
mod pipeline;
mod rig;
mod rows;
mod scheduling;
mod wang;

use crate::cli::report;
use crate::query::input::open_queries;
use crate::query::ranking::Ranking;

use anyhow::Context;
use millrace::query::reading::lines::Query;
use millrace::query::searcher::Searcher;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    experiment: Experiment,
    /// Write the rows to FILE, with the figures that they make: a page with charts if the name ends in .html, otherwise JSON. See
    /// docs/reports.md.
    #[arg(long, value_name = "FILE", global = true)]
    report: Option<PathBuf>,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum Experiment {
    /// Latency of queries: one worker answers them one at a time.
    Queries(Queries),
    /// How close the score bounds of blocks are to the true maxima.
    Bounds(bounds::Args),
    /// Tokens a second of the B-trees of wei11, on one core and on a GPU.
    Btree(btree::Args),
    /// Greatest speed of each stage of a build on this machine, beside the speed of a build.
    Ceilings(ceilings::Args),
    /// Size and decoding speed of every codec, on the lists that the queries read.
    Codecs(codecs::Args),
    /// CPU rows of the papers' tables: the stages of a query, and searches by number of hits and by blocks.
    CpuQueries(cpu_queries::Args),
    /// How fast a GPU turns text into postings lists, by kernel and as a whole.
    GpuIndexing(gpu_indexing::Args),
    /// Queries a second of a GPU and of the CPU. The answers are compared first.
    GpuQueries(gpu_queries::Args),
    /// Throughput and latency of the parallel models of tatikonda11, by workers, load, query length, delta and skips.
    Parallelism(parallelism::Args),
    /// Throughput of the pipeline of wei11 and of its parts, by parsers, indexers and files.
    Pipeline(pipeline::Args),
    /// Latency of streams of queries that CPU and GPU share, by schedule and rate: simulated from measured costs, or
    /// real.
    Scheduling(scheduling::Args),
    /// Figures of wang that need no GPU: how far lists are read, caches of lists, threads.
    Wang(wang::Args),
    /// Write a synthetic collection of any size, and queries for it.
    Generate(generate::Args),
}

#[derive(clap::Args, Clone, Debug)]
struct Queries {
    #[command(flatten)]
    ranking: Ranking,
    /// Number of measured passes over the queries. One pass before them is not measured.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// File of queries, one on each line: `qid TAB text`, or text alone. Standard input if left out or -.
    #[arg(value_name = "QUERIES")]
    queries: Option<PathBuf>,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let began = Instant::now();
    let (name, result) = match &args.experiment {
        Experiment::Queries(args) => ("queries", queries(args)),
        Experiment::Bounds(args) => ("bounds", bounds::run(args)),
        Experiment::Btree(args) => ("btree", btree::run(args)),
        Experiment::Ceilings(args) => ("ceilings", ceilings::run(args)),
        Experiment::Codecs(args) => ("codecs", codecs::run(args)),
        Experiment::CpuQueries(args) => ("cpu-queries", cpu_queries::run(args)),
        Experiment::GpuIndexing(args) => ("gpu-indexing", gpu_indexing::run(args)),
        Experiment::GpuQueries(args) => ("gpu-queries", gpu_queries::run(args)),
        Experiment::Parallelism(args) => ("parallelism", parallelism::run(args)),
        Experiment::Pipeline(args) => ("pipeline", pipeline::run(args)),
        Experiment::Scheduling(args) => ("scheduling", scheduling::run(args)),
        Experiment::Wang(args) => ("wang", wang::run(args)),
        Experiment::Generate(of) => return generate::run(of, args.report.as_deref()),
    };
    // What was found before something failed is worth having.
    let mut totals = serde_json::json!({
        "job": format!("bench {name}"), "rows": rows::taken(), "figures": figures::of(name),
    });
    if let Err(error) = &result {
        totals["failed"] = true.into();
        totals["error"] = format!("{error:#}").into();
    }
    let threads = std::thread::available_parallelism().map_or(0, NonZeroUsize::get);
    let seconds = began.elapsed().as_secs_f64();
    result.and(report::write(args.report.as_deref(), totals, seconds, threads, &[]))
}

/// Times every query; a query's latency is its median over the passes, with analysis and look-up.
fn queries(args: &Queries) -> anyhow::Result<()> {
    let queries = all_queries(args.queries.as_deref())?;
    let (snapshot, wanted) = (args.ranking.open()?, args.ranking.wanted());
    let mut searcher = Searcher::new();
    let passes = args.passes.get();
    let mut micros = vec![Vec::with_capacity(passes); queries.len()];
    let mut walls = Vec::new();
    for pass in 0..=passes {
        let began = Instant::now();
        for (query, micros) in queries.iter().zip(&mut micros) {
            let start = Instant::now();
            let answer = searcher.search(&snapshot, &query.wanted(&wanted), &query.text)?;
            std::hint::black_box(answer);
            if pass > 0 {
                micros.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        if pass > 0 {
            walls.push(began.elapsed().as_secs_f64());
        }
    }
    let mut latency: Vec<f64> = micros.iter_mut().map(|m| median(m)).collect();
    latency.sort_unstable_by(f64::total_cmp);
    let line = serde_json::json!({
        "queries": latency.len(),
        "mean_us": latency.iter().sum::<f64>() / latency.len() as f64,
        "p50_us": quantile(&latency, 0.50),
        "p95_us": quantile(&latency, 0.95),
        "p99_us": quantile(&latency, 0.99),
        "queries_per_s": queries.len() as f64 / median(&mut walls),
    });
    rows::print(line)
}

/// The queries of a file or of standard input; there is at least one.
pub(crate) fn all_queries(path: Option<&Path>) -> anyhow::Result<Vec<Query>> {
    let queries: Vec<Query> = open_queries(path, true)?
        .map(|query| Ok(query.context("reading the queries")??))
        .collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!queries.is_empty(), "there are no queries");
    Ok(queries)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The least value that a share `q` of all does not exceed.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

//! The experiments of the papers, and measurements of the parts of a job: JSON lines on standard
//! output.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage. A report whose name
//! ends in .html draws the rows.

#![deny(clippy::print_stdout)]

mod args;
mod codecs;
mod game;
mod gpu_indexing;
mod gpu_queries;
mod numbers;
mod parallelism;
mod pipeline;
mod rig;
mod rows;
mod scheduling;
mod threads;
mod wang;

use clap::{CommandFactory, FromArgMatches, Parser};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Repeats the experiments of the papers, and measures the parts of millrace.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
    /// Write all rows to FILE too: a page with the figures of the papers if the name ends in .html,
    /// otherwise one JSON object.
    #[arg(long, value_name = "FILE", global = true)]
    report: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Experiment {
    /// Size and decoding speed of every codec, on the lists that the queries read.
    Codecs(codecs::Args),
    /// Draw rows that experiments have printed or reported: the page is the --report.
    Figures {
        /// Files of rows, or reports of experiments.
        #[arg(value_name = "FILE", required = true, requires = "report")]
        files: Vec<PathBuf>,
    },
    /// The queries of the public "Search Benchmark, the Game": mean time by kind and command.
    Game(game::Args),
    /// How fast a GPU turns text into postings lists, by kernel and as a whole.
    GpuIndexing(gpu_indexing::Args),
    /// Queries a second of a GPU and of the CPU. The answers are compared first.
    GpuQueries(gpu_queries::Args),
    /// Throughput and latency of the parallel models of tatikonda11, by workers, load, query
    /// length, delta and skips.
    Parallelism(parallelism::Args),
    /// Throughput of the pipeline of wei11 and of its parts, by parsers, indexers and files.
    Pipeline(pipeline::Args),
    /// Latency of streams of queries that CPU and GPU share, by schedule and rate: simulated from
    /// measured costs, or real.
    Scheduling(scheduling::Args),
    /// Figures of wang that need no GPU: how far lists are read, caches of lists, threads.
    Wang(wang::Args),
}

/// Wrong usage that clap cannot see.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

impl Experiment {
    fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Codecs(args) => codecs::run(args),
            Self::Figures { files } => rows::take(files),
            Self::Game(args) => game::run(args),
            Self::GpuIndexing(args) => gpu_indexing::run(args),
            Self::GpuQueries(args) => gpu_queries::run(args),
            Self::Parallelism(args) => parallelism::run(args),
            Self::Pipeline(args) => pipeline::run(args),
            Self::Scheduling(args) => scheduling::run(args),
            Self::Wang(args) => wang::run(args),
        }
    }
}

fn main() -> ExitCode {
    millrace::inside::dataflow::keep_panic_messages();
    let matches = Cli::command().get_matches();
    rows::begin(matches.subcommand_name().unwrap_or_default());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let began = Instant::now();
    let started = millrace::inside::log::start(false, false).map_err(|why| Usage(why).into());
    let result = started.and_then(|()| cli.experiment.run());
    // What was found before something failed is still of use.
    let told = cli.report.map_or(Ok(()), |path| rows::report(&path, began.elapsed(), &result));
    match result.and(told) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("experiments: {error:#}");
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

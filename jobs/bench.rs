//! `millrace bench`: the speed of an index, and synthetic collections. The experiments of the
//! papers are a package of their own, `jobs/experiments`.

mod generate;

use crate::cli::progress::{DrawnProgress, in_things};
use crate::cli::report;
use crate::query::input::QueryFile;
use crate::query::ranking::RankingArgs;

use millrace::Searcher;
use millrace::inside::query::Latencies;
use serde_json::{Value, json};
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    experiment: BenchKind,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum BenchKind {
    /// Latency of queries: one worker answers them one at a time.
    Queries(QueriesArgs),
    /// Write a synthetic collection of any size, and queries for it.
    Generate(generate::Args),
}

#[derive(clap::Args, Clone, Debug)]
struct QueriesArgs {
    #[command(flatten)]
    ranking: RankingArgs,
    /// Number of measured passes over the queries. One pass before them is not measured.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    #[command(flatten)]
    file: QueryFile,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.experiment {
        BenchKind::Queries(query_args) => {
            let (row, latencies) = queries(query_args)?;
            writeln!(std::io::stdout(), "{row}")?;
            let latency = latencies.report();
            let totals = json!({"job": "bench queries", "rows": [row], "latency_us": latency});
            let threads = std::thread::available_parallelism().map_or(0, NonZeroUsize::get);
            report::write(totals, threads)
        }
        BenchKind::Generate(args) => generate::run(args),
    }
}

/// A query's latency is its median over the passes, with analysis and look-up.
fn queries(args: &QueriesArgs) -> anyhow::Result<(Value, Latencies)> {
    let snapshot = args.ranking.open()?;
    let queries = args.file.all(args.ranking.syntax, snapshot.generation())?;
    let wanted = args.ranking.wanted();
    let mut searcher = Searcher::new();
    let passes = args.passes.get();
    let mut micros = vec![Vec::with_capacity(passes); queries.len()];
    let mut walls = Vec::new();
    let (progress, drawn) = DrawnProgress::begin(in_things("measuring", "answer", "answers"));
    progress.expect(((passes + 1) * queries.len()) as u64);
    for pass in 0..=passes {
        let began = Instant::now();
        for (query, micros) in queries.iter().zip(&mut micros) {
            let start = Instant::now();
            let answer = searcher.search(&snapshot, &query.wanted(&wanted), &query.text)?;
            std::hint::black_box(answer);
            progress.pass(1);
            if pass > 0 {
                micros.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        if pass > 0 {
            walls.push(began.elapsed().as_secs_f64());
        }
    }
    drop(drawn);
    let mut latency: Vec<f64> = micros.iter_mut().map(|m| median(m)).collect();
    let latencies = Latencies::default();
    for (query, &micros) in queries.iter().zip(&latency) {
        latencies.add(Duration::from_secs_f64(micros / 1e6), &query.qid, &query.text);
    }
    latency.sort_unstable_by(f64::total_cmp);
    let row = json!({
        "queries": latency.len(),
        "mean_us": latency.iter().sum::<f64>() / latency.len() as f64,
        "p50_us": quantile(&latency, 0.50),
        "p95_us": quantile(&latency, 0.95),
        "p99_us": quantile(&latency, 0.99),
        "queries_per_s": queries.len() as f64 / median(&mut walls),
    });
    Ok((row, latencies))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The least value that a share `q` of all does not exceed.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1]
}

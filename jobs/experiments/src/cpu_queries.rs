//! `experiments cpu-queries`: the CPU rows of the papers' tables, with the engines of this index.
//!
//! - `ding09`, table 2: AND, OR and AND+OR, and what decompression, intersection and scoring take.
//! - `huang`, table 1: AND, OR, WAND and BMW for the best 1, 10 and 20.
//! - `huang`, figure 3: the same by the number of blocks of the query's lists.
//!
//! Isolated: one searcher, one query at a time, the index in memory; analysis and look-up of the
//! terms are a stage of their own. All points are measured in turn, pass by pass, and of a query
//! the fastest pass counts. Stages are measured by doing them again: a search that decodes every
//! block five times takes what decoding takes four times more than a search that decodes it once.
//! What is left is called intersection: finding the documents, of OR adding them up, and keeping
//! the best; what it takes to bring a list from memory to the caches for the first time is in it
//! too. That a stage may be done again costs every search a little, so that table 2 needs the
//! feature `stages`, and the other tables a build without it.

use crate::Usage;
use crate::args::AskedQueries;
use crate::numbers::mean;
use crate::rows::print;
use millrace::inside::query::Planner;
use millrace::{Algorithm, Mode, Query, Searcher, Snapshot, Wanted};
use serde_json::json;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    asked: AskedQueries,
    /// Number of measured passes over the queries. One pass before them is not measured.
    #[arg(long, default_value = "3", value_name = "N")]
    passes: NonZeroUsize,
    /// Table 2 of ding09 alone: the stages of a search, of a program that was built with --features
    /// stages.
    #[arg(long)]
    stages: bool,
}

/// How often a stage is done more than once to measure it.
const TIMES: u8 = 4;

type Row = (&'static str, Mode, Algorithm);

/// The rows of table 2 of `ding09`, for the best ten.
const STAGES: [Row; 5] = [
    ("AND", Mode::And, Algorithm::Auto),
    ("OR", Mode::Or, Algorithm::Exhaustive),
    ("AND+OR", Mode::AndOr, Algorithm::Exhaustive),
    ("OR, pruned", Mode::Or, Algorithm::Auto),
    ("AND+OR, pruned", Mode::AndOr, Algorithm::Auto),
];

/// The rows of table 1 and figure 3 of `huang`.
const PRUNING: [Row; 5] = [
    ("AND", Mode::And, Algorithm::Auto),
    ("OR", Mode::Or, Algorithm::Exhaustive),
    ("WAND", Mode::Or, Algorithm::Wand),
    ("BMW", Mode::Or, Algorithm::Bmw),
    ("MaxScore", Mode::Or, Algorithm::Auto),
];

/// Hits of table 1 of `huang`.
const BEST: [usize; 3] = [1, 10, 20];

/// What is measured: a searcher and the least time of each query.
struct StagePoint {
    name: &'static str,
    wanted: Wanted,
    searcher: Searcher,
    micros: Vec<f64>,
}

impl StagePoint {
    fn new((name, mode, algorithm): Row, k: usize, searcher: Searcher) -> Self {
        Self { name, wanted: Wanted { k, mode, algorithm }, searcher, micros: Vec::new() }
    }

    /// Goes through the queries once. Without hits, terms are looked up and no more.
    fn pass(&mut self, snapshot: &Arc<Snapshot>, queries: &[Query]) -> anyhow::Result<()> {
        self.micros.resize(queries.len(), f64::INFINITY);
        for (query, micros) in queries.iter().zip(&mut self.micros) {
            let start = Instant::now();
            if self.wanted.k == 0 {
                black_box(self.searcher.look_up(snapshot, &self.wanted, &query.text)?);
            } else {
                black_box(self.searcher.search(snapshot, &self.wanted, &query.text)?);
            }
            *micros = micros.min(start.elapsed().as_secs_f64() * 1e6);
        }
        Ok(())
    }

    fn mean_us(&self) -> f64 {
        mean(&self.micros)
    }
}

/// A searcher that does stages so many times more than once.
#[cfg(feature = "stages")]
fn searcher(decode: u8, score: u8) -> Searcher {
    let mut searcher = Searcher::new();
    searcher.repeat(millrace::inside::query::Again { decode, score });
    searcher
}

/// What does a stage again is not compiled in.
#[cfg(not(feature = "stages"))]
fn searcher(_: u8, _: u8) -> Searcher {
    Searcher::new()
}

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if args.stages != cfg!(feature = "stages") {
        let text = "--stages and a build with the feature stages go together: cargo run --release -p experiments \
                    --features stages -- cpu-queries --stages";
        return Err(Usage(text.into()).into());
    }
    let queries = args.asked.queries()?;
    let snapshot = args.asked.open()?;
    let blocks = blocks(&snapshot, &queries)?;
    let mut points = Vec::new();
    if args.stages {
        points.push(StagePoint::new(STAGES[0], 0, searcher(0, 0)));
        for row in STAGES {
            let all = [searcher(0, 0), searcher(TIMES, 0), searcher(0, TIMES)];
            points.extend(all.map(|searcher| StagePoint::new(row, 10, searcher)));
        }
    } else {
        let best = |row| BEST.map(|k| StagePoint::new(row, k, searcher(0, 0)));
        points.extend(PRUNING.into_iter().flat_map(best));
    }
    for point in &mut points {
        point.pass(&snapshot, &queries)?;
        point.micros.clear();
    }
    for _ in 0..args.passes.get() {
        points.iter_mut().try_for_each(|point| point.pass(&snapshot, &queries))?;
    }
    let manifest = snapshot.generation().manifest();
    print(json!({
        "table": "setting", "queries": queries.len(), "documents": manifest.statistics.documents,
        "postings": manifest.statistics.postings, "codec": manifest.settings.codec,
        "block": manifest.settings.block_size,
        "blocks_a_query": blocks.iter().sum::<usize>() as f64 / blocks.len() as f64,
    }))?;
    if args.stages { print_stages(&points) } else { print_best(&points, &blocks) }
}

/// How many blocks the lists of each query have, the tails counted as blocks.
fn blocks(snapshot: &Arc<Snapshot>, queries: &[Query]) -> anyhow::Result<Vec<usize>> {
    let wanted = Wanted { k: 10, mode: Mode::Or, algorithm: Algorithm::Auto };
    let mut planner = Planner::default();
    let mut all = Vec::new();
    for query in queries {
        let plan = planner.plan(snapshot, wanted, &query.text)?;
        let mut blocks = 0;
        for (number, run) in snapshot.generation().runs().iter().enumerate() {
            for &entry in plan.lists_of(number).iter().flatten() {
                blocks += run.list(entry)?.blocks();
            }
        }
        all.push(blocks);
    }
    Ok(all)
}

/// Table 2 of `ding09`.
fn print_stages(points: &[StagePoint]) -> anyhow::Result<()> {
    let look_up = points[0].mean_us();
    for row in points[1..].chunks(3) {
        let whole = row[0].mean_us();
        let stage = |point: &StagePoint| ((point.mean_us() - whole) / f64::from(TIMES)).max(0.0);
        let decompression = stage(&row[1]);
        let scoring = stage(&row[2]);
        print(json!({
            "table": "ding09 table 2", "algorithm": row[0].name, "k": 10, "mean_us": whole,
            "look_up_us": look_up, "decompression_us": decompression,
            "intersection_us": whole - look_up - decompression - scoring, "scoring_us": scoring,
        }))?;
    }
    Ok(())
}

/// Table 1 of `huang`, and figure 3: by the power of two that the blocks of a query reach.
fn print_best(points: &[StagePoint], blocks: &[usize]) -> anyhow::Result<()> {
    for point in points {
        print(json!({
            "table": "huang table 1", "algorithm": point.name, "k": point.wanted.k,
            "mean_us": point.mean_us(),
        }))?;
    }
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (query, blocks) in blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
        classes.entry(1 << blocks.ilog2()).or_default().push(query);
    }
    for (from, queries) in classes {
        for point in points.iter().filter(|point| point.wanted.k == 10) {
            let micros: Vec<f64> = queries.iter().map(|&query| point.micros[query]).collect();
            print(json!({
                "table": "huang figure 3", "algorithm": point.name, "k": 10, "blocks_from": from,
                "queries": queries.len(), "mean_us": mean(&micros),
            }))?;
        }
    }
    Ok(())
}

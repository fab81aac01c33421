//! `experiments game`: the queries of the public "Search Benchmark, the Game", each asked on one
//! thread for its count, its best 10 and 100, and both; the fastest of some passes counts.

use anyhow::{Context, bail};
use millrace::{IndexError, Scoring, Searcher, Snapshot, Syntax, Wanted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the index. For the figures of the benchmark, build it without stop words and
    /// stemmer.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// Number of times that each query is asked. The fastest counts.
    #[arg(long, default_value = "5", value_name = "N")]
    passes: NonZeroUsize,
    /// Write the count and the best 10 scores of each query to FILE, as lines of JSON.
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    /// Queries: a line for each, {"query": TEXT, "tags": [KIND, ...]}.
    #[arg(value_name = "QUERIES")]
    queries: PathBuf,
}

const COMMANDS: [(&str, usize, bool); 4] = [
    ("COUNT", 0, true),
    ("TOP_10", 10, false),
    ("TOP_100", 100, false),
    ("TOP_10_COUNT", 10, true),
];

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let snapshot = Snapshot::open(&args.index, Scoring::default())?;
    let mut counts = args.counts.as_ref().map(File::create).transpose()?.map(BufWriter::new);
    let mut searcher = Searcher::new();
    // Of each kind and command the sum of microseconds and the number of queries.
    let mut took: BTreeMap<(String, usize), (f64, u64)> = BTreeMap::new();
    let mut refused: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for (line, number) in fs::read_to_string(&args.queries)?.lines().zip(1..) {
        let asked: Value = serde_json::from_str(line)
            .with_context(|| format!("{}, line {number}", args.queries.display()))?;
        let (Some(query), Some(kind)) = (asked["query"].as_str(), asked["tags"][0].as_str()) else {
            bail!("{}, line {number}: a query has a text and tags", args.queries.display());
        };
        'commands: for (command, &(_, k, count)) in COMMANDS.iter().enumerate() {
            let wanted = Wanted { k, count, syntax: Syntax::Operators, ..Wanted::default() };
            let mut best = f64::INFINITY;
            for _ in 0..args.passes.get() {
                let begun = Instant::now();
                let found = searcher.search(&snapshot, &wanted, query).map(|_| ());
                best = best.min(begun.elapsed().as_secs_f64() * 1e6);
                match found {
                    Err(IndexError::Query { why }) => {
                        refused.entry(kind.to_string()).or_insert((0, why)).0 += 1;
                        break 'commands;
                    }
                    found => found?,
                }
            }
            let (sum, queries) = took.entry((kind.to_string(), command)).or_default();
            *sum += best;
            *queries += 1;
            if let (Some(counts), true) = (&mut counts, k > 0 && count) {
                let scores: Vec<f32> = searcher.hits().iter().map(|hit| hit.score).collect();
                let row = json!({"query": query, "count": searcher.found(), "scores": scores});
                writeln!(counts, "{row}")?;
            }
        }
    }
    counts.as_mut().map_or(Ok(()), Write::flush)?;
    if took.is_empty() {
        bail!("{}: there are no queries that can be answered", args.queries.display());
    }
    for ((kind, command), (sum, queries)) in took {
        let command = COMMANDS[command].0;
        let mean_us = sum / queries as f64;
        crate::rows::print(
            json!({"kind": kind, "command": command, "queries": queries, "mean_us": mean_us}),
        )?;
    }
    for (kind, (queries, why)) in refused {
        crate::rows::print(json!({"kind": kind, "refused": queries, "why": why}))?;
    }
    Ok(())
}

//! `experiments wang`: the figures of `wang` that need no GPU. How often the documents of a list
//! are visited (figure 3), what a cache of lists spares (figure 7) and what it leaves to the CPU,
//! and queries a second by threads (figure 10, its CPU part).
//!
//! The log is cut in halves if no training log is given, and queries without a document that has
//! all their terms are left out, as in the paper (section 4.1).

use crate::Usage;
use crate::args::{AskedQueries, all_queries, scoring_of_wang};
use crate::numbers::fastest;
use crate::rows::print;
use crate::threads::in_turn;
use millrace::inside::index::CachePolicy;
use millrace::inside::query::{Demand, Plan, Planner};
use millrace::{Algorithm, Mode, Query, Searcher, Snapshot, Wanted};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    asked: AskedQueries,
    /// Only this figure: figure3, figure7 or figure10.
    #[arg(long, value_name = "NAME", value_parser = ["figure3", "figure7", "figure10"])]
    only: Option<String>,
    /// File of the queries that decide what is cached (default: the first half of QUERIES).
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// Share of PageRank that the order of the index was made for (default: 0.3).
    #[arg(long, value_name = "F")]
    alpha: Option<f64>,
    /// Memory of the cache, in parts of the bytes of all lists.
    #[arg(long, value_name = "F,...", value_delimiter = ',')]
    #[arg(default_value = "0.05,0.1,0.2,0.4,0.8")]
    sizes: Vec<f64>,
    /// Greatest shares of a list that vfb takes.
    #[arg(long, value_name = "F,...", value_delimiter = ',', default_value = "0.75,0.85,0.95,1")]
    lambda: Vec<f64>,
    /// Threads of figure 10.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,8")]
    threads: Vec<NonZeroUsize>,
}

/// Parts of a list that figure 3 shows.
const PARTS: usize = 20;

/// Runs the experiment.
pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let is_share = |share: &f64| (0.0..=1.0).contains(share);
    if !args.lambda.iter().chain(&args.sizes).all(is_share) {
        return Err(Usage("--lambda and --sizes: give shares from 0 to 1".into()).into());
    }
    let snapshot = Snapshot::open(&args.asked.index, scoring_of_wang(args.alpha)?)?;
    snapshot.check_global()?;
    let mut searcher = Searcher::new();
    let (mut test, none) = plans(&snapshot, &mut searcher, args.asked.queries()?)?;
    let train: Vec<Plan> = match args.train.as_deref() {
        Some(path) => plans(&snapshot, &mut searcher, all_queries(Some(path))?)?.0,
        None => test.drain(..test.len() / 2).collect(),
    };
    anyhow::ensure!(
        !train.is_empty() && !test.is_empty(),
        "no query has a document with all its terms"
    );
    let bytes = snapshot.generation().runs()[0].postings_header().list_bytes;
    print(json!({
        "row": "load", "documents": snapshot.norms().len(), "list_bytes": bytes,
        "train": train.len(), "test": test.len(), "without_answer": none,
    }))?;
    let wants = |name: &str| args.only.as_ref().is_none_or(|only| only == name);
    let block_len = snapshot.generation().manifest().settings.block_size as usize;
    let mut demand = Demand::new(block_len);
    for plan in &train {
        demand.count(&mut searcher, plan, 1)?;
    }
    if wants("figure3") {
        figure_3(&demand)?;
    }
    if wants("figure7") {
        for &size in &args.sizes {
            let memory = (bytes as f64 * size) as u64;
            for policy in CachePolicy::ALL {
                let lambdas = if policy == CachePolicy::Vfb { &args.lambda[..] } else { &[1.0] };
                for &lambda in lambdas {
                    let mut row = figure_7(&mut searcher, &demand, &test, policy, memory, lambda)?;
                    row["size"] = size.into();
                    print(row)?;
                }
            }
        }
    }
    if wants("figure10") {
        figure_10(args, &test)?;
    }
    Ok(())
}

/// The plans of the queries that have answers, and how many have none.
fn plans(
    snapshot: &Arc<Snapshot>,
    searcher: &mut Searcher,
    queries: Vec<Query>,
) -> anyhow::Result<(Vec<Plan>, usize)> {
    let wanted = Wanted { k: 10, mode: Mode::And, algorithm: Algorithm::Wang };
    let mut planner = Planner::default();
    let mut plans = Vec::new();
    let mut none = 0;
    for query in queries {
        let plan = planner.plan(snapshot, wanted, &query.text)?;
        if searcher.answer(&plan)?.is_empty() {
            none += 1;
        } else {
            plans.push(plan);
        }
    }
    Ok((plans, none))
}

/// Queries that visit each twentieth of the list of the most frequent term.
fn figure_3(demand: &Demand) -> anyhow::Result<()> {
    let Some(list) = demand.most_wanted() else { return Ok(()) };
    let units = list.visits.len();
    let parts = (0..PARTS).map(|part| list.visits[units * part / PARTS]);
    print(json!({
        "row": "figure3", "df": list.entry.df, "queries": list.queries, "units": units,
        "visits_by_offset": parts.collect::<Vec<_>>(), "visits_at_end": list.visits[units - 1],
    }))
}

/// Transfer volume, hit rate and queries that the CPU has to end, by policy. What is left to the
/// CPU is compared with whole lists: both have to find the same.
fn figure_7(
    searcher: &mut Searcher,
    demand: &Demand,
    test: &[Plan],
    policy: CachePolicy,
    memory: u64,
    lambda: f64,
) -> anyhow::Result<serde_json::Value> {
    let admitted = demand.admit(policy, memory, lambda);
    let mut lists = 0u64;
    let mut hits = 0u64;
    let mut bytes = 0u64;
    let mut complete = 0usize;
    for plan in test {
        let mut prefixes = Vec::new();
        for entry in plan.lists_of(0).iter().flatten() {
            let there = admitted.cached.blocks(0, entry);
            lists += 1;
            hits += u64::from(there.is_some());
            bytes += if there.is_some() { 0 } else { entry.bytes };
            prefixes.push(there.unwrap_or(usize::MAX));
        }
        let (found, is_complete) = searcher.answer_prefixes(plan, &prefixes)?;
        let found = found.to_vec();
        anyhow::ensure!(
            found == searcher.answer(plan)?,
            "prefixes and whole lists find different documents: this is a bug"
        );
        complete += usize::from(is_complete);
    }
    Ok(json!({
        "row": "figure7", "policy": policy.name(), "lambda": lambda, "memory_bytes": memory,
        "cached_bytes": admitted.bytes, "cached_lists": admitted.cached.lists().len(),
        "hit_rate": hits as f64 / lists.max(1) as f64,
        "transfer_bytes_per_query": bytes as f64 / test.len() as f64,
        "left_to_the_cpu": 1.0 - complete as f64 / test.len() as f64,
    }))
}

/// Queries a second by threads, each of which takes the next query: by rounds, and to the ends of
/// the lists.
fn figure_10(args: &Args, test: &[Plan]) -> anyhow::Result<()> {
    for k in [1, 5, 10, 15] {
        for algorithm in [Algorithm::Wang, Algorithm::Galloping] {
            let mut plans = test.to_vec();
            plans.iter_mut().for_each(|plan| plan.want(Wanted { k, mode: Mode::And, algorithm }));
            for &threads in &args.threads {
                let passes = NonZeroUsize::new(3).expect("above 0");
                let once = || in_threads(&plans, threads.get());
                let seconds = fastest(passes, |&seconds| seconds, once)?;
                print(json!({
                    "row": "figure10", "k": k, "algorithm": algorithm.name(), "threads": threads,
                    "queries_per_s": plans.len() as f64 / seconds,
                }))?;
            }
        }
    }
    Ok(())
}

/// Has so many threads answer all queries, each the next one, and returns the seconds that it took.
pub(crate) fn in_threads(plans: &[Plan], threads: usize) -> anyhow::Result<f64> {
    let start = Instant::now();
    in_turn(
        threads,
        || Ok(Searcher::new()),
        |searcher, number| {
            let Some(plan) = plans.get(number) else { return Ok(None) };
            std::hint::black_box(searcher.answer(plan)?);
            Ok(Some(()))
        },
    )?;
    Ok(start.elapsed().as_secs_f64())
}

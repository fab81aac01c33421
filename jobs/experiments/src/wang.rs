//! `experiments wang`: the figures of `wang` that need no GPU. How often the documents of a list
//! are visited (figure 3), what a cache of lists spares (figure 7) and what it leaves to the CPU,
//! and queries a second by threads (figure 10, its CPU part).
//!
//! The log is cut in halves if no training log is given, and queries without a document that has
//! all their terms are left out, as in the paper (section 4.1).

use crate::args::{AskedQueries, all_queries, scoring_of_wang};
use crate::numbers::{Middle, PASSES, middle};
use crate::rows::print;
use crate::threads::{in_turn, threads};
use millrace::inside::index::{CachePolicy, Stop};
use millrace::inside::papers::{Demand, Visitor, WANG};
use millrace::inside::query::{Plan, Planner};
use millrace::{Algorithm, Hit, Mode, Query, Searcher, Snapshot, Wanted};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    asked: AskedQueries,
    /// What to measure, of figure3, figure7 and figure10 (default: all).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = ["figure3", "figure7", "figure10"])]
    only: Vec<String>,
    /// File of the queries that decide what is cached (default: the first half of QUERIES).
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// Only queries of which this many documents have all terms.
    #[arg(long, default_value_t = 1, value_name = "N")]
    least_hits: usize,
}

/// Parts of a list that figure 3 shows.
const PARTS: usize = 20;

/// Memory of the cache in figure 7, in parts of the bytes of all lists.
const SIZES: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 0.8];

/// Greatest shares of a list that VFB takes.
const LAMBDAS: [f64; 4] = [0.75, 0.85, 0.95, 1.0];

/// Queries of a row at most for each thread.
const MOST_QUERIES: usize = 1000;

/// A query and its best documents.
type Answered = (Plan, Vec<Hit>);

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let snapshot = Snapshot::open(&args.asked.index, scoring_of_wang(&args.asked.index)?)?;
    snapshot.check_global()?;
    let mut queries = args.asked.queries()?;
    let train = match args.train.as_deref() {
        Some(path) => all_queries(Some(path))?,
        None => queries.drain(..queries.len() / 2).collect(),
    };
    let of_train = answered(&snapshot, &train, args.least_hits)?;
    let texts = train.iter().zip(&of_train).filter(|(_, answered)| answered.is_some());
    let texts: Vec<(&str, u32)> = texts.map(|(query, _)| (&*query.text, 1)).collect();
    let demand = Demand::of_log(&snapshot, &texts, 10, threads(), &Stop::default())?;
    let all = answered(&snapshot, &queries, args.least_hits)?;
    let test: Vec<Answered> = all.into_iter().flatten().collect();
    anyhow::ensure!(
        demand.queries > 0 && !test.is_empty(),
        "no query has as many documents with all its terms as are asked for"
    );
    let bytes = snapshot.generation().runs()[0].postings_header().list_bytes;
    print(json!({
        "row": "load", "documents": snapshot.norms().len(), "list_bytes": bytes,
        "train": demand.queries, "test": test.len(),
        "least_hits": args.least_hits, "without_answer": queries.len() - test.len(),
    }))?;
    let wants = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    if wants("figure3") {
        figure_3(&demand)?;
    }
    if wants("figure7") {
        for size in SIZES {
            for policy in CachePolicy::ALL {
                for lambda in if policy == CachePolicy::Vfb { &LAMBDAS[..] } else { &[1.0] } {
                    let memory = (bytes as f64 * size) as u64;
                    let mut row = figure_7(&demand, &test, policy, memory, *lambda)?;
                    row["size"] = size.into();
                    print(row)?;
                }
            }
        }
    }
    if wants("figure10") {
        let plans: Vec<Plan> = test.into_iter().map(|(plan, _)| plan).collect();
        figure_10(&plans)?;
    }
    Ok(())
}

/// The best 10 of each query that has this many documents.
fn answered(
    snapshot: &Arc<Snapshot>,
    queries: &[Query],
    least: usize,
) -> anyhow::Result<Vec<Option<Answered>>> {
    let wanted = Wanted { k: 10, mode: Mode::And, algorithm: WANG, ..Wanted::default() };
    let counted = Wanted { k: least.max(10), ..wanted };
    let begin = || Ok((Planner::default(), Searcher::new()));
    in_turn(threads(), begin, |(planner, searcher), number| {
        let Some(query) = queries.get(number) else { return Ok(None) };
        let mut plan = planner.plan(snapshot, counted, &query.text)?;
        let mut hits = searcher.answer(&plan)?.to_vec();
        let has_enough = hits.len() >= least.max(1);
        plan.want(wanted);
        hits.truncate(wanted.k);
        Ok(Some(has_enough.then_some((plan, hits))))
    })
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

/// Transfer volume, hit rate and queries that the CPU has to end, by policy. What prefixes find is
/// compared with the answers of whole lists.
fn figure_7(
    demand: &Demand,
    test: &[Answered],
    policy: CachePolicy,
    memory: u64,
    lambda: f64,
) -> anyhow::Result<Value> {
    let admitted = demand.admit(policy, memory, lambda);
    let step = test.len().div_ceil(2 * MOST_QUERIES);
    // Of each query its lists, those that are cached, bytes of the others, and whether it is done.
    let done = in_turn(
        threads(),
        || Ok(Visitor::default()),
        |visitor, number| {
            let Some((plan, hits)) = test.get(number * step) else { return Ok(None) };
            let entries = plan.lists_of(0).iter().flatten();
            let there: Vec<_> =
                entries.clone().map(|entry| admitted.cached.blocks(0, entry)).collect();
            let away = entries.zip(&there).filter(|(_, there)| there.is_none());
            let bytes: u64 = away.map(|(entry, _)| entry.bytes).sum();
            let prefixes: Vec<_> = there.iter().map(|there| there.unwrap_or(usize::MAX)).collect();
            let (found, is_complete) = visitor.answer_prefixes(plan, &prefixes)?;
            anyhow::ensure!(found == *hits, "prefixes and whole lists differ: this is a bug");
            let cached = there.iter().flatten().count();
            Ok(Some([there.len() as f64, cached as f64, bytes as f64, f64::from(is_complete)]))
        },
    )?;
    let sum = |figure: usize| done.iter().map(|of| of[figure]).sum::<f64>();
    let count = done.len() as f64;
    Ok(json!({
        "row": "figure7", "policy": policy.name(), "lambda": lambda, "memory_bytes": memory,
        "queries": done.len(), "cached_bytes": admitted.bytes,
        "cached_lists": admitted.cached.lists().len(), "hit_rate": sum(1) / sum(0),
        "transfer_bytes_per_query": sum(2) / count, "left_to_the_cpu": 1.0 - sum(3) / count,
    }))
}

/// Queries a second by threads, each of which takes the next query: by rounds, and to the ends of
/// the lists.
fn figure_10(test: &[Plan]) -> anyhow::Result<()> {
    for k in [1, 5, 10, 15] {
        for algorithm in [WANG, Algorithm::Galloping] {
            let fewer = std::iter::successors(Some(1), |threads| Some(4 * threads));
            for count in fewer.take_while(|&count| count < threads()).chain([threads()]) {
                let Middle { middle, spread } = rate(test, k, algorithm, count)?;
                print(json!({
                    "row": "figure10", "k": k, "algorithm": algorithm.name(), "threads": count,
                    "queries_per_s": middle, "spread": spread,
                }))?;
            }
        }
    }
    Ok(())
}

/// Queries a second of this many threads, each of which takes the next query: of three passes. Few
/// threads have some of the queries.
pub(crate) fn rate(
    plans: &[Plan],
    k: usize,
    algorithm: Algorithm,
    count: usize,
) -> anyhow::Result<Middle<f64>> {
    let step = plans.len().div_ceil(MOST_QUERIES * count);
    let mut plans: Vec<Plan> = plans.iter().step_by(step).cloned().collect();
    plans
        .iter_mut()
        .for_each(|plan| plan.want(Wanted { k, mode: Mode::And, algorithm, ..Wanted::default() }));
    middle(
        PASSES,
        |&rate| rate,
        || {
            let start = Instant::now();
            in_turn(
                count,
                || Ok(Searcher::new()),
                |searcher, number| {
                    let Some(plan) = plans.get(number) else { return Ok(None) };
                    std::hint::black_box(searcher.answer(plan)?);
                    Ok(Some(()))
                },
            )?;
            Ok(plans.len() as f64 / start.elapsed().as_secs_f64())
        },
    )
}

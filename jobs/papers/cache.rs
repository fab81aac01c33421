//! `millrace cache`.

use crate::Usage;
use crate::cli::args::{show_bytes, show_count, workers_of};
use crate::cli::progress::{DrawnProgress, in_things};
use crate::cli::report;
use crate::query::input::QueryFile;
use anyhow::{Context as _, ensure};
use millrace::inside::index::{CachePolicy, PlanOf};
use millrace::inside::papers::Demand;
use millrace::inside::shown::number_of;
use millrace::{Generation, Scoring, Snapshot, Syntax};
use serde_json::json;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Folder of the index.
    #[arg(long, value_name = "DIR")]
    index: PathBuf,
    /// What to cache. vfb: the beginnings of lists that most queries read. qtf: whole lists, most
    /// frequent query terms first. qtfdf: the same, divided by the length of the list.
    #[arg(long, default_value = "vfb", value_parser = parse_policy, value_name = "vfb|qtf|qtfdf")]
    cache: CachePolicy,
    /// With vfb: greatest share of a list to cache, from 0 to 1 [default: 1].
    #[arg(long, value_name = "F")]
    lambda: Option<f64>,
    /// Memory of the cache, such as 4G. Lists count by their bytes on disk.
    #[arg(long, value_parser = crate::cli::args::size, value_name = "SIZE")]
    memory: u64,
    /// Hits for each query. They decide how far a query reads into its lists.
    #[arg(short, default_value = "10", value_name = "K")]
    k: std::num::NonZeroU32,
    /// Number of threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: QueryFile,
}

fn parse_policy(text: &str) -> Result<CachePolicy, String> {
    CachePolicy::named(text)
        .ok_or_else(|| format!("give {}", CachePolicy::ALL.map(CachePolicy::name).join(", ")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.lambda.is_some() && args.cache != CachePolicy::Vfb {
        return Err(Usage("--lambda goes with --cache vfb".into()).into());
    }
    let lambda = args.lambda.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&lambda) {
        return Err(
            Usage(format!("--lambda: expected a number from 0 to 1, found {lambda}")).into()
        );
    }
    let workers = workers_of(args.workers)?;
    let generation = Generation::open(&args.index)?;
    let of = PlanOf::generation(&generation)?;
    let scoring = Scoring::of_order(&generation);
    let snapshot = Snapshot::new(generation, scoring)?;
    let log = args.log.all(Syntax::Words, snapshot.generation()).context("reading the log")?;
    let other = log.iter().find(|query| !query.has_words());
    ensure!(other.is_none(), "a query of the log has operators, and lists are cached for words");
    let mut times: HashMap<&str, u32> = HashMap::new();
    log.iter().for_each(|query| *times.entry(&*query.text).or_default() += 1);
    let texts: Vec<(&str, u32)> = times.into_iter().collect();
    let (progress, drawn) = DrawnProgress::begin(in_things("answering", "query", "queries"));
    let demand = Demand::of_log(&snapshot, &texts, args.k.get() as usize, workers, &progress)?;
    drop(drawn);
    ensure!(demand.queries > 0, "no query of the log has a document with all its terms");
    let plan = demand.plan(of, args.cache, lambda, args.k, args.memory);
    plan.write(snapshot.generation().path())?;
    let lists = plan.cached.lists().len();
    tell!(
        "{}: {} of {}, by {} of the log; those that find no document did not count: {}",
        args.index.display(),
        show_bytes(plan.cached_bytes),
        number_of(lists as u64, "list", "lists"),
        number_of(demand.queries, "query", "queries"),
        show_count(demand.without_answer),
    );
    let totals = json!({
        "job": "cache", "index": args.index.display().to_string(), "generation": plan.of.generation,
        "cache": plan.policy.name(), "lambda": lambda, "k": plan.k, "queries": demand.queries,
        "without_answer": demand.without_answer, "memory_bytes": plan.memory_bytes,
        "cached_bytes": plan.cached_bytes, "lists": lists,
    });
    report::print(args.json, &totals, String::new)?;
    report::write(totals, workers)
}

//! `millrace calibrate`.

use super::hybrid::name_of_machine;
use crate::cli::args::workers_of;
use crate::cli::report;
use crate::query::gpus::Where;
use crate::query::input::QueryFile;
use crate::query::ranking::RankingArgs;
use anyhow::{Context as _, ensure};
use millrace::inside::gpu::Counts;
use millrace::inside::papers::{Cost, CostModel, Hardware, Models, choose, costs};
use millrace::inside::query::{Engines, Planner, Wakers};
use millrace::inside::rebuild::replace;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use synthetic::arrivals::Poisson;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    ranking: RankingArgs,
    #[command(flatten)]
    place: Where,
    /// Greatest number of queries to measure. They are taken from all over the file.
    #[arg(long, default_value_t = 4000, value_name = "N")]
    sample: usize,
    /// File for the measured costs of each query, as JSON lines. the experiment `scheduling` reads
    /// it.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Print one JSON object, which is printed without this option too.
    #[arg(long)]
    json: bool,
    /// Number of worker threads of the queries to come [default: one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    file: QueryFile,
}

/// Queries of the stream with which policies are tried.
const STREAM: usize = 4000;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Args { ranking, place, .. } = args;
    let threads = workers_of(args.workers)?;
    let devices = place.chosen(ranking.k(), ranking.algorithm)?;
    let snapshot = ranking.open_for_any()?;
    let queries = args.file.all(args.ranking.syntax, snapshot.generation())?;
    let step = queries.len().div_ceil(args.sample.max(1)).max(1);
    let mut planner = Planner::default();
    let wanted = ranking.wanted();
    let plans =
        queries.iter().step_by(step).map(|query| planner.plan(&snapshot, wanted, &query.text));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let wakers = Wakers::new(1);
    let counts = Arc::<Counts>::default();
    let engines = place.open(&devices, &snapshot, &wakers, &counts)?;
    let measured = costs(&mut *engines.engine(0, &snapshot)?, &plans)?;
    let by_cpu: u64 = counts.by_cpu().iter().map(|(queries, _)| queries).sum();
    ensure!(
        by_cpu == 0,
        "{by_cpu} of the answers that devices were asked for came from the CPU: their costs are unknown"
    );
    if let Some(path) = &args.costs {
        write(path, &measured)?;
    }
    let learned = CostModel::learn(&measured);
    let mut model =
        learned.context("too few queries: eight at least have to have a term of the index")?;
    // Costs of other modes stay, if they are of this machine.
    let machine = name_of_machine(&devices);
    let path = devices.path_of_costs(&ranking.index);
    let kept = Models::read(&path).ok().filter(|models| models.machine == machine);
    let mut models = kept.unwrap_or(Models { machine, ..Models::default() });
    let machine = Hardware { threads, devices: devices.number() };
    let deadline = place.deadline().as_secs_f64();
    let arrivals = || Poisson::new(7, 1.0).take(STREAM).collect();
    let choice = choose(&measured, &model, deadline, machine, arrivals);
    model.choice = Some(choice);
    let errors = model.errors;
    let alone = model.alone;
    let leaves = [&model.cpu, &model.device].map(|tree| tree.leaves());
    models.modes.insert(ranking.mode.name().to_owned(), model);
    replace(&path, (serde_json::to_string(&models)? + "\n").as_bytes())
        .with_context(|| path.display().to_string())?;
    let mean = |kind: usize| {
        measured.iter().map(|cost| cost.seconds[kind]).sum::<f64>() / measured.len() as f64
    };
    let totals = json!({
        "job": "calibrate", "mode": ranking.mode.name(), "queries": measured.len(), "machine": models.machine,
        "mean_s": {"cpu": mean(0), "device": mean(1)},
        "errors": {"cpu": errors[0], "device": errors[1]}, "leaves": {"cpu": leaves[0], "device": leaves[1]},
        "alone_over_together": {"cpu": alone[0], "device": alone[1]}, "best": choice.best, "lbd": choice.by_blocks,
        "kept": path.display().to_string(),
    });
    writeln!(std::io::stdout(), "{totals}")?;
    report::write(totals, threads)
}

/// As JSON lines, which the experiment `scheduling` reads.
fn write(path: &Path, measured: &[Cost]) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let mut out = BufWriter::new(std::fs::File::create(path).with_context(named)?);
    for cost in measured {
        serde_json::to_writer(&mut out, cost)?;
        out.write_all(b"\n")?;
    }
    out.flush().with_context(named)
}

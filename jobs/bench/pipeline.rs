//! `millrace bench pipeline`: how do the stages of `wei11` share the work (section IV)?
//!
//! Every point is a whole build of the input into a folder that goes away, in this process; what the
//! stages took is what the operators and indexers report. Axes: parsers (figure 10), indexers (table
//! IV), files (figure 11). Two parts are measured alone: what regrouping costs and gains (section
//! III.C), and reading a compressed file before inflating it against inflating while reading (section
//! IV.A). Expected: throughput grows with the parsers until the indexers cannot follow; a change of
//! collection that the sample has not seen costs most where work is placed by it.

mod parts;

use crate::args::{show_bytes, size};
use crate::build::How;
use anyhow::Context;
use millrace::build::memory::give_back_large_buffers;
use millrace::build::{
    BuildOptions, BuildReport, Indexer, IndexerReport, TokensTaken, build, usable_gpus,
};
use millrace::dictionary::closed::{ClosedError, ClosedTerms};
use millrace::dictionary::indexer::{ParsedBlock, TokenIndexer};
use millrace::dictionary::run::{RunDictionary, SortedRun};
use millrace::gpu::discover::Gpus;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Worker threads (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<usize>,
    /// Numbers of parsers, such as 1,2,4 (default: all from 1 up to one less than workers).
    #[arg(long, value_name = "M,...", value_delimiter = ',')]
    parsers: Vec<usize>,
    /// What to measure, such as parsers,regrouping (default: all).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<Figure>,
    /// The most memory that every build may take.
    #[arg(long, default_value = "4G", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    how: How,
    /// Builds of each point; the fastest counts.
    #[arg(long, default_value = "1", value_name = "N")]
    repeat: std::num::NonZeroUsize,
    /// Files or folders, in the order in which they are indexed.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// Throughput by number of parsers, in three scenarios (figure 10).
    Parsers,
    /// Times of the steps by numbers of indexers, and what each side did (tables III to V).
    Indexers,
    /// Indexing throughput by file (figure 11).
    Files,
    /// Cost and gain of regrouping.
    Regrouping,
    /// Reading then inflating, and inflating while reading.
    Inflating,
    /// `wei11` beside `fast` (table VI).
    Whole,
}

/// Takes tokens for no index at all: what is left is the work of the parsers.
struct Discard;

impl TokenIndexer for Discard {
    fn append(&mut self, _: ParsedBlock) -> Result<(), ClosedError> {
        Ok(())
    }

    fn advance(&mut self) -> Result<usize, ClosedError> {
        Ok(0)
    }

    fn most_blocks(&self) -> usize {
        1
    }

    fn close(&mut self) -> Result<Box<dyn ClosedTerms>, ClosedError> {
        Ok(Box::new(SortedRun::from(RunDictionary::default())))
    }
}

/// Parsers, CPU indexers and GPU indexers.
type Roles = (usize, usize, usize);

struct Bench<'a> {
    args: &'a Args,
    workers: usize,
    /// GPUs that can be used, or why there are none.
    gpus: Result<usize, String>,
    out: std::io::Stdout,
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let workers = args.workers.unwrap_or(cores);
    let gpus = usable_gpus();
    give_back_large_buffers(args.memory);
    let mut bench = Bench { args, workers, gpus, out: std::io::stdout() };
    if let Err(reason) = &bench.gpus {
        say!("left out: all that needs a GPU ({reason})");
    }
    let wants = |figure| args.only.is_empty() || args.only.contains(&figure);
    if wants(Figure::Parsers) {
        bench.parsers()?;
    }
    if wants(Figure::Indexers) {
        bench.indexers()?;
    }
    if wants(Figure::Files) {
        bench.files()?;
    }
    if wants(Figure::Whole) {
        bench.whole()?;
    }
    if wants(Figure::Regrouping) {
        let row = parts::regrouping(&args.inputs)?;
        bench.row("regrouping", row)?;
    }
    if wants(Figure::Inflating) {
        match parts::inflating(&args.inputs)? {
            Some(row) => bench.row("inflating", row)?,
            None => say!("left out: inflating (no input is compressed)"),
        }
    }
    Ok(())
}

impl Bench<'_> {
    /// Builds with so many of each, the indexers of millrace or those that throw away what they get.
    fn build(
        &self,
        indexer: Indexer,
        roles: Option<Roles>,
        discard: bool,
    ) -> anyhow::Result<BuildReport> {
        let mut best: Option<BuildReport> = None;
        for _ in 0..self.args.repeat.get() {
            let folder = tempfile::Builder::new().prefix("millrace-bench-").tempdir()?;
            let index = folder.path().join("index");
            let mut options = BuildOptions::of_paths(index, &self.args.inputs);
            self.args.how.fill(&mut options)?;
            (options.indexer, options.memory) = (indexer, self.args.memory);
            options.workers = self.workers;
            if let Some((parsers, cpu, gpu)) = roles {
                options.pipeline.parsers = Some(parsers);
                options.pipeline.cpu_indexers = Some(cpu);
                options.pipeline.gpu_indexers = Some(gpu);
                if gpu == 0 {
                    options.gpus = Gpus::None;
                }
            }
            if discard {
                options.pipeline.make_indexer = Some(Box::new(|_| Ok(Box::new(Discard))));
            }
            let report = build(options).map_err(crate::build::explain);
            let report = report.context("a build of the bench")?;
            if best.as_ref().is_none_or(|best| report.seconds < best.seconds) {
                best = Some(report);
            }
        }
        best.context("no build was asked for")
    }

    /// Prints a point as JSON, and for people.
    fn row(&mut self, figure: &str, mut row: Value) -> anyhow::Result<()> {
        row["figure"] = json!(figure);
        let shown = |value: &Value| match value.as_f64() {
            Some(n) if !value.is_u64() => format!("{n:.3}"),
            _ => value.to_string().trim_matches('"').to_string(),
        };
        let columns = row.as_object().into_iter().flatten();
        let text: Vec<String> = columns
            .filter(|(name, _)| *name != "figure")
            .map(|(name, value)| format!("{name} {}", shown(value)))
            .collect();
        say!("{figure}: {}", text.join(", "));
        writeln!(self.out, "{row}")?;
        Ok(())
    }

    /// Figure 10: M parsers and the other workers CPU indexers; the same with GPUs; no indexers.
    fn parsers(&mut self) -> anyhow::Result<()> {
        let mut numbers = self.args.parsers.clone();
        if numbers.is_empty() {
            numbers = (1..self.workers.max(2)).collect();
        }
        for parsers in numbers {
            let cpu = self.workers.saturating_sub(parsers).max(1);
            let gpus = self.gpus.clone().ok();
            let scenarios = [
                ("cpu", Some((parsers, cpu, 0)), false),
                ("cpu and gpu", gpus.map(|gpus| (parsers, cpu, gpus)), false),
                ("no indexers", Some((parsers, cpu, 0)), true),
            ];
            for (scenario, roles, discard) in scenarios {
                let Some(roles) = roles else { continue };
                let report = self.build(Indexer::Wei11, Some(roles), discard)?;
                let row = json!({"scenario": scenario, "parsers": roles.0, "cpu_indexers": roles.1,
                    "gpu_indexers": roles.2, "mb_per_s": report.mb_per_s,
                    "seconds": report.seconds});
                self.row("parsers", row)?;
            }
        }
        Ok(())
    }

    /// Tables III to V: the collection, the times of the steps, and the work of each side.
    fn indexers(&mut self) -> anyhow::Result<()> {
        let gpus = self.gpus.clone().unwrap_or(0);
        let parsers = (self.workers * 3 / 4).max(1);
        let mut settings = vec![(parsers, 1, 0), (parsers, 2, 0)];
        if gpus > 0 {
            settings.extend([(parsers, 0, gpus), (parsers, 2, gpus)]);
        }
        for (number, roles) in settings.into_iter().enumerate() {
            let report = self.build(Indexer::Wei11, Some(roles), false)?;
            if number == 0 {
                let row = json!({"compressed_bytes": report.read_bytes,
                    "documents": report.documents,
                    "uncompressed_bytes": report.uncompressed_bytes, "terms": report.terms,
                    "tokens": report.tokens, "postings": report.postings});
                self.row("collection", row)?;
            }
            self.row("indexers", times(&report, roles))?;
            for (side, gpu) in [("gpu", true), ("cpu", false)] {
                if let Some(row) = work(&report, roles.2, gpu) {
                    self.row(&format!("work of the {side} side"), row)?;
                }
            }
        }
        Ok(())
    }

    /// Figure 11: how fast the indexers are, the slowest of them, by split of the input.
    fn files(&mut self) -> anyhow::Result<()> {
        let parsers = (self.workers * 3 / 4).max(1);
        let gpus = self.gpus.clone().unwrap_or(0);
        let mut settings = vec![(parsers, 1, 0), (parsers, 2, 0)];
        if gpus > 0 {
            settings.push((parsers, 2, gpus));
        }
        for (parsers, cpu, gpu) in settings {
            let report = self.build(Indexer::Wei11, Some((parsers, cpu, gpu)), false)?;
            for split in &report.splits {
                let mb_per_s = split.text_bytes as f64 / 1e6 / split.seconds.max(1e-9);
                let row = json!({"cpu_indexers": cpu, "gpu_indexers": gpu, "split": split.split,
                    "text_bytes": split.text_bytes, "mb_per_s": mb_per_s});
                self.row("files", row)?;
            }
        }
        Ok(())
    }

    /// Table VI: the whole job, with the time of the sample, beside `fast`.
    fn whole(&mut self) -> anyhow::Result<()> {
        let mut jobs =
            vec![(Indexer::Fast, None), (Indexer::Wei11, Some((self.workers, self.workers, 0)))];
        if let Ok(gpus) = self.gpus {
            jobs.push((Indexer::Wei11, Some((self.workers, self.workers, gpus))));
        }
        for (indexer, roles) in jobs {
            let report = self.build(indexer, roles, false)?;
            let row = json!({"indexer": indexer.name(),
                "gpu_indexers": roles.map_or(0, |roles| roles.2),
                "mb_per_s": report.mb_per_s, "seconds": report.seconds,
                "sampling_s": report.placement.sample_seconds(), "runs": report.runs_before_merge,
                "dictionary_and_lists_s": seconds(&report, "Encode") + seconds(&report, "Flush"),
                "index": show_bytes(report.index_bytes)});
            self.row("whole", row)?;
        }
        Ok(())
    }
}

/// Seconds that an operator has worked, on all workers.
fn seconds(report: &BuildReport, operator: &str) -> f64 {
    let rows = report.operators.iter().filter(|row| row.operator == operator);
    rows.map(|row| row.seconds).sum()
}

/// The greatest and the sum of a figure over the indexers of a side.
fn of_side(
    report: &BuildReport,
    gpus: usize,
    gpu: bool,
    figure: impl Fn(&IndexerReport, &TokensTaken) -> f64,
) -> (f64, f64) {
    let mine = report.indexers.iter().filter(|row| ((row.indexer as usize) < gpus) == gpu);
    let figures = mine.filter_map(|row| Some(figure(row, row.took.as_ref()?)));
    figures.fold((0.0, 0.0), |(most, sum), value| (f64::max(most, value), sum + value))
}

/// Table IV, of the slowest indexer of each side. The steps of one run overlap those of the pieces
/// that follow, so that they need not add up to the whole.
fn times(report: &BuildReport, (parsers, cpu, gpu): Roles) -> Value {
    let busy = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.busy_s).0;
    let waited = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.waited_s).0;
    let worked = |on_gpu| of_side(report, gpu, on_gpu, |_, took| took.worked_s).1;
    json!({
        "parsers": parsers,
        "cpu_indexers": cpu,
        "gpu_indexers": gpu,
        "seconds": report.seconds,
        "parsing_s": seconds(report, "Parse"),
        "preprocessing_s":
            (seconds(report, "IndexTokens") - worked(false) - worked(true)).max(0.0),
        "indexing_cpu_s": busy(false),
        "indexing_gpu_s": busy(true),
        "postprocessing_s": seconds(report, "Encode") + seconds(report, "Flush"),
        "waiting_cpu_s": waited(false),
        "waiting_gpu_s": waited(true),
    })
}

/// Table V: what a side has indexed.
fn work(report: &BuildReport, gpus: usize, gpu: bool) -> Option<Value> {
    let tokens = of_side(report, gpus, gpu, |_, took| took.tokens as f64).1;
    let terms = of_side(report, gpus, gpu, |row, _| row.terms as f64).1;
    let characters = of_side(report, gpus, gpu, |_, took| took.characters as f64).1;
    let busy = of_side(report, gpus, gpu, |_, took| took.busy_s).0;
    (tokens > 0.0).then(|| {
        json!({"tokens": tokens as u64, "terms": terms as u64, "characters": characters as u64,
            "tokens_per_s": tokens / busy.max(1e-9)})
    })
}

//! `millrace bench pipeline`: how do the stages of `wei11` share the work (section IV)?
//!
//! Every point is a whole build of the input into a folder that goes away, in this process; what the
//! stages took is what the operators and indexers report. Axes: parsers (figure 10), indexers (tables
//! IV and V), GPUs, files (figure 11). Two parts are measured alone: what regrouping costs and gains
//! (section III.C), and reading a compressed file before inflating it against inflating while reading
//! (section IV.A). Expected: throughput grows with the parsers until the indexers cannot follow; a
//! change of collection that the sample has not seen costs most where work is placed by it.
//!
//! The paper codes postings by vbyte behind the indexers; here that is `--codec vbyte`, and the default
//! is `bp128`, as for every build.

mod parts;
mod rates;
mod tables;

use crate::build::How;
use crate::cli::args::{show_bytes, size};
use anyhow::Context;
use millrace::build::memory::give_back_large_buffers;
use millrace::build::{BuildOptions, BuildReport, Indexer, build, usable_gpus};
use millrace::dictionary::closed::{ClosedError, ClosedTerms};
use millrace::dictionary::indexer::{ParsedBlock, TokenIndexer};
use millrace::dictionary::run::{RunDictionary, SortedRun};
use millrace::gpu::floor::discover::Gpus;
use millrace::schedule::placement::Rates;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tables::{seconds, times, until, work};

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Worker threads (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<usize>,
    /// Numbers of parsers, such as 1,2,4 (default: all from 1 up to one less than workers).
    #[arg(long, value_name = "M,...", value_delimiter = ',')]
    parsers: Vec<usize>,
    /// Indexers on all GPUs together, such as 1,8, where points have any (default: one a GPU, as in the
    /// paper, and eight a GPU).
    #[arg(long, value_name = "N2,...", value_delimiter = ',')]
    gpu_indexers: Vec<NonZeroUsize>,
    /// What to measure, such as parsers,regrouping (default: all but rates).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<Figure>,
    /// The most memory that every build may take.
    #[arg(long, default_value = "4G", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    how: How,
    /// Number of builds for each point. The fastest counts.
    #[arg(long, default_value = "1", value_name = "N")]
    repeat: NonZeroUsize,
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
    /// Times of the steps by number of GPUs, where there are several.
    Gpus,
    /// Indexing throughput by file (figure 11).
    Files,
    /// Cost and gain of regrouping.
    Regrouping,
    /// Reading then inflating, and inflating while reading.
    Inflating,
    /// `wei11` beside `fast` (table VI).
    Whole,
    /// How fast parsers and indexers are; kept for the placement of builds to come.
    Rates,
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
    /// The names of the GPUs that may be used, or why there are none.
    gpus: Result<Vec<String>, String>,
    /// Indexers on them where points have any, in turn.
    gpu_indexers: Vec<usize>,
}

/// What differs between builds of the bench.
#[derive(Clone, Copy, Debug)]
struct Way {
    indexer: Indexer,
    /// None for `fast`, which has no indexers of tokens.
    roles: Option<Roles>,
    /// GPUs that are used at most.
    gpus: usize,
    /// The rates by which work is placed, if not those that a build takes.
    rates: Option<Rates>,
    /// Tokens are thrown away.
    discard: bool,
}

impl Way {
    fn wei11(roles: Roles) -> Self {
        let (indexer, gpus) = (Indexer::Wei11, usize::MAX);
        Self { indexer, roles: Some(roles), gpus, rates: None, discard: false }
    }
}

/// Runs the experiment.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = args.workers.unwrap_or(cores);
    let gpus = match args.how.gpus() {
        Gpus::None => Err("none may be used".to_string()),
        Gpus::Auto => usable_gpus(),
        Gpus::Number(most) => usable_gpus().map(|mut names| {
            names.truncate(most as usize);
            names
        }),
    };
    let mut gpu_indexers: Vec<usize> = args.gpu_indexers.iter().map(|n| n.get()).collect();
    match &gpus {
        Ok(names) if gpu_indexers.is_empty() => gpu_indexers = vec![names.len(), 8 * names.len()],
        Err(reason) if !gpu_indexers.is_empty() => {
            anyhow::bail!("--gpu-indexers: no GPU can be used ({reason})")
        }
        _ => {}
    }
    give_back_large_buffers(args.memory);
    let mut bench = Bench { args, workers, gpus, gpu_indexers };
    if let Err(reason) = &bench.gpus {
        say!("left out: all that needs a GPU ({reason})");
    }
    let wants = |figure| match args.only.is_empty() {
        // What is kept changes builds to come: only who asks for it gets it.
        true => figure != Figure::Rates,
        false => args.only.contains(&figure),
    };
    if wants(Figure::Rates) {
        bench.rates()?;
    }
    if wants(Figure::Parsers) {
        bench.parsers()?;
    }
    if wants(Figure::Indexers) {
        bench.indexers()?;
    }
    if wants(Figure::Gpus) {
        bench.by_gpus()?;
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
    /// Builds the input, the fastest of so many times as are asked for.
    fn build(&self, way: Way) -> anyhow::Result<BuildReport> {
        let mut best: Option<BuildReport> = None;
        for _ in 0..self.args.repeat.get() {
            let report =
                self.build_once(way, |index| BuildOptions::of_paths(index, &self.args.inputs))?;
            if best.as_ref().is_none_or(|best| report.seconds < best.seconds) {
                best = Some(report);
            }
        }
        best.context("no build was asked for")
    }

    /// Builds what `of` asks for into a folder that goes away.
    fn build_once(
        &self,
        way: Way,
        of: impl FnOnce(PathBuf) -> BuildOptions,
    ) -> anyhow::Result<BuildReport> {
        let folder = tempfile::Builder::new().prefix("millrace-bench-").tempdir()?;
        let mut options = of(folder.path().join("index"));
        let analysis = options.analysis.clone();
        self.args.how.fill(&mut options)?;
        if !matches!(options.input, millrace::build::Input::Paths(_)) {
            options.analysis = analysis;
        }
        (options.indexer, options.memory) = (way.indexer, self.args.memory);
        options.workers = self.workers;
        if let Some((parsers, cpu, gpu)) = way.roles {
            options.pipeline.parsers = Some(parsers);
            options.pipeline.cpu_indexers = Some(cpu);
            options.pipeline.gpu_indexers = Some(gpu);
        }
        let gpus = self.gpus.as_ref().map_or(0, Vec::len).min(way.gpus);
        options.gpus = match way.roles {
            _ if way.indexer == Indexer::Fast || gpus == 0 => Gpus::None,
            Some((.., 0)) => Gpus::None,
            _ => Gpus::Number(gpus as u32),
        };
        if way.rates.is_some() {
            options.pipeline.rates = way.rates;
        }
        if way.discard {
            options.pipeline.make_indexer = Some(Box::new(|_| Ok(Box::new(Discard))));
        }
        let report = build(options).map_err(crate::build::explain);
        report.context("a build of the bench")
    }

    /// The roles that a build has by default: all workers parse and index, and up to sixteen indexers
    /// work on each GPU.
    fn usual_roles(&self) -> Roles {
        let gpus = self.gpus.as_ref().map_or(0, Vec::len);
        let on_each = (self.workers / gpus.max(1)).clamp(1, 16);
        (self.workers, self.workers, gpus * on_each)
    }

    /// Parsers where the indexers are what is looked at: the paper has six on eight cores.
    fn usual_parsers(&self) -> usize {
        (self.workers * 3 / 4).max(1)
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
        super::rows::print(row)
    }

    /// Figure 10: M parsers and the other workers CPU indexers; the same with GPUs; no indexers.
    fn parsers(&mut self) -> anyhow::Result<()> {
        let mut numbers = self.args.parsers.clone();
        if numbers.is_empty() {
            numbers = (1..self.workers.max(2)).collect();
        }
        for parsers in numbers {
            let cpu = self.workers.saturating_sub(parsers).max(1);
            let on_cpu = Way::wei11((parsers, cpu, 0));
            let mut scenarios = vec![("cpu", on_cpu)];
            let gpu = |&gpu: &usize| ("cpu and gpu", Way::wei11((parsers, cpu, gpu)));
            scenarios.extend(self.gpu_indexers.iter().map(gpu));
            scenarios.push(("no indexers", Way { discard: true, ..on_cpu }));
            for (scenario, way) in scenarios {
                let report = self.build(way)?;
                let (_, cpu, gpu) = way.roles.unwrap_or_default();
                let row = json!({"scenario": scenario, "parsers": parsers, "cpu_indexers": cpu,
                    "gpu_indexers": gpu, "mb_per_s": report.mb_per_s,
                    "seconds": report.seconds});
                self.row("parsers", row)?;
            }
        }
        Ok(())
    }

    /// Tables III to V: the collection, the times of the steps, and the work of each side; and whether
    /// CPU and GPU together index more than the sum of what each does alone (section IV.B).
    fn indexers(&mut self) -> anyhow::Result<()> {
        let parsers = self.usual_parsers();
        let on_cpu = [(parsers, 1, 0), (parsers, 2, 0)];
        let mut cpu_mb_per_s = 0.0;
        for (number, roles) in on_cpu.into_iter().enumerate() {
            let report = self.build(Way::wei11(roles))?;
            if number == 0 {
                let row = json!({"compressed_bytes": report.read_bytes,
                    "documents": report.documents,
                    "uncompressed_bytes": report.uncompressed_bytes, "terms": report.terms,
                    "tokens": report.tokens, "postings": report.postings});
                self.row("collection", row)?;
            }
            cpu_mb_per_s = self.steps(roles, &report)?;
        }
        for gpu in self.gpu_indexers.clone() {
            let mut mb_per_s = [0.0; 2];
            for (roles, mb_per_s) in
                [(parsers, 0, gpu), (parsers, 2, gpu)].into_iter().zip(&mut mb_per_s)
            {
                let report = self.build(Way::wei11(roles))?;
                *mb_per_s = self.steps(roles, &report)?;
            }
            let [alone, both] = mb_per_s;
            let row = json!({"gpu_indexers": gpu, "cpu_mb_per_s": cpu_mb_per_s,
                "gpu_mb_per_s": alone, "sum_mb_per_s": cpu_mb_per_s + alone,
                "both_mb_per_s": both, "superlinear": both > cpu_mb_per_s + alone});
            self.row("superlinear", row)?;
        }
        Ok(())
    }

    /// Prints what the steps of a build took and what each side did; returns MB of text a second of
    /// indexing.
    fn steps(&mut self, roles: Roles, report: &BuildReport) -> anyhow::Result<f64> {
        let mut row = times(report, roles);
        row["codec"] = json!(self.args.how.index.codec());
        self.row("indexers", row.clone())?;
        for (side, gpu) in [("gpu", true), ("cpu", false)] {
            if let Some(row) = work(report, roles.2, gpu) {
                self.row(&format!("work of the {side} side"), row)?;
            }
        }
        Ok(row["indexing_mb_per_s"].as_f64().unwrap_or_default())
    }

    /// The same build with one GPU, two, and so on.
    fn by_gpus(&mut self) -> anyhow::Result<()> {
        let gpus = self.gpus.as_ref().map_or(0, Vec::len);
        if gpus < 2 {
            say!("left out: gpus (there are not two)");
            return Ok(());
        }
        for cpu in [2, self.workers] {
            for gpus in 1..=gpus {
                let roles =
                    (if cpu == 2 { self.usual_parsers() } else { self.workers }, cpu, 8 * gpus);
                let report = self.build(Way { gpus, ..Way::wei11(roles) })?;
                let mut row = times(&report, roles);
                row["gpus"] = json!(gpus);
                row["mb_per_s"] = json!(report.mb_per_s);
                self.row("gpus", row)?;
            }
        }
        Ok(())
    }

    /// Figure 11: how fast the indexers are, the slowest of them, by split of the input.
    fn files(&mut self) -> anyhow::Result<()> {
        let parsers = self.usual_parsers();
        let mut settings = vec![(parsers, 1, 0), (parsers, 2, 0)];
        settings.extend(self.gpu_indexers.last().map(|&gpu| (parsers, 2, gpu)));
        for roles in settings {
            let report = self.build(Way::wei11(roles))?;
            for split in &report.splits {
                let mb_per_s = split.text_bytes as f64 / 1e6 / split.seconds.max(1e-9);
                let row = json!({"cpu_indexers": roles.1, "gpu_indexers": roles.2,
                    "split": split.split, "text_bytes": split.text_bytes, "mb_per_s": mb_per_s});
                self.row("files", row)?;
            }
        }
        Ok(())
    }

    /// Table VI: the whole job by its parts, beside `fast`. Our dictionary is written with each run,
    /// so that the paper's two last rows are one: joining runs, syncing and describing them.
    fn whole(&mut self) -> anyhow::Result<()> {
        let on_cpu = Way::wei11((self.workers, self.workers, 0));
        let mut jobs = vec![Way { indexer: Indexer::Fast, roles: None, ..on_cpu }, on_cpu];
        if self.gpus.is_ok() {
            jobs.push(Way::wei11(self.usual_roles()));
        }
        for way in jobs {
            let report = self.build(way)?;
            let flow = |operators: &[&str]| {
                let ends = operators.iter().map(|operator| until(&report, operator));
                (ends.fold(0.0, f64::max) - report.phases.prepare_s).max(0.0)
            };
            let row = json!({"indexer": way.indexer.name(), "codec": self.args.how.index.codec(),
                "gpu_indexers": way.roles.map_or(0, |roles| roles.2),
                "sampling_s": report.placement.sample_seconds(),
                "prepare_s": report.phases.prepare_s,
                "parsers_s": flow(&["Parse"]),
                "indexers_s": flow(&["Index", "IndexTokens", "Encode", "Flush"]),
                "finish_s": report.phases.finish_s,
                "total_s": report.seconds, "mb_per_s": report.mb_per_s,
                "runs": report.runs_before_merge,
                "dictionary_and_lists_core_s":
                    seconds(&report, "Encode") + seconds(&report, "Flush"),
                "index": show_bytes(report.index_bytes)});
            self.row("whole", row)?;
        }
        Ok(())
    }
}

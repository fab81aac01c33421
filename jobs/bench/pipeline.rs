//! `millrace bench pipeline`: how do the stages of `wei11` share the work (section IV)?
//!
//! Every point is a whole build of the input into a folder that goes away, in this process; what the
//! stages took is what the operators and indexers report. Axes: parsers (figure 10), indexers (table
//! IV), files (figure 11). Two parts are measured alone: what regrouping costs and gains (section
//! III.C), and reading a compressed file before inflating it against inflating while reading (section
//! IV.A). Expected: throughput grows with the parsers until the indexers cannot follow; a change of
//! collection that the sample has not seen costs most where work is placed by it.

mod parts;

use crate::args::show_bytes;
use crate::build;
use anyhow::Context;
use clap::Parser;
use serde_json::{Value, json};
use std::ffi::OsString;
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
    /// Options of every build, such as "--memory 4G --parse-block 64M".
    #[arg(long, default_value = "--memory 4G", value_name = "OPTIONS", allow_hyphen_values = true)]
    options: String,
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

/// The arguments of a build.
#[derive(Parser)]
struct Command {
    #[command(flatten)]
    build: build::Args,
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
    let gpus = crate::gpus::usable();
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
    /// Builds once with so many of each; returns the report.
    fn build(
        &self,
        indexer: &str,
        roles: Option<Roles>,
        parse_only: bool,
    ) -> anyhow::Result<Value> {
        let mut best: Option<Value> = None;
        for _ in 0..self.args.repeat.get() {
            let folder = tempfile::Builder::new().prefix("millrace-bench-").tempdir()?;
            let report = folder.path().join("report.json");
            let mut words: Vec<OsString> =
                ["bench", "--quiet", "--indexer", indexer].map(OsString::from).into();
            words.extend(["--workers".into(), self.workers.to_string().into()]);
            words.extend(["--index".into(), folder.path().join("index").into()]);
            words.extend(["--report".into(), report.clone().into()]);
            if let Some((parsers, cpu, gpu)) = roles {
                for (name, n) in
                    [("--parsers", parsers), ("--cpu-indexers", cpu), ("--gpu-indexers", gpu)]
                {
                    words.extend([name.into(), n.to_string().into()]);
                }
                if gpu == 0 {
                    words.extend(["--gpus".into(), "none".into()]);
                }
            }
            words.extend(self.args.options.split_whitespace().map(OsString::from));
            words.extend(self.args.inputs.iter().map(OsString::from));
            let mut args = Command::try_parse_from(words)?.build;
            args.pipeline.parse_only = parse_only;
            build::run(&args).context("a build of the bench")?;
            let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
            let faster = |old: &Value| report["seconds"].as_f64() < old["seconds"].as_f64();
            if best.as_ref().is_none_or(faster) {
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
            for (scenario, roles, parse_only) in scenarios {
                let Some(roles) = roles else { continue };
                let report = self.build("wei11", Some(roles), parse_only)?;
                let row = json!({"scenario": scenario, "parsers": roles.0, "cpu_indexers": roles.1,
                    "gpu_indexers": roles.2, "mb_per_s": report["mb_per_s"],
                    "seconds": report["seconds"]});
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
            let report = self.build("wei11", Some(roles), false)?;
            if number == 0 {
                let of = |name: &str| report[name].clone();
                let row = json!({"compressed_bytes": of("read_bytes"), "documents": of("documents"),
                    "uncompressed_bytes": of("uncompressed_bytes"), "terms": of("terms"),
                    "tokens": of("tokens"), "postings": of("postings")});
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
            let report = self.build("wei11", Some((parsers, cpu, gpu)), false)?;
            for split in report["splits"].as_array().into_iter().flatten() {
                let seconds = split["seconds"].as_f64().unwrap_or(0.0);
                let bytes = split["text_bytes"].as_f64().unwrap_or(0.0);
                let row = json!({"cpu_indexers": cpu, "gpu_indexers": gpu, "split": split["split"],
                    "text_bytes": split["text_bytes"], "mb_per_s": bytes / 1e6 / seconds.max(1e-9)});
                self.row("files", row)?;
            }
        }
        Ok(())
    }

    /// Table VI: the whole job, with the time of the sample, beside `fast`.
    fn whole(&mut self) -> anyhow::Result<()> {
        let mut jobs = vec![("fast", None), ("wei11", Some((self.workers, self.workers, 0)))];
        if let Ok(gpus) = self.gpus {
            jobs.push(("wei11", Some((self.workers, self.workers, gpus))));
        }
        for (indexer, roles) in jobs {
            let report = self.build(indexer, roles, false)?;
            let seconds = |name: &str| operator(&report, name, "seconds");
            let row = json!({"indexer": indexer, "gpu_indexers": roles.map_or(0, |roles| roles.2),
                "mb_per_s": report["mb_per_s"], "seconds": report["seconds"],
                "sampling_s": report["placement"]["sample_seconds"], "runs": report["runs_before_merge"],
                "dictionary_and_lists_s": seconds("Encode") + seconds("Flush"),
                "index": show_bytes(report["index_bytes"].as_u64().unwrap_or(0))});
            self.row("whole", row)?;
        }
        Ok(())
    }
}

/// A number of an operator in the report.
fn operator(report: &Value, name: &str, field: &str) -> f64 {
    let rows = report["operators"].as_array().into_iter().flatten();
    rows.filter(|row| row["operator"] == name).filter_map(|row| row[field].as_f64()).sum()
}

/// The greatest and the sum of a field over the indexers of a side.
fn of_side(report: &Value, gpus: usize, gpu: bool, field: &str) -> (f64, f64) {
    let rows = report["indexers"].as_array().into_iter().flatten();
    let mine = rows
        .filter(|row| row["indexer"].as_u64().is_some_and(|number| (number < gpus as u64) == gpu));
    mine.filter_map(|row| row[field].as_f64())
        .fold((0.0, 0.0), |(most, sum), value| (f64::max(most, value), sum + value))
}

/// Table IV, of the slowest indexer of each side. The steps of one run overlap those of the pieces
/// that follow, so that they need not add up to the whole.
fn times(report: &Value, (parsers, cpu, gpu): Roles) -> Value {
    let side = |on_gpu, field| of_side(report, gpu, on_gpu, field).0;
    let seconds = |name| operator(report, name, "seconds");
    json!({
        "parsers": parsers,
        "cpu_indexers": cpu,
        "gpu_indexers": gpu,
        "seconds": report["seconds"],
        "parsing_s": seconds("Parse"),
        "preprocessing_s": (seconds("IndexTokens")
            - of_side(report, gpu, false, "worked_s").1
            - of_side(report, gpu, true, "worked_s").1).max(0.0),
        "indexing_cpu_s": side(false, "busy_s"),
        "indexing_gpu_s": side(true, "busy_s"),
        "postprocessing_s": seconds("Encode") + seconds("Flush"),
        "waiting_cpu_s": side(false, "waited_s"),
        "waiting_gpu_s": side(true, "waited_s"),
    })
}

/// Table V: what a side has indexed.
fn work(report: &Value, gpus: usize, gpu: bool) -> Option<Value> {
    let sum = |field| of_side(report, gpus, gpu, field).1;
    let tokens = sum("tokens");
    let seconds = of_side(report, gpus, gpu, "busy_s").0;
    (tokens > 0.0).then(|| {
        json!({"tokens": tokens as u64, "terms": sum("terms") as u64,
            "characters": sum("characters") as u64, "tokens_per_s": tokens / seconds.max(1e-9)})
    })
}

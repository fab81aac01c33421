//! `experiments pipeline`: how the stages of `wei11` share the work (section IV).
//!
//! Every point is a whole build of the input into a folder that goes away, in this process; what
//! the stages took is what the operators and indexers report. Axes: parsers (figure 10), indexers
//! (tables IV and V), files (figure 11). One part is measured alone: what regrouping costs and
//! gains (section III.C). Expected: throughput grows with the parsers until the indexers cannot
//! follow; a change of collection that the sample has not seen costs most where work is placed by
//! it.
//!
//! The paper codes postings by vbyte behind the indexers; here that is `--codec vbyte`, and the
//! default is `bp128`, as for every build.

mod parts;
mod tables;

use crate::args::{Figures, figures, of_build, size, workers_or_cores};
use crate::numbers::{Middle, middle};
use anyhow::Context;
use millrace::inside::build::usable_gpus;
use millrace::inside::codec::ListCodec;
use millrace::inside::dictionary::{ClosedError, ClosedShare, RunDictionary, SortedRun};
use millrace::inside::gpu::Gpus;
use millrace::inside::index::Form;
use millrace::inside::papers::{INDEXERS, ParsedBlock, TokenIndexer, Wei11};
use millrace::inside::schedule::Rates;
use millrace::{BuildOptions, BuildReport, Indexer, build, give_back_large_buffers};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use tables::{seconds, times, until, work};

/// Arguments of the experiment.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Worker threads (default: all cores).
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Indexers on all GPUs together, such as 1,8, where points have any (default: one a GPU, as in
    /// the paper, and eight a GPU).
    #[arg(long, value_name = "N2,...", value_delimiter = ',')]
    gpu_indexers: Vec<usize>,
    /// What to measure, of parsers, indexers, files, whole, regrouping, and rates, which are stored
    /// for the placement of builds to come (default: all but rates).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// The most memory that every build may take.
    #[arg(long, default_value = "4G", value_parser = size)]
    memory: u64,
    /// Compression of the postings, as of `millrace build`; the paper has vbyte.
    #[arg(long, default_value = "bp128", value_name = "NAME")]
    codec: ListCodec,
    /// GPUs to use: auto, none, or a number.
    #[arg(long, default_value = "auto", value_name = "auto|none|N")]
    gpus: Gpus,
    /// Number of builds for each point. The middle one counts.
    #[arg(long, default_value = "1", value_name = "N")]
    repeat: NonZeroUsize,
    /// Files or folders, in the order in which they are indexed.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

/// Bytes of text that are regrouped: what that gains follows from the size of the trees.
const TEXTS: [usize; 3] = [16 << 20, 64 << 20, 256 << 20];

/// Points of figure 10: this many parts of the workers parse. The paper has eight cores.
const POINTS: usize = 8;

/// What is measured. What is kept changes builds to come: only who asks for rates gets them.
const FIGURES: &Figures<PipelineBench> = &[
    ("rates", PipelineBench::rates),
    ("parsers", PipelineBench::parsers),
    ("indexers", PipelineBench::indexers),
    ("files", PipelineBench::files),
    ("whole", PipelineBench::whole),
    ("regrouping", |bench| {
        let mut texts = TEXTS.iter().map(|&bytes| parts::regrouping(&bench.args.inputs, bytes));
        texts.try_for_each(|row| print("regrouping", row?))
    }),
];

/// Takes tokens for no index at all: what is left is the work of the parsers.
struct Discard;

static DISCARDING: Wei11 = Wei11 { make: Some(|| Box::new(Discard)) };

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

    fn close(&mut self) -> Result<Option<ClosedShare>, ClosedError> {
        Ok(Some(ClosedShare::whole(SortedRun::from(RunDictionary::default()))))
    }
}

/// Parsers, CPU indexers and GPU indexers.
type RoleCounts = (usize, usize, usize);

struct PipelineBench {
    args: Args,
    workers: usize,
    /// The names of the GPUs that may be used.
    gpus: Vec<String>,
    /// Indexers on them where points have any, in turn.
    gpu_indexers: Vec<usize>,
}

/// What differs between builds of the bench.
#[derive(Clone, Copy, Debug)]
struct BuildWay {
    /// None for `fast`, which has no indexers of tokens.
    roles: Option<RoleCounts>,
    /// GPUs that are used at most.
    gpus: usize,
    /// The rates by which work is placed, if not those that a build takes.
    rates: Option<Rates>,
    /// Tokens are thrown away.
    discard: bool,
}

const FAST: BuildWay = BuildWay { roles: None, gpus: 0, rates: None, discard: false };

impl BuildWay {
    fn wei11(roles: RoleCounts) -> Self {
        Self { roles: Some(roles), gpus: usize::MAX, ..FAST }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let found = match args.gpus {
        Gpus::None => Err("none may be used".to_string()),
        _ => usable_gpus(),
    };
    if let Err(reason) = &found {
        anyhow::ensure!(
            args.gpu_indexers.is_empty(),
            "--gpu-indexers: no GPU can be used ({reason})"
        );
        eprintln!("left out: all that needs a GPU ({reason})");
    }
    let mut gpus = found.unwrap_or_default();
    if let Gpus::Number(most) = args.gpus {
        gpus.truncate(most as usize);
    }
    let mut gpu_indexers = args.gpu_indexers.clone();
    if gpu_indexers.is_empty() && !gpus.is_empty() {
        gpu_indexers = vec![gpus.len(), 8 * gpus.len()];
    }
    give_back_large_buffers(args.memory);
    let bench = PipelineBench {
        args: args.clone(),
        workers: workers_or_cores(args.workers),
        gpus,
        gpu_indexers,
    };
    let usual = if args.only.is_empty() { &FIGURES[1..] } else { FIGURES };
    figures(&bench, usual, &args.only)
}

fn print(figure: &str, mut row: Value) -> anyhow::Result<()> {
    row["figure"] = json!(figure);
    crate::rows::print(row)
}

impl PipelineBench {
    /// Builds the input, the middle one of so many times as are asked for.
    fn build(&self, way: BuildWay) -> anyhow::Result<BuildReport> {
        Ok(self.builds(way)?.middle)
    }

    fn builds(&self, way: BuildWay) -> anyhow::Result<Middle<BuildReport>> {
        let once =
            || self.build_once(way, |index| BuildOptions::of_paths(index, &self.args.inputs));
        middle(self.args.repeat.get(), |report| report.seconds, once)
    }

    /// Builds what `of` asks for into a folder that goes away.
    fn build_once(
        &self,
        way: BuildWay,
        of: impl FnOnce(PathBuf) -> BuildOptions,
    ) -> anyhow::Result<BuildReport> {
        let folder = tempfile::tempdir()?;
        let mut options = of(folder.path().join("index"));
        options.form = Form::new(self.args.codec, 128).context("the codec has no blocks of 128")?;
        options.memory = self.args.memory;
        options.workers = self.workers;
        options.indexer = Indexer::Fast;
        options.gpus = Gpus::None;
        if let Some((parsers, cpu, gpu)) = way.roles {
            options.indexer = Indexer::Handed(INDEXERS[0]);
            options.pipeline.parsers = Some(parsers);
            options.pipeline.cpu_indexers = Some(cpu);
            options.pipeline.gpu_indexers = Some(gpu);
            let gpus = self.gpus.len().min(way.gpus);
            if gpu > 0 && gpus > 0 {
                options.gpus = Gpus::Number(gpus as u32);
            }
        }
        options.pipeline.rates = way.rates.or(options.pipeline.rates);
        if way.discard {
            options.indexer = Indexer::Handed(DISCARDING.handed());
        }
        build(options).map_err(of_build)
    }

    /// The roles that a build has by default: all workers parse and index, and up to sixteen
    /// indexers work on each GPU.
    fn usual_roles(&self) -> RoleCounts {
        let on_each = (self.workers / self.gpus.len().max(1)).clamp(1, 16);
        (self.workers, self.workers, self.gpus.len() * on_each)
    }

    /// Parsers where the indexers are what is looked at: the paper has six on eight cores.
    fn usual_parsers(&self) -> usize {
        (self.workers * 3 / 4).max(1)
    }

    /// Figure 10: M parsers and the other workers CPU indexers; the same with GPUs; no indexers.
    fn parsers(&self) -> anyhow::Result<()> {
        let mut points: Vec<usize> =
            (1..POINTS).map(|point| (point * self.workers / POINTS).max(1)).collect();
        points.dedup();
        for parsers in points {
            let cpu = self.workers.saturating_sub(parsers).max(1);
            let on_cpu = BuildWay::wei11((parsers, cpu, 0));
            let mut scenarios = vec![("cpu", on_cpu)];
            let gpu = |&gpu: &usize| ("cpu and gpu", BuildWay::wei11((parsers, cpu, gpu)));
            scenarios.extend(self.gpu_indexers.iter().map(gpu));
            scenarios.push(("no indexers", BuildWay { discard: true, ..on_cpu }));
            for (scenario, way) in scenarios {
                let Middle { middle, spread } = self.builds(way)?;
                let mut row = times(&middle, way.roles.unwrap_or_default());
                row["scenario"] = scenario.into();
                row["mb_per_s"] = middle.mb_per_s.into();
                row["spread_s"] = json!(spread);
                row["prepare_s"] = middle.phases.prepare_s.into();
                print("parsers", row)?;
            }
        }
        Ok(())
    }

    /// Tables III to V: the collection, the times of the steps, and the work of each side; and
    /// whether CPU and GPU together index more than the sum of what each does alone (section IV.B).
    fn indexers(&self) -> anyhow::Result<()> {
        let parsers = self.usual_parsers();
        let report = self.build(BuildWay::wei11((parsers, 1, 0)))?;
        print(
            "collection",
            json!({"compressed_bytes": report.read_bytes, "documents": report.documents,
                "uncompressed_bytes": report.uncompressed_bytes, "terms": report.terms,
                "tokens": report.tokens, "postings": report.postings}),
        )?;
        self.steps((parsers, 1, 0), &report)?;
        let steps = |roles| self.steps(roles, &self.build(BuildWay::wei11(roles))?);
        let on_cpu = steps((parsers, 2, 0))?;
        for &gpu in &self.gpu_indexers {
            let alone = steps((parsers, 0, gpu))?;
            let both = steps((parsers, 2, gpu))?;
            print(
                "superlinear",
                json!({"gpu_indexers": gpu, "cpu_mb_per_s": on_cpu, "gpu_mb_per_s": alone,
                    "sum_mb_per_s": on_cpu + alone, "both_mb_per_s": both,
                    "superlinear": both > on_cpu + alone}),
            )?;
        }
        Ok(())
    }

    /// Prints what the steps of a build took and what each side did; returns MB of text a second of
    /// indexing.
    fn steps(&self, roles: RoleCounts, report: &BuildReport) -> anyhow::Result<f64> {
        let mut row = times(report, roles);
        let mb_per_s = row["indexing_mb_per_s"].as_f64().unwrap_or_default();
        row["codec"] = json!(self.args.codec.name());
        print("indexers", row)?;
        for (side, gpu) in [("gpu", true), ("cpu", false)] {
            if let Some(row) = work(report, roles.2, gpu) {
                print(&format!("work of the {side} side"), row)?;
            }
        }
        Ok(mb_per_s)
    }

    /// Figure 11: how fast the indexers are, the slowest of them, by split of the input.
    fn files(&self) -> anyhow::Result<()> {
        let parsers = self.usual_parsers();
        let mut settings = vec![(parsers, 1, 0), (parsers, 2, 0)];
        settings.extend(self.gpu_indexers.last().map(|&gpu| (parsers, 2, gpu)));
        for roles in settings {
            for split in &self.build(BuildWay::wei11(roles))?.splits {
                let mb_per_s = split.text_bytes as f64 / 1e6 / split.seconds.max(1e-9);
                print(
                    "files",
                    json!({"cpu_indexers": roles.1, "gpu_indexers": roles.2, "split": split.split,
                        "text_bytes": split.text_bytes, "mb_per_s": mb_per_s}),
                )?;
            }
        }
        Ok(())
    }

    /// Table VI: the whole job by its parts, beside `fast`; parsers and indexers are apart, as in
    /// the paper. Our dictionary is written with each run, so that the paper's two last rows are
    /// one: joining runs, syncing and describing them.
    fn whole(&self) -> anyhow::Result<()> {
        let apart = |gpu| {
            let parsers = self.usual_parsers();
            BuildWay::wei11((parsers, (self.workers - parsers).max(1), gpu))
        };
        let mut jobs = vec![FAST, apart(0)];
        jobs.extend(self.gpu_indexers.iter().map(|&gpu| apart(gpu)));
        for way in jobs {
            let Middle { middle: report, spread } = self.builds(way)?;
            let flow = |operators: &[&str]| {
                let ends = operators.iter().map(|operator| until(&report, operator));
                (ends.fold(0.0, f64::max) - report.phases.prepare_s).max(0.0)
            };
            let indexer =
                if way.roles.is_some() { INDEXERS[0].name() } else { Indexer::Fast.name() };
            let core_s = seconds(&report, "Encode") + seconds(&report, "Flush");
            print(
                "whole",
                json!({"indexer": indexer, "codec": self.args.codec.name(),
                    "roles": way.roles.unwrap_or((self.workers, self.workers, 0)),
                    "gpu_indexers": way.roles.map_or(0, |roles| roles.2),
                    // A single CPU indexer has no sample taken, which takes no time.
                    "sampling_s": report.placement.sample_seconds().unwrap_or_default(),
                    "prepare_s": report.phases.prepare_s, "parsers_s": flow(&["Parse"]),
                    "indexers_s": flow(&["Index", "IndexTokens", "Encode", "Flush"]),
                    "finish_s": report.phases.finish_s, "total_s": report.seconds,
                    "spread_s": spread, "finish_share": report.phases.finish_s / report.seconds,
                    "mb_per_s": report.mb_per_s, "runs": report.runs_before_merge,
                    "dictionary_and_lists_core_s": core_s, "index_bytes": report.index_bytes}),
            )?;
        }
        Ok(())
    }
}

//! Which devices answer queries, and what is said of them?

use crate::Usage;
use crate::query::{Chosen, Ranking};
use anyhow::{Context as _, bail};
use millrace::build::chain;
use millrace::gpu::cache::ModuleCache;
use millrace::gpu::ding09::list::form_of;
use millrace::gpu::ding09::{MERGE_LEVELS, MOST_MERGE_LEVELS};
use millrace::gpu::discover::DeviceInfo;
use millrace::gpu::error::GpuError;
use millrace::gpu::huang::device::Tuning;
use millrace::gpu::huang::{self, Traversal};
use millrace::gpu::modules::Toolchain;
use millrace::gpu::query::engine::{GpuEngines, GpuOptions, Method};
use millrace::gpu::query::service::Counts;
use millrace::gpu::query::worth::CpuWork;
use millrace::query::engine::Wakers;
use millrace::query::engine::hybrid::{Hybrid, Models};
use millrace::query::snapshot::Snapshot;
use millrace::schedule::policy::Policy;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    /// Where queries are answered: cpu, gpu; hybrid: by both, as --schedule says; auto: on GPUs that can be used if
    /// the CPU would take long for a file of queries (docs/gpu-queries.md), else on the CPU. All give the same answers.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|gpu|hybrid")]
    #[arg(value_parser = ["auto", "cpu", "gpu", "hybrid"])]
    device: String,
    /// Who answers which query, with --device hybrid: ding09 (three groups by cost, with stealing), best, best-serial,
    /// sd (halves by chance), lbd:N and lbd-reverse:N (by blocks of lists), cpu, gpu.
    #[arg(long, default_value = "ding09", value_name = "NAME", hide_default_value = true)]
    schedule: Policy,
    /// Answers should be there after so many milliseconds, with --device hybrid: what has waited 70 % of it goes first.
    #[arg(long, default_value_t = 500, value_name = "MS", hide_default_value = true)]
    deadline_ms: u64,
    /// GPUs that are used; the batches are dealt to them (with --device gpu; all if left out).
    #[arg(long, value_name = "N")]
    gpus: Option<NonZeroUsize>,
    /// Each GPU has a part of the documents, and all answer every query, so that an index may be larger than
    /// the memory of one.
    #[arg(long)]
    gpu_partition: bool,
    /// Memory of each GPU that holds postings lists, such as 40G; most of what is free if left out.
    /// Queries whose lists have no room are answered by the CPU.
    #[arg(long, value_name = "SIZE", value_parser = crate::args::size)]
    gpu_memory: Option<u64>,
    /// Levels of splitters by which ding09 merges, 0 to 4 (3 if left out, as in the paper).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_MERGE_LEVELS)))]
    merge_levels: Option<u32>,
    /// Threads that huang has for a query: 32, 64, 128, 256, 320, 512 (64 if left out, as in the paper).
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    query_threads: Option<u32>,
    /// How huang's threads find documents with any term: exhaustive, wand, bmw (bmw if left out).
    #[arg(long, value_name = "NAME", value_parser = parse_traversal)]
    traversal: Option<Traversal>,
    /// What huang's threads pass over documents by: own, each by the best that it has found, as in the paper; shared, by
    /// the best of those of all threads of the query.
    #[arg(long, value_name = "own|shared", value_parser = ["own", "shared"])]
    threshold: Option<String>,
    /// Folder of compiled kernels.
    #[arg(long, value_name = "DIR", hide = true)]
    gpu_cache: Option<PathBuf>,
}

/// Queries of a batch on a device; larger ones gain little and wait longer.
const BATCH: usize = 256;

/// Queries of a batch of huang: a block has few threads, and a device room for many blocks.
pub(crate) const HUANG_BATCH: usize = 4096;

pub(crate) fn parse_threads(text: &str) -> Result<u32, String> {
    let threads = text.parse().ok().filter(|threads| huang::THREADS.contains(threads));
    threads.ok_or_else(|| format!("give {}", huang::THREADS.map(|n| n.to_string()).join(", ")))
}

fn parse_traversal(text: &str) -> Result<Traversal, String> {
    let names = || Traversal::ALL.map(|traversal| traversal.on_cpu().name()).join(", ");
    Traversal::named(text).ok_or_else(|| format!("give {}", names()))
}

/// Workers that keep a device busy with queries for few hits: docs/measurements/2026-11-22-gpu-queries.md.
const WORKERS_OF_A_DEVICE: usize = 4;

/// Of longer answers, laying them out takes more time than all else.
const FEW_HITS: usize = 100;

/// Devices that answer queries.
pub(crate) struct Devices {
    devices: Vec<DeviceInfo>,
    toolchain: Toolchain,
    options: GpuOptions,
}

impl Where {
    /// Whether devices answer, alone or not.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device == "gpu" || self.is_hybrid()
    }

    fn is_hybrid(&self) -> bool {
        self.device == "hybrid"
    }

    /// The devices, if queries are to be answered by some; `processes` and `inter` say how else they are
    /// spread, and `algorithm` how they have to be answered.
    ///
    /// # Errors
    /// There is none, or options do not go together.
    pub(crate) fn devices(
        &self,
        k: usize,
        processes: usize,
        inter: bool,
        algorithm: Chosen,
    ) -> anyhow::Result<Option<Devices>> {
        for (name, given, with) in [
            ("merge-levels", self.merge_levels.is_some(), Chosen::Ding09),
            ("query-threads", self.query_threads.is_some(), Chosen::Huang),
            ("traversal", self.traversal.is_some(), Chosen::Huang),
            ("threshold", self.threshold.is_some(), Chosen::Huang),
        ] {
            if given && algorithm != with {
                let text = format!("--{name} goes with --algorithm {}", with.name());
                return Err(Usage(text).into());
            }
        }
        if !self.is_gpu() {
            algorithm.without_devices()?;
            for (name, given) in [
                ("gpus", self.gpus.is_some()),
                ("gpu-memory", self.gpu_memory.is_some()),
                ("gpu-partition", self.gpu_partition),
            ] {
                if given {
                    return Err(Usage(format!("--{name} goes with --device gpu")).into());
                }
            }
            return Ok(None);
        }
        if processes > 1 {
            return Err(Usage("--device gpu works in one process".into()).into());
        }
        if !inter {
            return Err(Usage("--device gpu goes with --parallelism inter".into()).into());
        }
        let by_devices = algorithm.without_devices().is_err();
        if by_devices && self.gpu_partition {
            let text = format!("--algorithm {} goes without --gpu-partition", algorithm.name());
            return Err(Usage(text).into());
        }
        self.chosen(k, algorithm).map(Some)
    }

    /// The devices that are asked for.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn chosen(&self, k: usize, algorithm: Chosen) -> anyhow::Result<Devices> {
        let option = if self.is_gpu() { &self.device } else { "gpu" };
        let mut devices = self.usable(k).with_context(|| format!("--device {option}"))?;
        let options = &mut devices.options;
        match algorithm {
            Chosen::Cpu(_) => {}
            Chosen::Ding09 => {
                let merge_levels = self.merge_levels.unwrap_or(MERGE_LEVELS);
                options.method = Method::Ding09 { merge_levels };
            }
            Chosen::Huang => {
                let threads = self.query_threads.unwrap_or(huang::DEFAULT_THREADS);
                let traversal = self.traversal.unwrap_or_default();
                let usual = Tuning::default().shared_threshold;
                let shared_threshold = self.threshold.as_ref().map_or(usual, |of| of == "shared");
                options.method = Method::Huang(Tuning { threads, traversal, shared_threshold });
                options.batch = HUANG_BATCH;
            }
        }
        Ok(devices)
    }

    /// How many of so many workers devices need: more gain nothing, and each query waits until all have heard of it. Where
    /// the CPU answers too, or lays long answers out, it takes all.
    pub(crate) fn workers(&self, devices: &Devices, k: usize, cores: usize) -> usize {
        match self.is_hybrid() || k > FEW_HITS {
            true => cores,
            false => cores.min(WORKERS_OF_A_DEVICE * devices.devices.len()),
        }
    }

    /// A scheduler over the CPU and devices, if one is asked for, by the costs that `millrace calibrate` has measured.
    ///
    /// # Errors
    /// Nobody has measured, or not this mode.
    pub(crate) fn scheduler(
        &self,
        devices: &Devices,
        ranking: &Ranking,
        quiet: bool,
    ) -> anyhow::Result<Option<Scheduler>> {
        if !self.is_hybrid() {
            return Ok(None);
        }
        let models = devices.models(&ranking.index)?;
        let (of, here) = (&models.machine, devices.machine());
        if *of != here && !quiet {
            say!(
                "millrace: costs were measured on another machine ({of}, not {here}): run millrace calibrate here"
            );
        }
        let mode = ranking.mode;
        if !models.knows(mode) {
            let name = mode.name();
            bail!(
                "no costs of --mode {name} are known: run millrace calibrate --mode {name} first"
            );
        }
        let deadline = Duration::from_millis(self.deadline_ms);
        Ok(Some(Scheduler {
            models,
            policy: self.schedule,
            deadline,
            devices: devices.devices.len(),
        }))
    }

    /// The devices, if queries of so much work are worth the time until they answer, and the choice is left
    /// to this program. Devices that cannot be used are not.
    pub(crate) fn for_work(&self, k: usize, work: &CpuWork) -> Option<Devices> {
        let worth = self.device == "auto" && work.is_worth_devices();
        if worth { self.usable(k).ok() } else { None }
    }

    fn usable(&self, k: usize) -> anyhow::Result<Devices> {
        let cache = match &self.gpu_cache {
            Some(folder) => ModuleCache::in_folder(folder),
            None => ModuleCache::of_user(),
        };
        let (mut devices, toolchain) = Toolchain::of_machine(cache)?;
        if let Some(n) = self.gpus.map(NonZeroUsize::get) {
            anyhow::ensure!(n <= devices.len(), "--gpus {n}: {} can be used", devices.len());
            devices.truncate(n);
        }
        let fetchers = std::thread::available_parallelism().map_or(1, |n| n.get());
        let options = GpuOptions {
            memory: self.gpu_memory,
            k,
            batch: BATCH,
            fetchers,
            partition: self.gpu_partition,
            ..GpuOptions::default()
        };
        Ok(Devices { devices, toolchain, options })
    }
}

/// Who answers which query.
pub(crate) struct Scheduler {
    models: Models,
    policy: Policy,
    deadline: Duration,
    devices: usize,
}

impl Scheduler {
    /// Schedules queries over the CPU and engines of devices.
    pub(crate) fn over(self, engines: GpuEngines, wakers: &Arc<Wakers>) -> Hybrid {
        let devices = (Box::new(engines) as _, self.devices);
        Hybrid::new(devices, self.models, self.policy, self.deadline, wakers)
    }
}

impl Devices {
    /// What this machine is called.
    pub(crate) fn machine(&self) -> String {
        Models::name_of_machine(self.devices.iter().map(|device| device.name.clone()))
    }

    /// Where the costs of queries on these devices are kept.
    pub(crate) fn path_of_models(&self, index: &Path) -> PathBuf {
        index.join(match self.options.method {
            Method::Bounds => "costs.json",
            Method::Ding09 { .. } => "costs-ding09.json",
            Method::Huang(_) => "costs-huang.json",
        })
    }

    /// The costs of queries that were measured.
    ///
    /// # Errors
    /// There are none, or the file is no such file.
    pub(crate) fn models(&self, index: &Path) -> anyhow::Result<Models> {
        let path = self.path_of_models(index);
        let text = std::fs::read(&path).with_context(|| {
            format!("no costs are known ({}): run millrace calibrate first", path.display())
        })?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{}: no costs of queries", path.display()))
    }

    /// Opens them.
    ///
    /// # Errors
    /// One cannot be opened, or has too little memory.
    pub(crate) fn open(
        &self,
        snapshot: &Arc<Snapshot>,
        wakers: &Arc<Wakers>,
        quiet: bool,
    ) -> anyhow::Result<GpuEngines> {
        let on_lost = Arc::new(move |error: &GpuError| {
            if !quiet {
                let chain = chain(error);
                _ = writeln!(
                    std::io::stderr(),
                    "millrace: {chain}; its queries are answered by the CPU from now on"
                );
            }
        });
        let Self { devices, toolchain, options } = self;
        match options.method {
            Method::Bounds => {}
            Method::Ding09 { .. } => check_form(snapshot)?,
            Method::Huang(_) => check_huang_form(snapshot)?,
        }
        let engines =
            GpuEngines::open(devices, toolchain, snapshot, *options, wakers, &(on_lost as _));
        engines.context("--device gpu")
    }
}

/// Makes sure that lists are of a form that ding09 reads.
///
/// # Errors
/// They are not.
pub(crate) fn check_form(snapshot: &Snapshot) -> anyhow::Result<()> {
    match form_of(snapshot.generation()) {
        Ok(_) => Ok(()),
        Err(error) => bail!("{error}: build it with --codec pfor, or merge it so"),
    }
}

/// Makes sure that lists are of the form that huang reads.
///
/// # Errors
/// They are not.
pub(crate) fn check_huang_form(snapshot: &Snapshot) -> anyhow::Result<()> {
    match huang::list::check_form(snapshot.generation()) {
        Ok(()) => Ok(()),
        Err(error) => {
            bail!("{error}: build it with --codec newpfd --block-size 64, or merge it so")
        }
    }
}

/// What is said of queries that the CPU answered; nothing if there were none.
pub(crate) fn note(counts: &Counts) -> Option<String> {
    let back = counts.by_cpu();
    (back > 0).then(|| format!("{} of the queries by the CPU", crate::args::show_count(back)))
}

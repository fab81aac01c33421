//! Options of the devices that answer queries.

use crate::Usage;
use crate::papers::{self, HybridArgs};
use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use millrace::Snapshot;
use millrace::inside::gpu::{
    Cached, ChosenMethod, Counts, CpuWork, Devices, GivenDevices, GpuEngines, GpuError, GpuMethod,
    MOST_MERGE_LEVELS, OnLost, Traversal, given,
};
use millrace::inside::query::Wakers;
use millrace::inside::shown::chain;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    #[arg(long, default_value = "auto", value_name = papers::DEVICES)]
    #[arg(help = papers::help_of_devices())]
    #[arg(value_parser = PossibleValuesParser::new(papers::DEVICES.split('|')))]
    device: String,
    #[command(flatten)]
    pub(crate) hybrid: HybridArgs,
    /// Milliseconds within which a query should be answered [default: 500]. With --device hybrid,
    /// queries that have waited for 70 % of it are answered first. With --shed, queries that have
    /// waited longer are not answered.
    #[arg(long, default_value_t = 500, value_name = "MS", hide_default_value = true)]
    deadline_ms: u64,
    /// With --device gpu, the number of GPUs to use [default: all]. Batches are dealt out to them.
    #[arg(long, value_name = "N")]
    gpus: Option<NonZeroUsize>,
    /// Give each GPU a part of the documents, and have all GPUs answer every query. The index may
    /// then be larger than the memory of one GPU.
    #[arg(long)]
    gpu_partition: bool,
    /// Memory for postings lists on each GPU, such as 40G [default: most of what is free]. The CPU
    /// answers queries whose lists do not fit.
    #[arg(long, value_name = "SIZE", value_parser = crate::cli::args::size)]
    gpu_memory: Option<u64>,
    /// With --algorithm ding09: levels of splitters in a merge, 0 to 4 [default: 3, as in the
    /// paper].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_MERGE_LEVELS)))]
    merge_levels: Option<u32>,
    /// With --algorithm ding09: splitters of each level for one splitter of the level before, a
    /// power of two [default: the elements are divided evenly among the levels].
    #[arg(long, value_name = "N", value_parser = given::splitters)]
    splitters: Option<u32>,
    /// GPU threads for each query. With --algorithm huang: 32, 64, 128, 256, 320 or 512 [default:
    /// 64, as in the paper]. With --algorithm wang: 64, 128, 256, 512 or 1024, which is also the
    /// number of documents in a round [default: 256].
    #[arg(long, value_name = "N", value_parser = given::threads)]
    query_threads: Option<u32>,
    /// With --algorithm huang and --mode or: how each thread finds documents: exhaustive, wand or
    /// bmw [default: bmw].
    #[arg(long, value_name = "NAME", value_parser = given::traversal)]
    traversal: Option<Traversal>,
    /// With --algorithm huang: the score that a document must beat to be looked at. own: the k-th
    /// best of this thread, as in the paper. shared: the k-th best of all threads of the query.
    #[arg(long, value_name = "own|shared", value_parser = ["own", "shared"])]
    threshold: Option<String>,
    /// With --algorithm wang: lists that stay in the memory of the GPU. planned: those of the plan
    /// that `millrace cache` has made, or the longest if there is no plan. longest: the longest
    /// [default: planned].
    #[arg(long, value_name = "planned|longest", value_parser = ["planned", "longest"])]
    cached: Option<String>,
    /// Folder of compiled kernels.
    #[arg(long, value_name = "DIR", hide = true)]
    gpu_cache: Option<PathBuf>,
}

impl Where {
    /// Devices answer, alone or not.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device == "gpu" || self.is_hybrid()
    }

    pub(crate) fn is_hybrid(&self) -> bool {
        self.device == "hybrid"
    }

    /// The devices, if queries are to be answered by some; `processes` and `inter` are how else
    /// queries are spread, and `algorithm` how they have to be answered. Fails if there is none, or
    /// options do not go together.
    pub(crate) fn devices(
        &self,
        k: usize,
        processes: usize,
        inter: bool,
        algorithm: ChosenMethod,
    ) -> anyhow::Result<Option<Devices>> {
        self.given().check(algorithm, self.is_gpu()).map_err(Usage::from)?;
        if !self.is_gpu() {
            return Ok(None);
        }
        if processes > 1 {
            return Err(Usage("--device gpu works in one process".into()).into());
        }
        if !inter {
            return Err(Usage("--device gpu goes with --parallelism inter".into()).into());
        }
        self.chosen(k, algorithm).map(Some)
    }

    pub(crate) fn chosen(&self, k: usize, algorithm: ChosenMethod) -> anyhow::Result<Devices> {
        let given = self.given();
        Devices::of_machine(&given.choice(k, given.method(algorithm)))
            .map_err(|error| self.explain(error))
    }

    fn given(&self) -> GivenDevices {
        GivenDevices {
            merge_levels: self.merge_levels,
            splitters: self.splitters,
            threads: self.query_threads,
            traversal: self.traversal,
            shared_threshold: self.threshold.as_ref().map(|threshold| threshold == "shared"),
            cached: self.cached.as_deref().map(|cached| match cached {
                "longest" => Cached::Longest,
                _ => Cached::Planned,
            }),
            devices: self.gpus,
            partition: self.gpu_partition,
            memory: self.gpu_memory,
            cache: self.gpu_cache.clone(),
        }
    }

    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }

    /// The devices, if `--device` is auto and queries of so much work take longer than the devices
    /// need to begin. None if they cannot be used.
    pub(crate) fn for_work(&self, k: usize, work: &CpuWork) -> Option<Devices> {
        let worth = self.device == "auto" && work.is_worth_devices();
        let choice = worth.then(|| self.given().choice(k, GpuMethod::Bounds))?;
        Devices::of_machine(&choice).ok()
    }

    /// Opens devices, and reports one that is lost later; their work is added to `counts`.
    pub(crate) fn open(
        &self,
        devices: &Devices,
        snapshot: &Arc<Snapshot>,
        wakers: &Arc<Wakers>,
        counts: &Arc<Counts>,
    ) -> anyhow::Result<GpuEngines> {
        let on_lost: OnLost = Arc::new(|error| {
            let chain = chain(error);
            tell!("millrace: {chain}; its queries are answered by the CPU from now on");
        });
        devices.open(snapshot, wakers, &on_lost, counts).map_err(|error| self.explain(error))
    }

    /// Adds the option that asked for devices.
    fn explain(&self, error: GpuError) -> anyhow::Error {
        match error {
            GpuError::Setting(error) => anyhow!(error.on_command_line()),
            _ if self.is_gpu() => anyhow!(error).context(format!("--device {}", self.device)),
            _ => error.into(),
        }
    }
}

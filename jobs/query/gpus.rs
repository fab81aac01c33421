//! Options of the devices that answer queries.

use crate::Usage;
use crate::papers::{self, HybridArgs, MethodArgs};
use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use millrace::Snapshot;
use millrace::inside::gpu::{
    ChosenMethod, Counts, CpuWork, Devices, GivenDevices, GpuEngines, GpuError, OnLost,
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
    #[command(flatten)]
    methods: MethodArgs,
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
        self.methods.check(algorithm, self.is_gpu()).map_err(Usage::from)?;
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
        Devices::of_machine(&given.choice(k, self.methods.method(algorithm)))
            .map_err(|error| self.explain(error))
    }

    fn given(&self) -> GivenDevices {
        GivenDevices {
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
        let choice = worth.then(|| self.given().choice(k, None))?;
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

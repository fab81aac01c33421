//! Which devices answer queries, and what is said of them?

use crate::Usage;
use crate::args::chain;
use anyhow::Context as _;
use millrace::gpu::cache::ModuleCache;
use millrace::gpu::discover::{DeviceInfo, Discovery};
use millrace::gpu::error::GpuError;
use millrace::gpu::modules::Toolchain;
use millrace::gpu::query::engine::{GpuEngines, GpuOptions};
use millrace::gpu::query::service::Counts;
use millrace::query::engine::Wakers;
use millrace::query::snapshot::Snapshot;
use serde_json::{Value, json};
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where queries are answered.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    /// Where queries are answered: cpu, gpu; auto: where it is known to be faster, which is the CPU as yet.
    /// All give the same answers.
    #[arg(long, default_value = "auto", value_name = "auto|cpu|gpu")]
    #[arg(value_parser = ["auto", "cpu", "gpu"])]
    device: String,
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
    /// Launch few queries at a time as a graph that works on the memory of the host: sooner done, but no
    /// device has run it yet.
    #[arg(long)]
    gpu_graphs: bool,
    /// Folder of compiled kernels.
    #[arg(long, value_name = "DIR", hide = true)]
    gpu_cache: Option<PathBuf>,
}

/// Queries of a batch on a device; larger ones gain little and wait longer.
const BATCH: usize = 256;

/// Devices that answer queries.
pub(crate) struct Devices {
    devices: Vec<DeviceInfo>,
    toolchain: Toolchain,
    options: GpuOptions,
}

/// The devices of this machine that can be used, and what their kernels are made with.
///
/// # Errors
/// There is none, and why.
pub(crate) fn usable(cache: ModuleCache) -> anyhow::Result<(Vec<DeviceInfo>, Toolchain)> {
    let discovery = Discovery::of_machine();
    let devices: Vec<DeviceInfo> = discovery.usable();
    match (discovery.compiler.clone(), discovery.driver) {
        (Some(compiler), Some(driver)) if !devices.is_empty() => {
            Ok((devices, Toolchain { driver, compiler, cache }))
        }
        _ => {
            anyhow::bail!("no GPU can be used: {}", discovery.reasons().join("; "))
        }
    }
}

impl Where {
    /// Whether devices answer.
    pub(crate) fn is_gpu(&self) -> bool {
        self.device == "gpu"
    }

    /// The devices, if queries are to be answered by some; `processes` and `inter` say how else they are
    /// spread.
    ///
    /// # Errors
    /// There is none, or options do not go together.
    pub(crate) fn devices(
        &self,
        k: usize,
        processes: usize,
        inter: bool,
    ) -> anyhow::Result<Option<Devices>> {
        if self.device != "gpu" {
            for (name, given) in [
                ("gpus", self.gpus.is_some()),
                ("gpu-memory", self.gpu_memory.is_some()),
                ("gpu-partition", self.gpu_partition),
                ("gpu-graphs", self.gpu_graphs),
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
        let cache = match &self.gpu_cache {
            Some(folder) => ModuleCache::in_folder(folder),
            None => ModuleCache::of_user(),
        };
        let (mut devices, toolchain) = usable(cache).context("--device gpu")?;
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
            graphs: self.gpu_graphs,
            partition: self.gpu_partition,
            ..GpuOptions::default()
        };
        Ok(Some(Devices { devices, toolchain, options }))
    }
}

impl Devices {
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
        let engines =
            GpuEngines::open(devices, toolchain, snapshot, *options, wakers, &(on_lost as _));
        engines.context("--device gpu")
    }
}

/// What the devices did, for the report.
pub(crate) fn report(counts: &Counts) -> Value {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    json!({
        "answered": of(&counts.answered),
        "without_lists": of(&counts.without_lists),
        "unsuited": of(&counts.unsuited),
        "lost": of(&counts.lost),
        "repeated": of(&counts.repeated),
        "overflown": of(&counts.overflown),
        "batches": of(&counts.batches),
        "list_bytes": of(&counts.list_bytes),
    })
}

/// What is said of queries that the CPU answered; nothing if there were none.
pub(crate) fn note(counts: &Counts) -> Option<String> {
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let back = of(&counts.without_lists) + of(&counts.unsuited) + of(&counts.lost);
    (back > 0).then(|| format!("{} of the queries by the CPU", crate::args::show_count(back)))
}

//! The choice of devices and of a method for queries.

use super::engine::GpuEngines;
use super::method::{GpuOptions, HandedMethod, HandedMethods};
use super::service::{Counts, OnLost};
use crate::crew::cores;
use crate::gpu::floor::cache::ModuleCache;
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::engines::engine::Wakers;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::{Algorithm, Mode};
use crate::score::named::Score;
use crate::settings::SettingError;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a user chooses by one name: an algorithm of the CPU, a method of devices, or both. Without
/// a method devices find the same in the way of the default engine.
#[derive(Clone, Copy, Debug)]
pub struct ChosenMethod {
    name: &'static str,
    on_cpu: Option<Algorithm>,
    on_devices: Option<&'static dyn HandedMethod>,
}

impl ChosenMethod {
    /// The one of this name among the algorithms that there are and what is handed in.
    ///
    /// # Errors
    /// If none has the name: the names that there are.
    pub fn among(
        name: &str,
        algorithms: HandedAlgorithms,
        methods: HandedMethods,
    ) -> Result<Self, String> {
        let on_cpu = Algorithm::among(name, algorithms);
        let on_devices = methods.iter().copied().find(|method| method.name() == name);
        match (on_cpu, on_devices) {
            (Ok(algorithm), on_devices) => {
                Ok(Self { name: algorithm.name(), on_cpu: Some(algorithm), on_devices })
            }
            (Err(_), Some(method)) => {
                Ok(Self { name: method.name(), on_cpu: None, on_devices: Some(method) })
            }
            (Err(mut names), None) => {
                let of_cpu = |name| Algorithm::among(name, algorithms).is_ok();
                for name in methods.iter().map(|one| one.name()).filter(|name| !of_cpu(name)) {
                    names += ", ";
                    names += name;
                }
                Err(names)
            }
        }
    }

    pub fn name(self) -> &'static str {
        self.name
    }

    pub fn on_cpu(self) -> Algorithm {
        self.on_cpu.unwrap_or_default()
    }

    /// With its usual tuning.
    pub fn on_devices(self) -> Option<&'static dyn HandedMethod> {
        self.on_devices
    }

    /// Whether devices have the score, in a mode.
    pub fn has_score(self, score: Score, mode: Mode) -> bool {
        match (self.on_devices, score) {
            (Some(method), score) => method.has_score(score, mode),
            (None, Score::Impact) => mode == Mode::Or,
            (None, score) => !matches!(score, Score::Wang(_)),
        }
    }

    /// An algorithm that devices alone have is an error.
    pub fn without_devices(self) -> Result<(), SettingError> {
        let what = format!("algorithm {}", self.name);
        self.on_cpu.map(drop).ok_or_else(|| SettingError::alone(what, "device gpu"))
    }
}

/// Workers that keep one device busy with queries for few hits: docs/measurements/gpu-queries.md.
const WORKERS_OF_A_DEVICE: usize = 8;

/// Workers for all devices, at most: more wait for each other.
const WORKERS_OF_DEVICES: usize = 16;

/// Of longer answers, laying them out takes more time than all else.
const FEW_HITS: usize = 100;

#[derive(Clone, Debug, Default)]
pub struct DeviceChoice {
    /// The default engine if left out.
    pub method: Option<Arc<dyn HandedMethod>>,
    /// Hits that most queries ask for.
    pub k: usize,
    /// All that can be used if left out.
    pub devices: Option<NonZeroUsize>,
    /// Each device has a part of the documents.
    pub partition: bool,
    /// Of each device, for lists; most of what is free if left out.
    pub memory: Option<u64>,
    /// Of compiled kernels; the user's if left out.
    pub cache: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Devices {
    devices: Vec<DeviceInfo>,
    toolchain: Toolchain,
    options: GpuOptions,
}

impl Devices {
    pub fn of_machine(choice: &DeviceChoice) -> Result<Self, GpuError> {
        let cache = choice.cache.as_deref();
        let cache = cache.map_or_else(ModuleCache::of_user, ModuleCache::in_folder);
        let (mut devices, toolchain) = Toolchain::of_machine(cache)?;
        if let Some(wanted) = choice.devices.map(NonZeroUsize::get) {
            let usable = devices.len();
            if wanted > usable {
                let why = format!("{wanted} GPUs are asked for, and {usable} can be used");
                return Err(GpuError::Setting(SettingError::value("gpus", why)));
            }
            devices.truncate(wanted);
        }
        let usual = GpuOptions::default();
        let options = GpuOptions {
            method: choice.method.clone(),
            memory: choice.memory,
            k: choice.k,
            batch: choice.method.as_ref().map_or(usual.batch, |method| method.batch()),
            fetchers: cores(),
            partition: choice.partition,
            ..usual
        };
        Ok(Self { devices, toolchain, options })
    }

    /// The workers, of `cores`, that the devices need: more gain nothing, and each query waits
    /// until all have heard of it. Where the CPU answers, or lays long answers out, it takes all.
    pub fn workers(&self, cpu_answers: bool, cores: usize) -> usize {
        match cpu_answers || self.options.k > FEW_HITS {
            true => cores,
            false => cores.min(WORKERS_OF_DEVICES).min(WORKERS_OF_A_DEVICE * self.devices.len()),
        }
    }

    pub fn number(&self) -> usize {
        self.devices.len()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.devices.iter().map(|device| &*device.name)
    }

    /// The file of what queries cost here.
    pub fn path_of_costs(&self, index: &Path) -> PathBuf {
        index.join(match &self.options.method {
            None => "costs.json".to_string(),
            Some(method) => format!("costs-{}.json", method.name()),
        })
    }

    /// `on_lost` is told of a device that fails later; `counts` are of all devices.
    ///
    /// # Errors
    /// One cannot be opened, has too little memory, or does not read the lists of the index.
    pub fn open(
        &self,
        snapshot: &Arc<Snapshot>,
        wakers: &Arc<Wakers>,
        on_lost: &OnLost,
        counts: &Arc<Counts>,
    ) -> Result<GpuEngines, GpuError> {
        let Self { devices, toolchain, options } = self;
        if let Some(method) = &options.method {
            method.check(snapshot)?;
        }
        GpuEngines::open(devices, toolchain, snapshot, options.clone(), wakers, on_lost, counts)
    }
}

//! The choice of devices and of a method for queries.

use super::engine::GpuEngines;
use super::method::{GpuMethod, GpuOptions};
use super::service::{Counts, OnLost};
use crate::gpu::ding09::DingTuning;
use crate::gpu::floor::cache::ModuleCache;
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::huang::{self, HuangTuning};
use crate::gpu::methods::check_lists;
use crate::query::engines::engine::Wakers;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::{Algorithm, Mode};
use crate::score::named::Score;
use crate::settings::SettingError;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChosenMethod {
    /// Devices that are asked for find the same in [their own way](GpuMethod::Bounds), but for
    /// `wang`, which both have.
    Cpu(Algorithm),
    /// See [`ding09`](crate::gpu::ding09).
    Ding09,
    Huang,
}

impl ChosenMethod {
    pub const OF_DEVICES: [Self; 2] = [Self::Ding09, Self::Huang];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu(algorithm) => algorithm.name(),
            Self::Ding09 => "ding09",
            Self::Huang => "huang",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        let of_devices = Self::OF_DEVICES.into_iter().find(|chosen| chosen.name() == name);
        Algorithm::named(name).map(Self::Cpu).or(of_devices)
    }

    pub fn on_cpu(self) -> Algorithm {
        match self {
            Self::Cpu(algorithm) => algorithm,
            Self::Ding09 | Self::Huang => Algorithm::Auto,
        }
    }

    /// Whether devices have the score, in a mode.
    pub fn has_score(self, score: Score, mode: Mode) -> bool {
        match (self, score) {
            // It brings its own, which is checked elsewhere.
            (Self::Cpu(Algorithm::Wang), _) => true,
            (Self::Cpu(_), Score::Impact) => mode == Mode::Or,
            (Self::Cpu(_), score) => !matches!(score, Score::Wang(_)),
            _ => score.is_saturation(),
        }
    }

    pub(crate) fn is_of_devices(self) -> bool {
        !matches!(self, Self::Cpu(_))
    }
}

/// That keep a device busy with queries for few hits: docs/measurements/gpu-queries.md.
const WORKERS_OF_A_DEVICE: usize = 4;

/// Of longer answers, laying them out takes more time than all else.
const FEW_HITS: usize = 100;

#[derive(Clone, Debug, Default)]
pub struct DeviceChoice {
    pub method: GpuMethod,
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
            method: choice.method,
            memory: choice.memory,
            k: choice.k,
            batch: match choice.method {
                GpuMethod::Huang(_) | GpuMethod::Wang(_) => huang::BATCH,
                GpuMethod::Bounds | GpuMethod::Ding09(_) => usual.batch,
            },
            fetchers: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
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
            false => cores.min(WORKERS_OF_A_DEVICE * self.devices.len()),
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
        index.join(match self.options.method {
            GpuMethod::Bounds => "costs.json",
            GpuMethod::Ding09(_) => "costs-ding09.json",
            GpuMethod::Huang(_) => "costs-huang.json",
            GpuMethod::Wang(_) => "costs-wang.json",
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
        match options.method {
            GpuMethod::Bounds => {}
            GpuMethod::Ding09(_) => check_lists::<DingTuning>(snapshot.generation())?,
            GpuMethod::Huang(_) => check_lists::<HuangTuning>(snapshot.generation())?,
            GpuMethod::Wang(_) => snapshot.check_global().map_err(GpuError::Order)?,
        }
        GpuEngines::open(devices, toolchain, snapshot, *options, wakers, on_lost, counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_algorithms_are_read() {
        let of_cpu = Algorithm::ALL.map(ChosenMethod::Cpu);
        for chosen in of_cpu.into_iter().chain(ChosenMethod::OF_DEVICES) {
            assert_eq!(ChosenMethod::named(chosen.name()), Some(chosen));
            assert_eq!(chosen.is_of_devices(), ChosenMethod::OF_DEVICES.contains(&chosen));
        }
        assert_eq!(ChosenMethod::named("ding"), None);
    }
}

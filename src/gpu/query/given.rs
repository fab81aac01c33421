//! The options of a user for devices that answer queries, most of which go with one algorithm.

use super::choose::{ChosenMethod, DeviceChoice};
use super::method::GpuMethod;
use crate::gpu::ding09::{self, DingTuning};
use crate::gpu::huang::{self, Traversal};
use crate::gpu::wang::{self, Cached};
use crate::query::wanted::Algorithm;
use crate::settings::SettingError;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Both the CPU and devices have it.
const WANG: ChosenMethod = ChosenMethod::Cpu(Algorithm::Wang);

/// What is left out is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenDevices {
    /// Of splitters of `ding09`.
    pub merge_levels: Option<u32>,
    /// Of `ding09`, for each of the level before.
    pub splitters: Option<u32>,
    /// Of `huang` or `wang`, for a query.
    pub threads: Option<u32>,
    /// Of `huang`.
    pub traversal: Option<Traversal>,
    /// The threads of a query of `huang` have one threshold.
    pub shared_threshold: Option<bool>,
    /// Lists that `wang` has on a device for good.
    pub cached: Option<Cached>,
    pub devices: Option<NonZeroUsize>,
    /// Each device has a part of the documents.
    pub partition: bool,
    /// Bytes of each device, for lists.
    pub memory: Option<u64>,
    /// Of compiled kernels.
    pub cache: Option<PathBuf>,
}

impl GivenDevices {
    /// Checks options with an algorithm, and with answers by devices or by the CPU alone.
    pub fn check(&self, algorithm: ChosenMethod, on_devices: bool) -> Result<(), SettingError> {
        let row = |name, given, with: ChosenMethod| {
            (name, given, algorithm == with, format!("algorithm {}", with.name()))
        };
        SettingError::check([
            row("merge-levels", self.merge_levels.is_some(), ChosenMethod::Ding09),
            row("splitters", self.splitters.is_some(), ChosenMethod::Ding09),
            row("traversal", self.traversal.is_some(), ChosenMethod::Huang),
            row("threshold", self.shared_threshold.is_some(), ChosenMethod::Huang),
        ])?;
        self.check_threads(algorithm)?;
        SettingError::check([row("cached", self.cached.is_some(), WANG)])?;
        if !on_devices {
            without_devices(algorithm)?;
            let row = |name, given| (name, given, false, "device gpu".to_string());
            return SettingError::check([
                row("cached", self.cached.is_some()),
                row("query-threads", self.threads.is_some()),
                row("gpus", self.devices.is_some()),
                row("gpu-memory", self.memory.is_some()),
                row("gpu-partition", self.partition),
            ]);
        }
        if (algorithm.is_of_devices() || algorithm == WANG) && self.partition {
            let what = format!("algorithm {}", algorithm.name());
            return Err(SettingError::together(what, "gpu-partition"));
        }
        Ok(())
    }

    fn check_threads(&self, algorithm: ChosenMethod) -> Result<(), SettingError> {
        let what = "query-threads";
        let Some(threads) = self.threads else { return Ok(()) };
        let known = match algorithm {
            ChosenMethod::Huang => &huang::THREADS[..],
            WANG => &wang::ROUNDS,
            _ => return Err(SettingError::alone(what, "algorithm huang, or wang on a GPU")),
        };
        if known.contains(&threads) {
            return Ok(());
        }
        let why = format!("{} takes {}", algorithm.name(), listed(known));
        Err(SettingError::value(what, why))
    }

    pub fn method(&self, algorithm: ChosenMethod) -> GpuMethod {
        match algorithm {
            WANG => {
                let usual = wang::WangTuning::default();
                GpuMethod::Wang(wang::WangTuning {
                    round: self.threads.unwrap_or(usual.round),
                    cached: self.cached.unwrap_or(usual.cached),
                })
            }
            ChosenMethod::Cpu(_) => GpuMethod::Bounds,
            ChosenMethod::Ding09 => GpuMethod::Ding09(DingTuning {
                levels: self.merge_levels.unwrap_or(DingTuning::default().levels),
                splitters: self.splitters,
            }),
            ChosenMethod::Huang => {
                let usual = huang::HuangTuning::default();
                GpuMethod::Huang(huang::HuangTuning {
                    threads: self.threads.unwrap_or(usual.threads),
                    traversal: self.traversal.unwrap_or(usual.traversal),
                    shared_threshold: self.shared_threshold.unwrap_or(usual.shared_threshold),
                    ..usual
                })
            }
        }
    }

    pub fn choice(&self, k: usize, method: GpuMethod) -> DeviceChoice {
        DeviceChoice {
            method,
            k,
            devices: self.devices,
            partition: self.partition,
            memory: self.memory,
            cache: self.cache.clone(),
        }
    }
}

/// An algorithm that devices alone have is an error.
pub fn without_devices(algorithm: ChosenMethod) -> Result<(), SettingError> {
    let what = format!("algorithm {}", algorithm.name());
    if algorithm.is_of_devices() { Err(SettingError::alone(what, "device gpu")) } else { Ok(()) }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Parses a number of splitters.
pub fn splitters(text: &str) -> Result<u32, String> {
    let splitters = text.parse().ok().filter(|n| DingTuning::is_number_of_splitters(*n));
    splitters.ok_or_else(|| format!("give a power of two from 2 to {}", ding09::MOST_SPLITTERS))
}

/// Parses a number of threads that some algorithm has for a query.
pub fn threads(text: &str) -> Result<u32, String> {
    let mut known = [&huang::THREADS[..], &wang::ROUNDS].concat();
    known.sort_unstable();
    known.dedup();
    let threads = text.parse().ok().filter(|threads| known.contains(threads));
    threads.ok_or_else(|| format!("give {}", listed(&known)))
}

pub fn traversal(text: &str) -> Result<Traversal, String> {
    let names = || Traversal::ALL.map(Traversal::name).join(", ");
    Traversal::named(text).ok_or_else(|| format!("give {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_go_together_is_named_in_words_of_a_command_line() {
        let given = GivenDevices { threads: Some(320), partition: true, ..GivenDevices::default() };
        let says = |given: &GivenDevices, algorithm, on_devices| {
            given.check(algorithm, on_devices).unwrap_err().on_command_line()
        };
        assert_eq!(says(&given, WANG, true), "--query-threads: wang takes 64, 128, 256, 512, 1024");
        let huang = "--algorithm huang does not go with --gpu-partition";
        assert_eq!(says(&given, ChosenMethod::Huang, true), huang);
        assert_eq!(
            says(&given, ChosenMethod::Ding09, true),
            "--query-threads goes with --algorithm huang, or wang on a GPU"
        );
        let given = GivenDevices { partition: true, ..GivenDevices::default() };
        let auto = ChosenMethod::Cpu(Algorithm::Auto);
        assert_eq!(says(&given, auto, false), "--gpu-partition goes with --device gpu");
        assert_eq!(given.check(auto, true), Ok(()));
    }
}

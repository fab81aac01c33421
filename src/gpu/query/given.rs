//! The options of a user for devices that answer queries.

use super::choose::{ChosenMethod, DeviceChoice};
use super::method::HandedMethod;
use crate::settings::SettingError;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// What is left out is as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenDevices {
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
        if !on_devices {
            algorithm.without_devices()?;
            let row = |name, given| (name, given, false, "device gpu".to_string());
            return SettingError::check([
                row("gpus", self.devices.is_some()),
                row("gpu-memory", self.memory.is_some()),
                row("gpu-partition", self.partition),
            ]);
        }
        if algorithm.on_devices().is_some() && self.partition {
            let what = format!("algorithm {}", algorithm.name());
            return Err(SettingError::together(what, "gpu-partition"));
        }
        Ok(())
    }

    pub fn choice(&self, k: usize, method: Option<Arc<dyn HandedMethod>>) -> DeviceChoice {
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

//! Finds the devices that can be used, and why others cannot.
//!
//! [`Facts`] are asked of the machine, and [`Discovery::judge`] says what is missing, so that every
//! case is tested without a machine that has it. The driver hides devices that
//! `CUDA_VISIBLE_DEVICES` leaves out.

use super::error::{Cuda, has_driver};
use super::nvrtc::{Compiler, NoCompiler};
use super::version::{Architecture, Version};
use crate::crew::beside;
use crate::settings::{Gpus, SettingError};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute};
use std::fmt;
use tracing::debug;

/// The oldest driver that is used, by its CUDA version.
pub(crate) const LEAST_DRIVER: Version = Version { major: 12, minor: 8 };

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub ordinal: usize,
    pub name: String,
    pub architecture: Architecture,
    pub memory_bytes: u64,
    pub multiprocessors: u32,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GPU {} ({})", self.ordinal, self.name)
    }
}

/// Why no device, or not this one, can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Missing {
    #[error("no libcuda: the NVIDIA driver is not installed, or not in LD_LIBRARY_PATH")]
    NoDriver,
    #[error("the NVIDIA driver does not start: {0}")]
    Driver(Cuda),
    #[error("the driver supports CUDA {found}, and {LEAST_DRIVER} or newer is needed")]
    DriverTooOld { found: Version },
    #[error("the driver has found no device")]
    NoDevice,
    #[error(transparent)]
    Compiler(#[from] NoCompiler),
    #[error(
        "NVRTC {nvrtc} makes code that a driver of CUDA {driver} does not load: bring NVRTC \
         {}, or a newer driver",
        .driver.major
    )]
    CompilerTooNew { nvrtc: Version, driver: Version },
    #[error("its architecture is {found}, and {} is the least", Architecture::LEAST)]
    Architecture { found: Architecture },
    #[error("NVRTC {nvrtc} does not compile for {found}")]
    Uncompilable { found: Architecture, nvrtc: Version },
}

#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// None without its library, an error if it does not start.
    pub driver: Option<Result<Version, Cuda>>,
    pub compiler: Result<Compiler, NoCompiler>,
    pub devices: Result<Vec<DeviceInfo>, Cuda>,
}

impl Facts {
    /// Asks the machine. Starts the driver if there is one, and makes no context. `seems` is called
    /// once driver and compiler are found: the devices take most of the time.
    pub(crate) fn ask(seems: impl FnOnce()) -> Self {
        // In parallel: both are large libraries.
        std::thread::scope(|scope| {
            let compiler = beside(scope, Compiler::find);
            let driver = has_driver().then(driver_version);
            let is_new = matches!(driver, Some(Ok(version)) if version >= LEAST_DRIVER);
            let devices = is_new.then(|| beside(scope, devices));
            let compiler = compiler();
            if is_new && compiler.is_ok() {
                seems();
            }
            Self { driver, compiler, devices: devices.map_or(Ok(Vec::new()), |devices| devices()) }
        })
    }
}

fn driver_version() -> Result<Version, Cuda> {
    let mut number = 0;
    // SAFETY: the pointer leads to an integer that outlives the call.
    unsafe { sys::cuDriverGetVersion(&mut number) }.result().map_err(Cuda)?;
    Ok(Version::from_driver(number))
}

fn devices() -> Result<Vec<DeviceInfo>, Cuda> {
    match result::init() {
        Ok(()) => {}
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => return Ok(Vec::new()),
        Err(error) => return Err(Cuda(error)),
    }
    let count = result::device::get_count().map_err(Cuda)?;
    (0..count).map(|ordinal| device(ordinal).map_err(Cuda)).collect()
}

fn device(ordinal: i32) -> Result<DeviceInfo, cudarc::driver::DriverError> {
    use CUdevice_attribute as A;
    let device = result::device::get(ordinal)?;
    let ask = |attribute| {
        // SAFETY: the driver has just given this device.
        let value = unsafe { result::device::get_attribute(device, attribute) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let major = ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = ask(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo {
        ordinal: ordinal as usize,
        name: result::device::get_name(device)?,
        architecture: Architecture(major * 10 + minor),
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }? as u64,
        multiprocessors: ask(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundDevice {
    pub info: DeviceInfo,
    pub unfit: Option<Missing>,
}

#[derive(Clone, Debug)]
pub(crate) struct Discovery {
    pub driver: Option<Version>,
    pub compiler: Option<Compiler>,
    pub devices: Vec<FoundDevice>,
    /// What no device can be used without.
    pub missing: Vec<Missing>,
}

impl Discovery {
    pub(crate) fn of_machine() -> Self {
        Self::look(|| ())
    }

    /// `seems`: see [`Facts::ask`].
    pub(crate) fn look(seems: impl FnOnce()) -> Self {
        Self::judge(Facts::ask(seems))
    }

    pub(crate) fn judge(facts: Facts) -> Self {
        let mut missing = Vec::new();
        let driver = match facts.driver {
            None => {
                missing.push(Missing::NoDriver);
                None
            }
            Some(Err(error)) => {
                missing.push(Missing::Driver(error));
                None
            }
            Some(Ok(version)) => Some(version),
        };
        let devices = match driver {
            None => Vec::new(),
            Some(found) if found < LEAST_DRIVER => {
                missing.push(Missing::DriverTooOld { found });
                Vec::new()
            }
            Some(_) => facts.devices.unwrap_or_else(|error| {
                missing.push(Missing::Driver(error));
                Vec::new()
            }),
        };
        if missing.is_empty() && devices.is_empty() {
            missing.push(Missing::NoDevice);
        }
        let compiler = facts.compiler.map_err(|error| missing.push(error.into())).ok();
        if let (Some(driver), Some(compiler)) = (driver, &compiler)
            && compiler.version().major > driver.major
        {
            missing.push(Missing::CompilerTooNew { nvrtc: compiler.version(), driver });
        }
        let found = devices.into_iter().map(|info| {
            let unfit = unfit(info.architecture, compiler.as_ref());
            FoundDevice { info, unfit }
        });
        let found = Self { driver, devices: found.collect(), compiler, missing };
        debug!(usable = found.usable().len(), reasons = ?found.reasons(), "looked for GPUs");
        found
    }

    pub(crate) fn usable(&self) -> Vec<DeviceInfo> {
        if !self.missing.is_empty() {
            return Vec::new();
        }
        let fit = self.devices.iter().filter(|found| found.unfit.is_none());
        fit.map(|found| found.info.clone()).collect()
    }

    /// Each with its device, if it is of one.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let unfit = self.devices.iter().filter_map(|found| {
            found.unfit.as_ref().map(|reason| format!("{}: {reason}", found.info))
        });
        self.missing.iter().map(ToString::to_string).chain(unfit).collect()
    }

    pub(crate) fn choose(&self, gpus: Gpus) -> Result<Vec<DeviceInfo>, SettingError> {
        let mut usable = self.usable();
        match gpus {
            Gpus::None => usable.clear(),
            Gpus::Auto => {}
            Gpus::Number(n) if n as usize > usable.len() => {
                let found = usable.len();
                let reasons = self.reasons().join("; ");
                let why = format!("{n} GPUs were asked for, and {found} can be used here");
                let why = if reasons.is_empty() { why } else { format!("{why} ({reasons})") };
                return Err(SettingError::value("gpus", why));
            }
            Gpus::Number(n) => usable.truncate(n as usize),
        }
        Ok(usable)
    }
}

fn unfit(found: Architecture, compiler: Option<&Compiler>) -> Option<Missing> {
    if found < Architecture::LEAST {
        return Some(Missing::Architecture { found });
    }
    let compiler = compiler?;
    let nvrtc = compiler.version();
    (!compiler.architectures().contains(&found)).then_some(Missing::Uncompilable { found, nvrtc })
}

#[cfg(test)]
mod tests;

//! Loads an owner's kernels.
//!
//! The [`cache`](super::cache) has or compiles the code; the driver loads it into the context.

use super::cache::{Cubin, ModuleCache, Origin};
use super::device::Device;
use super::discover::{DeviceInfo, Discovery};
use super::error::{Cuda, GpuError};
use super::nvrtc::{Compiler, KernelSource};
use super::version::Version;
use cudarc::driver::CudaFunction;
use cudarc::nvrtc::Ptx;
use std::collections::HashMap;

#[derive(Clone, Debug)]
pub struct Toolchain {
    pub driver: Version,
    pub compiler: Compiler,
    pub cache: ModuleCache,
}

impl Toolchain {
    /// None if the driver or the compiler is missing.
    pub(crate) fn of(discovery: &Discovery, cache: ModuleCache) -> Option<Self> {
        let driver = discovery.driver?;
        let compiler = discovery.compiler.clone()?;
        Some(Self { driver, compiler, cache })
    }

    /// The usable devices of this machine, at least one, and their toolchain.
    pub fn of_machine(cache: ModuleCache) -> Result<(Vec<DeviceInfo>, Self), GpuError> {
        let discovery = Discovery::of_machine();
        let devices = discovery.usable();
        match Self::of(&discovery, cache) {
            Some(toolchain) if !devices.is_empty() => Ok((devices, toolchain)),
            _ => Err(GpuError::NoneUsable { reasons: discovery.reasons() }),
        }
    }

    /// Returns also where the code came from.
    pub(super) fn load(
        &self,
        device: &Device,
        source: &KernelSource,
        kernels: impl IntoIterator<Item = &'static str>,
    ) -> Result<(HashMap<&'static str, CudaFunction>, Origin), GpuError> {
        let name = source.name.to_owned();
        let architecture = device.info().architecture;
        let Cubin { bytes, origin } = self.cache.cubin(&self.compiler, source, architecture)?;
        let module = device.context().load_module(Ptx::from_binary(bytes));
        let module = module.map_err(|error| GpuError::Load {
            device: device.info().to_string(),
            name: name.clone(),
            architecture: architecture.to_string(),
            driver: self.driver,
            nvrtc: self.compiler.version(),
            fault: Cuda(error),
        })?;
        let function = |kernel| match module.load_function(kernel) {
            Ok(function) => Ok((kernel, function)),
            Err(source) => Err(GpuError::NoKernel {
                device: device.info().to_string(),
                name: name.clone(),
                kernel,
                fault: Cuda(source),
            }),
        };
        Ok((kernels.into_iter().map(function).collect::<Result<_, _>>()?, origin))
    }
}

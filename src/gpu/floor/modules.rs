//! How does an owner get its kernels?
//!
//! From the cache, or compiled, as [`cache`](super::cache) says; the driver then loads the code
//! into the owner's context.

use super::cache::{ModuleCache, Origin};
use super::device::Device;
use super::discover::{DeviceInfo, Discovery, NoneUsable};
use super::error::{Cuda, GpuError};
use super::nvrtc::{Compiler, Source};
use super::version::Version;
use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Toolchain {
    pub driver: Version,
    pub compiler: Compiler,
    /// Where the code is kept.
    pub cache: ModuleCache,
}

/// The kernels of one source, loaded on one device.
#[derive(Debug)]
pub(crate) struct Module {
    module: Arc<CudaModule>,
    name: &'static str,
    /// Where its code came from.
    pub origin: Origin,
}

impl Toolchain {
    /// The driver and the compiler that were found; none if one of them is missing.
    pub(crate) fn of(discovery: &Discovery, cache: ModuleCache) -> Option<Self> {
        let (driver, compiler) = (discovery.driver?, discovery.compiler.clone()?);
        Some(Self { driver, compiler, cache })
    }

    /// Looks at this machine: the devices that can be used, at least one, and what their kernels
    /// are made with.
    ///
    /// # Errors
    /// There is none, and why.
    pub fn of_machine(cache: ModuleCache) -> Result<(Vec<DeviceInfo>, Self), NoneUsable> {
        let discovery = Discovery::of_machine();
        let devices = discovery.usable();
        match Self::of(&discovery, cache) {
            Some(toolchain) if !devices.is_empty() => Ok((devices, toolchain)),
            _ => Err(NoneUsable { reasons: discovery.reasons() }),
        }
    }

    /// Loads `source` on `device`.
    pub(crate) fn load(&self, device: &Device, source: &Source) -> Result<Module, GpuError> {
        let architecture = device.info().architecture;
        let cubin = self.cache.cubin(&self.compiler, source, architecture)?;
        let module = device.context().load_module(Ptx::from_binary(cubin.bytes));
        let module = module.map_err(|error| GpuError::Load {
            device: device.info().to_string(),
            name: source.name.to_owned(),
            architecture: architecture.to_string(),
            driver: self.driver,
            nvrtc: self.compiler.version(),
            source: Cuda(error),
        })?;
        Ok(Module { module, name: source.name, origin: cubin.origin })
    }
}

impl Module {
    pub(crate) fn kernel(&self, device: &Device, kernel: &'static str) -> Result<Kernel, GpuError> {
        self.module.load_function(kernel).map(Kernel).map_err(|source| GpuError::NoKernel {
            device: device.info().to_string(),
            name: self.name.to_owned(),
            kernel,
            source: Cuda(source),
        })
    }
}

/// A kernel that can be launched.
pub(crate) struct Kernel(CudaFunction);

/// Dynamic shared memory that every kernel may have.
const USUAL_SHARED_BYTES: u32 = 48 << 10;

impl Kernel {
    pub(crate) fn function(&self) -> &CudaFunction {
        &self.0
    }

    /// The function, whose blocks may have so much dynamic shared memory.
    pub(crate) fn function_sharing(
        self,
        device: &Device,
        bytes: u32,
    ) -> Result<CudaFunction, GpuError> {
        if bytes > USUAL_SHARED_BYTES {
            let allowed = device.context().bind_to_thread().and_then(|()| {
                let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
                self.0.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
            });
            allowed.map_err(|e| device.call("take shared memory for a kernel", e))?;
        }
        Ok(self.0)
    }
}

//! Launches of kernels whose arguments are named arrays, not memory, so that a device and its
//! emulation take the same ones.

use super::cache::Origin;
use super::device::Device;
use super::error::{Geometry, GpuError, Launched};
use super::modules::Toolchain;
use super::nvrtc::KernelSource;
use cudarc::driver::sys::CUfunction_attribute;
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<A> {
    /// The array from a byte on.
    Array(A, u64),
    Number(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<A> {
    pub kernel: &'static str,
    pub geometry: Geometry,
    pub arguments: Vec<Argument<A>>,
}

impl<A> Step<A> {
    pub(crate) fn launched(&self) -> Launched {
        Launched { kernel: self.kernel, geometry: self.geometry }
    }
}

impl<A> From<u32> for Argument<A> {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

/// The step of a kernel by the function `step`: what this takes before the arguments, and behind a
/// semicolon the arguments, names of whole arrays, numbers and others; first, behind two dots, some
/// that are a list already.
macro_rules! launch {
    ($($how:expr),+; ..$first:expr, $($argument:expr),+) => {{
        let mut arguments = $first;
        arguments.extend([$(Argument::from($argument)),+]);
        step($($how),+, arguments)
    }};
    ($($how:expr),+; $($argument:expr),+) => {
        step($($how),+, vec![$(Argument::from($argument)),+])
    };
}
pub(crate) use launch;

/// Shared memory that every kernel may have, dynamically.
const USUAL_SHARED_BYTES: u32 = 48 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Kernels {
    functions: HashMap<&'static str, CudaFunction>,
    pub(crate) origin: Origin,
}

impl Kernels {
    /// Loads kernels, each with the dynamic shared memory that its blocks may have.
    pub(crate) fn load(
        toolchain: &Toolchain,
        device: &Device,
        source: &KernelSource,
        kernels: impl IntoIterator<Item = (&'static str, u32)>,
    ) -> Result<Self, GpuError> {
        let kernels: Vec<_> = kernels.into_iter().collect();
        let names = kernels.iter().map(|(name, _)| *name);
        let (functions, origin) = toolchain.load(device, source, names)?;
        let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        for (name, bytes) in kernels.into_iter().filter(|(_, bytes)| *bytes > USUAL_SHARED_BYTES) {
            let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
            functions[name]
                .set_attribute(most, bytes)
                .map_err(|e| device.call("take shared memory for a kernel", e))?;
        }
        Ok(Self { functions, origin })
    }

    pub(crate) fn resident(
        &self,
        device: &Device,
        kernel: &str,
        threads: u32,
    ) -> Result<u32, GpuError> {
        let function = &self.functions[kernel];
        let blocks = function.occupancy_max_active_blocks_per_multiprocessor(threads, 0, None);
        let blocks = blocks.map_err(|e| device.call("ask how many blocks fit", e))?;
        Ok(blocks.max(1) * device.info().multiprocessors)
    }

    /// Enqueues a step; `address` says where an array begins.
    ///
    /// # Safety
    /// The step has the arguments that its kernel declares, and with them the kernel stays inside
    /// of memory that lives until it is done.
    pub(crate) unsafe fn launch<A: Copy>(
        &self,
        device: &Device,
        stream: &CudaStream,
        step: &Step<A>,
        address: impl Fn(A) -> u64,
    ) -> Result<(), GpuError> {
        // Numbers have four bytes, and addresses eight.
        let values: Vec<(u64, u32)> = step
            .arguments
            .iter()
            .map(|argument| match *argument {
                Argument::Array(array, at) => (address(array) + at, 0),
                Argument::Number(number) => (0, number),
            })
            .collect();
        let mut arguments = stream.launch_builder(&self.functions[step.kernel]);
        for (argument, value) in step.arguments.iter().zip(&values) {
            match argument {
                Argument::Array(..) => arguments.arg(&value.0),
                Argument::Number(_) => arguments.arg(&value.1),
            };
        }
        let config = LaunchConfig {
            grid_dim: (step.geometry.blocks, 1, 1),
            block_dim: (step.geometry.threads, 1, 1),
            shared_mem_bytes: step.geometry.shared_bytes,
        };
        // SAFETY: the caller answers for it.
        unsafe { arguments.launch(config) }
            .map_err(|source| device.not_launched(step.launched(), source))?;
        Ok(())
    }
}

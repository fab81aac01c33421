//! How is a kernel launched whose arguments are arrays that have names, not places? A device and
//! the emulation of one take the same steps.

use super::device::Device;
use super::error::{Cuda, Geometry, GpuError, Launched};
use cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};

/// An argument of a kernel; whoever makes steps has arrays of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<A> {
    /// The array from so many bytes on.
    Array(A, u64),
    Number(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<A> {
    pub kernel: &'static str,
    pub geometry: Geometry,
    pub arguments: Vec<Argument<A>>,
}

/// Enqueues a step; `address` says where an array begins.
///
/// # Safety
/// The step has the arguments that the kernel `function` declares, and with them it stays inside of
/// memory that lives until it is done.
pub(crate) unsafe fn launch<A: Copy>(
    device: &Device,
    stream: &CudaStream,
    function: &CudaFunction,
    step: &Step<A>,
    address: impl Fn(A) -> u64,
) -> Result<(), GpuError> {
    // Numbers of four bytes, and addresses of eight.
    let values: Vec<(u64, u32)> = step
        .arguments
        .iter()
        .map(|argument| match *argument {
            Argument::Array(array, at) => (address(array) + at, 0),
            Argument::Number(number) => (0, number),
        })
        .collect();
    let mut arguments = stream.launch_builder(function);
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
    unsafe { arguments.launch(config) }.map_err(|source| GpuError::Launch {
        device: device.info().to_string(),
        launch: Launched { kernel: step.kernel, geometry: step.geometry },
        source: Cuda(source),
    })?;
    Ok(())
}

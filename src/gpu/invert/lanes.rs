//! Which machines count batches? Some on each device that is used: all devices are that can use the
//! memory of the first one and of each other, since a run's terms have one table and its lists are
//! encoded by one device.

use super::cuda::CudaMachine;
use super::machine::Machine;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::modules::Toolchain;
use crate::shown::chain;
use cudarc::driver::{DriverError, sys};
use std::panic::resume_unwind;
use std::thread::scope;

/// Lanes of one device.
const MOST_LANES: usize = 1;

/// Machines, one for each lane.
pub(crate) type Machines = Vec<Box<dyn Machine>>;

/// Opens devices, of which there is one at least: the machines of all lanes, that at home first.
/// There is a lane for each device, and if there is only one, there are as many as are `wanted`,
/// one at most.
///
/// `left_out` is told of each other device that is not used, and why.
///
/// # Errors
/// The first device refuses, or the kernels do not compile. Another one that refuses is left out.
pub(crate) fn open(
    devices: &[DeviceInfo],
    wanted: usize,
    toolchain: &Toolchain,
    mut left_out: impl FnMut(&DeviceInfo, String),
) -> Result<Machines, GpuError> {
    let opened = scope(|scope| {
        let open = |info: &DeviceInfo| CudaMachine::open(Device::open(info, 1)?, toolchain);
        let threads = Vec::from_iter(devices.iter().map(|info| scope.spawn(move || open(info))));
        let opened = threads.into_iter().map(|thread| thread.join());
        opened.map(|opened| opened.unwrap_or_else(|cause| resume_unwind(cause))).collect::<Vec<_>>()
    });
    let mut first: Vec<CudaMachine> = Vec::new();
    for (info, opened) in devices.iter().zip(opened) {
        let fits = |machine: &CudaMachine| {
            first.iter().all(|other| connect(machine.opened(), other.opened()))
        };
        match opened {
            // Lists are encoded at home.
            Ok(machine) if first.is_empty() => first.push(machine),
            Ok(machine) if fits(&machine) => first.push(machine.without_downloader()),
            Err(error) if first.is_empty() => return Err(error),
            Ok(_) => left_out(info, "it cannot use the memory of the others".to_owned()),
            Err(error) => left_out(info, chain(&error)),
        }
    }
    let more = wanted.min(MOST_LANES).saturating_sub(first.len());
    let others: Machines = first[..1]
        .iter()
        .cycle()
        .take(more)
        .map(|machine| Ok(Box::new(machine.lane()?) as _))
        .collect::<Result<_, GpuError>>()?;
    let first = first.into_iter().map(|machine| Box::new(machine) as _);
    Ok(first.chain(others).collect())
}

/// Lets each of two devices use the memory of the other; false if they cannot.
fn connect(one: &Device, other: &Device) -> bool {
    let enable = |from: &Device, to: &Device| -> Result<(), DriverError> {
        let mut can = 0;
        // SAFETY: both are devices, and the number is one.
        unsafe {
            sys::cuDeviceCanAccessPeer(
                &raw mut can,
                from.context().cu_device(),
                to.context().cu_device(),
            )
        }
        .result()?;
        if can == 0 {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
        }
        from.context().bind_to_thread()?;
        // SAFETY: the context lives as long as its device.
        match unsafe { sys::cuCtxEnablePeerAccess(to.context().cu_ctx(), 0) }.result() {
            // They are connected for as long as the process lives.
            Err(DriverError(sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)) => Ok(()),
            enabled => enabled,
        }
    };
    enable(one, other).and_then(|()| enable(other, one)).is_ok()
}

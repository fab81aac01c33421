//! A device, opened by one owner.
//!
//! An owner has a context, its allowance of the memory, and as many streams as it makes. Work on
//! one stream runs in its order, and nobody else orders it. Memory stays until work that uses it is
//! done: dropping it waits for that.

use super::discover::DeviceInfo;
use super::error::{Cuda, GpuError, GpuWork, Launched};
use super::events::{Events, Ticket};
use super::lost;
use super::memory::Allowance;
use super::wake::{Wake, Watcher};
use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaStream, DriverError};
use std::sync::Arc;

#[derive(Debug)]
pub struct Device {
    info: DeviceInfo,
    context: Arc<CudaContext>,
    events: Arc<Events>,
    memory: Arc<Allowance>,
    most_shared_bytes: u32,
    watcher: Arc<Watcher>,
}

/// Of a device's memory, for owners; the rest is for the driver: local memory, modules, fragments.
const SHARE_PERCENT: u64 = 90;

impl Device {
    /// Opens a device that `owners` share; each may book an equal part of its memory, if free.
    pub fn open(info: &DeviceInfo, owners: usize) -> Result<Self, GpuError> {
        let failed = |operation| move |source| refused(info, operation, source);
        if let Some(fault) = lost::fault(info.ordinal) {
            return Err(GpuError::Lost { device: info.to_string(), fault: Cuda(fault) });
        }
        let context = CudaContext::new(info.ordinal).map_err(failed("make a context"))?;
        // SAFETY: an owner orders its streams itself, and `Slab` and `Pinned` wait when they are
        // dropped, so that they outlive what uses them.
        unsafe { context.disable_event_tracking() };
        let (free, _) = context.mem_get_info().map_err(failed("ask for its free memory"))?;
        let share = (info.memory_bytes / owners.max(1) as u64).min(free as u64);
        let share = share / 100 * SHARE_PERCENT;
        let most_shared = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let most_shared = context.attribute(most_shared).map_err(failed("ask for its limits"))?;
        let watcher = Watcher::of_device(info.ordinal)
            .map_err(|source| GpuError::Thread { device: info.to_string(), source })?;
        Ok(Self {
            info: info.clone(),
            events: Events::new(context.clone(), info.clone()),
            context,
            memory: Allowance::new(share),
            most_shared_bytes: most_shared.unsigned_abs(),
            watcher,
        })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(crate) fn memory(&self) -> &Arc<Allowance> {
        &self.memory
    }

    pub(crate) fn most_shared_bytes(&self) -> u32 {
        self.most_shared_bytes
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Of two streams, kernels of that with the lower `priority` come first.
    pub(crate) fn new_stream(&self, priority: Option<i32>) -> Result<Arc<CudaStream>, GpuError> {
        let stream = match priority {
            Some(priority) => self.context.new_stream_with_priority(priority),
            None => self.context.new_stream(),
        };
        stream.map_err(|e| self.call("make a stream", e))
    }

    pub(crate) fn free_bytes(&self) -> Result<u64, GpuError> {
        let (free, _) =
            self.context.mem_get_info().map_err(|e| self.call("ask for its free memory", e))?;
        Ok(free as u64)
    }

    /// A ticket for all that is enqueued on `stream`; `work` is what errors name.
    pub(crate) fn ticket(&self, stream: &CudaStream, work: GpuWork) -> Result<Ticket, GpuError> {
        self.events.record(stream, work).map_err(|e| self.call("record an event", e))
    }

    /// Calls `wakes` from another thread once all that is on `stream` is done, or has failed.
    pub(crate) fn wake_behind(
        &self,
        stream: &CudaStream,
        wakes: Vec<Wake>,
    ) -> Result<(), GpuError> {
        if !wakes.is_empty() {
            let ticket = self.ticket(stream, GpuWork::Download(0))?;
            self.watcher.watch(move || matches!(ticket.is_done(), Ok(false)), wakes);
        }
        Ok(())
    }

    pub(crate) fn call(&self, operation: &'static str, source: DriverError) -> GpuError {
        refused(&self.info, operation, source)
    }

    pub(super) fn no_memory(
        &self,
        place: &'static str,
        what: &'static str,
        bytes: u64,
        source: DriverError,
    ) -> GpuError {
        lost::note(self.info.ordinal, source);
        let device = self.info.to_string();
        GpuError::Memory { device, place, what, bytes, fault: Cuda(source) }
    }

    pub(super) fn not_launched(&self, launch: Launched, source: DriverError) -> GpuError {
        lost::note(self.info.ordinal, source);
        GpuError::Launch { device: self.info.to_string(), launch, fault: Cuda(source) }
    }
}

pub(super) fn refused(info: &DeviceInfo, operation: &'static str, source: DriverError) -> GpuError {
    lost::note(info.ordinal, source);
    GpuError::Call { device: info.to_string(), operation, fault: Cuda(source) }
}

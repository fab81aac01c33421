//! How does an owner work on a device without ever waiting for it?
//!
//! An owner opens a device for itself: a context, three streams so that uploads, kernels and downloads
//! run beside each other, and its allowance of the memory. It enqueues work and gets a [`Ticket`], an
//! event that it can ask whether the work is done; nothing here waits. cudarc orders the streams: each
//! buffer knows who wrote and who read it last, and whoever touches it next waits for that on the
//! device. (It knows one reader: two streams must not read a buffer that a third then writes.)

use super::discover::DeviceInfo;
use super::error::{Cuda, Geometry, GpuError, Launched, Work};
use super::memory::{Allowance, DeviceBuffer};
use super::pinned::{Pinned, is_done};
use bytemuck::Pod;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr,
    DriverError, LaunchArgs, LaunchConfig, ValidAsZeroBits,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A device, opened by one owner.
pub struct Device {
    info: Arc<DeviceInfo>,
    context: Arc<CudaContext>,
    upload: Arc<CudaStream>,
    compute: Arc<CudaStream>,
    download: Arc<CudaStream>,
    memory: Arc<Allowance>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("info", &self.info).field("memory", &self.memory).finish()
    }
}

/// What owners may book of a device's memory, in percent. The rest is for the driver: local memory,
/// modules and the pieces that allocations leave.
const SHARE_PERCENT: u64 = 90;

impl Device {
    /// Opens a device that `owners` share; each may book an equal part of its memory, as far as that
    /// is free.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn open(info: &DeviceInfo, owners: usize) -> Result<Self, GpuError> {
        let failed = |operation| {
            move |source| GpuError::Call {
                device: info.to_string(),
                operation,
                source: Cuda(source),
            }
        };
        let context = CudaContext::new(info.ordinal).map_err(failed("make a context"))?;
        let stream = || context.new_stream().map_err(failed("make a stream"));
        let (upload, compute, download) = (stream()?, stream()?, stream()?);
        let (free, _) = context.mem_get_info().map_err(failed("ask for its free memory"))?;
        let share = (info.memory_bytes / owners.max(1) as u64).min(free as u64);
        let share = share / 100 * SHARE_PERCENT;
        let memory = Allowance::new(share);
        Ok(Self { info: Arc::new(info.clone()), context, upload, compute, download, memory })
    }

    /// Which device.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// What this owner may use of its memory.
    pub fn memory(&self) -> &Arc<Allowance> {
        &self.memory
    }

    /// The context.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The stream of copies to the device.
    pub fn upload(&self) -> &Arc<CudaStream> {
        &self.upload
    }

    /// The stream of kernels.
    pub fn compute(&self) -> &Arc<CudaStream> {
        &self.compute
    }

    /// The stream of copies from the device.
    pub fn download(&self) -> &Arc<CudaStream> {
        &self.download
    }

    /// Bytes of its memory that nobody uses.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn free_bytes(&self) -> Result<u64, GpuError> {
        let (free, _) =
            self.context.mem_get_info().map_err(|e| self.call("ask for its free memory", e))?;
        Ok(free as u64)
    }

    /// The error of a call of the driver.
    pub fn call(&self, operation: &'static str, source: DriverError) -> GpuError {
        GpuError::Call { device: self.info.to_string(), operation, source: Cuda(source) }
    }

    /// Allocates `len` values for `what`, all zero.
    ///
    /// # Errors
    /// The allowance or the device has not so much.
    pub fn alloc<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        // A length of zero has no address.
        let len = len.max(1);
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let booking = self.memory.book(&*self.info, what, bytes)?;
        let slice = self.compute.alloc_zeros(len).map_err(|source| GpuError::Memory {
            device: self.info.to_string(),
            place: "device memory",
            what,
            bytes,
            source: Cuda(source),
        })?;
        Ok(DeviceBuffer::new(slice, booking))
    }

    /// Enqueues a copy of `bytes` of `from` to the beginning of `to`.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// The part is not aligned, or longer than one of them.
    pub fn copy_up<T: DeviceRepr + Pod>(
        &self,
        from: &Pinned,
        bytes: Range<usize>,
        to: &mut impl DevicePtrMut<T>,
    ) -> Result<Ticket, GpuError> {
        let work = Work::Upload(bytes.len() as u64);
        let part = from.part::<T>(bytes);
        part.and_then(|part| self.upload.memcpy_htod(&part, to))
            .map_err(|e| self.call("copy to the device", e))?;
        self.ticket(&self.upload, work)
    }

    /// Enqueues a copy of all of `from` to where `at` is in `to`, in bytes. The ticket's time is when
    /// `to` can be read.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// The place is not aligned, or `to` is too short.
    pub fn copy_down<T: DeviceRepr + Pod>(
        &self,
        from: &impl DevicePtr<T>,
        to: &mut Pinned,
        at: usize,
    ) -> Result<Ticket, GpuError> {
        let bytes = from.num_bytes();
        let part = to.part_mut::<T>(at..at + bytes);
        part.and_then(|mut part| self.download.memcpy_dtoh(from, &mut part))
            .map_err(|e| self.call("copy from the device", e))?;
        self.ticket(&self.download, Work::Download(bytes as u64))
    }

    /// A ticket for all that was enqueued on `stream` so far; `work` is what errors name.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn ticket(&self, stream: &CudaStream, work: Work) -> Result<Ticket, GpuError> {
        let event = stream.record_event(None).map_err(|e| self.call("record an event", e))?;
        Ok(Ticket { event, work, info: self.info.clone() })
    }
}

/// Work that was enqueued.
#[derive(Debug)]
pub struct Ticket {
    event: CudaEvent,
    work: Work,
    info: Arc<DeviceInfo>,
}

impl Ticket {
    /// Whether the work, and all that was enqueued on its stream before, is done. Never waits.
    ///
    /// # Errors
    /// That work, or anything else on the device, failed. The device cannot be used any more.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        is_done(&self.event).map_err(|source| GpuError::Work {
            device: self.info.to_string(),
            work: self.work,
            source: Cuda(source),
        })
    }
}

/// A kernel that can be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    function: CudaFunction,
    name: &'static str,
    info: Arc<DeviceInfo>,
}

impl Kernel {
    pub(super) fn new(function: CudaFunction, name: &'static str, device: &Device) -> Self {
        Self { function, name, info: device.info.clone() }
    }

    /// The function, to be asked for its registers and how many blocks of it fit.
    pub fn function(&self) -> &CudaFunction {
        &self.function
    }

    /// Enqueues the kernel on the compute stream of `device`; `push` pushes its arguments.
    ///
    /// # Errors
    /// The driver refuses; the error names kernel, geometry and device.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, in its order, it may be launched with this
    /// geometry, and with these arguments it stays inside its buffers and writes only to those that
    /// are pushed as mutable.
    pub unsafe fn launch<'a>(
        &'a self,
        device: &'a Device,
        geometry: Geometry,
        push: impl FnOnce(&mut LaunchArgs<'a>),
    ) -> Result<Launched, GpuError> {
        let launch = Launched { kernel: self.name, geometry };
        let mut arguments = device.compute.launch_builder(&self.function);
        push(&mut arguments);
        let config = LaunchConfig {
            grid_dim: (geometry.blocks, 1, 1),
            block_dim: (geometry.threads, 1, 1),
            shared_mem_bytes: geometry.shared_bytes,
        };
        // SAFETY: the caller answers for it, see above.
        unsafe { arguments.launch(config) }.map_err(|source| GpuError::Launch {
            device: self.info.to_string(),
            launch,
            source: Cuda(source),
        })?;
        Ok(launch)
    }
}

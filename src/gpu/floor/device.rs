//! How does an owner work on a device without ever waiting for it?
//!
//! An owner opens a device for itself: a context, three streams so that uploads, kernels and
//! downloads run beside each other, others if it needs them, and its allowance of the memory. It
//! enqueues work and gets a [`Ticket`], an event that it can ask whether the work is done; nothing
//! here waits.
//!
//! Work on one stream runs in its order. Work on two streams is ordered by whoever enqueues it
//! ([`Device::order`], [`Ticket::holds_back`]) or by waiting for tickets: nobody else knows which
//! buffers it shares. A buffer that is dropped is freed behind all that is under way, and pinned
//! memory is given to nobody, and freed by nobody, while a copy uses it.

use super::discover::DeviceInfo;
use super::error::{Cuda, Geometry, GpuError, GpuWork, Launched};
use super::events::{Event, Events, Streams};
use super::lost;
use super::memory::{Allowance, DeviceBuffer};
use super::wake::{Wake, Watcher};
#[cfg(test)]
use crate::crew::lock;
use bytemuck::Pod;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtrMut, DeviceRepr, DriverError,
    LaunchArgs, LaunchConfig, ValidAsZeroBits, result,
};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A device, opened by one owner.
pub struct Device {
    info: Arc<DeviceInfo>,
    context: Arc<CudaContext>,
    upload: Arc<CudaStream>,
    compute: Arc<CudaStream>,
    download: Arc<CudaStream>,
    streams: Arc<Streams>,
    memory: Arc<Allowance>,
    /// The most dynamic shared memory of a thread block.
    most_shared_bytes: u32,
    watcher: Arc<Watcher>,
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
    /// Opens a device that `owners` share; each may book an equal part of its memory, as far as
    /// that is free.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn open(info: &DeviceInfo, owners: usize) -> Result<Self, GpuError> {
        let failed = |operation| {
            move |source| {
                lost::note(info.ordinal, source);
                GpuError::Call { device: info.to_string(), operation, source: Cuda(source) }
            }
        };
        if let Some(fault) = lost::fault(info.ordinal) {
            return Err(GpuError::Lost { device: info.to_string(), source: Cuda(fault) });
        }
        let context = CudaContext::new(info.ordinal).map_err(failed("make a context"))?;
        // SAFETY: the module's doc says how work is ordered; buffers and pinned memory outlive what
        // uses them, for `DeviceBuffer` and `Pinned` see to that when they are dropped.
        unsafe { context.disable_event_tracking() };
        let stream = || context.new_stream().map_err(failed("make a stream"));
        let (upload, compute, download) = (stream()?, stream()?, stream()?);
        let (free, _) = context.mem_get_info().map_err(failed("ask for its free memory"))?;
        let share = (info.memory_bytes / owners.max(1) as u64).min(free as u64);
        let share = share / 100 * SHARE_PERCENT;
        let most_shared = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let most_shared = context.attribute(most_shared).map_err(failed("ask for its limits"))?;
        let streams = Arc::new(Streams {
            compute: compute.clone(),
            others: Mutex::new(vec![upload.clone(), download.clone()]),
            events: Events::new(context.clone()),
        });
        let watcher = Watcher::of_device(info.ordinal)
            .map_err(|source| GpuError::Thread { device: info.to_string(), source })?;
        Ok(Self {
            info: Arc::new(info.clone()),
            context,
            upload,
            compute,
            download,
            streams,
            memory: Allowance::new(share),
            most_shared_bytes: most_shared.unsigned_abs(),
            watcher,
        })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// What this owner may use of its memory.
    pub(crate) fn memory(&self) -> &Arc<Allowance> {
        &self.memory
    }

    /// The most dynamic shared memory that a block may have, in bytes.
    pub(crate) fn most_shared_bytes(&self) -> u32 {
        self.most_shared_bytes
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The stream of copies to the device.
    pub(crate) fn upload(&self) -> &Arc<CudaStream> {
        &self.upload
    }

    pub fn compute(&self) -> &Arc<CudaStream> {
        &self.compute
    }

    /// The stream of copies from the device.
    pub fn download(&self) -> &Arc<CudaStream> {
        &self.download
    }

    /// Bytes of its memory that nobody uses.
    pub(crate) fn free_bytes(&self) -> Result<u64, GpuError> {
        let (free, _) =
            self.context.mem_get_info().map_err(|e| self.call("ask for its free memory", e))?;
        Ok(free as u64)
    }

    /// The error of a call of the driver.
    pub(crate) fn call(&self, operation: &'static str, source: DriverError) -> GpuError {
        lost::note(self.info.ordinal, source);
        GpuError::Call { device: self.info.to_string(), operation, source: Cuda(source) }
    }

    /// A stream beside the three, for kernels or copies.
    #[cfg(test)]
    pub(crate) fn new_stream(&self) -> Result<Arc<CudaStream>, GpuError> {
        let stream = self.context.new_stream().map_err(|e| self.call("make a stream", e))?;
        self.order(&self.compute, &stream)?;
        let mut others = lock(&self.streams.others);
        others.push(stream.clone());
        Ok(stream)
    }

    /// Lets what comes on `later` wait, on the device, for what is on `earlier` now.
    pub(crate) fn order(&self, earlier: &CudaStream, later: &CudaStream) -> Result<(), GpuError> {
        self.streams.events.order(earlier, later).map_err(|e| self.call("order streams", e))
    }

    /// Allocates `len` values for `what`, all zero.
    pub(crate) fn alloc<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        self.alloc_by(what, len, |stream, len| stream.alloc_zeros(len))
    }

    /// Allocates `len` values for `what` that are written before they are read: until then they are
    /// what was there before.
    pub(crate) fn alloc_unset<T: DeviceRepr + Pod>(
        &self,
        what: &'static str,
        len: usize,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        // SAFETY: any bits are a value of the type.
        self.alloc_by(what, len, |stream, len| unsafe { stream.alloc(len) })
    }

    fn alloc_by<T>(
        &self,
        what: &'static str,
        len: usize,
        alloc: impl FnOnce(&Arc<CudaStream>, usize) -> Result<CudaSlice<T>, DriverError>,
    ) -> Result<DeviceBuffer<T>, GpuError> {
        // A length of zero has no address.
        let len = len.max(1);
        let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
        let booking = self.memory.book(&*self.info, what, bytes)?;
        let failed = |source| {
            lost::note(self.info.ordinal, source);
            let (device, place) = (self.info.to_string(), "device memory");
            GpuError::Memory { device, place, what, bytes, source: Cuda(source) }
        };
        let slice = alloc(&self.compute, len).map_err(failed)?;
        let buffer = DeviceBuffer::new(slice, booking, self.streams.clone());
        // It is there for the other streams too.
        self.streams.part().map_err(|e| self.call("order streams", e))?;
        Ok(buffer)
    }

    /// Enqueues that all bytes of a buffer become `byte`.
    pub(crate) fn fill<T: DeviceRepr + Pod>(
        &self,
        stream: &CudaStream,
        buffer: &mut DeviceBuffer<T>,
        byte: u8,
    ) -> Result<(), GpuError> {
        let bytes = buffer.len() * size_of::<T>();
        let (place, _guard) = buffer.slice_mut().device_ptr_mut(stream);
        let filled = self.context.bind_to_thread().and_then(|()| {
            // SAFETY: the buffer has so many bytes, any of which are values of its type.
            unsafe { result::memset_d8_async(place, byte, bytes, stream.cu_stream()) }
        });
        filled.map_err(|e| self.call("fill memory", e))
    }

    /// A ticket for all that was enqueued on `stream` so far; `work` is what errors name.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn ticket(&self, stream: &CudaStream, work: GpuWork) -> Result<Ticket, GpuError> {
        let event = self.streams.events.record(stream);
        let event = event.map_err(|e| self.call("record an event", e))?;
        Ok(Ticket { event, work, info: self.info.clone() })
    }

    /// Calls all of `wakes` from another thread once what is on `stream` now is done, or has
    /// failed.
    pub(crate) fn wake_behind(
        &self,
        stream: &CudaStream,
        wakes: Vec<Wake>,
    ) -> Result<(), GpuError> {
        if !wakes.is_empty() {
            let event = self.streams.events.record(stream);
            self.watcher.watch(event.map_err(|e| self.call("record an event", e))?, wakes);
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct Ticket {
    event: Event,
    work: GpuWork,
    info: Arc<DeviceInfo>,
}

impl Ticket {
    /// Whether the work, and all that was enqueued on its stream before, is done. Never waits.
    ///
    /// # Errors
    /// That work, or anything else on the device, failed. The device cannot be used any more.
    pub fn is_done(&self) -> Result<bool, GpuError> {
        self.event.is_done().map_err(|source| self.failed(source))
    }

    /// Lets what comes on `stream` wait for the work, on the device.
    pub(crate) fn holds_back(&self, stream: &CudaStream) -> Result<(), GpuError> {
        self.event.holds_back(stream).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: DriverError) -> GpuError {
        lost::note(self.info.ordinal, source);
        GpuError::Work { device: self.info.to_string(), work: self.work, source: Cuda(source) }
    }
}

/// Dynamic shared memory that every kernel may have.
const USUAL_SHARED_BYTES: u32 = 48 << 10;

/// A kernel that can be launched.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    function: CudaFunction,
    name: &'static str,
    info: Arc<DeviceInfo>,
    /// Dynamic shared memory that it may have.
    shared_bytes: Arc<AtomicU32>,
}

impl Kernel {
    pub(crate) fn new(function: CudaFunction, name: &'static str, device: &Device) -> Self {
        Self {
            function,
            name,
            info: device.info.clone(),
            shared_bytes: Arc::new(AtomicU32::new(USUAL_SHARED_BYTES)),
        }
    }

    /// The function, to be asked for its registers and how many blocks of it fit.
    pub(crate) fn function(&self) -> &CudaFunction {
        &self.function
    }

    /// The function, whose blocks may have so much dynamic shared memory.
    pub(crate) fn function_sharing(
        &self,
        device: &Device,
        bytes: u32,
    ) -> Result<CudaFunction, GpuError> {
        self.allow_shared(&device.compute, bytes)
            .map_err(|e| device.call("take shared memory for a kernel", e))?;
        Ok(self.function.clone())
    }

    /// Enqueues the kernel on `stream`, of the device that it was loaded on; `push` pushes its
    /// arguments. Dynamic shared memory above 48 KiB is allowed to it first.
    ///
    /// # Errors
    /// The driver refuses; the error names kernel, geometry and device.
    ///
    /// # Safety
    /// The arguments are those that the kernel declares, in its order, it may be launched with this
    /// geometry, and with these arguments it stays inside its buffers and writes only to those that
    /// are pushed as mutable. What else uses these buffers is ordered with it.
    pub(crate) unsafe fn launch<'a>(
        &'a self,
        stream: &'a CudaStream,
        geometry: Geometry,
        push: impl FnOnce(&mut LaunchArgs<'a>),
    ) -> Result<Launched, GpuError> {
        let launch = Launched { kernel: self.name, geometry };
        let failed = |source| {
            lost::note(self.info.ordinal, source);
            GpuError::Launch { device: self.info.to_string(), launch, source: Cuda(source) }
        };
        self.allow_shared(stream, geometry.shared_bytes).map_err(failed)?;
        let mut arguments = stream.launch_builder(&self.function);
        push(&mut arguments);
        let config = LaunchConfig {
            grid_dim: (geometry.blocks, 1, 1),
            block_dim: (geometry.threads, 1, 1),
            shared_mem_bytes: geometry.shared_bytes,
        };
        // SAFETY: the caller answers for it, see above.
        unsafe { arguments.launch(config) }.map_err(failed)?;
        Ok(launch)
    }

    fn allow_shared(&self, stream: &CudaStream, bytes: u32) -> Result<(), DriverError> {
        if bytes <= self.shared_bytes.load(Ordering::Relaxed) {
            return Ok(());
        }
        stream.context().bind_to_thread()?;
        let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        self.function.set_attribute(most, i32::try_from(bytes).unwrap_or(i32::MAX))?;
        self.shared_bytes.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }
}

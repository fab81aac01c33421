//! How does a batch come to a device that answers one after the other, and how do results come
//! back? What the host says of a batch, and what it is told, lie in pinned memory and in memory of
//! the device, with a copy each way; two events say when that began and when it ended.
//!
//! The devices of [`methods`](super::methods) work so.

use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{Cuda, GpuError, GpuWork};
use crate::gpu::floor::events::is_done;
use crate::gpu::floor::slab::{Slab, Staging};
use crate::gpu::floor::steps::{Step, launch};
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, DriverError};
use std::sync::Arc;

/// A device, and the way to it and back.
#[derive(Debug)]
pub(in crate::gpu) struct Lane {
    device: Device,
    input: Staging,
    input_on: Slab,
    output: Staging,
    output_on: Slab,
    stream: Arc<CudaStream>,
    began: CudaEvent,
    done: CudaEvent,
}

impl Lane {
    /// Takes memory for batches of which the host says, and is told, so many bytes at most.
    pub(in crate::gpu) fn new(
        device: Device,
        input: usize,
        output: usize,
    ) -> Result<Self, GpuError> {
        let stream = device.context().new_stream();
        let stream = stream.map_err(|e| device.call("make a stream", e))?;
        Ok(Self {
            input: Staging::new(&device, "queries", input)?,
            input_on: Slab::new(&device, "queries", input as u64)?,
            output: Staging::new(&device, "hits", output)?,
            output_on: Slab::new(&device, "hits", output as u64)?,
            began: event(&device)?,
            done: event(&device)?,
            stream,
            device,
        })
    }

    pub(in crate::gpu) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of what the host says, on the device.
    pub(in crate::gpu) fn input_on(&self) -> u64 {
        self.input_on.address()
    }

    /// The address of what the host is told, on the device.
    pub(in crate::gpu) fn output_on(&self) -> u64 {
        self.output_on.address()
    }

    /// Begins a batch: what the host says of it, so many bytes, is copied to the device in parts
    /// that so many threads write while those that are written are copied: one thread copies within
    /// the host at a fifth of what PCIe brings. What the host is told will be so many bytes. The
    /// batch before has been waited for.
    ///
    /// # Panics
    /// If there is no room for so much.
    pub(in crate::gpu) fn begin(
        &mut self,
        (input, output): (usize, usize),
        parts: &[(usize, &[u8])],
        threads: usize,
    ) -> Result<(), GpuError> {
        let fits = input as u64 <= self.input_on.bytes();
        assert!(fits && output as u64 <= self.output_on.bytes(), "a batch fits its room");
        let call = |e| self.device.call("copy queries to the device", e);
        self.device.context().bind_to_thread().map_err(call)?;
        self.began.record(&self.stream).map_err(call)?;
        // SAFETY: no copy is under way, both have so many bytes, and live until the batch is done.
        unsafe { self.input.write_up(parts, self.input_on.address(), &self.stream, threads) }
            .map_err(call)
    }

    /// Enqueues a launch of the batch.
    ///
    /// # Safety
    /// As [`launch`].
    pub(in crate::gpu) unsafe fn step<A: Copy>(
        &self,
        function: &CudaFunction,
        step: &Step<A>,
        address: impl Fn(A) -> u64,
    ) -> Result<(), GpuError> {
        // SAFETY: the caller answers for it.
        unsafe { launch(&self.device, &self.stream, function, step, address) }
    }

    /// Records an event behind what is enqueued.
    pub(in crate::gpu) fn record(&self, event: &CudaEvent) -> Result<(), GpuError> {
        event.record(&self.stream).map_err(|e| self.device.call("time kernels", e))
    }

    /// Enqueues the copy of so many bytes of results, which is the end of the batch.
    pub(in crate::gpu) fn end(&mut self, output: usize) -> Result<(), GpuError> {
        let call = |e| self.device.call("copy hits from the device", e);
        // SAFETY: both have so many bytes, and nobody looks at them until the batch is done.
        unsafe { self.output.copy_down(self.output_on.address(), 0, output, &self.stream) }
            .map_err(call)?;
        self.done.record(&self.stream).map_err(call)
    }

    /// Whether the batch is done. Never waits.
    fn is_done(&self) -> Result<bool, GpuError> {
        is_done(&self.done).map_err(|e| self.failed(e))
    }

    /// Waits until the batch is done: it takes from tens of microseconds to some hundred
    /// milliseconds.
    pub(in crate::gpu) fn wait(&self) -> Result<(), GpuError> {
        while !self.is_done()? {
            std::hint::spin_loop();
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Milliseconds on the device from the first copy of the last batch, which is done, to its
    /// last.
    pub(in crate::gpu) fn took_ms(&self) -> Result<f32, GpuError> {
        self.took_ms_to(&self.done)
    }

    /// As [`took_ms`](Self::took_ms), up to an event that was [recorded](Self::record) in the
    /// batch.
    pub(in crate::gpu) fn took_ms_to(&self, event: &CudaEvent) -> Result<f32, GpuError> {
        self.began.elapsed_ms(event).map_err(|e| self.failed(e))
    }

    /// The error of a batch that failed.
    pub(in crate::gpu) fn failed(&self, source: DriverError) -> GpuError {
        GpuError::Work {
            device: self.device.info().to_string(),
            work: GpuWork::Download(self.output_on.bytes()),
            source: Cuda(source),
        }
    }

    /// What the kernels said of the batch, which is done.
    pub(in crate::gpu) fn output(&self) -> &[u8] {
        // SAFETY: the batch is done, and with it all copies.
        unsafe { self.output.bytes() }
    }
}

pub(in crate::gpu) fn event(device: &Device) -> Result<CudaEvent, GpuError> {
    let event = device.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
    event.map_err(|e| device.call("make an event", e))
}

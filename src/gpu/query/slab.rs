//! Which memory do queries use, on a device and beside it? Pieces that are taken once and given back when
//! everything on the device is done: nothing is allocated or freed while work is under way.

use crate::gpu::device::Device;
use crate::gpu::error::{Cuda, GpuError};
use crate::gpu::memory::Booking;
use cudarc::driver::sys::CU_MEMHOSTALLOC_DEVICEMAP;
use cudarc::driver::{CudaContext, CudaStream, DriverError, result};
use std::ffi::c_void;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A piece of a device's memory, booked on its owner's allowance.
pub struct Slab {
    context: Arc<CudaContext>,
    address: u64,
    bytes: u64,
    _booking: Booking,
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Slab {
    /// Takes `bytes` for `what`.
    ///
    /// # Errors
    /// The allowance or the device has not so much.
    pub fn new(device: &Device, what: &'static str, bytes: u64) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let booking = device.memory().book(device.info(), what, bytes)?;
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound, and the size is not zero; the memory is freed once, below.
            unsafe { result::malloc_sync(bytes as usize) }
        });
        let address = taken.map_err(|source| GpuError::Memory {
            device: device.info().to_string(),
            place: "device memory",
            what,
            bytes,
            source: Cuda(source),
        })?;
        Ok(Self { context, address, bytes, _booking: booking })
    }

    /// Its address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where so many of its bytes from `at` on lie.
    ///
    /// # Panics
    /// If they are not its own.
    pub(in crate::gpu) fn part(&self, at: u64, bytes: u64) -> u64 {
        let end = at.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "a part is beyond the memory");
        self.address + at
    }

    /// Copies bytes to a place in it; they are there when this returns.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), DriverError> {
        let to = self.part(at, bytes.len() as u64);
        self.context.bind_to_thread()?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the part lies in memory that lives. The call has read all bytes when it returns, but those
        // of ordinary memory may still be on their way from the driver's own buffers, which the kernels of
        // other streams do not wait for: so this thread does.
        unsafe {
            result::memcpy_htod_sync(to, bytes)?;
            result::stream::synchronize(std::ptr::null_mut())
        }
    }

    /// Copies bytes of it to the host, when everything on the device is done.
    ///
    /// # Errors
    /// The driver refuses, or what was under way failed.
    ///
    /// # Panics
    /// If they are not its own.
    pub(in crate::gpu) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, DriverError> {
        let from = self.part(at, len as u64);
        let mut bytes = vec![0; len];
        self.context.bind_to_thread()?;
        self.context.synchronize()?;
        // SAFETY: the part lies in memory that lives, and the call returns when all bytes were copied.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, from) }?;
        Ok(bytes)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // Kernels that still run may use it.
        let done = self.context.bind_to_thread().and_then(|()| self.context.synchronize());
        // SAFETY: nothing runs any more that could use it, or the device is lost anyway.
        let freed = unsafe { result::free_sync(self.address) };
        self.context.record_err(done.and(freed));
    }
}

/// Memory of the host that the device copies from and to beside everything else, or that kernels work on.
pub(in crate::gpu) struct Staging {
    context: Arc<CudaContext>,
    at: *mut c_void,
    bytes: usize,
}

// SAFETY: it owns its memory, like a box.
unsafe impl Send for Staging {}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staging").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Staging {
    pub(in crate::gpu) fn new(
        device: &Device,
        what: &'static str,
        bytes: usize,
    ) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound; the memory is freed once, below.
            unsafe { result::malloc_host(bytes, CU_MEMHOSTALLOC_DEVICEMAP) }
        });
        let at = taken.map_err(|source| GpuError::Memory {
            device: device.info().to_string(),
            place: "pinned host memory",
            what,
            bytes: bytes as u64,
            source: Cuda(source),
        })?;
        // SAFETY: the memory has so many bytes, and nobody else knows it.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, bytes) };
        Ok(Self { context, at, bytes })
    }

    /// # Safety
    /// No copy or kernel that writes to it is under way.
    pub(in crate::gpu) unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: all bytes were written once, and the caller answers for the device.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.bytes) }
    }

    /// # Safety
    /// No copy or kernel that reads or writes it is under way.
    pub(in crate::gpu) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.at.cast(), self.bytes) }
    }

    /// Enqueues a copy of some of its bytes.
    ///
    /// # Safety
    /// `to` is a place on the device with so many bytes, and both stay until the copy is done.
    pub(in crate::gpu) unsafe fn copy_up(
        &self,
        bytes: Range<usize>,
        to: u64,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller answers for it.
        unsafe { result::memcpy_htod_async(to, &self.bytes()[bytes], stream.cu_stream()) }
    }

    /// Enqueues a copy to its bytes from `at` on.
    ///
    /// # Safety
    /// As [`copy_up`](Self::copy_up).
    pub(in crate::gpu) unsafe fn copy_down(
        &mut self,
        from: u64,
        at: usize,
        len: usize,
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller answers for it.
        unsafe {
            let to = &mut self.bytes_mut()[at..at + len];
            result::memcpy_dtoh_async(to, from, stream.cu_stream())
        }
    }

    /// Where kernels find it.
    pub(in crate::gpu) fn address(&self) -> u64 {
        // Devices and the host share one space of addresses, in which pinned memory has one for all.
        self.at as u64
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let done = self.context.bind_to_thread().and_then(|()| self.context.synchronize());
        // SAFETY: no kernel runs any more, or the device is lost anyway.
        let freed = unsafe { result::free_host(self.at) };
        self.context.record_err(done.and(freed));
    }
}

//! Device memory, which is neither allocated nor freed while work is under way.

use super::device::{Device, refused};
use super::discover::DeviceInfo;
use super::error::GpuError;
use super::memory::Booking;
use cudarc::driver::{CudaContext, result};
use std::sync::Arc;

/// Booked on its owner's allowance.
#[derive(Debug)]
pub struct Slab {
    context: Arc<CudaContext>,
    info: DeviceInfo,
    address: u64,
    bytes: u64,
    _booking: Booking,
}

impl Slab {
    pub(crate) fn new(device: &Device, what: &'static str, bytes: u64) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let booking = device.memory().book(device.info(), what, bytes)?;
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound, the size is not zero, and the memory is freed once.
            unsafe { result::malloc_sync(bytes as usize) }
        });
        let address = taken.map_err(|e| device.no_memory("device memory", what, bytes, e))?;
        let info = device.info().clone();
        Ok(Self { context, info, address, bytes, _booking: booking })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address of a part.
    ///
    /// # Panics
    /// If the part is not its own.
    pub(crate) fn part(&self, at: u64, bytes: u64) -> u64 {
        let end = at.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "a part is beyond the memory");
        self.address + at
    }

    /// Copies bytes to it; they are there when this returns.
    ///
    /// # Panics
    /// If the part is not its own.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let to = self.part(at, bytes.len() as u64);
        let written = self.context.bind_to_thread().and_then(|()| {
            if bytes.is_empty() {
                return Ok(());
            }
            // SAFETY: the part lies in memory that lives. The call has read all bytes when it
            // returns, but those of pageable memory may still be on their way from the driver's
            // buffers, for which kernels of other streams do not wait: so this thread does.
            unsafe {
                result::memcpy_htod_sync(to, bytes)?;
                result::stream::synchronize(std::ptr::null_mut())
            }
        });
        written.map_err(|e| refused(&self.info, "copy to the device", e))
    }

    /// Copies bytes to the host, when everything on the device is done.
    ///
    /// # Panics
    /// If the part is not its own.
    pub(crate) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, GpuError> {
        let from = self.part(at, len as u64);
        let mut bytes = vec![0; len];
        let read = self.context.bind_to_thread().and_then(|()| {
            self.context.synchronize()?;
            // SAFETY: the part lies in memory that lives, and the call returns when all is copied.
            unsafe { result::memcpy_dtoh_sync(&mut bytes, from) }
        });
        read.map_err(|e| refused(&self.info, "copy from the device", e))?;
        Ok(bytes)
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // Kernels that still run may use it.
        let done = self.context.bind_to_thread().and_then(|()| self.context.synchronize());
        // SAFETY: nothing that could use it runs any more, or the device is lost anyway.
        let freed = unsafe { result::free_sync(self.address) };
        self.context.record_err(done.and(freed));
    }
}

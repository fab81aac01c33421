//! How much of a device's memory may an owner use, and how does it get it?
//!
//! Device memory is a budget: an owner gets an [`Allowance`] when it opens the device, every
//! [`Slab`] is booked on it, and one that does not fit is an error before the driver is asked. A
//! slab is taken once and given back when everything on the device is done: nothing is allocated or
//! freed while work is under way.

use super::device::{Device, refused};
use super::discover::DeviceInfo;
use super::error::GpuError;
use cudarc::driver::{CudaContext, result};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an owner may use of a device's memory.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit: u64,
    used: AtomicU64,
}

impl Allowance {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes that are booked.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit - self.used()
    }

    /// Books `bytes` for `what` until the booking is dropped.
    ///
    /// # Errors
    /// Fewer bytes are left; the error names `device`.
    pub(crate) fn book(
        self: &Arc<Self>,
        device: &impl ToString,
        what: &'static str,
        bytes: u64,
    ) -> Result<Booking, GpuError> {
        let more = |used: u64| used.checked_add(bytes).filter(|&used| used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|used| {
            GpuError::Budget {
                device: device.to_string(),
                what,
                bytes,
                left: self.limit - used,
                limit: self.limit,
            }
        })?;
        Ok(Booking { allowance: self.clone(), bytes })
    }
}

/// Bytes that are booked until it is dropped.
#[derive(Debug)]
pub(crate) struct Booking {
    allowance: Arc<Allowance>,
    bytes: u64,
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.allowance.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A piece of a device's memory, booked on its owner's allowance.
pub struct Slab {
    context: Arc<CudaContext>,
    info: DeviceInfo,
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
    pub(crate) fn new(device: &Device, what: &'static str, bytes: u64) -> Result<Self, GpuError> {
        let context = device.context().clone();
        let bytes = bytes.max(16);
        let booking = device.memory().book(device.info(), what, bytes)?;
        let taken = context.bind_to_thread().and_then(|()| {
            // SAFETY: the context is bound, and the size is not zero; the memory is freed once,
            // below.
            unsafe { result::malloc_sync(bytes as usize) }
        });
        let address = taken.map_err(|e| device.no_memory("device memory", (what, bytes), e))?;
        let info = device.info().clone();
        Ok(Self { context, info, address, bytes, _booking: booking })
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where so many of its bytes from `at` on lie.
    ///
    /// # Panics
    /// If they are not its own.
    pub(crate) fn part(&self, at: u64, bytes: u64) -> u64 {
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
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let to = self.part(at, bytes.len() as u64);
        let written = self.context.bind_to_thread().and_then(|()| {
            if bytes.is_empty() {
                return Ok(());
            }
            // SAFETY: the part lies in memory that lives. The call has read all bytes when it
            // returns, but those of ordinary memory may still be on their way from the driver's own
            // buffers, which the kernels of other streams do not wait for: so this thread does.
            unsafe {
                result::memcpy_htod_sync(to, bytes)?;
                result::stream::synchronize(std::ptr::null_mut())
            }
        });
        written.map_err(|e| refused(&self.info, "copy to the device", e))
    }

    /// Copies bytes of it to the host, when everything on the device is done.
    ///
    /// # Panics
    /// If they are not its own.
    pub(crate) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>, GpuError> {
        let from = self.part(at, len as u64);
        let mut bytes = vec![0; len];
        let read = self.context.bind_to_thread().and_then(|()| {
            self.context.synchronize()?;
            // SAFETY: the part lies in memory that lives, and the call returns when all bytes were
            // copied.
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
        // SAFETY: nothing runs any more that could use it, or the device is lost anyway.
        let freed = unsafe { result::free_sync(self.address) };
        self.context.record_err(done.and(freed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_booked_comes_back() {
        let all = Allowance::new(100);
        let a = all.book(&"GPU 0", "nodes", 60).unwrap();
        let b = all.book(&"GPU 0", "strings", 40).unwrap();
        assert_eq!((all.used(), all.left()), (100, 0));
        drop(a);
        assert_eq!((all.used(), all.left()), (40, 60));
        drop(b);
        assert_eq!(all.used(), 0);
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_says_by_how_much() {
        let all = Allowance::new(100);
        let _a = all.book(&"GPU 0", "nodes", 60).unwrap();
        let error = all.book(&"GPU 0", "strings", 41).unwrap_err();
        assert_eq!(
            error.to_string(),
            "GPU 0: strings takes 41 bytes of device memory, and 40 of 100 are left"
        );
        assert!(error.is_out_of_memory());
        assert_eq!(all.used(), 60);
        assert!(all.book(&"GPU 0", "more", u64::MAX).is_err());
    }
}

//! The budget of an owner in a device's memory.
//!
//! An owner gets an [`Allowance`] when it opens the device; what it takes is booked, and what does
//! not fit is an error before the driver is asked.

use super::error::GpuError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit - self.used()
    }

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

//! The processors of a machine, and how many of its threads feed devices.

/// Seconds of a thread for a query that a device answers: four threads saturate a GPU that answers
/// 97,000 queries a second (docs/measurements/gpu-queries.md).
const HOST_SECONDS: f64 = 40e-6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    pub threads: usize,
    pub devices: usize,
}

impl Hardware {
    /// How many threads feed devices that need this many seconds for a query; at most half.
    pub(crate) fn feeders(&self, device_seconds: f64) -> usize {
        let busy = self.devices as f64 * HOST_SECONDS / device_seconds;
        (busy.ceil() as usize).clamp(1, (self.threads / 2).max(1))
    }

    /// The least seconds between two queries of a device if this many threads feed all devices.
    pub(crate) fn host_seconds(&self, feeders: usize) -> f64 {
        HOST_SECONDS * self.devices as f64 / feeders.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_devices_take_threads_and_leave_half() {
        let machine = Hardware { threads: 16, devices: 2 };
        let feeders = [1e-2, 4e-5, 2e-5, 1e-6, 0.0].map(|seconds| machine.feeders(seconds));
        assert_eq!(feeders, [1, 2, 4, 8, 8]);
        assert_eq!(Hardware { threads: 1, devices: 1 }.feeders(1e-6), 1);
    }
}

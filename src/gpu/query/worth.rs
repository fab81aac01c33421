//! Estimates whether devices are done before the CPU is. A device has to be started, and lists have
//! to come to it, before it answers; for little work the CPU has answered all by then.

use crate::query::wanted::Mode;

/// Devices are chosen from this many seconds of the CPU on: twice what a device took for so much
/// work, start and loading of lists included.
const WORTH_SECONDS: f64 = 20.0;

/// As far as it is known before the file of queries is read.
#[derive(Clone, Copy, Debug)]
pub struct CpuWork {
    pub bytes: u64,
    pub documents: u32,
    pub mode: Mode,
    pub workers: usize,
}

impl CpuWork {
    /// Whether devices are likely to be done before the CPU is.
    pub fn is_worth_devices(&self) -> bool {
        self.seconds() >= WORTH_SECONDS
    }

    /// Of the CPU, about. By docs/measurements/gpu-queries.md: a query of 3 to 5 terms
    /// has a posting for each nine documents, a core adds up 550 million postings a second with the
    /// fastest engine, and AND takes a fifth of that time.
    fn seconds(&self) -> f64 {
        const QUERY_BYTES: f64 = 36.0;
        let postings = self.bytes as f64 / QUERY_BYTES * f64::from(self.documents) / 9.0;
        let share = if self.mode == Mode::And { 0.2 } else { 1.0 };
        postings * share / (550e6 * self.workers as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_about_what_is_expected() {
        let work = |queries: u64, mode| CpuWork {
            bytes: 36 * queries,
            documents: 25_000_000,
            mode,
            workers: 16,
        };
        for (queries, mode, measured) in
            [(200_000, Mode::Or, 63.2), (200_000, Mode::And, 16.5), (20_000, Mode::AndOr, 5.2)]
        {
            let expected = work(queries, mode).seconds();
            assert!((0.5..2.0).contains(&(expected / measured)), "{expected} {measured}");
        }
        assert!(work(200_000, Mode::Or).is_worth_devices());
        assert!(!work(20_000, Mode::Or).is_worth_devices());
    }
}

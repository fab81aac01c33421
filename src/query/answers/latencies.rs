//! Latencies of queries: counts by duration, in classes at most a 32nd wide, so that any thread may
//! add to them and percentiles need no memory for each query; and the slowest queries.

use crate::crew::lock;
use serde::Serialize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Classes between a power of two and the next, as a power of two.
const BITS: u32 = 5;
/// Slowest queries that are kept.
const SLOWEST: usize = 10;
const CLASSES: usize = (64 - BITS as usize + 1) << BITS;

#[derive(Debug)]
pub struct Latencies {
    counts: Vec<AtomicU64>,
    sum_ns: AtomicU64,
    most_ns: AtomicU64,
    slowest: Mutex<Vec<SlowQuery>>,
    /// Queries that took no longer are none of the slowest.
    passed_ns: AtomicU64,
}

impl Default for Latencies {
    fn default() -> Self {
        let counts = (0..CLASSES).map(|_| AtomicU64::new(0)).collect();
        let [sum_ns, most_ns, passed_ns] = Default::default();
        Self { counts, sum_ns, most_ns, slowest: Mutex::default(), passed_ns }
    }
}

/// In microseconds. Percentiles are at most a 32nd too high.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencyReport {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    /// The 999th of a thousand.
    pub p99_9: f64,
    pub max: f64,
    /// Counts from each fourth part of a power of two of nanoseconds to the next.
    pub distribution: Vec<LatencyClass>,
    /// The slowest first.
    pub slowest: Vec<SlowQuery>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowQuery {
    /// Microseconds.
    pub took: f64,
    pub qid: String,
    pub query: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyClass {
    /// Microseconds.
    pub below: f64,
    pub queries: u64,
}

fn class(ns: u64) -> usize {
    let power = (ns | 1).ilog2();
    match power.checked_sub(BITS) {
        None => ns as usize,
        Some(shift) => ((shift as usize) << BITS) + (ns >> shift) as usize,
    }
}

/// The least number of nanoseconds above a class.
fn end(class: usize) -> u128 {
    match (class >> BITS).checked_sub(1) {
        None => class as u128 + 1,
        Some(shift) => ((class - (shift << BITS)) as u128 + 1) << shift,
    }
}

impl Latencies {
    pub fn add(&self, took: Duration, qid: &str, text: &str) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[class(ns)].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
        self.most_ns.fetch_max(ns, Ordering::Relaxed);
        if ns > self.passed_ns.load(Ordering::Relaxed) {
            let took = ns as f64 / 1e3;
            let slow = SlowQuery { took, qid: qid.to_string(), query: text.to_string() };
            let mut slowest = lock(&self.slowest);
            let place = slowest.partition_point(|other| other.took >= slow.took);
            slowest.insert(place, slow);
            if slowest.len() > SLOWEST {
                slowest.truncate(SLOWEST);
                let passed = (slowest[SLOWEST - 1].took * 1e3) as u64;
                self.passed_ns.store(passed, Ordering::Relaxed);
            }
        }
    }

    /// `None` without durations.
    pub fn report(&self) -> Option<LatencyReport> {
        let counts: Vec<u64> = self.counts.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        if all == 0 {
            return None;
        }
        let most_ns = self.most_ns.load(Ordering::Relaxed);
        let percentile = |share: f64| {
            let wanted = (share * all as f64).ceil().max(1.0) as u64;
            let mut passed = 0;
            let reached = counts.iter().position(|count| {
                passed += count;
                passed >= wanted
            });
            // Durations of the class may be as long as all but its end.
            let longest = reached.map_or(u128::MAX, |class| end(class) - 1);
            longest.min(most_ns.into()) as f64 / 1e3
        };
        let mut distribution: Vec<LatencyClass> = Vec::new();
        // Four to a power of two.
        let below = |class: usize| (((end(class) as f64).log2() * 4.0).ceil() / 4.0).exp2() / 1e3;
        for (class, &queries) in counts.iter().enumerate() {
            match distribution.last_mut() {
                Some(last) if last.below == below(class) => last.queries += queries,
                _ => distribution.push(LatencyClass { below: below(class), queries }),
            }
        }
        let first = distribution.iter().position(|class| class.queries > 0).unwrap_or(0);
        let last = distribution.iter().rposition(|class| class.queries > 0).unwrap_or(0);
        Some(LatencyReport {
            mean: self.sum_ns.load(Ordering::Relaxed) as f64 / all as f64 / 1e3,
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            p99_9: percentile(0.999),
            max: most_ns as f64 / 1e3,
            distribution: distribution[first..=last].to_vec(),
            slowest: lock(&self.slowest).clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_say_and_are_narrow() {
        let mut before = 0;
        for power in 0..64 {
            for ns in
                [1u64 << power, (1 << power) + (1 << power) / 3, (1 << power) - 1 + (1 << power)]
            {
                let class = class(ns);
                assert!(class < CLASSES && class >= before, "{ns}");
                before = class;
                assert!(
                    end(class) > ns.into() && (class == 0 || end(class - 1) <= ns.into()),
                    "{ns}"
                );
                assert!(
                    (end(class) - u128::from(ns)) as f64 <= (ns as f64 / 32.0).max(1.0),
                    "{ns}"
                );
            }
        }
        assert_eq!(class(0), 0);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_durations() {
        let latencies = Latencies::default();
        assert_eq!(latencies.report(), None);
        for us in (1..=1000u64).rev() {
            latencies.add(Duration::from_micros(us), &us.to_string(), "mill");
        }
        let report = latencies.report().unwrap();
        let LatencyReport { mean, p50, p90, p95, p99, p99_9, max, distribution, slowest } = report;
        assert_eq!((mean, max), (500.5, 1000.0));
        for (found, exact) in
            [(p50, 500.0), (p90, 900.0), (p95, 950.0), (p99, 990.0), (p99_9, 999.0)]
        {
            assert!(found >= exact && found <= exact * 33.0 / 32.0, "{found} {exact}");
        }
        assert_eq!(distribution.iter().map(|class| class.queries).sum::<u64>(), 1000);
        assert_eq!(distribution.first(), Some(&LatencyClass { below: 1.024, queries: 1 }));
        // From 881.7 us on, with the class around it, of 868.352 us and more.
        assert_eq!(distribution.last(), Some(&LatencyClass { below: 1048.576, queries: 132 }));
        assert!(distribution.len() > 36, "{distribution:?}");
        let slowest: Vec<(&str, f64)> =
            slowest.iter().map(|slow| (slow.qid.as_str(), slow.took)).collect();
        assert_eq!(slowest.len(), SLOWEST);
        assert_eq!([slowest[0], slowest[9]], [("1000", 1000.0), ("991", 991.0)]);
    }

    #[test]
    fn one_query_is_all_of_them() {
        let latencies = Latencies::default();
        latencies.add(Duration::from_nanos(1500), "0", "mill");
        let report = latencies.report().unwrap();
        assert_eq!([report.p50, report.p99_9, report.max, report.mean], [1.5; 4]);
    }
}

//! When a request that takes long is sent to a second group: after the time that 99 of 100 took,
//! and for one of 20 requests at most, so that groups that are all slow are not asked twice as
//! much.

use crate::crew::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Times that are looked at.
const RECENT: usize = 1024;
/// Times after which they are looked at again.
const STEP: usize = 64;
/// Before there are enough times.
const FIRST: Duration = Duration::from_secs(1);
const LEAST: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Patience {
    /// The last times in microseconds, the next of which goes to the place behind.
    recent: Mutex<(Vec<u64>, usize)>,
    now: AtomicU64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { recent: Mutex::default(), now: AtomicU64::new(FIRST.as_micros() as u64) }
    }
}

impl Patience {
    /// How long a request may take before another group is asked too.
    pub(super) fn now(&self) -> Duration {
        Duration::from_micros(self.now.load(Ordering::Relaxed)).max(LEAST)
    }

    /// Adds the time from a request to its answer, of whichever group.
    pub(super) fn add(&self, took: Duration) {
        let mut recent = lock(&self.recent);
        let (times, place) = &mut *recent;
        let took = took.as_micros() as u64;
        match times.get_mut(*place) {
            Some(time) => *time = took,
            None => times.push(took),
        }
        *place = (*place + 1) % RECENT;
        if *place % STEP == 0 && times.len() >= 2 * STEP {
            let mut sorted = times.clone();
            let at = sorted.len() * 99 / 100;
            let (_, p99, _) = sorted.select_nth_unstable(at);
            self.now.store(*p99, Ordering::Relaxed);
        }
    }
}

/// What hedges may cost, in twentieths of a request.
#[derive(Debug)]
pub(super) struct HedgeBudget(AtomicI64);

/// Of one hedge.
const COST: i64 = 20;
const MOST: i64 = 10 * COST;

impl Default for HedgeBudget {
    fn default() -> Self {
        Self(AtomicI64::new(MOST))
    }
}

impl HedgeBudget {
    /// Each request lets others be hedged.
    pub(super) fn request(&self) {
        let more = |left| (left < MOST).then_some(left + 1);
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Whether one more may be sent to a second group.
    pub(super) fn take(&self) -> bool {
        let less = |left| (left >= COST).then_some(left - COST);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_the_slowest_of_100() {
        let patience = Patience::default();
        for time in 1..100 {
            patience.add(Duration::from_millis(time));
        }
        assert_eq!(patience.now(), FIRST);
        for time in 0..5000 {
            patience.add(Duration::from_millis(1 + time % 200));
        }
        let now = patience.now().as_millis();
        assert!((195..=200).contains(&now), "{now}");
        // What was before is forgotten.
        (0..2 * RECENT).for_each(|_| patience.add(Duration::from_micros(7)));
        assert_eq!(patience.now(), LEAST);
    }

    #[test]
    fn one_of_20_is_hedged_at_most() {
        let hedges = HedgeBudget::default();
        let mut taken = 0;
        for _ in 0..10_000 {
            hedges.request();
            taken += usize::from(hedges.take());
        }
        assert!((500..=510).contains(&taken), "{taken}");
    }
}

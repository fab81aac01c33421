//! How much memory did the process hold, and when? A thread looks many times a second, and keeps a
//! few numbers however long the process runs.

use crate::build::memory::resident;
use crate::crew::{lock, spawn};
use serde::Serialize;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Slices that are kept; when there are more, neighbours are joined.
const SLICES: usize = 64;
/// Milliseconds of a slice at first.
const FIRST_SLICE_MS: u64 = 16;
/// A slice is looked at so many times, but not more often than every [`LEAST_WAIT`].
const LOOKS: u32 = 4;
/// Looking takes about 20 microseconds.
const LEAST_WAIT: Duration = Duration::from_millis(10);

/// The resident memory of this process from [`Watched::start`] on.
#[derive(Debug)]
pub struct Watched {
    began: Instant,
    slices: Arc<Mutex<Slices>>,
}

/// The greatest resident memory in each slice of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResidentBySlice {
    pub slice_s: f64,
    /// The greatest number of bytes that were seen in each; in a slice that was too short to be
    /// looked at, those of the one before.
    pub resident_bytes: Vec<u64>,
}

#[derive(Debug)]
struct Slices {
    slice: Duration,
    greatest: Vec<u64>,
    last: u64,
}

impl Watched {
    /// Begins to look, in a thread of its own, until the value is dropped. Nothing is seen if there
    /// can be no thread.
    pub fn start() -> Self {
        let (began, slice) = (Instant::now(), Duration::from_millis(FIRST_SLICE_MS));
        let slices = Arc::new(Mutex::new(Slices { slice, greatest: Vec::new(), last: 0 }));
        let weak = Arc::downgrade(&slices);
        // A job goes on without.
        _ = spawn("memory", move || look(&weak, began));
        Self { began, slices }
    }

    /// What was seen until now.
    pub fn seen(&self) -> ResidentBySlice {
        let mut slices = lock(&self.slices);
        slices.see(self.began.elapsed(), resident());
        let (slice_s, resident_bytes) = (slices.slice.as_secs_f64(), slices.greatest.clone());
        ResidentBySlice { slice_s, resident_bytes }
    }
}

fn look(slices: &Weak<Mutex<Slices>>, began: Instant) {
    while let Some(slices) = slices.upgrade() {
        let bytes = resident();
        let wait = {
            let mut slices = lock(&slices);
            slices.see(began.elapsed(), bytes);
            (slices.slice / LOOKS).max(LEAST_WAIT)
        };
        drop(slices);
        std::thread::sleep(wait);
    }
}

impl Slices {
    /// Takes what is resident so long after the beginning.
    fn see(&mut self, after: Duration, bytes: u64) {
        let mut at = (after.as_nanos() / self.slice.as_nanos()) as usize;
        while at >= SLICES {
            self.greatest =
                self.greatest.chunks(2).map(|two| two.iter().copied().max().unwrap_or(0)).collect();
            self.slice *= 2;
            at /= 2;
        }
        self.greatest.resize(self.greatest.len().max(at), self.last);
        self.greatest.resize(self.greatest.len().max(at + 1), bytes);
        self.last = bytes;
        self.greatest[at] = self.greatest[at].max(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_keep_the_greatest_and_grow() {
        let ms = Duration::from_millis;
        let mut slices = Slices { slice: ms(FIRST_SLICE_MS), greatest: Vec::new(), last: 0 };
        for (after, bytes) in [(0, 5), (3, 9), (10, 7), (50, 4)] {
            slices.see(ms(after), bytes);
        }
        assert_eq!(slices.greatest, [9, 7, 7, 4]);
        slices.see(ms(1024), 6);
        assert_eq!((slices.slice, slices.greatest.len()), (ms(32), 33));
        assert_eq!((slices.greatest[..3].to_vec(), slices.greatest[32]), (vec![9, 7, 4], 6));
    }

    #[test]
    fn this_process_is_seen() {
        let seen = Watched::start().seen();
        assert!(seen.resident_bytes.iter().any(|&bytes| bytes > 1 << 20), "{seen:?}");
    }
}

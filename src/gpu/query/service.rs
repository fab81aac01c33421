//! The interface of the threads of devices that answer queries: all take queries from a
//! [`DeviceDesk`] and leave answers there, for every driver; and their counters.

use crate::gpu::floor::error::GpuError;
use crate::query::plan::Plan;
use crate::query::top_k::Hit;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

pub(crate) struct DeviceJob {
    pub(crate) worker: usize,
    pub(crate) number: u64,
    pub(crate) plan: Arc<Plan>,
}

/// With the query's number.
pub(super) enum DeviceAnswer {
    /// Among the documents of the device, best first.
    Hits(u64, Vec<Hit>),
    /// Among the documents before a docid, from which the CPU goes on.
    Begun(u64, Vec<Hit>, u32),
    /// The CPU has to answer it.
    Back(u64, Why),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its lists have no room, or cannot be read.
    Lists,
    /// No batch has room for it.
    Unsuited,
    Lost,
    /// The device takes too long.
    Slow,
}

impl Counts {
    /// Counts a query that the CPU answers.
    pub(crate) fn back(&self, why: Why) {
        let count = match why {
            Why::Lists => &self.without_lists,
            Why::Unsuited => &self.unsuited,
            Why::Lost => &self.lost,
            Why::Slow => &self.slow,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many queries were returned, by reason.
    pub fn by_cpu(&self) -> [(u64, &'static str); 4] {
        [
            (
                &self.unsuited,
                "because no GPU answers such queries: of too many terms, with operators, fields, counts, \
                 filters, an order by a column, facets, or *",
            ),
            (&self.without_lists, "because their lists had no room on it or could not be read"),
            (&self.lost, "because it failed"),
            (&self.slow, "because it took too long"),
        ]
        .map(|(count, why)| (count.load(Ordering::Relaxed), why))
    }
}

#[derive(Debug, Default, Serialize)]
pub struct Counts {
    pub answered: AtomicU64,
    /// Returned, since their lists had no room, or could not be read.
    pub without_lists: AtomicU64,
    /// Returned, since a device cannot answer such queries.
    pub unsuited: AtomicU64,
    /// Returned, since their device was lost.
    pub lost: AtomicU64,
    /// Taken back, since their device took too long.
    pub slow: AtomicU64,
    /// Begun by devices, and ended by the CPU, since lists are cached in part.
    pub continued: AtomicU64,
    /// Answered a second time, since a better threshold was known then.
    pub repeated: AtomicU64,
    /// Returned, since too many documents may be among the best.
    pub overflown: AtomicU64,
    pub batches: AtomicU64,
    /// Of lists that were copied to devices.
    pub list_bytes: AtomicU64,
}

/// Sends answers to their worker, and wakes it.
pub(super) type Reply = Box<dyn Fn(usize, Vec<DeviceAnswer>) + Send>;

/// Called once for each device that failed.
pub type OnLost = Arc<dyn Fn(&GpuError) + Send + Sync>;

/// Where the thread of a device takes queries and leaves answers.
pub(crate) struct DeviceDesk {
    pub(crate) jobs: Receiver<DeviceJob>,
    pub(crate) counts: Arc<Counts>,
    /// To be sent, by the number of the worker.
    done: Vec<Vec<DeviceAnswer>>,
    reply: Reply,
    lost: Arc<AtomicBool>,
    on_lost: OnLost,
}

impl DeviceDesk {
    /// `lost` is set, and `on_lost` told, if the device fails.
    pub(super) fn new(
        jobs: Receiver<DeviceJob>,
        reply: Reply,
        counts: Arc<Counts>,
        lost: Arc<AtomicBool>,
        on_lost: OnLost,
    ) -> Self {
        Self { jobs, counts, done: Vec::new(), reply, lost, on_lost }
    }

    /// From docid `rest` on, if there is one, the CPU has to go on.
    pub(crate) fn hits(&mut self, job: &DeviceJob, hits: Vec<Hit>, rest: Option<u32>) {
        let done = match rest {
            Some(from) => DeviceAnswer::Begun(job.number, hits, from),
            None => DeviceAnswer::Hits(job.number, hits),
        };
        self.push(job.worker, done);
    }

    fn push(&mut self, worker: usize, done: DeviceAnswer) {
        if worker >= self.done.len() {
            self.done.resize_with(worker + 1, Vec::new);
        }
        self.done[worker].push(done);
    }

    /// The CPU has to answer the query.
    pub(crate) fn back(&mut self, job: &DeviceJob, why: Why) {
        self.push(job.worker, DeviceAnswer::Back(job.number, why));
    }

    pub(crate) fn send(&mut self) {
        for (worker, done) in self.done.iter_mut().enumerate() {
            if !done.is_empty() {
                (self.reply)(worker, std::mem::take(done));
            }
        }
    }

    /// The device has failed: returns all queries, and those that come until nobody can send.
    pub(crate) fn close(&mut self, failed: &GpuError, open: impl IntoIterator<Item = DeviceJob>) {
        self.lost.store(true, Ordering::Release);
        (self.on_lost)(failed);
        open.into_iter().for_each(|job| self.back(&job, Why::Lost));
        self.send();
        while let Ok(job) = self.jobs.recv() {
            self.back(&job, Why::Lost);
            self.send();
        }
    }
}

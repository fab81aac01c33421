//! Threads beside the workers that bring lists to a device while batches run.

use super::bring::{Bringer, BroughtList, ListRequest};
use super::device::QueryDevice;
use super::residency::{ListId, Residency};
use crate::crew::{lock, spawn};
use crate::gpu::floor::error::GpuError;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use crate::score::weight::Weight;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The run has no list of the term.
pub(in crate::gpu) const NO_LIST: u64 = u64::MAX;

pub(in crate::gpu) struct FetchRequest {
    pub(in crate::gpu) id: ListId,
    pub(in crate::gpu) entries: Box<[Option<TermEntry>]>,
    pub(in crate::gpu) weight: Weight,
}

pub(super) type ResidentLists = Arc<Mutex<Residency>>;

/// Lists that wait for a thread.
#[derive(Default)]
struct FetchQueue {
    wanted: VecDeque<FetchRequest>,
    closed: bool,
}

#[derive(Default)]
struct WaitingFetches {
    queue: Mutex<FetchQueue>,
    more: Condvar,
}

impl WaitingFetches {
    fn lock(&self) -> MutexGuard<'_, FetchQueue> {
        lock(&self.queue)
    }

    /// Waits for lists, and takes those of about this many bytes on disk; none at the end.
    fn take(&self, most_bytes: u64, taken: &mut Vec<FetchRequest>) {
        let mut queue = self.lock();
        while queue.wanted.is_empty() && !queue.closed {
            queue = self.more.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let mut bytes = 0;
        while bytes < most_bytes
            && let Some(wanted) = queue.wanted.pop_front()
        {
            bytes += wanted.entries.iter().flatten().map(|entry| entry.bytes).sum::<u64>();
            taken.push(wanted);
        }
    }
}

pub(super) struct Fetchers {
    waiting: Arc<WaitingFetches>,
    /// Outcomes. The reader of one tells the residency, and then those who wait: a list that could
    /// come and go in between would be missing to them.
    pub(super) fetched: Receiver<(ListId, BroughtList)>,
    threads: Vec<JoinHandle<()>>,
}

impl Fetchers {
    pub(super) fn start(
        threads: usize,
        snapshot: &Arc<Snapshot>,
        device: &QueryDevice,
        share: &Range<u32>,
        lists: &ResidentLists,
    ) -> Result<Self, GpuError> {
        let waiting = Arc::new(WaitingFetches::default());
        let (sender, fetched) = channel();
        let start = |number: usize| {
            let waiting = waiting.clone();
            let sender = sender.clone();
            let mut bringer = Bringer::new(device, snapshot, share)?;
            let lists = lists.clone();
            let run = move || {
                let mut taken = Vec::new();
                loop {
                    waiting.take(bringer.parcel_bytes(), &mut taken);
                    if taken.is_empty() {
                        return;
                    }
                    let asked = taken.iter().map(|FetchRequest { id, entries, weight }| {
                        ListRequest { id: *id, entries, weight: *weight }
                    });
                    let room = |id, bytes| lock(&lists).make_room(id, bytes);
                    // The device's thread may have ended.
                    bringer.bring(asked, room, |id, came| _ = sender.send((id, came)));
                    taken.clear();
                }
            };
            let name = format!("lists-{number}");
            let device = || device.device().info().to_string();
            spawn(name, run).map_err(|source| GpuError::Thread { device: device(), source })
        };
        let threads = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self { waiting, fetched, threads })
    }

    pub(super) fn want(&self, wanted: FetchRequest) {
        self.waiting.lock().wanted.push_back(wanted);
        self.waiting.more.notify_one();
    }
}

impl Drop for Fetchers {
    fn drop(&mut self) {
        let mut queue = self.waiting.lock();
        queue.closed = true;
        queue.wanted = VecDeque::new();
        drop(queue);
        self.waiting.more.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            _ = thread.join();
        }
    }
}

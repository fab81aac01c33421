//! Who brings lists to the device while batches run? Threads beside the workers make them, or have the device make
//! them, and say when a list is there, or that it cannot come.

use super::bring::{Bringer, Brought};
use super::device::QueryDevice;
use super::residency::{ListId, Residency};
use crate::gpu::error::GpuError;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// A list by where it lies in each run of the index: bytes before it, or [`NO_LIST`].
pub(in crate::gpu) type Key = Vec<u64>;

/// The run has no list of the term.
pub(in crate::gpu) const NO_LIST: u64 = u64::MAX;

/// What is fetched.
pub(in crate::gpu) struct Wanted {
    pub(in crate::gpu) id: ListId,
    pub(in crate::gpu) entries: Box<[Option<TermEntry>]>,
}

/// The lists of a device, and who looks after them.
pub(super) type Lists = Arc<Mutex<Residency<Key>>>;

pub(super) fn lock(lists: &Lists) -> MutexGuard<'_, Residency<Key>> {
    lists.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The norms of a share of the documents.
pub(super) fn norms_of<'a>(snapshot: &'a Snapshot, share: &Range<u32>) -> &'a [f32] {
    &snapshot.norms()[share.start as usize..share.end as usize]
}

/// Threads that fetch lists.
pub(super) struct Fetchers {
    wanted: Option<Sender<Wanted>>,
    /// What came of each. Whoever reads it tells the residency, and then those who wait: a list that could come and
    /// go in between would be missing to them.
    pub(super) fetched: Receiver<(ListId, Brought)>,
    threads: Vec<JoinHandle<()>>,
}

impl Fetchers {
    /// Starts so many threads.
    ///
    /// # Errors
    /// The device has not the memory, or a thread does not start.
    pub(super) fn start(
        threads: usize,
        snapshot: &Arc<Snapshot>,
        device: &QueryDevice,
        share: &Range<u32>,
        lists: &Lists,
    ) -> Result<Self, GpuError> {
        let (wanted, receiver) = channel::<Wanted>();
        let receiver = Arc::new(Mutex::new(receiver));
        let (sender, fetched) = channel();
        let start = |number: usize| {
            let (receiver, sender) = (receiver.clone(), sender.clone());
            let mut bringer = Bringer::new(device, snapshot, share)?;
            let lists = lists.clone();
            let run = move || {
                loop {
                    let next =
                        receiver.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
                    let Ok(wanted) = next else { return };
                    let Wanted { id, entries } = wanted;
                    let room = |bytes| lock(&lists).make_room(id, bytes);
                    let came = bringer.bring(&entries, room);
                    if sender.send((id, came)).is_err() {
                        return;
                    }
                }
            };
            let name = format!("lists-{number}");
            let device = || device.device().info().to_string();
            let started = std::thread::Builder::new().name(name).spawn(run);
            started.map_err(|source| GpuError::Thread { device: device(), source })
        };
        let threads = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self { wanted: Some(wanted), fetched, threads })
    }

    /// Asks for a list.
    pub(super) fn want(&self, wanted: Wanted) {
        if let Some(sender) = &self.wanted {
            // The threads live as long as this does.
            _ = sender.send(wanted);
        }
    }
}

impl Drop for Fetchers {
    fn drop(&mut self) {
        self.wanted = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            _ = thread.join();
        }
    }
}

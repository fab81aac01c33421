//! How do lists come to the device while batches run? Threads beside the workers make them and copy them,
//! and say when a list is there, or that it cannot come.

use super::list::{ListMaker, Placed, Windows};
use super::load::make_list;
use super::residency::{ListId, Residency};
use super::slab::Slab;
use crate::index::lexicon::TermEntry;
use crate::query::snapshot::Snapshot;
use std::io;
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

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// It is there.
    Here,
    /// Lists that are asked for more often leave no room for it.
    NoRoom,
    /// The index is damaged: who answers by the CPU finds out where.
    Damaged,
    /// The device took no copy.
    Lost,
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
    pub(super) fetched: Receiver<(ListId, Fetched)>,
    threads: Vec<JoinHandle<()>>,
}

impl Fetchers {
    /// Starts so many threads.
    pub(super) fn start(
        threads: usize,
        snapshot: &Arc<Snapshot>,
        (windows, share): (Windows, &Range<u32>),
        arena: &Arc<Slab>,
        lists: &Lists,
    ) -> io::Result<Self> {
        let (wanted, receiver) = channel::<Wanted>();
        let receiver = Arc::new(Mutex::new(receiver));
        let (sender, fetched) = channel();
        let start = |number: usize| {
            let (receiver, sender) = (receiver.clone(), sender.clone());
            let mut fetcher = Fetcher {
                snapshot: snapshot.clone(),
                windows,
                share: share.clone(),
                arena: arena.clone(),
                lists: lists.clone(),
                maker: ListMaker::default(),
                bytes: Vec::new(),
            };
            std::thread::Builder::new().name(format!("lists-{number}")).spawn(move || {
                loop {
                    let next =
                        receiver.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).recv();
                    let Ok(wanted) = next else { return };
                    let came = fetcher.fetch(&wanted);
                    if sender.send((wanted.id, came)).is_err() {
                        return;
                    }
                }
            })
        };
        let threads = (0..threads.max(1)).map(start).collect::<io::Result<_>>()?;
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

struct Fetcher {
    snapshot: Arc<Snapshot>,
    windows: Windows,
    share: Range<u32>,
    arena: Arc<Slab>,
    lists: Lists,
    maker: ListMaker,
    bytes: Vec<u8>,
}

impl Fetcher {
    fn fetch(&mut self, wanted: &Wanted) -> Fetched {
        self.bytes.clear();
        let made = make_list(
            self.snapshot.generation(),
            &wanted.entries,
            (self.windows, &self.share),
            norms_of(&self.snapshot, &self.share),
            &mut self.maker,
            &mut self.bytes,
        );
        let Ok(placed) = made else {
            lock(&self.lists).failed(wanted.id, None);
            return Fetched::Damaged;
        };
        self.put(wanted.id, placed)
    }

    fn put(&mut self, id: ListId, placed: Placed) -> Fetched {
        let Some(at) = lock(&self.lists).make_room(id, self.bytes.len() as u64) else {
            return Fetched::NoRoom;
        };
        match self.arena.write(at, &self.bytes) {
            Ok(()) => {
                lock(&self.lists).arrived(id, at, placed);
                Fetched::Here
            }
            Err(_) => {
                lock(&self.lists).failed(id, Some(at));
                Fetched::Lost
            }
        }
    }
}

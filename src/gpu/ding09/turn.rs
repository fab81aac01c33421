//! How do planned queries become batches of the device? Their lists come when they are asked for
//! first, and stay while there is room.

use super::Merging;
use super::batch::{DingBatch, DingQuery, DingTerm};
use super::device::DingDevice;
use super::list::{DingLaid, DingLayer};
use crate::crew::lock;
use crate::gpu::floor::error::GpuError;
use crate::gpu::query::fetch::{FetchRequest, Key, NO_LIST};
use crate::gpu::query::residency::{ListId, Place, Residency};
use crate::gpu::query::service::Why;
use crate::gpu::turns::{Found, Turn};
use crate::query::plan::Plan;
use crate::query::snapshot::Snapshot;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A device, and the lists that are on it.
pub(in crate::gpu) struct DingTurn {
    device: DingDevice,
    snapshot: Arc<Snapshot>,
    /// The documents that are asked for.
    docids: Range<u32>,
    merging: Merging,
    lists: Residency<Key, DingLaid>,
    fetchers: usize,
    key: Key,
}

impl DingTurn {
    pub(in crate::gpu) fn new(
        device: DingDevice,
        (snapshot, docids): (Arc<Snapshot>, Range<u32>),
        (merging, fetchers): (Merging, usize),
    ) -> Self {
        let lists = Residency::new(device.arena().bytes());
        Self { lists, device, snapshot, docids, merging, fetchers, key: Key::new() }
    }

    /// The lists of a query, which are pinned; those that are not on the device are added to
    /// `wanted`.
    fn ask(&mut self, plan: &Plan, wanted: &mut Vec<FetchRequest>) -> Vec<ListId> {
        let runs = self.snapshot.generation().runs().len();
        let (terms, entries) = (plan.terms().len(), plan.lists());
        let mut lists = Vec::with_capacity(terms);
        for t in (0..terms).filter(|&t| plan.terms()[t].df > 0) {
            let of_runs = (0..runs).map(|run| entries[run * terms + t]);
            self.key.clear();
            self.key.extend(of_runs.clone().map(|entry| entry.map_or(NO_LIST, |e| e.offset)));
            let (id, place) = self.lists.ask(&self.key[..]);
            lists.push(id);
            if let Place::Away = place {
                self.lists.fetch(id, 0);
                wanted.push(FetchRequest { id, entries: of_runs.collect() });
            }
        }
        lists
    }

    /// Lays lists out and copies them to the device, on several threads if there are many.
    fn fetch(&mut self, wanted: &[FetchRequest]) {
        let lists = Mutex::new(&mut self.lists);
        let (generation, arena) = (self.snapshot.generation(), self.device.arena());
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut layer, mut bytes) = (DingLayer::default(), Vec::new());
            while let Some(FetchRequest { id, entries }) =
                wanted.get(next.fetch_add(1, Ordering::Relaxed))
            {
                bytes.clear();
                // Who answers the query on the CPU finds out where the index is damaged.
                let Ok(laid) = layer.lay(generation, entries, &mut bytes) else {
                    lock(&lists).failed(*id, None);
                    continue;
                };
                let Some(at) = lock(&lists).make_room(*id, bytes.len() as u64) else {
                    lock(&lists).failed(*id, None);
                    continue;
                };
                match arena.write(at, &bytes) {
                    Ok(()) => lock(&lists).arrived(*id, at, laid),
                    // The next batch says why.
                    Err(_) => lock(&lists).failed(*id, Some(at)),
                }
            }
        };
        const LISTS_OF_THREAD: usize = 8;
        let threads = wanted.len().div_ceil(LISTS_OF_THREAD).min(self.fetchers);
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }
}

impl Turn for DingTurn {
    type Batch = DingBatch;
    type Lists = Vec<ListId>;

    fn bring(&mut self, plans: &[&Plan]) -> Vec<Option<Vec<ListId>>> {
        let mut wanted = Vec::new();
        let asked: Vec<_> = plans.iter().map(|plan| self.ask(plan, &mut wanted)).collect();
        self.fetch(&wanted);
        let is_here = |this: &Self, id: ListId| matches!(this.lists.place(id), Place::Here(..));
        let mut all = Vec::with_capacity(asked.len());
        for lists in asked {
            if lists.iter().all(|&id| is_here(self, id)) {
                all.push(Some(lists));
            } else {
                self.leave(&lists);
                all.push(None);
            }
        }
        all
    }

    fn leave(&mut self, lists: &Vec<ListId>) {
        lists.iter().for_each(|&id| self.lists.unpin(id));
    }

    fn batch(&self, all_terms: bool) -> DingBatch {
        self.device.batch(all_terms)
    }

    fn add(&mut self, batch: &mut DingBatch, plan: &Plan, lists: &Vec<ListId>) -> Result<(), Why> {
        let known = plan.terms().iter().filter(|term| term.df > 0).zip(lists);
        let terms = known.filter_map(|(term, &id)| match self.lists.place(id) {
            Place::Here(place, laid) => {
                Some(DingTerm { place, laid, weight: term.weight.factor() })
            }
            _ => None,
        });
        let terms: Vec<DingTerm> = terms.collect();
        assert_eq!(terms.len(), lists.len(), "lists that are pinned stay");
        let query = DingQuery { terms, k: plan.wanted().k as u32, docids: self.docids.clone() };
        batch.add(query, self.device.room()).map_err(|_| Why::Unsuited)
    }

    fn answer(&mut self, mut batch: DingBatch) -> Result<Vec<Found>, GpuError> {
        batch.finish();
        let answers = self.device.answer(&batch, self.merging)?;
        Ok(answers.into_iter().map(Found::from).collect())
    }

    fn list_bytes(&self) -> u64 {
        self.lists.loaded_bytes
    }
}

//! Who drives the device? One thread: it takes planned queries from all workers, brings their lists to the device,
//! answers those of AND and of OR in batches, one after the other, and sends answers back. A query of AND+OR is one
//! of AND, and one of OR if that finds too few (section 8.3). What the device cannot answer goes back to its
//! worker.

use super::batch::{Batch, BatchQuery, PlacedTerm};
use super::device::DingDevice;
use super::list::{Laid, ListLayer};
use crate::gpu::error::GpuError;
use crate::gpu::query::fetch::{FetchRequest, Key, NO_LIST};
use crate::gpu::query::residency::{ListId, Place, Residency};
use crate::gpu::query::service::{Counts, Done, Job, Reply, Why};
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::Stage;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

/// A query whose lists are on the device.
struct Open {
    job: Job,
    lists: Vec<ListId>,
    stage: Stage,
}

/// The state of the thread of a device.
pub(in crate::gpu) struct DingDriver {
    device: DingDevice,
    snapshot: Arc<Snapshot>,
    /// The documents that are asked for.
    docids: Range<u32>,
    merge_levels: u32,
    /// Queries of a batch.
    batch: usize,
    lists: Residency<Key, Laid>,
    /// Threads that bring lists.
    fetchers: usize,
    key: Key,
    /// Queries of AND, and of OR.
    ready: [VecDeque<Open>; 2],
    replies: HashMap<usize, Vec<Done>>,
    reply: Reply,
    counts: Arc<Counts>,
}

impl DingDriver {
    pub(in crate::gpu) fn new(
        device: DingDevice,
        (snapshot, docids): (Arc<Snapshot>, Range<u32>),
        (batch, merge_levels, fetchers): (usize, u32, usize),
        (reply, counts): (Reply, Arc<Counts>),
    ) -> Self {
        Self {
            lists: Residency::new(device.arena().bytes()),
            device,
            snapshot,
            docids,
            merge_levels,
            batch,
            fetchers,
            key: Key::new(),
            ready: Default::default(),
            replies: HashMap::new(),
            reply,
            counts,
        }
    }

    /// Answers queries until nobody can send any more. A device that fails gives all its queries back, and
    /// those that still come; `on_lost` is told why, once.
    pub(in crate::gpu) fn run(
        mut self,
        jobs: &Receiver<Job>,
        lost: &AtomicBool,
        on_lost: impl FnOnce(GpuError),
    ) {
        let failed = loop {
            let mut came = Vec::new();
            if self.ready.iter().all(VecDeque::is_empty) {
                match jobs.recv() {
                    Ok(job) => came.push(job),
                    Err(_) => return,
                }
            }
            let waiting = self.ready.iter().map(VecDeque::len).sum::<usize>();
            came.extend(jobs.try_iter().take((2 * self.batch).saturating_sub(waiting)));
            self.take(came);
            match self.round() {
                Ok(()) => self.send_replies(),
                Err(error) => break error,
            }
        };
        lost.store(true, Ordering::Release);
        on_lost(failed);
        self.send_replies();
        while let Ok(job) = jobs.recv() {
            self.back(&job, Why::Lost);
            self.send_replies();
        }
    }

    /// Answers a batch of each kind.
    fn round(&mut self) -> Result<(), GpuError> {
        for all_terms in [true, false] {
            let Some((batch, open)) = self.fill(all_terms) else { continue };
            match self.device.answer(&batch, self.merge_levels) {
                Ok(answers) => self.answered(open, answers),
                Err(error) => {
                    open.iter().for_each(|open| self.back(&open.job, Why::Lost));
                    self.give_all_back();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes queries: brings their lists to the device, as far as they are not there.
    fn take(&mut self, jobs: Vec<Job>) {
        let mut wanted = Vec::new();
        let mut all = Vec::with_capacity(jobs.len());
        for job in jobs {
            let stage = Stage::first(job.plan.wanted().mode);
            // A term that no document has keeps AND from finding any.
            let stage = if job.plan.may_find(stage) { stage } else { Stage::Any };
            let lists = self.ask(&job, &mut wanted);
            all.push(Open { job, lists, stage });
        }
        self.bring(wanted);
        for open in all {
            let is_here = |&id: &ListId| matches!(self.lists.place(id), Place::Here(..));
            if open.lists.iter().all(is_here) {
                self.queue(open);
            } else {
                self.unpin(&open);
                self.back(&open.job, Why::Lists);
            }
        }
        self.counts.list_bytes.store(self.lists.loaded_bytes, Ordering::Relaxed);
    }

    fn queue(&mut self, open: Open) {
        self.ready[usize::from(open.stage == Stage::Any)].push_back(open);
    }

    /// The lists of a query, which are pinned; those that are not on the device are added to `wanted`.
    fn ask(&mut self, job: &Job, wanted: &mut Vec<FetchRequest>) -> Vec<ListId> {
        let plan = &job.plan;
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

    /// Lays lists out and copies them to the device, on several threads if there are many. No batch is under way.
    fn bring(&mut self, wanted: Vec<FetchRequest>) {
        let lists = Mutex::new(&mut self.lists);
        let lock = || lists.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, arena) = (self.snapshot.generation(), self.device.arena());
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut layer, mut bytes) = (ListLayer::default(), Vec::new());
            while let Some(FetchRequest { id, entries }) =
                wanted.get(next.fetch_add(1, Ordering::Relaxed))
            {
                bytes.clear();
                // Who answers the query on the CPU finds out where the index is damaged.
                let Ok(laid) = layer.lay(generation, entries, &mut bytes) else {
                    lock().failed(*id, None);
                    continue;
                };
                let Some(at) = lock().make_room(*id, bytes.len() as u64) else {
                    lock().failed(*id, None);
                    continue;
                };
                match arena.write(at, &bytes) {
                    Ok(()) => lock().arrived(*id, at, laid),
                    // The next batch says why.
                    Err(_) => lock().failed(*id, Some(at)),
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

    /// A batch of queries that are ready.
    fn fill(&mut self, all_terms: bool) -> Option<(Batch, Vec<Open>)> {
        let mut batch = self.device.batch(all_terms);
        let mut taken = Vec::new();
        while taken.len() < self.batch {
            let Some(open) = self.ready[usize::from(!all_terms)].pop_front() else { break };
            let query = self.placed(&open);
            if batch.add(query, self.device.room()).is_ok() {
                taken.push(open);
            } else if taken.is_empty() {
                // No batch has room for it.
                self.unpin(&open);
                self.back(&open.job, Why::Unsuited);
            } else {
                self.ready[usize::from(!all_terms)].push_front(open);
                break;
            }
        }
        if taken.is_empty() {
            return None;
        }
        batch.finish();
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        Some((batch, taken))
    }

    /// A query whose lists are all there.
    fn placed(&self, open: &Open) -> BatchQuery {
        let plan = &open.job.plan;
        let known = plan.terms().iter().filter(|term| term.df > 0).zip(&open.lists);
        let terms = known.filter_map(|(term, &id)| match self.lists.place(id) {
            Place::Here(place, laid) => Some(PlacedTerm { place, laid, weight: term.weight }),
            _ => None,
        });
        let terms: Vec<PlacedTerm> = terms.collect();
        assert_eq!(terms.len(), open.lists.len(), "lists that are pinned stay");
        BatchQuery { terms, k: plan.wanted().k as u32, docids: self.docids.clone() }
    }

    fn answered(&mut self, open: Vec<Open>, answers: Vec<Vec<Hit>>) {
        for (open, hits) in open.into_iter().zip(answers) {
            match open.stage.next(open.job.plan.wanted(), hits.len()) {
                Some(stage) => self.queue(Open { stage, ..open }),
                None => {
                    self.unpin(&open);
                    let Job { worker, number, .. } = open.job;
                    self.replies.entry(worker).or_default().push(Done::Hits(number, hits));
                }
            }
        }
    }

    fn unpin(&mut self, open: &Open) {
        open.lists.iter().for_each(|&id| self.lists.unpin(id));
    }

    fn back(&mut self, job: &Job, why: Why) {
        self.replies.entry(job.worker).or_default().push(Done::Back(job.number, why));
    }

    /// The device is lost.
    fn give_all_back(&mut self) {
        let [all, any] = std::mem::take(&mut self.ready);
        for open in all.into_iter().chain(any) {
            self.back(&open.job, Why::Lost);
        }
    }

    fn send_replies(&mut self) {
        for (worker, done) in self.replies.drain() {
            (self.reply)(worker, done);
        }
    }
}

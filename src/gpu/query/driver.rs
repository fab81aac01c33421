//! The thread that drives a device, beside the workers: it takes planned queries from all workers,
//! waits for their lists, makes batches, and sends answers back. A query that the device cannot
//! answer, or not soon, goes back to its worker, which answers it on the CPU.

use super::batch::{BatchAnswer, BatchQuery, Floors, QueryBatch, QueryBatchRoom};
use super::bring::BroughtList;
use super::device::{BatchSlot, QueryDevice};
use super::fetch::{FetchRequest, Fetchers, NO_LIST, ResidentLists};
use super::method::GpuOptions;
use super::plan::{MOST_HITS, PlacedTerm};
use super::residency::{ListId, Residence, Residency};
use super::service::{DeviceDesk, DeviceJob, Why};
use crate::crew::lock;
use crate::gpu::floor::error::GpuError;
use crate::query::snapshot::Snapshot;
use crate::query::top_k::Hit;
use crate::query::wanted::Mode;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

struct WaitingQuery {
    job: DeviceJob,
    /// Of its terms that are in the index.
    lists: Vec<ListId>,
    missing: usize,
    /// Its terms in its next batch, if all lists are there.
    terms: Vec<PlacedTerm>,
    floors: Floors,
}

pub(super) struct Driver {
    device: QueryDevice,
    snapshot: Arc<Snapshot>,
    /// The documents of the device.
    share: Range<u32>,
    options: GpuOptions,
    room: QueryBatchRoom,
    lists: ResidentLists,
    fetchers: Fetchers,
    slots: Vec<(BatchSlot, QueryBatch, Vec<WaitingQuery>)>,
    /// Queries whose lists are not asked for yet, since those of others leave no room.
    held: VecDeque<DeviceJob>,
    waiting: HashMap<u64, WaitingQuery>,
    /// The numbers of the queries in `waiting` that wait for a list.
    waits_for: HashMap<ListId, Vec<u64>>,
    next_wait: u64,
    /// Where a list begins in each run, or [`NO_LIST`].
    key: Vec<u64>,
    ready: VecDeque<WaitingQuery>,
    ready_since: Option<Instant>,
    desk: DeviceDesk,
}

impl Driver {
    pub(super) fn new(
        device: QueryDevice,
        snapshot: Arc<Snapshot>,
        share: Range<u32>,
        options: GpuOptions,
        desk: DeviceDesk,
    ) -> Result<Self, GpuError> {
        let k = options.k.clamp(1, MOST_HITS) as u32;
        let room = device.room(options.batch, k);
        let slots = (0..options.slots)
            .map(|_| Ok((BatchSlot::new(&device, room)?, QueryBatch::default(), Vec::new())))
            .collect::<Result<Vec<_>, GpuError>>()?;
        let lists: ResidentLists = Arc::new(Mutex::new(Residency::new(device.arena().bytes())));
        let fetchers = Fetchers::start(options.fetchers, &snapshot, &device, &share, &lists)?;
        Ok(Self {
            device,
            snapshot,
            share,
            options,
            room,
            lists,
            fetchers,
            slots,
            held: VecDeque::new(),
            waiting: HashMap::new(),
            waits_for: HashMap::new(),
            next_wait: 0,
            key: Vec::new(),
            ready: VecDeque::new(),
            ready_since: None,
            desk,
        })
    }

    /// Answers queries until nobody can send any more. If the device fails, all its queries go
    /// back, and those that still come.
    pub(super) fn run(mut self) {
        let mut open = true;
        let failed = loop {
            match self.round(&mut open) {
                Ok(true) => {}
                Ok(false) if !open && self.is_idle() => return,
                Ok(false) => self.pause(&mut open),
                Err(error) => break error,
            }
        };
        let all = self.take_all();
        self.desk.close(&failed, all);
    }

    fn is_idle(&self) -> bool {
        let busy = self.is_busy();
        let waits = !self.held.is_empty() || !self.waiting.is_empty();
        !busy && !waits && self.ready.is_empty()
    }

    /// Waits, since nothing can be done now.
    fn pause(&mut self, open: &mut bool) {
        if self.is_idle() {
            match self.desk.jobs.recv() {
                Ok(job) => self.held.push_back(job),
                Err(_) => *open = false,
            }
        } else if self.is_busy() {
            // A batch takes from tens of microseconds to some milliseconds.
            std::hint::spin_loop();
            std::thread::yield_now();
        } else if let Ok((id, came)) =
            self.fetchers.fetched.recv_timeout(Duration::from_micros(200))
        {
            self.came(id, came);
        }
    }

    /// Does all that can be done now; false if that was nothing.
    fn round(&mut self, open: &mut bool) -> Result<bool, GpuError> {
        let mut any = false;
        for _ in 0..2 * self.options.batch {
            match self.desk.jobs.try_recv() {
                Ok(job) => self.held.push_back(job),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    *open = false;
                    break;
                }
            }
            any = true;
        }
        while let Ok((id, came)) = self.fetchers.fetched.try_recv() {
            if matches!(came, BroughtList::Lost(_)) {
                // The error of this write says why.
                self.device.arena().write(0, &[])?;
            }
            self.came(id, came);
            any = true;
        }
        any |= self.collect()?;
        while self.admits()
            && let Some(job) = self.held.pop_front()
        {
            // It was made on another core.
            if let Some(next) = self.held.front() {
                next.plan.prefetch();
            }
            self.take(job);
            any = true;
        }
        any |= self.launch()?;
        self.desk.send();
        Ok(any)
    }

    /// Whether one more query may ask for lists: those that others wait for or use take only a part
    /// of the memory, so that a list that comes finds others that can go.
    fn admits(&self) -> bool {
        let most = self.device.arena().bytes() / 4 * 3;
        let nothing_else = self.waiting.is_empty() && self.ready.is_empty();
        lock(&self.lists).pinned() <= most || (nothing_else && !self.is_busy())
    }

    fn is_busy(&self) -> bool {
        self.slots.iter().any(|(slot, ..)| slot.is_busy())
    }

    /// Pins the lists of a query, and asks for those that are not here.
    fn take(&mut self, job: DeviceJob) {
        let plan = &job.plan;
        let runs = self.snapshot.generation().runs().len();
        let terms = plan.terms().len();
        let entries = plan.lists();
        let mut ids = Vec::with_capacity(terms);
        let mut missing: Vec<(ListId, Option<usize>)> = Vec::new();
        let mut residency = lock(&self.lists);
        residency.fade();
        let known = (0..terms).filter(|&t| plan.terms()[t].df > 0);
        ids.extend(known.clone().map(|t| {
            let of_runs = (0..runs).map(|run| entries[run * terms + t]);
            self.key.clear();
            self.key.extend(of_runs.map(|entry| entry.map_or(NO_LIST, |entry| entry.offset)));
            residency.find(&self.key)
        }));
        for (t, &id) in known.zip(&ids) {
            match residency.ask(id) {
                Residence::Here(..) => {}
                Residence::Coming => missing.push((id, None)),
                Residence::Away => {
                    let df = (0..runs).filter_map(|run| entries[run * terms + t]);
                    let df = df.map(|entry| u64::from(entry.df)).sum();
                    residency.fetch(id, self.device.windows().about_bytes(df));
                    missing.push((id, Some(t)));
                }
            }
        }
        drop(residency);
        let number = self.next_wait;
        self.next_wait += 1;
        for &(id, fetched) in &missing {
            self.waits_for.entry(id).or_default().push(number);
            if let Some(t) = fetched {
                let entries = (0..runs).map(|run| entries[run * terms + t]).collect();
                let weight = plan.terms()[t].weight;
                self.fetchers.want(FetchRequest { id, entries, weight });
            }
        }
        let (terms, missing) = (Vec::new(), missing.len());
        let open = WaitingQuery { job, lists: ids, missing, terms, floors: [0; 2] };
        if missing == 0 {
            self.is_ready(open);
        } else {
            self.waiting.insert(number, open);
        }
    }

    fn is_ready(&mut self, mut open: WaitingQuery) {
        open.terms = self.placed(&open);
        self.ready_since.get_or_insert_with(Instant::now);
        self.ready.push_back(open);
    }

    fn came(&mut self, id: ListId, came: BroughtList) {
        let mut lists = lock(&self.lists);
        let before = lists.loaded_bytes;
        match came {
            BroughtList::Here(at, placed) => lists.arrived(id, at, placed),
            BroughtList::Lost(at) => lists.failed(id, Some(at)),
            BroughtList::Damaged(at) => lists.failed(id, at),
            BroughtList::NoRoom => lists.failed(id, None),
        }
        let loaded = lists.loaded_bytes - before;
        drop(lists);
        self.desk.counts.list_bytes.fetch_add(loaded, Ordering::Relaxed);
        for number in self.waits_for.remove(&id).unwrap_or_default() {
            let Some(mut open) = self.waiting.remove(&number) else { continue };
            if !matches!(came, BroughtList::Here(..)) {
                self.unpin(&open);
                self.desk.back(&open.job, Why::Lists);
                continue;
            }
            open.missing -= 1;
            if open.missing == 0 {
                self.is_ready(open);
            } else {
                self.waiting.insert(number, open);
            }
        }
    }

    fn unpin(&self, open: &WaitingQuery) {
        let mut residency = lock(&self.lists);
        open.lists.iter().for_each(|&id| residency.unpin(id));
    }

    fn hits(&mut self, open: WaitingQuery, mut hits: Vec<Hit>) {
        self.unpin(&open);
        hits.iter_mut().for_each(|hit| hit.docid += self.share.start);
        self.desk.hits(&open.job, hits, None);
    }

    /// Takes the answers of batches that are done.
    fn collect(&mut self) -> Result<bool, GpuError> {
        let mut any = false;
        for at in 0..self.slots.len() {
            let (slot, batch, open) = &mut self.slots[at];
            if !slot.is_busy() || !slot.is_done()? {
                continue;
            }
            any = true;
            let answers = slot.answers(batch);
            let open = std::mem::take(open);
            for (mut open, answer) in open.into_iter().zip(answers) {
                match answer {
                    BatchAnswer::Hits(hits) => self.hits(open, hits),
                    BatchAnswer::Overflown(floors) if floors != open.floors => {
                        open.floors = floors;
                        self.desk.counts.repeated.fetch_add(1, Ordering::Relaxed);
                        self.is_ready(open);
                    }
                    BatchAnswer::Overflown(_) => {
                        self.desk.counts.overflown.fetch_add(1, Ordering::Relaxed);
                        self.unpin(&open);
                        self.desk.back(&open.job, Why::Unsuited);
                    }
                }
            }
        }
        Ok(any)
    }

    fn launch(&mut self) -> Result<bool, GpuError> {
        let mut any = false;
        for at in 0..self.slots.len() {
            if self.slots[at].0.is_busy() || self.ready.is_empty() {
                continue;
            }
            let others = self.slots.iter().any(|(slot, ..)| slot.is_busy());
            let waited = self.ready_since.map_or(Duration::ZERO, |since| since.elapsed());
            let GpuOptions { batch, patience, .. } = self.options;
            if others && self.ready.len() < batch && waited < patience {
                break;
            }
            self.fill(at)?;
            any = true;
        }
        Ok(any)
    }

    fn fill(&mut self, at: usize) -> Result<(), GpuError> {
        let mut taken = Vec::new();
        let mut batch = std::mem::take(&mut self.slots[at].1);
        batch.clear();
        while taken.len() < self.options.batch {
            let Some(mut open) = self.ready.pop_front() else { break };
            let query = self.asked(&mut open);
            if let Err(query) = batch.add(query, &self.room) {
                if taken.is_empty() {
                    // No batch has room for it.
                    self.unpin(&open);
                    self.desk.back(&open.job, Why::Unsuited);
                    continue;
                }
                open.terms = query.terms;
                self.ready.push_front(open);
                break;
            }
            taken.push(open);
        }
        self.ready_since = (!self.ready.is_empty()).then(Instant::now);
        if taken.is_empty() {
            self.slots[at].1 = batch;
            return Ok(());
        }
        batch.finish(&self.room);
        self.desk.counts.batches.fetch_add(1, Ordering::Relaxed);
        let (slot, kept, open) = &mut self.slots[at];
        *open = taken;
        *kept = batch;
        slot.launch(&self.device, kept)
    }

    /// The terms of a query whose lists are all there.
    fn placed(&self, open: &WaitingQuery) -> Vec<PlacedTerm> {
        let plan = &open.job.plan;
        let residency = lock(&self.lists);
        let known = plan.terms().iter().filter(|term| term.df > 0).zip(&open.lists);
        let mut terms = Vec::with_capacity(open.lists.len());
        terms.extend(known.map(|(term, &id)| match residency.place(id) {
            Residence::Here(place, placed) => {
                PlacedTerm { place, placed, df: term.df, weight: term.weight }
            }
            // An answer without one of its lists would be wrong, and nobody would notice.
            away => unreachable!("a list that is pinned stays where it is, and is {away:?}"),
        }));
        terms
    }

    /// Takes the terms of a query.
    fn asked(&self, open: &mut WaitingQuery) -> BatchQuery {
        let plan = &open.job.plan;
        // With a term that no document has AND finds none, so only OR is left.
        let lacks = open.lists.len() < plan.terms().len();
        let asked = plan.wanted().mode;
        let mode = if lacks && asked == Mode::AndOr { Mode::Or } else { asked };
        let k = plan.wanted().k as u32;
        let docids = 0..self.share.len() as u32;
        let terms = std::mem::take(&mut open.terms);
        BatchQuery { terms, k, mode, docids, floors: open.floors }
    }

    fn take_all(&mut self) -> Vec<DeviceJob> {
        let mut all: Vec<WaitingQuery> = Vec::new();
        for (_, _, open) in &mut self.slots {
            all.append(open);
        }
        all.extend(self.ready.drain(..));
        all.extend(self.waiting.drain().map(|(_, open)| open));
        self.held.drain(..).chain(all.into_iter().map(|open| open.job)).collect()
    }
}

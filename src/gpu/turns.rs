//! Who drives a device that answers one batch after the other? One thread: it takes planned queries
//! from all workers, brings their lists to the device, answers those of AND and of OR in batches by
//! turns, and sends answers back. A query of AND+OR is one of AND, and one of OR if that finds too
//! few (ding09, section 8.3). What the device cannot answer goes back to its worker.
//!
//! [`ding09`](super::ding09), [`huang`](super::huang) and [`wang`](super::wang) are driven so.

use super::query::service::{Counts, Done, Job, Reply, Why};
use crate::gpu::floor::error::GpuError;
use crate::query::plan::Plan;
use crate::query::top_k::Hit;
use crate::query::wanted::Stage;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// What the memory of a device is used for.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes for lists; most of what is free if left out.
    pub lists: Option<u64>,
    /// Bytes for a batch; a share of what is free if left out.
    pub batch: Option<u64>,
    pub queries: usize,
    /// Hits that most queries ask for.
    pub k: usize,
}

impl Memory {
    /// Of the free memory so much is for a batch, in percent, and no more bytes than these.
    const BATCH_PERCENT: u64 = 25;
    const MOST_BATCH_BYTES: u64 = 8 << 30;

    /// Of what is left then, lists take so much, in percent.
    const LISTS_PERCENT: u64 = 80;

    /// Bytes for a batch, of so many that are free.
    pub(in crate::gpu) fn of_batch(&self, free: u64) -> u64 {
        self.batch.unwrap_or((free / 100 * Self::BATCH_PERCENT).min(Self::MOST_BATCH_BYTES))
    }

    /// Bytes for lists, of so many that are left.
    pub(in crate::gpu) fn of_lists(&self, left: u64) -> u64 {
        self.lists.unwrap_or(left / 100 * Self::LISTS_PERCENT)
    }
}

/// What a device finds of a query.
#[derive(Clone, Debug)]
pub(in crate::gpu) struct Found {
    pub(in crate::gpu) hits: Vec<Hit>,
    /// The docid from which the CPU has to go on, if the device has not looked at all documents.
    pub(in crate::gpu) rest: Option<u32>,
}

impl From<Vec<Hit>> for Found {
    fn from(hits: Vec<Hit>) -> Self {
        Self { hits, rest: None }
    }
}

/// A device that answers a batch at a time.
pub(in crate::gpu) trait Turn {
    /// Queries that are answered together, all of AND or all of OR.
    type Batch;
    /// What is kept of a query's lists from when they were asked for until it is answered.
    type Lists;

    /// Brings the lists of queries, as far as they have to be there before a batch is made; `None`
    /// for a query whose lists have no room, or cannot be read. No batch is under way.
    fn bring(&mut self, plans: &[&Plan]) -> Vec<Option<Self::Lists>>;

    /// The lists of a query are not needed any more.
    fn leave(&mut self, lists: &Self::Lists);

    fn batch(&self, all_terms: bool) -> Self::Batch;

    /// Adds a query, if there is room; else why the CPU has to answer it, if the batch is empty.
    fn add(&mut self, batch: &mut Self::Batch, plan: &Plan, lists: &Self::Lists)
    -> Result<(), Why>;

    /// The answers to all queries of a batch, in the order in which they were added.
    fn answer(&mut self, batch: Self::Batch) -> Result<Vec<Found>, GpuError>;

    /// Bytes of lists that were copied to the device.
    fn list_bytes(&self) -> u64;
}

/// A query whose lists were brought.
struct Open<L> {
    job: Job,
    lists: L,
    stage: Stage,
}

type Filled<T> = (<T as Turn>::Batch, Vec<Open<<T as Turn>::Lists>>);

/// The state of the thread of a device.
pub(in crate::gpu) struct Turns<T: Turn> {
    device: T,
    batch: usize,
    /// Queries of AND, and of OR.
    ready: [VecDeque<Open<T::Lists>>; 2],
    replies: HashMap<usize, Vec<Done>>,
    reply: Reply,
    counts: Arc<Counts>,
}

impl<T: Turn> Turns<T> {
    /// Drives a device with batches of so many queries.
    pub(in crate::gpu) fn new(
        device: T,
        batch: usize,
        (reply, counts): (Reply, Arc<Counts>),
    ) -> Self {
        let (ready, replies) = (Default::default(), HashMap::new());
        Self { device, batch, ready, replies, reply, counts }
    }

    /// Answers queries until nobody can send any more. A device that fails gives all its queries
    /// back, and those that still come; `on_lost` is told why, once.
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

    fn take(&mut self, jobs: Vec<Job>) {
        let plans: Vec<&Plan> = jobs.iter().map(|job| &*job.plan).collect();
        let brought = self.device.bring(&plans);
        for (job, lists) in jobs.into_iter().zip(brought) {
            let stage = Stage::first(job.plan.wanted().mode);
            // A term that no document has keeps AND from finding any.
            let stage = if job.plan.may_find(stage) { stage } else { Stage::Any };
            match lists {
                Some(lists) => self.queue(Open { job, lists, stage }),
                None => self.back(&job, Why::Lists),
            }
        }
        self.counts.list_bytes.store(self.device.list_bytes(), Ordering::Relaxed);
    }

    fn queue(&mut self, open: Open<T::Lists>) {
        self.ready[usize::from(open.stage == Stage::Any)].push_back(open);
    }

    /// Answers a batch of each kind.
    fn round(&mut self) -> Result<(), GpuError> {
        for all_terms in [true, false] {
            let Some((batch, open)) = self.fill(all_terms) else { continue };
            match self.device.answer(batch) {
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

    /// A batch of queries that are ready.
    fn fill(&mut self, all_terms: bool) -> Option<Filled<T>> {
        let mut batch = self.device.batch(all_terms);
        let (mut taken, ready) = (Vec::new(), usize::from(!all_terms));
        while taken.len() < self.batch {
            let Some(open) = self.ready[ready].pop_front() else { break };
            match self.device.add(&mut batch, &open.job.plan, &open.lists) {
                Ok(()) => taken.push(open),
                Err(why) if taken.is_empty() => {
                    self.device.leave(&open.lists);
                    self.back(&open.job, why);
                }
                Err(_) => {
                    self.ready[ready].push_front(open);
                    break;
                }
            }
        }
        if taken.is_empty() {
            return None;
        }
        self.counts.batches.fetch_add(1, Ordering::Relaxed);
        Some((batch, taken))
    }

    fn answered(&mut self, open: Vec<Open<T::Lists>>, answers: Vec<Found>) {
        for (open, Found { hits, rest }) in open.into_iter().zip(answers) {
            match open.stage.next(open.job.plan.wanted(), hits.len()) {
                Some(stage) => self.queue(Open { stage, ..open }),
                None => {
                    self.device.leave(&open.lists);
                    let Job { worker, number, .. } = open.job;
                    let done = match rest {
                        Some(from) => Done::Begun(number, hits, from),
                        None => Done::Hits(number, hits),
                    };
                    self.replies.entry(worker).or_default().push(done);
                }
            }
        }
    }

    fn back(&mut self, job: &Job, why: Why) {
        self.replies.entry(job.worker).or_default().push(Done::Back(job.number, why));
    }

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

//! The context of all operators of a query job.

use crate::crew::lock;
use crate::dataflow::control::Control;
use crate::dataflow::timeline::ProgressLog;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::answers::latencies::Latencies;
use crate::query::answers::output::AnswerForm;
use crate::query::engines::shard::Shard;
use crate::query::reading::lines::{Query, Refused};
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use crate::text::unspaced::Unspaced;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use timely::scheduling::SyncActivator;

/// The worker of a process that has its queries.
pub(crate) const FIRST: usize = 0;

pub(crate) struct Context {
    /// Defaults for what queries leave open.
    pub(crate) wanted: Wanted,
    pub(crate) algorithms: HandedAlgorithms,
    /// The most queries of a batch.
    pub(crate) batch: usize,
    /// The longest time that a batch waits for more.
    pub(crate) delay: Duration,
    /// The most queries that are open at once, if that was set.
    pub(crate) most_open: Option<NonZeroUsize>,
    /// A query that has waited for longer when its turn comes is left unanswered.
    pub(crate) shed: Option<Duration>,
    /// Of each process.
    pub(crate) workers: usize,
    pub(crate) shard: Shard,
    /// What the next batch is answered from.
    pub(crate) snapshot: Arc<Mutex<Arc<Snapshot>>>,
    /// What processes that share queries have open besides.
    pub(crate) opened: Mutex<Vec<Arc<Snapshot>>>,
    pub(crate) stream: Arc<StreamState>,
    pub(crate) layout: AnswerLayout,
    /// Whether the document that has a query's name is no hit of it.
    pub(crate) remove_query: bool,
    pub(crate) hooks: Hooks,
    pub(crate) tally: QueryTally,
    pub(crate) control: Arc<Control>,
}

/// The number of a snapshot's generation.
pub(crate) fn number_of(snapshot: &Snapshot) -> u64 {
    snapshot.generation().manifest().generation.into()
}

/// What the dataflow of followers knows of the stream of queries.
#[derive(Default)]
pub(crate) struct StreamState {
    /// Batches that were sent, which are numbered from 0.
    pub(crate) sent: AtomicU64,
    /// No more queries come.
    pub(crate) ended: AtomicBool,
    /// Processes are opening a generation.
    pub(crate) moving: AtomicBool,
    /// The first batch of the generation that is live, or a later one.
    pub(crate) moved_at: AtomicU64,
    /// Wakes what announces generations.
    pub(crate) waker: Mutex<Option<SyncActivator>>,
}

impl StreamState {
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*lock(&self.waker) {
            // It fails when the worker has ended, which needs no waking.
            _ = waker.activate();
        }
    }
}

type OnAnswer = Box<dyn Fn(u64, Duration) + Send + Sync>;

type OnRefused = Box<dyn Fn(&Refused) + Send + Sync>;

/// Callbacks of a query job.
#[derive(Default)]
pub struct Hooks {
    /// With the number of every query, from 0, and the time since a worker took it, as soon as its
    /// answer is there, before it is its turn to be written; from any worker.
    pub on_answer: Option<OnAnswer>,
    /// With every line that is no query, in order.
    pub on_refused: Option<OnRefused>,
}

/// On lines of memory of its own: all workers write here for every query.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct QueryTally {
    /// Set if latencies are wanted.
    pub(crate) latencies: Option<Latencies>,
    pub(crate) queries: AtomicU64,
    /// Lines that were no queries.
    pub(crate) refused: AtomicU64,
    /// Queries of which no term is in the index.
    pub(crate) unknown: AtomicU64,
    /// The name of one of these, and what most of its letters are.
    pub(crate) unspaced: OnceLock<(String, Unspaced)>,
    /// Queries that were left unanswered since they had waited too long.
    pub(crate) late: AtomicU64,
    pub(crate) hits: AtomicU64,
    /// Queries whose home is here and of which shards were asked again.
    pub(crate) asked_again: AtomicU64,
    pub(crate) batches: AtomicU64,
    /// When the first query was taken, and when the last batch was written.
    pub(crate) answering: Mutex<Option<(Instant, Instant)>>,
    /// Queries that were answered, if latencies are wanted.
    pub(crate) progress: Mutex<ProgressLog>,
}

impl QueryTally {
    /// To be called when a query was taken, or a batch written.
    pub(crate) fn answering(&self) {
        let now = Instant::now();
        let mut answering = lock(&self.answering);
        let (began, last) = answering.get_or_insert((now, now));
        *last = now;
        if self.latencies.is_some() {
            let queries = self.queries.load(Ordering::Relaxed);
            lock(&self.progress).add(now - *began, queries);
        }
    }
}

impl Context {
    /// What is looked for: one hit more, if one may be removed, and those that are left out.
    pub(crate) fn wanted_of(&self, query: &Query) -> Wanted {
        let wanted = query.wanted(&self.wanted);
        let more = query.offset.saturating_add(usize::from(self.remove_query));
        Wanted { k: wanted.k.saturating_add(more), ..wanted }
    }

    /// The worker of a process that has its queries, among the workers of all processes.
    pub(crate) fn first_of(&self, process: usize) -> u32 {
        (process * self.workers + FIRST) as u32
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        lock(&self.snapshot).clone()
    }

    /// The snapshot of a generation that a query names.
    pub(crate) fn snapshot_of(&self, generation: u64) -> Result<Arc<Snapshot>, String> {
        let current = self.snapshot();
        if number_of(&current) == generation {
            return Ok(current);
        }
        let opened = lock(&self.opened);
        let named = opened.iter().find(|snapshot| number_of(snapshot) == generation).cloned();
        named.ok_or_else(|| format!("generation {generation} is not open in this process"))
    }

    /// Keeps a snapshot, and that of the `live` generation, for queries that name them.
    pub(crate) fn keep(&self, snapshot: Arc<Snapshot>, live: u64) {
        let current = self.snapshot();
        let mut opened = lock(&self.opened);
        opened.push(current);
        opened.retain(|snapshot| number_of(snapshot) == live);
        opened.push(snapshot);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerLayout {
    Text(AnswerForm),
    Values,
}

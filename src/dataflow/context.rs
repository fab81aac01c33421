//! What do all operators of a query job know?

use super::control::Control;
use crate::crew::lock;
use crate::query::latencies::Latencies;
use crate::query::lines::Refused;
use crate::query::output::Form;
use crate::query::shard::Shard;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The worker of a process that has its queries.
pub(super) const FIRST: usize = 0;

/// What all operators of a query job know.
pub(super) struct Context {
    /// What queries ask for that do not say it.
    pub(super) wanted: Wanted,
    /// A batch has at most so many queries.
    pub(super) batch: usize,
    /// A batch waits at most so long for more.
    pub(super) delay: Duration,
    /// Queries that were taken in and have no answer, at most, if somebody has said it.
    pub(super) most_open: Option<NonZeroUsize>,
    /// A query that has waited for longer when its turn comes is left unanswered.
    pub(super) shed: Option<Duration>,
    /// Worker threads of each process.
    pub(super) workers: usize,
    /// Which shard of the index this process has.
    pub(super) shard: Shard,
    /// What the next batch is answered from.
    pub(super) snapshot: Arc<Mutex<Arc<Snapshot>>>,
    /// How answers are laid out.
    pub(super) layout: Layout,
    /// Who is told of what happens.
    pub(super) hooks: Hooks,
    /// What is counted.
    pub(super) tally: Tally,
    /// Whether the job goes on.
    pub(super) control: Arc<Control>,
}

/// Is told of an answer.
type OnAnswer = Box<dyn Fn(u64, Duration) + Send + Sync>;

/// Is told of a line that is no query.
type OnRefused = Box<dyn Fn(&Refused) + Send + Sync>;

/// Who is told of what happens in a query job while it runs.
#[derive(Default)]
pub struct Hooks {
    /// Is called with the number of every query, from 0, and the time since a worker took it, as soon
    /// as its answer is there, before it is its turn to be written. Any worker may call it.
    pub on_answer: Option<OnAnswer>,
    /// Is called with every line that is no query, in their order.
    pub on_refused: Option<OnRefused>,
}

/// What a query job counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// How long queries took, if anybody wants to know.
    pub(super) latencies: Option<Latencies>,
    /// Queries answered.
    pub(super) queries: AtomicU64,
    /// Lines that were no queries.
    pub(super) refused: AtomicU64,
    /// Queries of which no term is in the index.
    pub(super) unknown: AtomicU64,
    /// Queries that were left unanswered since they had waited too long.
    pub(super) late: AtomicU64,
    /// Hits found.
    pub(super) hits: AtomicU64,
    /// Batches written.
    pub(super) batches: AtomicU64,
    /// When the first query was taken, and when the last batch was written.
    pub(super) answering: Mutex<Option<(Instant, Instant)>>,
}

impl Tally {
    /// A query was taken, or a batch written.
    pub(super) fn answering(&self) {
        let now = Instant::now();
        lock(&self.answering).get_or_insert((now, now)).1 = now;
    }
}

impl Context {
    /// The worker of a process that has a query's turn, among the workers of all processes.
    pub(super) fn worker_of(&self, process: usize, number: u64) -> u32 {
        (process * self.workers + (number % self.workers as u64) as usize) as u32
    }

    /// The worker of a process that has its queries, among the workers of all processes.
    pub(super) fn first_of(&self, process: usize) -> u32 {
        (process * self.workers + FIRST) as u32
    }

    /// What the next batch is answered from.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        lock(&self.snapshot).clone()
    }
}

/// What answers become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// As they are written.
    Text(Form),
    /// [`QueryAnswer`]s.
    Values,
}

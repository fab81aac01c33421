//! What do all operators of a query job know?

use crate::crew::lock;
use crate::dataflow::control::Control;
use crate::query::answers::latencies::Latencies;
use crate::query::answers::output::AnswerForm;
use crate::query::engines::shard::Shard;
use crate::query::reading::lines::Refused;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The worker of a process that has its queries.
pub(crate) const FIRST: usize = 0;

/// What all operators of a query job know.
pub(crate) struct Context {
    /// What queries ask for that do not say it.
    pub(crate) wanted: Wanted,
    /// A batch has at most so many queries.
    pub(crate) batch: usize,
    /// A batch waits at most so long for more.
    pub(crate) delay: Duration,
    /// Queries that were taken in and have no answer, at most, if somebody has said it.
    pub(crate) most_open: Option<NonZeroUsize>,
    /// A query that has waited for longer when its turn comes is left unanswered.
    pub(crate) shed: Option<Duration>,
    /// Worker threads of each process.
    pub(crate) workers: usize,
    /// Which shard of the index this process has.
    pub(crate) shard: Shard,
    /// What the next batch is answered from.
    pub(crate) snapshot: Arc<Mutex<Arc<Snapshot>>>,
    /// How answers are laid out.
    pub(crate) layout: Layout,
    /// Who is told of what happens.
    pub(crate) hooks: Hooks,
    pub(crate) tally: Tally,
    /// Whether the job goes on.
    pub(crate) control: Arc<Control>,
}

type OnAnswer = Box<dyn Fn(u64, Duration) + Send + Sync>;

/// Is told of a line that is no query.
type OnRefused = Box<dyn Fn(&Refused) + Send + Sync>;

/// Who is told of what happens in a query job while it runs.
#[derive(Default)]
pub struct Hooks {
    /// Is called with the number of every query, from 0, and the time since a worker took it, as
    /// soon as its answer is there, before it is its turn to be written. Any worker may call it.
    pub on_answer: Option<OnAnswer>,
    /// Is called with every line that is no query, in their order.
    pub on_refused: Option<OnRefused>,
}

/// What a query job counts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How long queries took, if anybody wants to know.
    pub(crate) latencies: Option<Latencies>,
    pub(crate) queries: AtomicU64,
    /// Lines that were no queries.
    pub(crate) refused: AtomicU64,
    /// Queries of which no term is in the index.
    pub(crate) unknown: AtomicU64,
    /// Queries that were left unanswered since they had waited too long.
    pub(crate) late: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) batches: AtomicU64,
    /// When the first query was taken, and when the last batch was written.
    pub(crate) answering: Mutex<Option<(Instant, Instant)>>,
}

impl Tally {
    /// A query was taken, or a batch written.
    pub(crate) fn answering(&self) {
        let now = Instant::now();
        lock(&self.answering).get_or_insert((now, now)).1 = now;
    }
}

impl Context {
    /// The worker of a process that has a query's turn, among the workers of all processes.
    pub(crate) fn worker_of(&self, process: usize, number: u64) -> u32 {
        (process * self.workers + (number % self.workers as u64) as usize) as u32
    }

    /// The worker of a process that has its queries, among the workers of all processes.
    pub(crate) fn first_of(&self, process: usize) -> u32 {
        (process * self.workers + FIRST) as u32
    }

    /// What the next batch is answered from.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        lock(&self.snapshot).clone()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Text(AnswerForm),
    /// [`QueryAnswer`]s.
    Values,
}

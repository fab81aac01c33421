//! What do the operators of the query job share, and how are they joined?

#[cfg(test)]
mod tests;

use super::answer::answer;
use super::ask::Ask;
use super::asked::{Found, NamedHit};
use super::batch::{Feed, batch};
use super::collect::{Collect, Writer};
use super::control::{Control, lock};
use super::desk::{Desk, FIRST};
use super::gather::gather;
use super::lay_out::{self, Answered, Layout};
use super::look::{Look, Planned};
use super::shard::Shard;
use super::tell::{self, Tell};
use super::weigh::Weigh;
use crate::query::engine::{Engines, Wakers};
use crate::query::lines::Refused;
use crate::query::snapshot::Snapshot;
use crate::query::wanted::Wanted;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::worker::Worker;

/// What all operators of a query job know.
pub(super) struct Context {
    /// What queries ask for that do not say it.
    pub(super) wanted: Wanted,
    /// A batch has at most so many queries.
    pub(super) batch: usize,
    /// A batch waits at most so long for more.
    pub(super) delay: Duration,
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
    /// Queries answered.
    pub(super) queries: AtomicU64,
    /// Lines that were no queries.
    pub(super) refused: AtomicU64,
    /// Queries of which no term is in the index.
    pub(super) unknown: AtomicU64,
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
        self.snapshot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// What joins the operators of the workers of a process beside their streams.
pub(super) struct Wiring {
    /// Where queries come from.
    pub(super) feed: Arc<Feed>,
    /// Where answers go.
    pub(super) writer: Writer,
    /// What makes the engines of the workers.
    pub(super) engines: Box<dyn Engines>,
    /// What wakes the workers that drive them.
    pub(super) wakers: Arc<Wakers>,
    /// The queries of a process that has all of the index.
    pub(super) whole: Arc<Desk<(), Answered>>,
    /// Those of one that has a shard.
    pub(super) shards: Arc<Desk<Option<Vec<NamedHit>>, Found>>,
    /// Plans of a shard that wait for the numbers of the others.
    pub(super) planned: Planned,
}

/// Joins the operators on one worker. In one process, whatever the engine:
///
/// ```text
/// batch -> answer -> (exchange) -> collect
///             |
///     desk and engines, which the workers of the process share
/// ```
///
/// In several, where three exchanges cross processes:
///
/// ```text
/// batch -> ask -> (exchange) -> look -> (exchange) -> weigh -> answer -> tell -> (exchange) -> gather -> collect
///      `------------------------------------------------------------------------------------^
/// ```
pub(super) fn assemble(context: &Arc<Context>, wiring: &Arc<Wiring>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("query", |scope| {
        let written = ProbeHandle::new();
        let queries = batch(scope, context, &wiring.feed, written.clone());
        let answered = if context.shard.processes == 1 {
            answer(queries, context, wiring, &wiring.whole, lay_out::answer)
        } else {
            let planned = queries.clone().ask(context).look(context, wiring).weigh(context, wiring);
            let found = answer(planned, context, wiring, &wiring.shards, tell::answer).tell();
            gather(queries, found, context)
        };
        answered.collect(context, wiring).probe_with(&written);
    });
}

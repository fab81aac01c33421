//! What do the operators of the query job share, and how are they joined?

use super::answer::{Answer, Answered};
use super::ask::Ask;
use super::batch::{Numbered, Received, batch};
use super::collect::Collect;
use super::control::Control;
use super::docp::Docp;
use super::fgqp::{Crew, Fgqp};
use super::gather::gather;
use super::look::Look;
use super::score::Score;
use crate::query::output::Form;
use crate::query::searcher::Shared;
use crate::query::top_k::Hit;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::scheduling::SyncActivator;
use timely::worker::Worker;

/// Everything that the operators of one query job share.
pub struct QueryJob {
    /// The index and how it is asked.
    pub shared: Arc<Shared>,
    /// The form of the answers.
    pub form: Form,
    /// A batch has at most so many queries.
    pub batch: usize,
    /// A batch waits at most so long for more.
    pub delay: Duration,
    /// Worker threads of each process.
    pub workers: usize,
    /// How queries are spread over them.
    pub parallelism: Parallelism,
    /// Which shard of the index this process has.
    pub shard: Shard,
    /// Where queries come from; taken by worker 0.
    pub received: Mutex<Option<Receiver<Received>>>,
    /// Wakes the batch operator; made by worker 0, used by the thread that reads.
    pub waker: Mutex<Option<SyncActivator>>,
    /// Where answers go; taken by worker 0.
    pub output: Mutex<Option<Box<dyn Write + Send>>>,
    /// Whether the job goes on.
    pub control: Arc<Control>,
    /// Queries answered.
    pub queries: AtomicU64,
    /// Queries of which no term is in the index.
    pub unknown: AtomicU64,
    /// Hits written.
    pub hits: AtomicU64,
    /// Batches written.
    pub batches: AtomicU64,
    /// Is called with the number of every query, from 0, as soon as its answer is there.
    pub on_answer: Option<Box<dyn Fn(u64) + Send + Sync>>,
}

/// How queries are spread over the workers of a process: the models of `tatikonda11`. All give the
/// same answers.
#[derive(Debug)]
pub enum Parallelism {
    /// A query to a worker.
    Inter,
    /// Every worker answers every query over its share of the docids, in the index.
    DocpUi,
    /// As `DocpUi`, in a copy of the share's postings that each worker makes at the start.
    DocpPi,
    /// Queries are cut into tasks, which go to whoever comes first.
    Fgqp(Box<Crew>),
}

/// The part of an index that a process searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of this process.
    pub process: usize,
    /// Processes, and shards.
    pub processes: usize,
    /// Docid of the shard's first document in the whole index.
    pub first_docid: u32,
}

impl Shard {
    /// The only shard of an index that is whole.
    pub const WHOLE: Self = Self { process: 0, processes: 1, first_docid: 0 };
}

impl QueryJob {
    /// The worker of a process that has a query's turn, among the workers of all processes.
    pub(super) fn worker_of(&self, process: usize, number: u64) -> u32 {
        (process * self.workers + (number % self.workers as u64) as usize) as u32
    }

    /// Lays the answer to a query of an index that is whole out, and counts it.
    pub(super) fn write(
        &self,
        query: &Numbered,
        hits: &[Hit],
        known: bool,
        took: Duration,
    ) -> Answered {
        let documents = self.shared.generation().documents();
        let name =
            |at: usize| String::from_utf8_lossy(documents.name(hits[at].docid).unwrap_or_default());
        let mut text = String::new();
        self.form.write(&query.query, hits, took, name, &mut text);
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.hits.fetch_add(hits.len() as u64, Ordering::Relaxed);
        self.unknown.fetch_add(u64::from(!known), Ordering::Relaxed);
        if let Some(on_answer) = &self.on_answer {
            on_answer(query.number);
        }
        Answered { place: query.place, text }
    }
}

/// Joins the operators on one worker. In one process, by the model:
///
/// ```text
/// inter         batch -> (exchange) -> answer -> (exchange) -> collect
/// docp-ui, -pi  batch -> spread -> (exchange) -> share -> (exchange) -> collect
/// fgqp          batch -> fgqp -> collect, beside which the workers share a pool in memory
/// ```
///
/// In several, where three exchanges cross processes:
///
/// ```text
/// batch -> ask -> (exchange) -> look -> (exchange) -> score -> (exchange) -> gather -> collect
///      `---------------------------------------------------------------------^
/// ```
pub fn assemble(job: &Arc<QueryJob>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("query", |scope| {
        let written = ProbeHandle::new();
        let queries = batch(scope, job, written.clone());
        let answered = if job.shard.processes == 1 {
            match &job.parallelism {
                Parallelism::Inter => queries.answer(job),
                Parallelism::DocpUi | Parallelism::DocpPi => queries.docp(job),
                Parallelism::Fgqp(_) => queries.fgqp(job),
            }
        } else {
            let found = queries.clone().ask(job).look(job).score(job);
            gather(queries, found, job)
        };
        answered.collect(job).probe_with(&written);
    });
}

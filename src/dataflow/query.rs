//! What do the operators of the query job share, and how are they joined?

use super::answer::Answer;
use super::batch::{Received, batch};
use super::collect::Collect;
use super::control::Control;
use crate::query::output::Form;
use crate::query::searcher::Shared;
use std::io::Write;
use std::sync::atomic::AtomicU64;
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
    /// Worker threads.
    pub workers: usize,
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
}

/// Joins the operators on one worker:
///
/// ```text
/// batch -> (exchange) -> answer -> (exchange) -> collect
/// ```
pub fn assemble(job: &Arc<QueryJob>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("query", |scope| {
        let written = ProbeHandle::new();
        batch(scope, job, written.clone()).answer(job).collect(job).probe_with(&written);
    });
}

//! How long do queries take in a running query job? A [`Rig`] is the dataflow of `millrace query`
//! with its workers, fed by this thread, with answers that go nowhere.

use anyhow::Context;
use millrace::dataflow::batch::Received;
use millrace::dataflow::control::{self, Control};
use millrace::dataflow::query::{QueryJob, Shard, assemble};
use millrace::query::output::{Form, Query};
use millrace::query::searcher::Shared;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::query::{Model, wake};

/// Queries that wait for the dataflow at most, and so queries of a run.
pub(super) const MOST_QUERIES: usize = 1 << 20;

/// A query job that runs.
pub(super) struct Rig {
    pub(super) model: Model,
    pub(super) workers: usize,
    job: Arc<QueryJob>,
    control: Arc<Control>,
    sender: Option<SyncSender<Received>>,
    running: Option<JoinHandle<anyhow::Result<()>>>,
    answers: Arc<Mutex<Vec<(u64, Instant)>>>,
    /// Queries sent in all runs.
    sent: u64,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) queries_per_s: f64,
    /// Of each query, from arrival to answer, in microseconds.
    pub(super) latencies: Vec<f64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Rig {
    /// Starts a job and waits until every worker has begun.
    pub(super) fn start(
        shared: &Arc<Shared>,
        model: Model,
        workers: usize,
        queries: &[Query],
    ) -> anyhow::Result<Self> {
        let (sender, receiver) = sync_channel(MOST_QUERIES);
        let control = Arc::new(Control::default());
        let answers = Arc::new(Mutex::new(Vec::new()));
        let stamps = answers.clone();
        let job = Arc::new(QueryJob {
            parallelism: model.of(workers, shared.settings()),
            shared: shared.clone(),
            form: Form::Trec,
            batch: 64,
            delay: Duration::ZERO,
            workers,
            shard: Shard::WHOLE,
            received: Mutex::new(Some(receiver)),
            waker: Mutex::default(),
            output: Mutex::new(Some(Box::new(io::sink()))),
            control: control.clone(),
            queries: Default::default(),
            unknown: Default::default(),
            hits: Default::default(),
            batches: Default::default(),
            on_answer: Some(Box::new(move |number| lock(&stamps).push((number, Instant::now())))),
        });
        let (shared_job, watched) = (job.clone(), control.clone());
        let running = std::thread::Builder::new().name("rig".into()).spawn(move || {
            control::run(workers, &watched, move |worker| assemble(&shared_job, worker))?;
            Ok(())
        })?;
        let (sender, running) = (Some(sender), Some(running));
        let mut rig = Self { model, workers, job, control, sender, running, answers, sent: 0 };
        let first: Vec<&Query> = queries.iter().cycle().take(64.max(8 * workers)).collect();
        rig.run(&first, std::iter::repeat(0.0))?;
        Ok(rig)
    }

    /// Sends queries at times in seconds from now and waits for the answers. A query arrives when
    /// this thread sends it: it may wake late, and never waits for the dataflow.
    pub(super) fn run(
        &mut self,
        queries: &[&Query],
        times: impl IntoIterator<Item = f64>,
    ) -> anyhow::Result<Run> {
        let first = self.sent;
        let began = Instant::now();
        let mut arrived = Vec::with_capacity(queries.len());
        for (&query, time) in queries.iter().zip(times) {
            let due = began + Duration::from_secs_f64(time);
            while let Some(left) = due.checked_duration_since(Instant::now())
                && !left.is_zero()
            {
                std::thread::sleep(left);
            }
            arrived.push(Instant::now());
            let sender = self.sender.as_ref().context("the job has ended")?;
            if sender.send(Ok(query.clone())).is_err() {
                break;
            }
            wake(&self.job);
        }
        self.sent += arrived.len() as u64;
        while lock(&self.answers).len() < arrived.len() {
            if self.control.stopped() || self.running.as_ref().is_none_or(JoinHandle::is_finished) {
                return self.end().and(Err(anyhow::anyhow!("the job has ended early")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let answers = std::mem::take(&mut *lock(&self.answers));
        let last = answers.iter().map(|&(_, at)| at).max().context("no query was sent")?;
        let latency = |&(number, at): &(u64, Instant)| {
            at.duration_since(arrived[(number - first) as usize]).as_secs_f64() * 1e6
        };
        let latencies = answers.iter().map(latency).collect();
        let seconds = (last - arrived[0]).as_secs_f64();
        Ok(Run { queries_per_s: arrived.len() as f64 / seconds, latencies })
    }

    /// Ends the job.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.sender = None;
        wake(&self.job);
        match self.running.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => anyhow::bail!("the thread of a job has panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // What went wrong was said where the rig was used.
        _ = self.end();
    }
}

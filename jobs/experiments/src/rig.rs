//! Measures how long queries take in a running query job. A [`Rig`] is the dataflow of `millrace
//! query` with its workers, fed by this thread, with answers that go nowhere.

use anyhow::Context;
use millrace::inside::dataflow::Hooks;
use millrace::inside::query::{AnswerForm, Engines, RunTag, Shard, Wakers};
use millrace::{Asker, Control, Query, QueryOptions, QueryService, Sink, Snapshot, Wanted};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Queries that wait for the dataflow at most, and so queries of a run.
pub(super) const MOST_QUERIES: usize = 1 << 20;

/// The number of a query, when it was answered, and how long that took since a worker took it.
type AnswerStamp = (u64, Instant, Duration);

/// A query job that runs.
pub(super) struct Rig {
    control: Arc<Control>,
    asker: Option<Asker>,
    running: Option<JoinHandle<anyhow::Result<()>>>,
    answers: Arc<Mutex<Vec<AnswerStamp>>>,
    /// Queries sent in all runs.
    sent: u64,
}

/// What a run came to.
pub(super) struct Timings {
    pub(super) queries_per_s: f64,
    /// Of each query, from arrival to answer, in microseconds, in the order of the queries.
    pub(super) latencies: Vec<f64>,
    /// Of each query, from when a worker took it to its answer, in microseconds: without the time
    /// that it waited.
    pub(super) processing: Vec<f64>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Rig {
    /// Starts a job and waits until every worker has begun.
    pub(super) fn start(
        snapshot: &Arc<Snapshot>,
        wanted: Wanted,
        engines: impl FnOnce(&Arc<Wakers>) -> Box<dyn Engines>,
        workers: usize,
        queries: &[&Query],
    ) -> anyhow::Result<Self> {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let stamps = answers.clone();
        let on_answer = move |number, took| lock(&stamps).push((number, Instant::now(), took));
        let options = QueryOptions {
            wanted,
            workers: NonZeroUsize::new(workers).context("there is a worker")?,
            delay: Duration::ZERO,
            room: MOST_QUERIES,
            hooks: Hooks { on_answer: Some(Box::new(on_answer)), ..Hooks::default() },
            ..QueryOptions::default()
        };
        let (service, asker) =
            QueryService::with_engines(snapshot.clone(), Shard::WHOLE, options, engines);
        let control = service.control().clone();
        let running = std::thread::Builder::new().name("rig".into()).spawn(move || {
            service.run(Sink::text(AnswerForm::Trec(RunTag::default()), io::sink()))?;
            Ok(())
        })?;
        let asker = Some(asker);
        let running = Some(running);
        let mut rig = Self { control, asker, running, answers, sent: 0 };
        let first: Vec<&Query> =
            queries.iter().copied().cycle().take(64.max(8 * workers)).collect();
        rig.run(&first, std::iter::repeat(0.0))?;
        Ok(rig)
    }

    /// Sends queries at times in seconds from now and waits for the answers. A query arrives when
    /// this thread sends it: it may wake late, and never waits for the dataflow.
    pub(super) fn run(
        &mut self,
        queries: &[&Query],
        times: impl IntoIterator<Item = f64>,
    ) -> anyhow::Result<Timings> {
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
            let asker = self.asker.as_ref().context("the job has ended")?;
            if !asker.ask(Ok(Ok(query.clone()))) {
                break;
            }
        }
        self.sent += arrived.len() as u64;
        while lock(&self.answers).len() < arrived.len() {
            if self.control.stopped() || self.running.as_ref().is_none_or(JoinHandle::is_finished) {
                return self.end().and(Err(anyhow::anyhow!("the job has ended early")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut answers = std::mem::take(&mut *lock(&self.answers));
        answers.sort_unstable_by_key(|&(number, ..)| number);
        let last = answers.iter().map(|&(_, at, _)| at).max().context("no query was sent")?;
        let latency = |&(number, at, _): &AnswerStamp| {
            at.duration_since(arrived[(number - first) as usize]).as_secs_f64() * 1e6
        };
        let latencies = answers.iter().map(latency).collect();
        let processing = answers.iter().map(|(.., took)| took.as_secs_f64() * 1e6).collect();
        let seconds = (last - arrived[0]).as_secs_f64();
        Ok(Timings { queries_per_s: arrived.len() as f64 / seconds, latencies, processing })
    }

    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        self.asker = None;
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

//! Answers queries by tasks that go to whichever worker comes first: `--parallelism fgqp`
//! (`tatikonda11`, section 3.2.2).
//!
//! - In: queries, on the worker that has the batches. Out, there too: answers as text, at the batch's
//!   time, in no order.
//! - Queries, tasks and answers go through memory that the workers of the process share ([`Crew`]):
//!   no worker waits for another's turn. The worker with the batches keeps a capability for every
//!   batch with open queries, so that the frontier tells when a batch is complete; the others hold
//!   none and are there until the input ends, which it does when all is answered.
//! - Memory: queries that wait or are open, which are bounded, and their tasks; `--delta` bounds how
//!   many tasks are open when a query is cut.
//! - Work per activation: tasks and queries for about a millisecond; a fifth of that on the worker
//!   with the batches.

use super::answer::{Answered, SLICE};
use super::batch::Numbered;
use super::control::{Cause, Guard};
use super::cores;
use super::query::{Parallelism, QueryJob};
use crate::dictionary::group::Local;
use crate::query::pool::{Done, Open, Pool, Work};
use crate::query::searcher::{Begun, Cutting, Mode, Searcher, Settings};
use crate::query::top_k::Hit;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::scheduling::SyncActivator;

/// A query with the batch that it is of.
#[derive(Debug)]
struct Asked {
    batch: u64,
    query: Numbered,
    came: Instant,
}

/// What the workers of a process share.
pub struct Crew {
    pool: Pool<Arc<Asked>>,
    cutting: Cutting,
    /// So long a worker without work looks for more before it sleeps.
    patience: Duration,
    /// Answers with their batches, until the worker with the batches takes them.
    answers: Mutex<Vec<(u64, Answered)>>,
    /// What wakes each worker, once it has begun.
    wakers: Vec<OnceLock<SyncActivator>>,
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew").field("cutting", &self.cutting).finish_non_exhaustive()
    }
}

/// The worker that has the batches.
const FIRST: usize = 0;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole after any panic.
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Crew {
    /// Workers that cut a new query only while at most `delta` tasks are open, and look for work
    /// for the time of `patience` before they sleep. One alone cuts none.
    pub fn new(
        delta: usize,
        cutting: Cutting,
        patience: Duration,
        workers: usize,
        settings: Settings,
    ) -> Self {
        let least_ns = if workers > 1 { cutting.least_ns } else { f64::INFINITY };
        let cutting = Cutting { least_ns, ..cutting };
        let wakers = std::iter::repeat_with(OnceLock::new).take(workers).collect();
        Self {
            pool: Pool::new(delta, workers, settings),
            cutting,
            patience,
            answers: Mutex::default(),
            wakers,
        }
    }

    fn wake(&self, workers: &[usize]) {
        for waker in workers.iter().filter_map(|&worker| self.wakers[worker].get()) {
            // It fails when the worker has ended, which needs no waking.
            _ = waker.activate();
        }
    }

    /// Does some work; answers that come of it are left for the worker with the batches.
    fn work(
        &self,
        work: Work<Arc<Asked>>,
        job: &QueryJob,
        searcher: &mut Searcher,
    ) -> Result<(), Cause> {
        match work {
            Work::Begin(asked, waiting) => {
                // A query that is cut is answered sooner, but takes more work, which those behind it
                // wait for.
                let least_ns = self.cutting.least_ns * (1 + waiting) as f64;
                let cutting = Cutting { least_ns, ..self.cutting };
                self.begin(asked, (job.shared.settings().mode, &cutting), job, searcher)
            }
            Work::Tasks(open, tasks) => self.tasks(&open, tasks, job, searcher),
        }
    }

    fn begin(
        &self,
        asked: Arc<Asked>,
        (mode, cutting): (Mode, &Cutting),
        job: &QueryJob,
        searcher: &mut Searcher,
    ) -> Result<(), Cause> {
        match searcher.begin(&asked.query.query.text, mode, cutting)? {
            Begun::Answered { known } => {
                self.pool.answered_whole();
                self.answer(&asked, searcher.hits(), known, job);
            }
            Begun::Cut(cut) => self.wake(&self.pool.open(asked, cut)),
        }
        Ok(())
    }

    fn tasks(
        &self,
        open: &Open<Arc<Asked>>,
        tasks: Range<usize>,
        job: &QueryJob,
        searcher: &mut Searcher,
    ) -> Result<(), Cause> {
        let start = Instant::now();
        searcher.work(&open.cut, tasks.clone(), open.floor())?;
        match open.done((tasks, start.elapsed()), searcher.hits(), job.shared.settings()) {
            Done::More => {}
            // A query without a known term is not cut.
            Done::Answered(hits) => self.answer(&open.query, &hits, true, job),
            Done::Any => {
                self.begin(open.query.clone(), (Mode::Or, &self.cutting), job, searcher)?;
            }
        }
        Ok(())
    }

    fn answer(&self, asked: &Asked, hits: &[Hit], known: bool, job: &QueryJob) {
        let answered = job.write(&asked.query, hits, known, asked.came.elapsed());
        let mut answers = lock(&self.answers);
        answers.push((asked.batch, answered));
        let first = answers.len() == 1;
        drop(answers);
        if first {
            self.wake(&[FIRST]);
        }
    }
}

/// See the [module](self).
pub trait Fgqp<'scope> {
    /// Answers queries, with the crew of the job; without one none are.
    fn fgqp(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>>;
}

impl<'scope> Fgqp<'scope> for StreamVec<'scope, u64, Local<Numbered>> {
    fn fgqp(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>> {
        let job = job.clone();
        let scope = self.scope();
        let worker = scope.index();
        self.unary(Pipeline, "Fgqp", move |_, info| {
            let guard = Guard::new(&job.control, "Fgqp", worker);
            let activator = scope.activator_for(info.address.clone());
            if let Parallelism::Fgqp(crew) = &job.parallelism {
                let waker = scope.worker().sync_activator_for(info.address.to_vec());
                // A worker has one operator of a crew.
                _ = crew.wakers[worker].set(waker);
                cores::bind(worker, crew.wakers.len());
            }
            let slice = if worker == FIRST { SLICE / 5 } else { SLICE };
            let mut searcher = Searcher::new(job.shared.clone());
            // Of each batch, how many queries are not answered.
            let mut open: BTreeMap<u64, (Capability<u64>, usize)> = BTreeMap::new();
            // Since when a worker that does not sleep has had nothing to do.
            let mut idle: Option<Instant> = None;
            move |input, output| {
                let Parallelism::Fgqp(crew) = &job.parallelism else { return };
                input.for_each(|cap, data| {
                    let batch = *cap.time();
                    open.entry(batch).or_insert_with(|| (cap.retain(0), 0)).1 += data.len();
                    let came = Instant::now();
                    let queries =
                        data.drain(..).map(|Local(query)| Arc::new(Asked { batch, query, came }));
                    crew.wake(&crew.pool.push(queries));
                });
                let start = Instant::now();
                loop {
                    if worker == FIRST {
                        for (batch, answered) in std::mem::take(&mut *lock(&crew.answers)) {
                            let Some((cap, left)) = open.get_mut(&batch) else { continue };
                            output.session(&*cap).give(Local(answered));
                            *left -= 1;
                            if *left == 0 {
                                open.remove(&batch);
                            }
                        }
                    }
                    let waited = idle.map_or(Duration::ZERO, |since| since.elapsed());
                    let sleep = waited >= crew.patience;
                    let wait = || {
                        std::thread::yield_now();
                        activator.activate();
                    };
                    if idle.is_some() && !sleep && !crew.pool.has_work() {
                        return wait();
                    }
                    let (work, woken) = crew.pool.take(worker, sleep);
                    crew.wake(&woken);
                    let Some(work) = work else {
                        if sleep {
                            idle = None;
                            return;
                        }
                        idle.get_or_insert_with(Instant::now);
                        return wait();
                    };
                    idle = None;
                    if guard.work(|| crew.work(work, &job, &mut searcher)).is_none() {
                        return;
                    }
                    if start.elapsed() > slice {
                        return activator.activate();
                    }
                }
            }
        })
    }
}

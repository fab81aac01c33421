//! The pool of queries and tasks that the workers of a process share under `tatikonda11`'s
//! fine-grained model (FGQP, section 3.2.2, algorithms 2 and 3): queries that wait, and tasks of
//! queries that were cut.
//!
//! As in the paper a new query is cut only while at most `delta` tasks are open, and else tasks are
//! done, oldest query first. The tasks that a query is being cut into count as open, by an
//! estimate: otherwise all workers would cut one at once. A small `delta` has all workers at one
//! query, for latency; a large one keeps them busy where queries end, for throughput.
//!
//! Different from the paper: there is no separate producer, the first free worker cuts; and a
//! worker takes several neighbouring tasks at once, many while many are left and then fewer, down
//! to a least amount, which the pool learns from the tasks that are done. If the last query was
//! cut, idle workers are woken as soon as the next one comes, to be there when it is cut too.

use crate::crew::lock;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::query::searcher::QueryCut;
use crate::query::top_k::{Combined, Hit};
use crate::query::wanted::Stage;

/// Least work in nanoseconds that a worker takes: less does not pay for a visit to the pool.
const LEAST_NS: f64 = 20_000.0;

/// A query with open tasks, known by `Q`.
#[derive(Debug)]
pub(crate) struct OpenQuery<Q> {
    pub query: Q,
    pub cut: QueryCut,
    found: Mutex<PartialAnswer>,
    /// Least number of tasks taken at once.
    least: AtomicUsize,
}

#[derive(Debug)]
struct PartialAnswer {
    combined: Combined,
    floor: f32,
    left: usize,
    /// Time of those that are done.
    took: Duration,
}

#[derive(Debug)]
pub(crate) enum PoolWork<Q> {
    /// Answer a query, or cut it.
    Begin(BegunQuery<Q>),
    Tasks(Arc<OpenQuery<Q>>, Range<usize>),
}

/// A query to answer or to cut.
#[derive(Debug, PartialEq)]
pub(crate) struct BegunQuery<Q> {
    pub query: Q,
    /// Queries that wait behind it for each worker.
    pub waiting: usize,
    /// The estimate of its tasks, 0 for a query that stays whole; they count as open until the pool
    /// gets them or is told that there are none.
    pub tasks: usize,
}

#[derive(Debug)]
pub(crate) struct Pool<Q> {
    delta: usize,
    workers: usize,
    /// Waiting queries and tasks that are not taken, read without the lock.
    there: AtomicUsize,
    state: Mutex<PoolState<Q>>,
}

#[derive(Debug)]
struct PoolState<Q> {
    waiting: VecDeque<Q>,
    /// Queries that wait outside until the pool wants one.
    behind: usize,
    /// Queries with tasks that are not taken, and the first of these tasks.
    open: VecDeque<(Arc<OpenQuery<Q>>, usize)>,
    tasks: usize,
    /// The estimate for the queries that are being cut.
    expected: usize,
    /// Queries that are being answered or cut.
    begun: usize,
    /// Whether the query that was begun last was cut.
    cuts: bool,
    idle: Vec<usize>,
}

/// A worker that finds more to do than it takes wakes this many others, and these wake others.
const WAKES: usize = 3;

impl<Q> PoolState<Q> {
    /// Notes whether a query that was begun was cut. AND+OR may be begun twice and taken once, but
    /// these counts only decide about waking early.
    fn ended(&mut self, cut: bool, expected: usize) {
        self.begun = self.begun.saturating_sub(1);
        self.expected -= expected;
        self.cuts = cut;
    }

    /// Tasks that are open, or will be.
    fn open_tasks(&self) -> usize {
        self.tasks + self.expected
    }

    fn there(&self) -> usize {
        self.waiting.len() + self.tasks
    }

    /// Whether there will soon be tasks, if the next query is like the last one.
    fn hopes(&self) -> bool {
        self.cuts && self.begun + self.waiting.len() + self.behind > 0
    }

    /// Takes idle workers for the work there is, apart from `own` queries or tasks.
    fn wake(&mut self, own: usize) -> Vec<usize> {
        let work = if self.hopes() { WAKES } else { self.there().saturating_sub(own) };
        let most = WAKES.min(work).min(self.idle.len());
        self.idle.split_off(self.idle.len() - most)
    }
}

impl<Q> Pool<Q> {
    pub(crate) fn new(delta: usize, workers: usize) -> Self {
        let state = PoolState {
            waiting: VecDeque::new(),
            behind: 0,
            open: VecDeque::new(),
            tasks: 0,
            expected: 0,
            begun: 0,
            cuts: false,
            idle: Vec::new(),
        };
        let state = Mutex::new(state);
        let workers = workers.max(1);
        Self { delta, workers, there: 0.into(), state }
    }

    /// Adds waiting queries and returns workers to wake; the caller takes one itself.
    pub(crate) fn push(&self, queries: impl IntoIterator<Item = Q>) -> Vec<usize> {
        let mut state = lock(&self.state);
        state.waiting.extend(queries);
        self.there.store(state.there(), Ordering::Relaxed);
        state.wake(1)
    }

    /// Whether the pool wants a query: none waits here, and few enough tasks are open.
    pub(crate) fn wants_query(&self) -> bool {
        let state = lock(&self.state);
        state.waiting.is_empty() && state.open_tasks() <= self.delta
    }

    /// Notes how many queries wait outside; returns workers to wake early if one will soon be cut.
    pub(crate) fn behind(&self, queries: usize) -> Vec<usize> {
        let mut state = lock(&self.state);
        let more = queries > state.behind;
        state.behind = queries;
        if more && state.hopes() { state.wake(1) } else { Vec::new() }
    }

    /// Adds a query that was cut, of which this many tasks were expected, and returns workers to
    /// wake; the caller takes tasks next.
    pub(crate) fn open(&self, query: Q, cut: QueryCut, expected: usize) -> Vec<usize> {
        let tasks = cut.tasks();
        let least = (LEAST_NS * tasks as f64 / cut.cost_ns().max(1.0)).ceil() as usize;
        let combined = Combined::new(cut.plan().wanted().k);
        let open = Arc::new(OpenQuery {
            query,
            cut,
            found: Mutex::new(PartialAnswer {
                combined,
                floor: f32::NEG_INFINITY,
                left: tasks,
                took: Duration::ZERO,
            }),
            least: AtomicUsize::new(least.max(1)),
        });
        let mut state = lock(&self.state);
        state.ended(true, expected);
        state.open.push_back((open, 0));
        state.tasks += tasks;
        self.there.store(state.there(), Ordering::Relaxed);
        state.wake(1)
    }

    /// Notes that a query was answered whole, of which this many tasks were expected, so that the
    /// next one wakes nobody early.
    pub(crate) fn answered_whole(&self, expected: usize) {
        lock(&self.state).ended(false, expected);
    }

    /// A guess without the lock.
    pub(crate) fn has_work(&self) -> bool {
        self.there.load(Ordering::Relaxed) > 0
    }

    /// Gives `worker` something to do, and returns workers to wake since there is or soon will be
    /// more. If there is nothing and the worker is about to `sleep`, it is idle until another
    /// caller gets its number. `tasks` estimates the tasks of a query with this many behind it for
    /// each worker.
    pub(crate) fn take(
        &self,
        worker: usize,
        sleep: bool,
        tasks: impl Fn(&Q, usize) -> usize,
    ) -> (Option<PoolWork<Q>>, Vec<usize>) {
        let mut state = lock(&self.state);
        let work = if state.open_tasks() <= self.delta
            && let Some(query) = state.waiting.pop_front()
        {
            let waiting = (state.waiting.len() + state.behind) / self.workers;
            let tasks = tasks(&query, waiting);
            state.begun += 1;
            state.expected += tasks;
            Some(PoolWork::Begin(BegunQuery { query, waiting, tasks }))
        } else {
            self.take_tasks(&mut state)
        };
        self.there.store(state.there(), Ordering::Relaxed);
        let woken =
            if work.is_some() || (!sleep && state.hopes()) { state.wake(0) } else { Vec::new() };
        // A worker that is here need not be woken, even if not the pool woke it.
        let idle = state.idle.iter().position(|&idle| idle == worker);
        match idle {
            Some(at) if work.is_some() => drop(state.idle.swap_remove(at)),
            None if work.is_none() && sleep => state.idle.push(worker),
            _ => {}
        }
        (work, woken)
    }

    fn take_tasks(&self, state: &mut PoolState<Q>) -> Option<PoolWork<Q>> {
        // With several open queries nobody waits at the end of one, and fewer parts are less work.
        let parts = (2 * self.workers / state.open.len().max(1)).max(1);
        let (open, first) = state.open.front_mut()?;
        let first_taken = *first;
        let tasks = open.cut.tasks();
        let fair = (tasks - first_taken).div_ceil(parts);
        let end = first_taken + fair.max(open.least.load(Ordering::Relaxed));
        let end = end.min(open.cut.end_of_run(first_taken));
        let taken = open.clone();
        *first = end;
        if end == tasks {
            state.open.pop_front();
        }
        state.tasks -= end - first_taken;
        Some(PoolWork::Tasks(taken, first_taken..end))
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum TasksDone {
    More,
    Answered(Vec<Hit>),
    /// Another stage of the query has to begin.
    Next(Stage),
}

impl<Q> OpenQuery<Q> {
    /// Documents with scores below this are not among the best k of the query.
    pub(crate) fn floor(&self) -> f32 {
        lock(&self.found).floor
    }

    pub(crate) fn done(&self, tasks: Range<usize>, took: Duration, hits: &[Hit]) -> TasksDone {
        let mut found = lock(&self.found);
        found.floor = found.combined.add(hits);
        found.left -= tasks.len();
        found.took += took;
        let done = (self.cut.tasks() - found.left) as f64;
        let least = LEAST_NS * done / (found.took.as_nanos() as f64).max(1.0);
        self.least.store((least as usize).max(1), Ordering::Relaxed);
        if found.left > 0 {
            return TasksDone::More;
        }
        let hits = found.combined.take();
        match self.cut.stage().next(self.cut.plan().wanted(), hits.len()) {
            Some(stage) => TasksDone::Next(stage),
            None => TasksDone::Answered(hits),
        }
    }
}

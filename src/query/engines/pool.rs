//! Who does which part of which query next? The pool that the workers of a process share under
//! `tatikonda11`'s fine-grained model (FGQP, section 3.2.2, algorithms 2 and 3): queries that wait,
//! and tasks of queries that were cut.
//!
//! As in the paper a new query is cut only while at most `delta` tasks are open, and else tasks are
//! done, oldest query first. A small `delta` has all workers at one query, for latency; a large one
//! keeps them busy where queries end, for throughput.
//!
//! Different from the paper: there is no producer apart, whoever comes first cuts; and a worker
//! takes several neighbouring tasks at once, many while many are left and then fewer, down to what
//! is worth taking, which the pool learns from the tasks that are done. Where the last query was
//! cut, idle workers are woken as soon as the next one comes, to be there when it has been cut too.

use crate::crew::lock;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::query::searcher::Cut;
use crate::query::top_k::{Combined, Hit};
use crate::query::wanted::Stage;

/// What a worker does for a query at least, in nanoseconds: less is not worth a visit to the pool.
const LEAST_NS: f64 = 20_000.0;

/// A query of which tasks are open. `Q` is what it is known by.
#[derive(Debug)]
pub(crate) struct OpenQuery<Q> {
    /// What the query is known by.
    pub query: Q,
    pub cut: Cut,
    found: Mutex<Found>,
    /// Tasks taken at once at least.
    least: AtomicUsize,
}

#[derive(Debug)]
struct Found {
    combined: Combined,
    floor: f32,
    /// Tasks that are not done.
    left: usize,
    /// What those that are done took together.
    took: Duration,
}

/// What a worker is to do.
#[derive(Debug)]
pub(crate) enum Work<Q> {
    /// Answer a query, or cut it; and how many queries wait behind it for each worker.
    Begin(Q, usize),
    /// Do some tasks of a query.
    Tasks(Arc<OpenQuery<Q>>, Range<usize>),
}

#[derive(Debug)]
pub(crate) struct Pool<Q> {
    delta: usize,
    workers: usize,
    /// Queries that wait and tasks that nobody has taken, to be looked at without the lock.
    there: AtomicUsize,
    state: Mutex<State<Q>>,
}

#[derive(Debug)]
struct State<Q> {
    waiting: VecDeque<Q>,
    /// Queries that wait outside until the pool wants one.
    behind: usize,
    /// Queries with tasks that nobody has taken, and the first of these tasks.
    open: VecDeque<(Arc<OpenQuery<Q>>, usize)>,
    tasks: usize,
    /// Queries that somebody is answering or cutting.
    begun: usize,
    /// Whether the query that was begun last was cut.
    cuts: bool,
    idle: Vec<usize>,
}

/// A worker that finds more to do than it takes wakes so many others, and these wake others.
const WAKES: usize = 3;

impl<Q> State<Q> {
    /// Notes what became of a query that was begun. AND+OR may be begun twice and taken once: what
    /// is counted here decides about waking early alone.
    fn ended(&mut self, cut: bool) {
        self.begun = self.begun.saturating_sub(1);
        self.cuts = cut;
    }

    fn there(&self) -> usize {
        self.waiting.len() + self.tasks
    }

    /// Whether there will soon be tasks, if the next query is as the last one.
    fn hopes(&self) -> bool {
        self.cuts && self.begun + self.waiting.len() + self.behind > 0
    }

    /// Takes idle workers for what there is to do, apart from `own` queries or tasks.
    fn wake(&mut self, own: usize) -> Vec<usize> {
        let work = if self.hopes() { WAKES } else { self.there().saturating_sub(own) };
        let most = WAKES.min(work).min(self.idle.len());
        self.idle.split_off(self.idle.len() - most)
    }
}

impl<Q> Pool<Q> {
    /// An empty pool for so many workers.
    pub(crate) fn new(delta: usize, workers: usize) -> Self {
        let state = State {
            waiting: VecDeque::new(),
            behind: 0,
            open: VecDeque::new(),
            tasks: 0,
            begun: 0,
            cuts: false,
            idle: Vec::with_capacity(workers),
        };
        let (workers, state) = (workers.max(1), Mutex::new(state));
        Self { delta, workers, there: 0.into(), state }
    }

    /// Adds queries that wait, and names workers to be woken; who adds them takes one itself.
    pub(crate) fn push(&self, queries: impl IntoIterator<Item = Q>) -> Vec<usize> {
        let mut state = lock(&self.state);
        state.waiting.extend(queries);
        self.there.store(state.there(), Ordering::Relaxed);
        state.wake(1)
    }

    /// Whether the pool is to be given a query: none waits here, and few enough tasks are open.
    pub(crate) fn wants_query(&self) -> bool {
        let state = lock(&self.state);
        state.waiting.is_empty() && state.tasks <= self.delta
    }

    /// Notes how many queries wait outside. Names workers to be woken before their time, if one of
    /// these will soon be cut.
    pub(crate) fn behind(&self, queries: usize) -> Vec<usize> {
        let mut state = lock(&self.state);
        let more = queries > state.behind;
        state.behind = queries;
        if more && state.hopes() { state.wake(1) } else { Vec::new() }
    }

    /// Adds a query that was cut, and names workers to be woken; who cut it takes tasks next.
    pub(crate) fn open(&self, query: Q, cut: Cut) -> Vec<usize> {
        let tasks = cut.tasks();
        let least = (LEAST_NS * tasks as f64 / cut.cost_ns().max(1.0)).ceil() as usize;
        let combined = Combined::new(cut.plan().wanted().k);
        let open = Arc::new(OpenQuery {
            query,
            cut,
            found: Mutex::new(Found {
                combined,
                floor: f32::NEG_INFINITY,
                left: tasks,
                took: Duration::ZERO,
            }),
            least: AtomicUsize::new(least.max(1)),
        });
        let mut state = lock(&self.state);
        state.ended(true);
        state.open.push_back((open, 0));
        state.tasks += tasks;
        self.there.store(state.there(), Ordering::Relaxed);
        state.wake(1)
    }

    /// Notes that a query was answered whole, so that the next one wakes nobody before its time.
    pub(crate) fn answered_whole(&self) {
        lock(&self.state).ended(false);
    }

    /// Whether it looks as if there were something to do, without waiting for anybody.
    pub(crate) fn has_work(&self) -> bool {
        self.there.load(Ordering::Relaxed) > 0
    }

    /// Gives `worker` something to do, and names workers to be woken since there is more, or soon
    /// will be. If there is nothing and the worker is about to `sleep`, it is idle until it is
    /// named to another.
    pub(crate) fn take(&self, worker: usize, sleep: bool) -> (Option<Work<Q>>, Vec<usize>) {
        let mut state = lock(&self.state);
        let work = if state.tasks <= self.delta
            && let Some(query) = state.waiting.pop_front()
        {
            state.begun += 1;
            Some(Work::Begin(query, (state.waiting.len() + state.behind) / self.workers))
        } else {
            self.take_tasks(&mut state)
        };
        self.there.store(state.there(), Ordering::Relaxed);
        let woken =
            if work.is_some() || (!sleep && state.hopes()) { state.wake(0) } else { Vec::new() };
        // A worker that is there need not be woken, though it was not the pool that woke it.
        let idle = state.idle.iter().position(|&idle| idle == worker);
        match idle {
            Some(at) if work.is_some() => drop(state.idle.swap_remove(at)),
            None if work.is_none() && sleep => state.idle.push(worker),
            _ => {}
        }
        (work, woken)
    }

    fn take_tasks(&self, state: &mut State<Q>) -> Option<Work<Q>> {
        // Where several queries are open nobody has to wait at the end of one, and fewer parts of a
        // query are less work.
        let parts = (2 * self.workers / state.open.len().max(1)).max(1);
        let (open, first) = state.open.front_mut()?;
        let (first_taken, tasks) = (*first, open.cut.tasks());
        let fair = (tasks - first_taken).div_ceil(parts);
        let end = first_taken + fair.max(open.least.load(Ordering::Relaxed));
        let end = end.min(open.cut.end_of_run(first_taken));
        let taken = open.clone();
        *first = end;
        if end == tasks {
            state.open.pop_front();
        }
        state.tasks -= end - first_taken;
        Some(Work::Tasks(taken, first_taken..end))
    }
}

/// What a query has come to when tasks of it are done.
#[derive(Debug, PartialEq)]
pub(crate) enum Done {
    More,
    Answered(Vec<Hit>),
    /// Another stage of the query has to be begun.
    Next(Stage),
}

impl<Q> OpenQuery<Q> {
    /// Documents with scores below this are not among the best k of the query.
    pub(crate) fn floor(&self) -> f32 {
        lock(&self.found).floor
    }

    /// Adds the hits of some tasks that are done, and how long they took.
    pub(crate) fn done(&self, (tasks, took): (Range<usize>, Duration), hits: &[Hit]) -> Done {
        let mut found = lock(&self.found);
        found.floor = found.combined.add(hits);
        found.left -= tasks.len();
        found.took += took;
        let done = (self.cut.tasks() - found.left) as f64;
        let least = LEAST_NS * done / (found.took.as_nanos() as f64).max(1.0);
        self.least.store((least as usize).max(1), Ordering::Relaxed);
        if found.left > 0 {
            return Done::More;
        }
        let hits = found.combined.take();
        match self.cut.stage().next(self.cut.plan().wanted(), hits.len()) {
            Some(stage) => Done::Next(stage),
            None => Done::Answered(hits),
        }
    }
}

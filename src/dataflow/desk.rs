//! What do the workers of a process share of the queries that they answer? Queries that wait, which
//! any worker takes as it becomes free, those under way, and answers on their way out.
//!
//! All that waits here came to the *first* worker of the process, and leaves by it: that worker alone
//! holds timely's capabilities, and the others need none.

use super::batch::Numbered;
use super::context::FIRST;
use super::control::lock;
use crate::query::engine::Wakers;
use crate::query::plan::Plan;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A worker that finds more to do than it takes wakes so many others, and these wake others.
const WAKES: usize = 3;

/// A query that is to be answered.
#[derive(Debug)]
pub(super) enum Request {
    /// As it came in; whoever takes it plans it.
    Text(Numbered),
    /// Planned already, by its number.
    Planned(u64, Plan),
}

/// A query that a worker has taken.
#[derive(Debug)]
pub(super) struct Taken<S> {
    /// Its batch.
    pub(super) batch: u64,
    /// As it was asked; of one that was planned already, a copy of the plan only if it may be needed
    /// again.
    pub(super) asked: Option<Request>,
    /// What was found in earlier stages, where an engine is asked for each of them.
    pub(super) before: S,
    /// When it was taken.
    pub(super) began: Instant,
}

impl From<Numbered> for Request {
    fn from(query: Numbered) -> Self {
        Request::Text(query)
    }
}

/// What becomes of a query when its engine has answered.
pub(super) enum Outcome<S, T> {
    /// This goes out.
    Out(T),
    /// The engine is asked for another stage.
    Again(Box<(Taken<S>, Plan)>),
}

/// See the [module](self). `S` is what is kept of earlier stages, `T` an answer on its way out.
pub(super) struct Desk<S, T> {
    wakers: Arc<Wakers>,
    state: Mutex<State>,
    /// Queries that wait, to be looked at without the lock.
    waiting: AtomicUsize,
    open: Mutex<HashMap<u64, Taken<S>>>,
    /// Answers with their batches.
    answers: Mutex<Vec<(u64, T)>>,
}

#[derive(Default)]
struct State {
    /// Queries with their batches.
    waiting: VecDeque<(u64, Request)>,
    /// Workers that sleep.
    idle: Vec<usize>,
}

impl State {
    fn wake(&mut self, work: usize) -> Vec<usize> {
        let most = WAKES.min(work).min(self.idle.len());
        self.idle.split_off(self.idle.len() - most)
    }
}

impl<S, T> Desk<S, T> {
    pub(super) fn new(wakers: Arc<Wakers>) -> Self {
        let (state, waiting, open, answers) = Default::default();
        Self { wakers, state, waiting, open, answers }
    }

    /// Adds queries of a batch and wakes workers for all but one of them; returns how many wait.
    pub(super) fn push(&self, batch: u64, queries: impl IntoIterator<Item = Request>) -> usize {
        let mut state = lock(&self.state);
        state.waiting.extend(queries.into_iter().map(|asked| (batch, asked)));
        let waiting = state.waiting.len();
        self.waiting.store(waiting, Ordering::Relaxed);
        let woken = state.wake(waiting.saturating_sub(1));
        drop(state);
        self.wakers.wake(&woken);
        waiting
    }

    /// Whether it looks as if queries waited, without waiting for anybody.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes the query that has waited longest, and says how many wait behind it; these are worth
    /// waking others for.
    pub(super) fn pop(&self) -> Option<(u64, Request, usize)> {
        let mut state = lock(&self.state);
        let (batch, asked) = state.waiting.pop_front()?;
        let waiting = state.waiting.len();
        self.waiting.store(waiting, Ordering::Relaxed);
        let woken = state.wake(waiting);
        drop(state);
        self.wakers.wake(&woken);
        Some((batch, asked, waiting))
    }

    /// Counts a worker among those that sleep, unless queries wait; says whether it may.
    pub(super) fn sleep(&self, worker: usize) -> bool {
        let mut state = lock(&self.state);
        let may = state.waiting.is_empty();
        if may && !state.idle.contains(&worker) {
            state.idle.push(worker);
        }
        may
    }

    /// Counts a worker no more among those that sleep.
    pub(super) fn awake(&self, worker: usize) {
        lock(&self.state).idle.retain(|&idle| idle != worker);
    }

    /// Keeps a query until its answer is there.
    pub(super) fn begin(&self, number: u64, taken: Taken<S>) {
        lock(&self.open).insert(number, taken);
    }

    /// Takes the query back that an answer is to.
    pub(super) fn end(&self, number: u64) -> Option<Taken<S>> {
        lock(&self.open).remove(&number)
    }

    /// Hands an answer to the first worker.
    pub(super) fn hand_out(&self, worker: usize, batch: u64, answer: T) {
        let mut answers = lock(&self.answers);
        answers.push((batch, answer));
        let wakes = answers.len() == 1 && worker != FIRST;
        drop(answers);
        if wakes {
            self.wakers.wake(&[FIRST]);
        }
    }

    /// The answers that were handed out.
    pub(super) fn answers(&self) -> Vec<(u64, T)> {
        std::mem::take(&mut lock(&self.answers))
    }
}

//! The desk: queries that wait, which any worker of the process takes as it becomes free, those
//! under way, and answers on their way out.
//!
//! All queries come to the *first* worker of the process, and answers leave by it: it alone holds
//! timely's capabilities. What comes in while it answers a query whole waits, although others may
//! be free by then; so it leaves such queries to others as long as enough of them are free, and
//! answers some itself only when all others have one.

use super::batch::NumberedQuery;
use super::context::FIRST;
use super::shards::request::ShardRequest;
use super::waiter::Waiter;
use crate::crew::lock;
use crate::query::engines::engine::Wakers;
use crate::query::plan::Plan;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// A worker that finds more to do than it takes wakes this many others, and these wake others.
const WAKES: usize = 3;

/// A worker whose engine has room takes at most so many queries at a time, and of those that wait
/// at most this share of its own.
const AT_ONCE: usize = 32;
const OF_SHARE: usize = 2;

/// Tables of queries under way, so that workers seldom wait for each other at one.
const TABLES: usize = 16;

#[derive(Debug)]
pub(crate) enum Request {
    /// As it came in; the worker that takes it plans it.
    Text(NumberedQuery),
    /// Asked by the home of the query.
    Shard(ShardRequest),
}

#[derive(Debug)]
pub(crate) struct TakenQuery<S> {
    pub(crate) batch: u64,
    /// The query as it was asked.
    pub(crate) asked: Option<Request>,
    /// Results of earlier stages, where an engine is asked for each of them.
    pub(crate) before: S,
    pub(crate) began: Instant,
}

impl<S> TakenQuery<S> {
    /// Who waits for it, if it came with one.
    pub(crate) fn waiter(&self) -> Option<Arc<dyn Waiter>> {
        match &self.asked {
            Some(Request::Text(numbered)) => numbered.waiter.clone(),
            _ => None,
        }
    }
}

impl From<NumberedQuery> for Request {
    fn from(query: NumberedQuery) -> Self {
        Request::Text(query)
    }
}

/// What becomes of a query when its engine has answered.
pub(crate) enum DeskOutcome<S, T> {
    Out(T),
    /// The engine is asked for another stage.
    Again(Box<(TakenQuery<S>, Plan)>),
}

/// See the [module](self). `S` are results of earlier stages, `T` is an answer on its way out.
pub(crate) struct QueryDesk<S, T> {
    wakers: Arc<Wakers>,
    state: Mutex<DeskState>,
    /// Queries that wait, to be read without the lock.
    waiting: AtomicUsize,
    /// By their numbers.
    open: [Mutex<HashMap<u64, TakenQuery<S>>>; TABLES],
    answers: Mutex<Vec<(u64, T)>>,
}

/// Queries, each with its batch.
pub(crate) type WaitingQueries = VecDeque<(u64, Request)>;

#[derive(Default)]
struct DeskState {
    /// As they came: what is taken whole is not copied while others wait for the lock.
    pieces: VecDeque<WaitingQueries>,
    /// Queries in all of them.
    waiting: usize,
    idle: Vec<usize>,
    /// Workers that were woken, or have not begun, and have not looked for a query since.
    coming: Vec<usize>,
}

impl DeskState {
    fn wake(&mut self, work: usize) -> Vec<usize> {
        let most = WAKES.min(work).min(self.idle.len());
        let woken = self.idle.split_off(self.idle.len() - most);
        self.coming.extend(&woken);
        woken
    }

    fn comes(&mut self, worker: usize) {
        self.idle.retain(|&idle| idle != worker);
        self.coming.retain(|&coming| coming != worker);
    }

    /// Whether enough workers but the first are free for all queries that wait.
    fn has_others(&self) -> bool {
        let free = self.idle.iter().chain(&self.coming).filter(|&&worker| worker != FIRST);
        self.waiting <= free.count()
    }
}

impl<S, T> QueryDesk<S, T> {
    pub(crate) fn new(wakers: Arc<Wakers>) -> Self {
        let coming = (0..wakers.workers()).collect();
        let state = Mutex::new(DeskState { coming, ..DeskState::default() });
        let (waiting, answers) = Default::default();
        let open = std::array::from_fn(|_| Mutex::default());
        Self { wakers, state, waiting, open, answers }
    }

    /// Adds queries and wakes workers for all but one of them; returns how many wait.
    pub(crate) fn push(&self, pieces: Vec<WaitingQueries>) -> usize {
        let queries: usize = pieces.iter().map(VecDeque::len).sum();
        let mut state = lock(&self.state);
        state.pieces.extend(pieces);
        state.waiting += queries;
        let waiting = state.waiting;
        self.waiting.store(waiting, Ordering::Relaxed);
        let woken = state.wake(waiting.saturating_sub(1));
        drop(state);
        self.wakers.wake(&woken);
        waiting
    }

    /// May be out of date, but never blocks.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes queries that have waited longest for a worker that has `room` for so many and none
    /// `taken`, and returns how many wait behind them, for which others should be woken. A worker
    /// that `leaves` queries to others takes none while enough of them are free.
    pub(crate) fn take(
        &self,
        worker: usize,
        leaves: bool,
        room: usize,
        taken: &mut WaitingQueries,
    ) -> usize {
        let mut state = lock(&self.state);
        state.comes(worker);
        if leaves && state.has_others() {
            let work = state.waiting.saturating_sub(state.coming.len());
            let woken = state.wake(work);
            drop(state);
            self.wakers.wake(&woken);
            return 0;
        }
        let share = state.waiting / (OF_SHARE * self.wakers.workers());
        let most = room.min(share.clamp(1, AT_ONCE));
        let mut piece = state.pieces.pop_front().unwrap_or_default();
        if piece.len() > most {
            taken.extend(piece.drain(..most));
            state.pieces.push_front(std::mem::take(&mut piece));
        } else {
            std::mem::swap(taken, &mut piece);
        }
        state.waiting -= taken.len();
        let waiting = state.waiting;
        self.waiting.store(waiting, Ordering::Relaxed);
        let woken = state.wake(waiting);
        drop(state);
        self.wakers.wake(&woken);
        waiting
    }

    /// Counts a worker among those that sleep, and returns true, unless queries wait for it.
    pub(crate) fn sleep(&self, worker: usize, leaves: bool) -> bool {
        let mut state = lock(&self.state);
        state.comes(worker);
        let may = state.waiting == 0 || leaves && state.has_others();
        if may {
            // A worker that leaves queries to others is woken after them.
            let at = if leaves { 0 } else { state.idle.len() };
            state.idle.insert(at, worker);
        }
        may
    }

    /// Counts a worker no more among those that sleep; it is going to look for a query.
    pub(crate) fn awake(&self, worker: usize) {
        let mut state = lock(&self.state);
        if state.idle.contains(&worker) {
            state.comes(worker);
            state.coming.push(worker);
        }
    }

    /// Keeps a query until its answer is there.
    pub(crate) fn begin(&self, number: u64, taken: TakenQuery<S>) {
        self.table(number).insert(number, taken);
    }

    pub(crate) fn end(&self, number: u64) -> Option<TakenQuery<S>> {
        self.table(number).remove(&number)
    }

    /// Where a query is kept.
    fn table(&self, number: u64) -> MutexGuard<'_, HashMap<u64, TakenQuery<S>>> {
        lock(&self.open[number as usize % TABLES])
    }

    /// Hands answers, with their batches, to the first worker.
    pub(crate) fn hand_out(&self, worker: usize, done: &mut Vec<(u64, T)>) {
        if done.is_empty() {
            return;
        }
        let mut answers = lock(&self.answers);
        let wakes = answers.is_empty() && worker != FIRST;
        answers.append(done);
        drop(answers);
        if wakes {
            self.wakers.wake(&[FIRST]);
        }
    }

    pub(crate) fn answers(&self) -> Vec<(u64, T)> {
        std::mem::take(&mut lock(&self.answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::generations::generation::Generation;
    use crate::index::testing::{build, collection};
    use crate::query::reading::lines::Query;
    use crate::query::snapshot::{Scoring, Snapshot};

    fn query() -> Request {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(1, 3, 3), &[]);
        let generation = Generation::open(folder.path()).unwrap();
        let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
        let query = Ok(Query::new("q", "mill"));
        let (listing, waiter, came) = (None, None, Instant::now());
        NumberedQuery { place: 0, number: 0, query, snapshot, listing, came, waiter }.into()
    }

    fn piece(batch: u64, queries: usize) -> WaitingQueries {
        std::iter::repeat_with(|| (batch, query())).take(queries).collect()
    }

    fn desk(workers: usize, queries: usize) -> QueryDesk<(), ()> {
        let desk = QueryDesk::new(Wakers::new(workers));
        desk.push(vec![piece(0, queries)]);
        desk
    }

    #[test]
    fn the_first_worker_takes_what_others_are_not_free_for() {
        let desk = desk(3, 4);
        let take = |worker, leaves| {
            let mut taken = VecDeque::new();
            let waiting = desk.take(worker, leaves, 1, &mut taken);
            taken.pop_front().map(|_| waiting)
        };
        // Two others have not begun, and two of the four are for them.
        assert_eq!(take(FIRST, true), Some(3));
        assert_eq!(take(FIRST, true), Some(2));
        assert_eq!(take(FIRST, true), None);
        assert!(desk.sleep(FIRST, true), "others come for what waits");
        assert_eq!(take(1, false), Some(1));
        // One other is left, for the last.
        assert_eq!(take(FIRST, true), None);
        assert_eq!(take(2, false), Some(0));
        desk.push(vec![piece(1, 1)]);
        assert!(!desk.sleep(FIRST, true), "all others are busy");
        assert_eq!(take(FIRST, true), Some(0));
        // A worker that sleeps is free, until it has looked.
        assert!(desk.sleep(1, false));
        desk.push(vec![piece(2, 1)]);
        assert_eq!(take(FIRST, true), None);
        desk.awake(1);
        assert_eq!(take(FIRST, true), None);
        assert!(!desk.sleep(1, false), "a query waits for it");
        assert_eq!(take(FIRST, true), Some(0));
    }

    #[test]
    fn one_worker_takes_all() {
        let desk = desk(1, 2);
        let take = || {
            let mut taken = VecDeque::new();
            (desk.take(FIRST, true, 2, &mut taken), taken.len())
        };
        assert_eq!([take(), take()], [(1, 1), (0, 1)]);
        assert!(desk.sleep(FIRST, true));
        assert_eq!(take(), (0, 0));
    }

    #[test]
    fn a_worker_with_room_takes_some_of_many() {
        let desk = desk(4, 100);
        let take = |room| {
            let mut taken = VecDeque::new();
            let waiting = desk.take(1, false, room, &mut taken);
            let batches: Vec<u64> = taken.iter().map(|(batch, _)| *batch).collect();
            (waiting, batches)
        };
        assert_eq!(take(5), (95, vec![0; 5]));
        assert_eq!(take(50), (95 - 95 / 8, vec![0; 95 / 8]));
        // What is left of a piece is taken before the next one, and none is cut without need.
        desk.push(vec![piece(1, AT_ONCE), piece(2, 1000)]);
        let mut left = 95 - 95 / 8;
        while left > AT_ONCE {
            assert_eq!(take(50).1, vec![0; AT_ONCE]);
            left -= AT_ONCE;
        }
        assert_eq!(take(50).1, vec![0; left]);
        assert_eq!(take(50), (1000, vec![1; AT_ONCE]));
        assert_eq!(take(50), (1000 - AT_ONCE, vec![2; AT_ONCE]));
    }
}

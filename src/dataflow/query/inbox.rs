//! Queries on their way from those who ask to the operator that makes batches. It takes all that
//! wait at once, so that an asker seldom meets it.

#![warn(missing_docs)]

use super::waiter::Waiter;
use crate::crew::{lock, spawn};
use crate::query::reading::lines::{Query, Refused};
use std::collections::VecDeque;
use std::io;
use std::mem::{swap, take};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;
use timely::scheduling::SyncActivator;

/// A query, a line that is none, or the failure of the stream.
pub(crate) type Received = io::Result<Result<Query, Refused>>;

/// A query takes a place for each this many bytes, and one at least.
const PLACE_BYTES: usize = 4 << 10;

/// What was asked.
pub(super) struct QueryArrival {
    pub(super) came: Instant,
    pub(super) received: Received,
    pub(super) waiter: Option<Arc<dyn Waiter>>,
    places: usize,
}

impl QueryArrival {
    fn new(received: Received, waiter: Option<Arc<dyn Waiter>>) -> Self {
        let bytes = if let Ok(Ok(query)) = &received { query.bytes() } else { 0 };
        Self { came: Instant::now(), received, waiter, places: 1 + bytes / PLACE_BYTES }
    }
}

#[derive(Default)]
struct InboxState {
    arrivals: VecDeque<QueryArrival>,
    /// Places of all that wait, here and in the [`QueryArrivals`].
    used: usize,
    /// Nobody asks any more.
    closed: bool,
    /// Nobody takes any more.
    gone: bool,
}

/// The queries that wait.
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    /// Told when there is room, or will be none.
    roomy: Condvar,
    /// In places.
    room: usize,
    waker: Mutex<Option<SyncActivator>>,
    /// The operator has looked and found nothing since it was woken: it is not woken for each query
    /// of many.
    is_awaited: AtomicBool,
}

impl Inbox {
    /// Sets what wakes the operator.
    pub(super) fn set_waker(&self, waker: SyncActivator) {
        *lock(&self.waker) = Some(waker);
    }

    /// Puts a query in, which is always done.
    fn put(&self, mut state: MutexGuard<'_, InboxState>, asked: QueryArrival) -> bool {
        state.used += asked.places;
        state.arrivals.push_back(asked);
        drop(state);
        self.ring();
        true
    }

    /// Wakes the operator if it waits, after something was put in.
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.is_awaited.swap(false, Ordering::SeqCst)
            && let Some(waker) = &*lock(&self.waker)
        {
            // It fails when the worker has ended, which needs no waking.
            _ = waker.activate();
        }
    }
}

/// Puts queries to a query job; the job ends when they are answered and this is dropped.
pub struct Asker(Arc<Inbox>);

impl Asker {
    /// For a job in which `room` queries may wait before [`ask`](Self::ask) does.
    pub(crate) fn new(room: usize) -> (Self, Arc<Inbox>) {
        let (state, roomy, waker) = Default::default();
        let inbox = Inbox { state, roomy, room, waker, is_awaited: AtomicBool::new(true) };
        let inbox = Arc::new(inbox);
        (Self(inbox.clone()), inbox)
    }

    /// Asks; waits while too many queries wait. Returns whether the job still takes queries.
    pub fn ask(&self, received: Received) -> bool {
        let asked = QueryArrival::new(received, None);
        let Inbox { state, roomy, room, .. } = &*self.0;
        let mut state = lock(state);
        while !state.gone && state.used > 0 && state.used + asked.places > *room {
            state = roomy.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        !state.gone && self.0.put(state, asked)
    }

    /// Asks for who waits, and never waits itself. Returns whether there was room, and the job
    /// still takes queries; else the waiter is told nothing.
    #[doc(hidden)]
    pub fn try_ask(&self, query: Query, waiter: Arc<dyn Waiter>) -> bool {
        let asked = QueryArrival::new(Ok(Ok(query)), Some(waiter));
        let state = lock(&self.0.state);
        // Where the room ends behind a long query, the next one finds none.
        !state.gone && state.used < self.0.room && self.0.put(state, asked)
    }

    /// Starts a thread that asks all queries of a stream. It may stay in a read for ever; a process
    /// may end without it.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn ask_in_background(
        self,
        queries: impl IntoIterator<Item = Received, IntoIter: Send> + Send + 'static,
    ) -> io::Result<()> {
        let ask = move || {
            for query in queries {
                if !self.ask(query) {
                    return;
                }
            }
        };
        spawn("queries", ask).map(drop)
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        lock(&self.0.state).closed = true;
        self.0.ring();
    }
}

/// What the operator finds.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum NextArrival {
    Came(QueryArrival),
    /// There may be more later.
    None,
    End,
}

/// Of the operator: what it has taken out of the inbox.
pub(super) struct QueryArrivals {
    inbox: Arc<Inbox>,
    here: VecDeque<QueryArrival>,
    /// Places of what left since room was given back.
    left: usize,
}

impl QueryArrivals {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Self {
        Self { inbox: inbox.clone(), here: VecDeque::new(), left: 0 }
    }

    pub(super) fn next(&mut self) -> NextArrival {
        if self.here.is_empty() {
            let mut state = lock(&self.inbox.state);
            swap(&mut state.arrivals, &mut self.here);
            if state.closed && self.here.is_empty() {
                return NextArrival::End;
            }
        }
        let Some(next) = self.here.pop_front() else { return NextArrival::None };
        self.left += next.places;
        NextArrival::Came(next)
    }

    /// The next query wakes the operator, unless it has come already.
    pub(super) fn ring_for_next(&self) {
        self.inbox.is_awaited.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Gives back the room of what was taken.
    pub(super) fn give_room(&mut self) {
        if self.left > 0 {
            lock(&self.inbox.state).used -= take(&mut self.left);
            self.inbox.roomy.notify_all();
        }
    }
}

impl Drop for QueryArrivals {
    fn drop(&mut self) {
        let mut state = lock(&self.inbox.state);
        state.gone = true;
        let dropped = take(&mut state.arrivals);
        drop(state);
        drop(dropped);
        self.inbox.roomy.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::query::waiter::Outcome;

    #[derive(Debug)]
    struct Nobody;

    impl Waiter for Nobody {
        fn told(&self, _: Outcome) {}

        fn is_gone(&self) -> bool {
            false
        }
    }

    fn query(bytes: usize) -> Query {
        Query::new("q", "x".repeat(bytes))
    }

    fn came(arrivals: &mut QueryArrivals) -> Option<usize> {
        match arrivals.next() {
            NextArrival::Came(QueryArrival { received, .. }) => {
                Some(received.unwrap().unwrap().text.len())
            }
            NextArrival::None => None,
            NextArrival::End => Some(usize::MAX),
        }
    }

    #[test]
    fn room_is_given_back_when_queries_are_taken() {
        let (asker, inbox) = Asker::new(3);
        let mut arrivals = QueryArrivals::new(&inbox);
        let ask = |bytes| asker.try_ask(query(bytes), Arc::new(Nobody));
        // The second one takes three places, of two that are left.
        assert_eq!([1, 2 * PLACE_BYTES, 3].map(ask), [true, true, false]);
        assert_eq!(came(&mut arrivals), Some(1));
        arrivals.give_room();
        assert!(!ask(3), "three places are taken by a query that waits");
        assert_eq!([came(&mut arrivals), came(&mut arrivals)], [Some(2 * PLACE_BYTES), None]);
        arrivals.give_room();
        assert!(ask(3));
        drop(asker);
        assert_eq!([came(&mut arrivals), came(&mut arrivals)], [Some(3), Some(usize::MAX)]);
    }

    #[test]
    fn an_asker_waits_for_room_and_for_no_longer_than_there_is_a_job() {
        let (asker, inbox) = Asker::new(2);
        let mut arrivals = QueryArrivals::new(&inbox);
        let asking = std::thread::spawn(move || {
            // A query that is larger than the room is taken alone.
            let sizes = [4 * PLACE_BYTES, 1, 1, 1];
            (asker.ask(Ok(Ok(query(sizes[0]))))
                && sizes[1..].iter().all(|&bytes| asker.ask(Ok(Ok(query(bytes))))))
            .then_some(asker)
        });
        let mut taken = 0;
        while taken < 4 {
            taken += usize::from(came(&mut arrivals).is_some());
            let state = lock(&inbox.state);
            assert!(state.arrivals.len() + arrivals.here.len() <= 2);
            drop(state);
            arrivals.give_room();
        }
        let asker = asking.join().unwrap().expect("all were taken");
        assert!(asker.ask(Ok(Ok(query(1)))) && asker.ask(Ok(Ok(query(1)))));
        let waits = std::thread::spawn(move || asker.ask(Ok(Ok(query(1)))));
        drop(arrivals);
        assert!(!waits.join().unwrap());
    }
}

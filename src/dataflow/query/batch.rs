//! Groups the stream of queries into batches: by number or by delay, whichever comes first.
//!
//! - Out, on worker 0: the queries of batch b at time b, each with the snapshot that the batch is
//!   answered from. Batches are numbered from 0.
//! - An [`Asker`](super::inbox::Asker) puts queries into the inbox and wakes this operator, so that
//!   no worker waits for input. While a batch is under way this looks now and then instead, and the
//!   asker need not wake it for a few queries each.
//! - At most as many queries as `MOST_BATCHES` full batches for each worker have are unanswered, or
//!   as many as were asked for, or as take [`MOST_BYTES`]; then queries wait in the inbox, which
//!   is bounded, then in the asker. A batch closes early at this many bytes.
//! - A query of too many terms is refused here: it would take too much memory in every engine.
//! - The stream ends when all are answered: until then the workers help each other. Where the
//!   source of queries fails, what came before is answered too.

#![warn(missing_docs)]

use super::context::Context;
use super::inbox::{Inbox, NextArrival, QueryArrival, QueryArrivals};
use super::local::Local;
use super::waiter::{Outcome, Waiter};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::index::error::IndexError;
use crate::query::filter::FilterError;
use crate::query::listing::Listing;
use crate::query::plan::check;
use crate::query::reading::asked::MOST_LINE_BYTES;
use crate::query::reading::lines::{Query, Refused};
use crate::query::snapshot::Snapshot;
use crate::shown::chain;
use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// A query, or a line that is none, and its places.
#[derive(Clone, Debug)]
pub(crate) struct NumberedQuery {
    /// In the batch, from 0.
    pub(crate) place: u32,
    /// In the stream, from 0.
    pub(crate) number: u64,
    pub(crate) query: Result<Query, Refused>,
    pub(crate) snapshot: Arc<Snapshot>,
    /// How its hits are listed, by the columns of that.
    pub(crate) listing: Option<Arc<Listing>>,
    pub(crate) came: Instant,
    /// Has the answer as soon as it is laid out.
    pub(crate) waiter: Option<Arc<dyn Waiter>>,
}

/// When a query came, what it is once it was checked, and who waits for it.
type CheckedQuery = (Instant, Result<Query, Refused>, Option<Arc<dyn Waiter>>);

/// Full batches of one worker that are under way.
const MOST_BATCHES: usize = 4;
/// Bytes of the queries of a batch, and of all that are unanswered, except for the last of them.
const MOST_BYTES: usize = (256 << 20) - MOST_LINE_BYTES;
/// Queries of batches that are sent on before this worker does what else it has to, which may take
/// as long as all workers need for some hundred queries.
const AT_ONCE: u64 = 1024;
/// How long to wait for answers before looking again.
const PAUSE: Duration = Duration::from_micros(200);

/// The queries that came and are not written.
struct Unanswered {
    context: Arc<Context>,
    /// The batch that grows, each query with when it came, and when the first of them was taken.
    batch: Vec<CheckedQuery>,
    first_came: Instant,
    batch_bytes: usize,
    /// Why the stream of queries has failed; they end there.
    failed: Option<Cause>,
    /// Queries and batches that were sent on.
    number: u64,
    batches: u64,
    /// Batches under way, each with the number of the first query behind it and its bytes.
    under_way: VecDeque<(u64, u64, usize)>,
    /// The number behind the last query that is written.
    answered: u64,
    /// Of all queries that are not written.
    bytes: usize,
    /// As many may be unanswered.
    most: u64,
}

impl Unanswered {
    fn new(context: Arc<Context>) -> Self {
        let most =
            MOST_BATCHES.saturating_mul(context.workers).saturating_mul(context.batch) as u64;
        let most = context.most_open.map_or(most, |open| most.min(open.get() as u64));
        Self {
            context,
            batch: Vec::new(),
            first_came: Instant::now(),
            batch_bytes: 0,
            failed: None,
            number: 0,
            batches: 0,
            under_way: VecDeque::new(),
            answered: 0,
            bytes: 0,
            most,
        }
    }

    /// Forgets the batches that are written, and returns how many queries the next may have; none
    /// while too many are unanswered.
    fn room(&mut self, written: &ProbeHandle<u64>) -> Option<usize> {
        while let Some(&(batch, end, freed)) = self.under_way.front()
            && !written.less_equal(&batch)
        {
            self.answered = end;
            self.bytes -= freed;
            self.under_way.pop_front();
        }
        let unanswered = self.number - self.answered;
        let waits = unanswered >= self.most || self.batch.is_empty() && self.bytes >= MOST_BYTES;
        (!waits).then(|| self.context.batch.min((self.most - unanswered) as usize))
    }

    /// Whether so many queries are under way that a new one may wait for [`PAUSE`].
    fn is_busy(&self) -> bool {
        self.number - self.answered >= self.context.batch as u64
    }

    /// Takes what has come, up to a batch of `room` queries; returns whether no more comes.
    fn fill(&mut self, arrivals: &mut QueryArrivals, room: usize) -> bool {
        let mut ended = self.failed.is_some();
        let mut rings = self.is_busy();
        let snapshot = self.context.snapshot();
        while !self.is_full(room) && !ended && self.failed.is_none() {
            match arrivals.next() {
                NextArrival::Came(QueryArrival { came, received: Ok(query), waiter, .. }) => {
                    self.take(&snapshot, came, query, waiter);
                }
                NextArrival::Came(QueryArrival { received: Err(error), .. }) => {
                    self.failed = Some(error.into());
                    ended = true;
                }
                NextArrival::None if rings => break,
                NextArrival::None => {
                    // What came before the bell was set does not ring it: look again.
                    arrivals.ring_for_next();
                    rings = true;
                }
                NextArrival::End => ended = true,
            }
        }
        arrivals.give_room();
        ended || self.failed.is_some()
    }

    fn is_full(&self, room: usize) -> bool {
        self.batch.len() >= room || self.bytes >= MOST_BYTES
    }

    fn take(
        &mut self,
        snapshot: &Arc<Snapshot>,
        came: Instant,
        query: Result<Query, Refused>,
        waiter: Option<Arc<dyn Waiter>>,
    ) {
        if self.batch.is_empty() {
            self.first_came = Instant::now();
        }
        let place = self.number + self.batch.len() as u64;
        let query = match query.map(|query| self.context.checked(snapshot, query, place)) {
            Ok(Ok(query)) => query,
            // Waiters get the error, and the service goes on.
            Ok(Err(error)) => {
                match waiter {
                    Some(waiter) => waiter.told(Outcome::Failed(chain(&error))),
                    None => self.failed = Some(error.into()),
                }
                return;
            }
            Err(refused) => Err(refused),
        };
        let bytes = query.as_ref().map_or(0, Query::bytes);
        self.bytes += bytes;
        self.batch_bytes += bytes;
        if let Err(refused) = &query {
            self.context.refuse(refused);
        }
        self.batch.push((came, query, waiter));
    }

    /// The queries of the batch, which goes on its way.
    fn send(&mut self) -> impl Iterator<Item = Local<NumberedQuery>> {
        if self.batches == 0 {
            self.context.tally.answering();
        }
        let whole = self.context.snapshot();
        let first = self.number;
        self.number += self.batch.len() as u64;
        self.under_way.push_back((self.batches, self.number, take(&mut self.batch_bytes)));
        self.batches += 1;
        self.context.stream.sent.store(self.batches, Ordering::Relaxed);
        (0u32..).zip(self.batch.drain(..)).map(move |(place, (came, query, waiter))| {
            let number = first + u64::from(place);
            let mut snapshot = whole.clone();
            let mut listing = None;
            let query = query.and_then(|query| {
                let settings = &whole.generation().manifest().settings;
                let refused = |why: String| query.refused(number + 1, &why);
                listing = query.listing(settings).map_err(refused)?;
                if query.filter.is_some() {
                    snapshot = whole.under(query.filter.as_ref()).map_err(|error| match error {
                        FilterError::Refused(why) => query.refused(number + 1, &why),
                        FilterError::Index(error) => query.refused(number + 1, &chain(&error)),
                    })?;
                }
                Ok(query)
            });
            Local(NumberedQuery { place, number, query, snapshot, listing, came, waiter })
        })
    }
}

/// Makes the batching operator; `written` follows the far end of the dataflow.
pub(crate) fn batch<'scope>(
    scope: Scope<'scope, u64>,
    context: &Arc<Context>,
    inbox: &Arc<Inbox>,
    written: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Local<NumberedQuery>> {
    let context = context.clone();
    source(scope, "Batch", move |capability, info| {
        let guard = OperatorGuard::new(&context.control, "Batch", scope.index());
        let activator = scope.activator_for(info.address.clone());
        let mut open = None;
        if scope.index() == 0 {
            let waker = scope.worker().sync_activator_for(info.address.to_vec());
            inbox.set_waker(waker);
            open = Some((capability, QueryArrivals::new(inbox)));
        }
        let delay = context.delay;
        let mut unanswered = Unanswered::new(context);
        move |output| {
            let Some((cap, arrivals)) = open.as_mut() else { return };
            let Some(mut room) = unanswered.room(&written) else {
                return activator.activate_after(PAUSE);
            };
            let step = guard.work(|| {
                let most = unanswered.number + AT_ONCE;
                let mut ended;
                loop {
                    ended = unanswered.fill(arrivals, room);
                    if unanswered.batch.is_empty() {
                        break;
                    }
                    let waited = unanswered.first_came.elapsed();
                    if !unanswered.is_full(room) && !ended && waited < delay {
                        activator.activate_after(delay - waited);
                        break;
                    }
                    output.session(&*cap).give_iterator(unanswered.send());
                    cap.downgrade(&unanswered.batches);
                    let more = unanswered.room(&written).filter(|_| unanswered.number < most);
                    let Some(more) = more else {
                        activator.activate();
                        break;
                    };
                    room = more;
                }
                if ended && !unanswered.under_way.is_empty() || unanswered.is_busy() {
                    activator.activate_after(PAUSE);
                }
                let ends = ended && unanswered.batch.is_empty() && unanswered.under_way.is_empty();
                match unanswered.failed.take_if(|_| ends) {
                    Some(cause) => Err(cause),
                    None => Ok(ends),
                }
            });
            if step != Some(false) {
                open = None;
                unanswered.context.stream.end();
            }
        }
    })
}

impl Context {
    /// The query of this number, unless it has too many terms, or a wrong weight, operator or
    /// filter, or asks for columns that there are not; fails if columns cannot be read.
    fn checked(
        &self,
        snapshot: &Arc<Snapshot>,
        query: Query,
        number: u64,
    ) -> Result<Result<Query, Refused>, IndexError> {
        let listing = query.listing(&snapshot.generation().manifest().settings);
        let filter = query.filter.as_ref();
        let why = match filter.map(|filter| snapshot.under(Some(filter))).transpose() {
            Err(FilterError::Index(error)) => return Err(error),
            Err(FilterError::Refused(why)) => Err(format!("has a filter that {why}")),
            // What was read was checked there.
            Ok(_) => listing
                .and_then(|_| check(snapshot, self.wanted_of(&query), &query.text, query.at.0 > 0)),
        };
        Ok(match why {
            Ok(()) => Ok(query),
            Err(why) => Err(query.refused(number + 1, &why)),
        })
    }

    /// Whether a query is left unanswered when its turn comes: it has waited too long, or nobody
    /// waits for it any more.
    pub(crate) fn leaves(&self, query: &NumberedQuery) -> bool {
        self.shed.is_some_and(|most| query.came.elapsed() > most)
            || query.waiter.as_ref().is_some_and(|waiter| waiter.is_gone())
    }

    /// Counts and reports a line that is no query.
    fn refuse(&self, refused: &Refused) {
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(on_refused) = &self.hooks.on_refused {
            on_refused(refused);
        }
    }
}

//! Groups the stream of queries into batches: by number or by delay, whichever comes first.
//!
//! - Out, on worker 0: the queries of batch b at time b, each with the snapshot that the batch is
//!   answered from. Batches are numbered from 0.
//! - An [`Asker`] puts queries into a channel and wakes this operator, so that no worker waits for
//!   input.
//! - At most as many queries as `MOST_BATCHES` full batches for each worker have are unanswered, or
//!   as many as were asked for, or as take [`MOST_BYTES`]; then queries wait in the channel, which
//!   is bounded, then in the asker. A batch closes early at so many bytes.
//! - A query of too many terms is refused here: it would take too much memory in every engine.
//! - The stream ends when all are answered: until then the workers help each other. Where the
//!   source of queries fails, what came before is answered too.

#![warn(missing_docs)]

use super::context::Context;
use super::local::Local;
use crate::crew::{lock, spawn};
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::query::plan::check;
use crate::query::reading::asked::MOST_LINE_BYTES;
use crate::query::reading::lines::{Query, Refused};
use crate::query::snapshot::Snapshot;
use std::collections::VecDeque;
use std::io;
use std::iter::{once, repeat_with};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};
use timely::scheduling::SyncActivator;

/// A query, a line that is none, or the failure of the stream.
pub(crate) type Received = io::Result<Result<Query, Refused>>;

/// A query, or a line that is none, and its places.
#[derive(Clone, Debug)]
pub(crate) struct NumberedQuery {
    /// In the batch, from 0.
    pub(crate) place: u32,
    /// In the stream, from 0.
    pub(crate) number: u64,
    pub(crate) query: Result<Query, Refused>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) came: Instant,
}

/// `None` is another place of the channel for the query before it, which is long.
type ArrivedQuery = Option<(Instant, Received)>;

pub(crate) struct Inbox {
    received: Mutex<Option<Receiver<ArrivedQuery>>>,
    bell: Arc<Bell>,
}

/// Wakes the operator that has found nothing: it is not woken for each query of many.
#[derive(Default)]
struct Bell {
    waker: Mutex<Option<SyncActivator>>,
    /// The operator has looked and found nothing since it was woken.
    waits: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        if let Some(waker) = &*lock(&self.waker) {
            // It fails when the worker has ended, which needs no waking.
            _ = waker.activate();
        }
    }

    /// After something was put into the channel.
    fn ring_if_awaited(&self) {
        if self.waits.swap(false, Ordering::SeqCst) {
            self.ring();
        }
    }
}

/// Puts queries to a query job; the job ends when they are answered and this is dropped.
pub struct Asker {
    sender: Option<SyncSender<ArrivedQuery>>,
    bell: Arc<Bell>,
}

impl Asker {
    /// For a job in which `room` queries may wait before [`ask`](Self::ask) does.
    pub(crate) fn new(room: usize) -> (Self, Arc<Inbox>) {
        let (sender, receiver) = sync_channel(room);
        let bell = Arc::<Bell>::default();
        let inbox = Inbox { received: Mutex::new(Some(receiver)), bell: bell.clone() };
        (Self { sender: Some(sender), bell }, Arc::new(inbox))
    }

    /// Asks; waits while too many queries wait. Returns whether the job still takes queries.
    pub fn ask(&self, received: Received) -> bool {
        let places = match &received {
            Ok(Ok(query)) => query.bytes() / PLACE_BYTES,
            _ => 0,
        };
        let asked = Some((Instant::now(), received));
        let Some(sender) = &self.sender else { return false };
        once(asked).chain(repeat_with(|| None).take(places)).all(|one| {
            let sent = sender.send(one).is_ok();
            fence(Ordering::SeqCst);
            self.bell.ring_if_awaited();
            sent
        })
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
        self.sender = None;
        self.bell.ring();
    }
}

/// Full batches of one worker that are under way.
const MOST_BATCHES: usize = 4;
/// Bytes of the queries of a batch, and of all that are unanswered, but for the last of them.
const MOST_BYTES: usize = (256 << 20) - MOST_LINE_BYTES;
/// A query takes a place in the channel for each so many bytes.
const PLACE_BYTES: usize = 4 << 10;
/// How long to wait for answers before looking again.
const PAUSE: Duration = Duration::from_micros(200);

/// Makes the batching operator; `written` follows the far end of the dataflow.
pub(crate) fn batch<'scope>(
    scope: Scope<'scope, u64>,
    context: &Arc<Context>,
    inbox: &Inbox,
    written: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Local<NumberedQuery>> {
    let context = context.clone();
    source(scope, "Batch", move |capability, info| {
        let guard = OperatorGuard::new(&context.control, "Batch", scope.index());
        let activator = scope.activator_for(info.address.clone());
        let mut open = None;
        let bell = inbox.bell.clone();
        if scope.index() == 0 {
            let waker = scope.worker().sync_activator_for(info.address.to_vec());
            *lock(&inbox.bell.waker) = Some(waker);
            open = lock(&inbox.received).take().map(|queries| (capability, queries));
        }
        let mut batch: Vec<(Instant, Result<Query, Refused>)> = Vec::new();
        // Why the stream of queries has failed; they end there.
        let mut failed: Option<Cause> = None;
        let mut first_came = Instant::now();
        let mut number = 0u64;
        let mut batches = 0u64;
        // Batches under way, each with the number of the first query behind it and its bytes, and
        // the number behind the last query that is written.
        let mut under_way = VecDeque::<(u64, u64, usize)>::new();
        let mut answered = 0u64;
        // Of all queries that are not written, and of those of the batch that grows.
        let mut bytes = 0;
        let mut batch_bytes = 0;
        let most =
            MOST_BATCHES.saturating_mul(context.workers).saturating_mul(context.batch) as u64;
        let most = context.most_open.map_or(most, |open| most.min(open.get() as u64));
        move |output| {
            let Some((cap, queries)) = open.as_mut() else { return };
            while let Some(&(batch, end, freed)) = under_way.front()
                && !written.less_equal(&batch)
            {
                answered = end;
                bytes -= freed;
                under_way.pop_front();
            }
            if number - answered >= most || batch.is_empty() && bytes >= MOST_BYTES {
                return activator.activate_after(PAUSE);
            }
            let room = context.batch.min((most - (number - answered)) as usize);
            let step = guard.work(|| {
                let mut ended = failed.is_some();
                let mut rings = false;
                while batch.len() < room && bytes < MOST_BYTES && !ended {
                    match queries.try_recv() {
                        Ok(None) => {}
                        Ok(Some((came, Ok(query)))) => {
                            if batch.is_empty() {
                                first_came = Instant::now();
                            }
                            let place = number + batch.len() as u64;
                            let query = query.and_then(|query| context.checked(query, place));
                            let more = query.as_ref().map_or(0, Query::bytes);
                            bytes += more;
                            batch_bytes += more;
                            if let Err(refused) = &query {
                                context.refuse(refused);
                            }
                            batch.push((came, query));
                        }
                        Ok(Some((_, Err(error)))) => {
                            failed = Some(error.into());
                            ended = true;
                        }
                        Err(TryRecvError::Empty) if rings => break,
                        Err(TryRecvError::Empty) => {
                            // What came before the bell was set does not ring it: look again.
                            bell.waits.store(true, Ordering::SeqCst);
                            fence(Ordering::SeqCst);
                            rings = true;
                        }
                        Err(TryRecvError::Disconnected) => ended = true,
                    }
                }
                let waited = first_came.elapsed();
                let full = batch.len() >= room || bytes >= MOST_BYTES;
                if !batch.is_empty() && (full || ended || waited >= context.delay) {
                    if batches == 0 {
                        context.tally.answering();
                    }
                    let snapshot = context.snapshot();
                    let mut session = output.session(&*cap);
                    for (place, (came, query)) in (0u32..).zip(batch.drain(..)) {
                        let snapshot = snapshot.clone();
                        session.give(Local(NumberedQuery { place, number, query, snapshot, came }));
                        number += 1;
                    }
                    drop(session);
                    under_way.push_back((batches, number, std::mem::take(&mut batch_bytes)));
                    batches += 1;
                    cap.downgrade(&batches);
                    activator.activate();
                } else if !batch.is_empty() {
                    activator.activate_after(context.delay - waited);
                }
                if ended && !under_way.is_empty() {
                    activator.activate_after(PAUSE);
                }
                let ends = ended && batch.is_empty() && under_way.is_empty();
                match failed.take_if(|_| ends) {
                    Some(cause) => Err(cause),
                    None => Ok(ends),
                }
            });
            if step != Some(false) {
                open = None;
            }
        }
    })
}

impl Context {
    /// The query of this number, unless it has too many terms or a wrong weight.
    fn checked(&self, query: Query, number: u64) -> Result<Query, Refused> {
        match check(&self.snapshot(), &query.text) {
            Ok(()) => Ok(query),
            Err(why) => Err(query.refused(number + 1, &why)),
        }
    }

    /// Counts and reports a line that is no query.
    fn refuse(&self, refused: &Refused) {
        self.tally.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(on_refused) = &self.hooks.on_refused {
            on_refused(refused);
        }
    }
}

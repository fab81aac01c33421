//! Groups the stream of queries into batches: by number or by delay, whichever comes first.
//!
//! - Out, on worker 0: the queries of batch b at time b. Batches are numbered from 0.
//! - A thread reads lines, so that no worker waits for input, and wakes this operator.
//! - At most as many queries as `MOST_BATCHES` full batches for each worker have are unanswered;
//!   then queries wait in the channel from the thread, which is bounded, then in the pipe.
//! - The stream ends when all are answered: until then the workers help each other.

use super::control::{Cause, Guard};
use super::query::QueryJob;
use crate::dictionary::group::Local;
use crate::query::output::Query;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::{ProbeHandle, Scope, StreamVec};

/// What the reading thread sends: a query, or what went wrong.
pub type Received = Result<Query, Cause>;

/// A query and its place in its batch.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// Place in the batch, from 0.
    pub place: u32,
    /// Place in the stream, from 0; spreads queries over workers.
    pub number: u64,
    /// The query.
    pub query: Query,
}

/// Full batches of one worker that are under way.
const MOST_BATCHES: usize = 4;
/// How long to wait for answers before looking again.
const PAUSE: Duration = Duration::from_micros(200);

/// Makes the batching operator; `written` follows the far end of the dataflow.
pub fn batch<'scope>(
    scope: Scope<'scope, u64>,
    job: &Arc<QueryJob>,
    written: ProbeHandle<u64>,
) -> StreamVec<'scope, u64, Local<Numbered>> {
    let job = job.clone();
    source(scope, "Batch", move |capability, info| {
        let guard = Guard::new(&job.control, "Batch", scope.index());
        let activator = scope.activator_for(info.address.clone());
        let lock = |m: &_| -> Option<Receiver<Received>> {
            let mutex: &std::sync::Mutex<Option<Receiver<Received>>> = m;
            mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
        };
        let mut open = None;
        if scope.index() == 0 {
            let waker = scope.worker().sync_activator_for(info.address.to_vec());
            *job.waker.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(waker);
            open = lock(&job.received).map(|queries| (capability, queries));
        }
        let mut batch: Vec<Query> = Vec::new();
        let mut first_came = Instant::now();
        let (mut number, mut batches) = (0u64, 0u64);
        // Batches under way, each with the number of the first query behind it, and that behind the
        // last one that is written.
        let (mut under_way, mut answered) = (VecDeque::<(u64, u64)>::new(), 0u64);
        let most = MOST_BATCHES.saturating_mul(job.workers).saturating_mul(job.batch) as u64;
        move |output| {
            let Some((cap, queries)) = open.as_mut() else { return };
            while let Some(&(batch, end)) = under_way.front()
                && !written.less_equal(&batch)
            {
                answered = end;
                under_way.pop_front();
            }
            if number - answered >= most {
                return activator.activate_after(PAUSE);
            }
            let step = guard.work(|| {
                let mut ended = false;
                while batch.len() < job.batch {
                    match queries.try_recv() {
                        Ok(query) => {
                            if batch.is_empty() {
                                first_came = Instant::now();
                            }
                            batch.push(query?);
                        }
                        Err(TryRecvError::Empty) => break,
                        Err(TryRecvError::Disconnected) => {
                            ended = true;
                            break;
                        }
                    }
                }
                let waited = first_came.elapsed();
                let full = batch.len() == job.batch;
                if !batch.is_empty() && (full || ended || waited >= job.delay) {
                    let mut session = output.session(&*cap);
                    for (place, query) in (0u32..).zip(batch.drain(..)) {
                        session.give(Local(Numbered { place, number, query }));
                        number += 1;
                    }
                    drop(session);
                    under_way.push_back((batches, number));
                    batches += 1;
                    cap.downgrade(&batches);
                    activator.activate();
                } else if !batch.is_empty() {
                    activator.activate_after(job.delay - waited);
                }
                if ended && !under_way.is_empty() {
                    activator.activate_after(PAUSE);
                }
                Ok(ended && batch.is_empty() && under_way.is_empty())
            });
            if step != Some(false) {
                open = None;
            }
        }
    })
}

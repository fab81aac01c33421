//! Drives the engines that answer queries, whatever the engine.
//!
//! - In: queries, on the first worker of a process. Out, there too: answers, at the batch's time,
//!   in no order.
//! - Queries and answers go through memory that the workers of the process share ([`QueryDesk`]),
//!   not through channels: a channel fixes the worker of a record when it is sent, the desk when a
//!   worker is free. A worker takes a query when its engine has room, plans it, and lays its answer
//!   out when its engine has one, no matter which worker took the query.
//! - The first worker keeps a capability for every batch with open queries, so that the frontier
//!   tells when a batch is complete; the others hold none and stay until the input ends, when all
//!   is answered.
//! - Where an engine answers a query whole, which may take long, the first worker leaves queries to
//!   others that are free: it alone takes new ones in.
//! - Memory: queries that wait or are open, which are bounded.
//! - Work per activation: a millisecond's; a fifth of that on the first worker of a sole process,
//!   which has batches to make and answers to write.

use super::context::{Context, FIRST};
use super::desk::{DeskOutcome, QueryDesk, Request, TakenQuery, WaitingQueries};
use super::local::Local;
use super::waiter::Outcome;
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::cores;
use crate::dataflow::sole_time::SoleTime;
use crate::index::error::IndexError;
use crate::query::engines::engine::{Answer, Engines, Pace, QueryEngine, Wakers};
use crate::query::plan::Planner;
use crate::shown::chain;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilderSession;
use timely::dataflow::operators::generic::operator::Operator;

/// An activation begins no further query after this time.
pub(crate) const SLICE: Duration = Duration::from_millis(1);

/// Answers wait no longer than this for those of other queries that the worker has taken.
const PATIENCE: Duration = Duration::from_micros(100);

struct Answering<S, T, F> {
    context: Arc<Context>,
    desk: Arc<QueryDesk<S, T>>,
    finish: F,
    worker: usize,
    /// Leaves queries to other workers that are free.
    leaves: bool,
    planner: Planner,
    engine: Box<dyn QueryEngine>,
    /// Queries for which it has room, each with its batch.
    taken: WaitingQueries,
    answers: Vec<Answer>,
    /// What is ready to be handed out, with its batch.
    done: Vec<(u64, T)>,
    /// When that was done last.
    handed_out: Instant,
}

/// Answers queries. `finish` makes the output of an answer.
pub(crate) fn answer<'scope, D, S, T>(
    queries: StreamVec<'scope, u64, Local<D>>,
    context: &Arc<Context>,
    engines: &dyn Engines,
    wakers: &Wakers,
    desk: &Arc<QueryDesk<S, T>>,
    finish: impl Fn(&Context, TakenQuery<S>, Option<Answer>) -> Result<DeskOutcome<S, T>, Cause>
    + 'static,
) -> StreamVec<'scope, u64, Local<T>>
where
    D: Into<Request> + 'static,
    S: Default + Send + 'static,
    T: Send + 'static,
{
    let context = context.clone();
    let desk = desk.clone();
    let scope = queries.scope();
    let worker = scope.index() % context.workers;
    queries.unary(Pipeline, "Answer", move |_, info| {
        let guard = OperatorGuard::new(&context.control, "Answer", scope.index());
        let activator = scope.activator_for(info.address.clone());
        let waker = scope.worker().sync_activator_for(info.address.to_vec());
        // It fails when the worker has ended, which needs no waking.
        wakers.set(worker, move || _ = waker.activate());
        if engines.wants_cores() {
            cores::bind(worker, context.workers);
        }
        let engine = guard.work(|| Ok(engines.engine(worker, &context.snapshot())?));
        let leaves = worker == FIRST && engines.answers_whole();
        // Messages to other processes cost less if more go together.
        let is_alone = context.shard.processes == 1;
        let slice = if worker == FIRST && is_alone { SLICE / 5 } else { SLICE };
        // Without its engine the job has failed, and no query is answered.
        let mut answering = engine.map(|engine| {
            let (taken, answers, done) = Default::default();
            Answering {
                context,
                desk,
                finish,
                worker,
                leaves,
                planner: Planner::default(),
                engine,
                taken,
                answers,
                done,
                handed_out: Instant::now(),
            }
        });
        // The unanswered queries of each batch.
        let mut open: BTreeMap<u64, (Capability<u64>, usize)> = BTreeMap::new();
        // A worker that begins looks for queries.
        let mut asleep = false;
        move |input, output| {
            let Some(answering) = answering.as_mut() else { return };
            let mut pieces = Vec::new();
            input.for_each(|cap, data| {
                let batch = *cap.time();
                open.entry(batch).or_insert_with(|| (cap.retain(0), 0)).1 += data.len();
                pieces.push(data.drain(..).map(|Local(query)| (batch, query.into())).collect());
            });
            if !pieces.is_empty() {
                let waiting = answering.desk.push(pieces);
                answering.engine.waiting(waiting);
            }
            if std::mem::take(&mut asleep) {
                answering.desk.awake(worker);
            }
            let start = Instant::now();
            loop {
                let Some(pace) = guard.work(|| answering.advance(start, slice)) else { return };
                if worker == FIRST {
                    answering.send(&mut open, output);
                }
                match pace {
                    Pace::Busy if start.elapsed() > slice => return activator.activate(),
                    Pace::Busy => {}
                    Pace::Soon => return activator.activate(),
                    Pace::Full => return,
                    Pace::Idle if answering.desk.sleep(worker, answering.leaves) => {
                        asleep = true;
                        return;
                    }
                    Pace::Idle if start.elapsed() > slice => return activator.activate(),
                    Pace::Idle => {}
                }
            }
        }
    })
}

impl<S, T, F> Answering<S, T, F>
where
    S: Default,
    F: Fn(&Context, TakenQuery<S>, Option<Answer>) -> Result<DeskOutcome<S, T>, Cause>,
{
    /// Takes queries if there is room for some, and lets the engine go on.
    fn advance(&mut self, start: Instant, slice: Duration) -> Result<Pace, Cause> {
        while self.has_some() && self.engine.room() {
            if self.taken.is_empty() {
                let room = self.engine.takes();
                let waiting = self.desk.take(self.worker, self.leaves, room, &mut self.taken);
                self.engine.waiting(waiting);
            }
            let Some((batch, asked)) = self.taken.pop_front() else { break };
            self.begin(batch, asked)?;
            if start.elapsed() > slice {
                break;
            }
        }
        self.engine.let_go();
        let pace = match self.engine.advance() {
            Ok(pace) => pace,
            Err(error) => {
                let failed = self.engine.failed().and_then(|n| Some((n, self.desk.end(n)?)));
                let Some((number, taken)) = failed else { return Err(error.into()) };
                self.fail(number, taken, error)?;
                Pace::Busy
            }
        };
        let mut answers = std::mem::take(&mut self.answers);
        let mut again = false;
        self.engine.take(&mut answers);
        for answer in answers.drain(..) {
            let number = answer.number;
            let taken = self.desk.end(number).ok_or("an engine has answered what was not asked")?;
            again |= self.finish(number, taken, Some(answer))?;
        }
        self.answers = answers;
        // To hand out takes a lock that all want, and may wake the first worker.
        if self.taken.is_empty() || self.handed_out.elapsed() > PATIENCE {
            self.desk.hand_out(self.worker, &mut self.done);
            self.handed_out = Instant::now();
        }
        // What waits and has room is taken before this worker looks elsewhere.
        let more = pace == Pace::Soon && self.has_some() && self.engine.room();
        Ok(if again || more || !self.taken.is_empty() { Pace::Busy } else { pace })
    }

    /// Sends what all workers have handed out; `open` are the unanswered queries of each batch.
    fn send(
        &self,
        open: &mut BTreeMap<u64, (Capability<u64>, usize)>,
        output: &mut OutputBuilderSession<'_, u64, CapacityContainerBuilder<Vec<Local<T>>>>,
    ) where
        T: 'static,
    {
        let mut answers = self.desk.answers().into_iter().peekable();
        while let Some(&(batch, _)) = answers.peek() {
            let of_batch = std::iter::from_fn(|| answers.next_if(|of| of.0 == batch));
            let answered = of_batch.map(|(_, answered)| Local(answered));
            let Some((cap, left)) = open.get_mut(&batch) else {
                answered.for_each(drop);
                continue;
            };
            output.session(&*cap).give_iterator(answered.inspect(|_| *left -= 1));
            if *left == 0 {
                open.remove(&batch);
            }
        }
    }

    /// Whether there is a query to begin.
    fn has_some(&self) -> bool {
        !self.taken.is_empty() || self.desk.has_waiting()
    }

    /// Plans and submits a query.
    fn begin(&mut self, batch: u64, asked: Request) -> Result<(), Cause> {
        let began = Instant::now();
        let before = S::default();
        let (number, plan, asked) = match asked {
            Request::Shard(mut request) => {
                let plan = request.plan(&self.context, &mut self.planner)?;
                (request.question.number, plan, Some(Request::Shard(request)))
            }
            Request::Text(numbered) => match &numbered.query {
                Ok(_) if self.context.leaves(&numbered) => {
                    let number = numbered.number;
                    let asked = Some(Request::Text(numbered));
                    return self.leave(number, TakenQuery { batch, asked, before, began });
                }
                Ok(query) => {
                    let wanted = self.context.wanted_of(query);
                    let plan = self.planner.plan(&numbered.snapshot, wanted, &query.text);
                    let candidates = query.candidates.clone();
                    let listing = numbered.listing.clone();
                    let (number, asked) = (numbered.number, Some(Request::Text(numbered)));
                    match plan {
                        Ok(mut plan) => {
                            plan.give(candidates);
                            plan.list(listing);
                            (number, plan, asked)
                        }
                        Err(error) => {
                            let taken = TakenQuery { batch, asked, before, began };
                            return self.fail(number, taken, error);
                        }
                    }
                }
                Err(_) => {
                    let number = numbered.number;
                    let asked = Some(Request::Text(numbered));
                    self.finish(number, TakenQuery { batch, asked, before, began }, None)?;
                    return Ok(());
                }
            },
        };
        let came = match &asked {
            Some(Request::Text(numbered)) => numbered.came,
            _ => began,
        };
        self.desk.begin(number, TakenQuery { batch, asked, before, began });
        self.engine.submit_of(number, plan, came);
        Ok(())
    }

    /// Leaves a query unanswered.
    fn leave(&mut self, number: u64, taken: TakenQuery<S>) -> Result<(), Cause> {
        let late = Answer { number, known: true, late: true, ..Answer::default() };
        self.finish(number, taken, Some(late)).map(drop)
    }

    /// Tells who waits for a query why it has no answer; without any the job fails.
    fn fail(&mut self, number: u64, taken: TakenQuery<S>, error: IndexError) -> Result<(), Cause> {
        let Some(waiter) = taken.waiter() else { return Err(error.into()) };
        waiter.told(Outcome::Failed(chain(&error)));
        self.leave(number, taken)
    }

    /// Hands an answer out, or asks the engine again; returns whether it did that.
    fn finish(
        &mut self,
        number: u64,
        taken: TakenQuery<S>,
        answer: Option<Answer>,
    ) -> Result<bool, Cause> {
        let batch = taken.batch;
        match (self.finish)(&self.context, taken, answer)? {
            DeskOutcome::Out(out) => {
                self.done.push((batch, out));
                Ok(false)
            }
            DeskOutcome::Again(again) => {
                let (taken, plan) = *again;
                self.desk.begin(number, taken);
                self.engine.submit(number, plan);
                Ok(true)
            }
        }
    }
}

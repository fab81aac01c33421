//! Joins the operators of the query job.

pub(crate) mod answer;
#[cfg(feature = "gpu")]
pub(crate) mod answered_by;
pub(crate) mod ask;
pub(crate) mod batch;
pub(crate) mod collect;
pub(crate) mod context;
pub(crate) mod desk;
pub(crate) mod follower;
pub(crate) mod gather;
pub(crate) mod lay_out;
pub(crate) mod local;
pub(crate) mod look_up;
pub(crate) mod messages;
#[cfg(test)]
#[path = "query/tests/operators.rs"]
mod operators;
pub(crate) mod service;
pub(crate) mod tell;
#[cfg(test)]
mod tests;
pub(crate) mod waiter;
pub(crate) mod weigh;

use crate::dataflow::query::answer::answer;
use crate::dataflow::query::ask::ask;
use crate::dataflow::query::batch::{Inbox, batch};
use crate::dataflow::query::collect::{AnswerWriter, collect};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::desk::QueryDesk;
use crate::dataflow::query::gather::gather;
use crate::dataflow::query::lay_out::LaidOutAnswer;
use crate::dataflow::query::look_up::{PlansByNumber, look_up};
use crate::dataflow::query::messages::ShardHits;
use crate::dataflow::query::tell::{FirstStage, tell};
use crate::dataflow::query::weigh::weigh;
use crate::query::engines::engine::{Engines, Wakers};
use std::sync::Arc;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::worker::Worker;

/// What the operators of a process share beside their streams.
pub(super) struct Wiring {
    pub(super) inbox: Arc<Inbox>,
    pub(super) writer: AnswerWriter,
    pub(super) engines: Box<dyn Engines>,
    pub(super) wakers: Arc<Wakers>,
    /// The queries of a process that has all of the index.
    pub(super) whole: Arc<QueryDesk<(), LaidOutAnswer>>,
    /// The queries of a process that has a shard.
    pub(super) shards: Arc<QueryDesk<Option<FirstStage>, ShardHits>>,
    /// Plans of a shard that wait for the numbers of the others.
    pub(super) planned: Arc<PlansByNumber>,
}

/// Joins the operators on one worker. In one process, whatever the engine:
///
/// ```text
/// batch -> answer -> (exchange) -> collect
///             |
///     desk and engines, which the workers of the process share
/// ```
///
/// In several, where three exchanges cross processes:
///
/// ```text
/// batch -> ask -> (exchange) -> look_up -> (exchange) -> weigh -> answer -> tell -> (exchange)
///      `---------------------------------------------------> gather -> collect <------'
/// ```
pub(super) fn assemble(context: &Arc<Context>, wiring: &Arc<Wiring>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("query", |scope| {
        let written = ProbeHandle::new();
        let queries = batch(scope, context, &wiring.inbox, written.clone());
        let engines = &*wiring.engines;
        let wakers = &*wiring.wakers;
        let answered = if context.shard.processes == 1 {
            answer(queries, context, engines, wakers, &wiring.whole, lay_out::answer)
        } else {
            let asked = ask(queries.clone(), context);
            let counted = look_up(asked, context, &wiring.planned);
            let planned = weigh(counted, context, &wiring.planned);
            let found = answer(planned, context, engines, wakers, &wiring.shards, tell::answer);
            gather(queries, tell(found), context)
        };
        collect(answered, context, &wiring.writer).probe_with(&written);
    });
}

//! Joins the operators of the query job.

pub(crate) mod answer;
#[cfg(feature = "gpu")]
pub(crate) mod answered_by;
pub(crate) mod batch;
pub(crate) mod collect;
pub(crate) mod context;
pub(crate) mod desk;
pub(crate) mod follower;
pub(crate) mod inbox;
pub(crate) mod lay_out;
pub(crate) mod local;
#[cfg(test)]
#[path = "query/tests/operators.rs"]
mod operators;
pub(crate) mod service;
pub(crate) mod shards;
#[cfg(test)]
mod tests;
pub(crate) mod waiter;

use crate::dataflow::query::answer::answer;
use crate::dataflow::query::batch::batch;
use crate::dataflow::query::collect::{AnswerWriter, collect};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::desk::QueryDesk;
use crate::dataflow::query::inbox::Inbox;
use crate::dataflow::query::lay_out::LaidOutAnswer;
use crate::dataflow::query::shards::follow::{Following, follow};
use crate::dataflow::query::shards::{ShardWiring, answer_together};
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
    /// Of processes that have a shard each.
    pub(super) shards: ShardWiring,
    /// If these follow their index.
    pub(super) following: Option<Arc<Following>>,
}

/// Joins the operators on one worker. In one process, whatever the engine:
///
/// ```text
/// batch -> answer -> (exchange) -> collect
///             |
///     desk and engines, which the workers of the process share
/// ```
///
/// In several: [`shards`].
pub(super) fn assemble(context: &Arc<Context>, wiring: &Arc<Wiring>, worker: &mut Worker) {
    let written = ProbeHandle::new();
    if let Some(following) = &wiring.following {
        follow(context, following, written.clone(), worker);
    }
    worker.dataflow_named::<u64, _, _>("query", |scope| {
        let queries = batch(scope, context, &wiring.inbox, written.clone());
        let engines = &*wiring.engines;
        let wakers = &*wiring.wakers;
        let answered = if context.shard.processes == 1 {
            answer(queries, context, engines, wakers, &wiring.whole, lay_out::answer)
        } else {
            answer_together(queries, context, engines, &wiring.shards)
        };
        collect(answered, context, &wiring.writer).probe_with(&written);
    });
}

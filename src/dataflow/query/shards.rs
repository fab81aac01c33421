//! The operators of queries that several processes answer, each from its shard.
//!
//! ```text
//!            .-------------------------------------------------------------------.
//! post ==> ask -> (unknown terms) ==> look up ==> count -> (questions) ==> answer ==> gather -> bring
//!            `---> (questions) ==> answer ==> gather -> (questions) ==> answer ==> gather -'
//! ```
//!
//! `==>` crosses processes.

pub(crate) mod ask;
mod bring;
pub(crate) mod gather;
pub(crate) mod home;
pub(crate) mod look_up;
pub(crate) mod messages;
pub(crate) mod request;
mod shares;
pub(crate) mod tell;
#[cfg(test)]
mod tests;
mod words;

use self::ask::{Asked, ask, post};
use self::bring::bring;
use self::gather::gather;
use self::home::{Home, KnownTerms};
use self::look_up::{count, look_up};
use self::messages::ShardHits;
use self::tell::{FirstStage, receive, tell};
use super::answer::answer;
use super::batch::NumberedQuery;
use super::context::Context;
use super::desk::QueryDesk;
use super::lay_out::LaidOutAnswer;
use super::local::Local;
use crate::query::engines::engine::{Engines, Model, Wakers};
use std::sync::{Arc, Mutex};
use timely::dataflow::StreamVec;
use timely::dataflow::operators::Concat;

/// What the operators of a process share beside their streams.
pub(crate) struct ShardWiring {
    wakers: [Arc<Wakers>; 2],
    desks: [Arc<QueryDesk<Option<FirstStage>, ShardHits>>; 2],
    /// Answers what is asked again.
    again: Box<dyn Engines>,
    known: Arc<Mutex<KnownTerms>>,
}

impl ShardWiring {
    /// For engines that `wakers` wake.
    pub(crate) fn new(wakers: &Arc<Wakers>) -> Self {
        let again = Wakers::new(wakers.workers());
        let desks = [wakers, &again].map(|wakers| Arc::new(QueryDesk::new(wakers.clone())));
        let engines = Model::Inter.engines(&again);
        let wakers = [wakers.clone(), again];
        Self { wakers, desks, again: engines, known: Arc::default() }
    }
}

/// Answers queries of worker 0 together with the shards of other processes.
pub(crate) fn answer_together<'scope>(
    queries: StreamVec<'scope, u64, Local<NumberedQuery>>,
    context: &Arc<Context>,
    engines: &dyn Engines,
    wiring: &ShardWiring,
) -> StreamVec<'scope, u64, Local<LaidOutAnswer>> {
    let home = Home::new(context, &wiring.known, queries.scope().index());
    let answer_by = |round: usize, questions, engines: &dyn Engines| {
        let questions = receive(questions, context);
        let (wakers, desk) = (&wiring.wakers[round], &wiring.desks[round]);
        tell(answer(questions, context, engines, wakers, desk, tell::answer))
    };
    let Asked { questions, unknown, answers: refused } =
        ask(post(queries, context), context, &home);
    let counted = count(look_up(unknown, context), context, &home);
    let found = answer_by(0, questions.concat(counted), engines);
    let (answers, again) = gather(found, context, &home);
    let found = answer_by(1, again, &*wiring.again);
    let (more, _) = gather(found, context, &home);
    bring(answers.concat(more).concat(refused), context)
}

//! The operators of queries that several processes answer, each from its shard.
//!
//! ```text
//! post ==> ask -> unknown terms ==> look up ==> count -.
//!           |                                          v
//!           `----------------------------------> questions ==> answer ==> gather ==> bring
//!                                                        ^------------------'
//! ```
//!
//! `==>` crosses processes. There are three rounds of questions, each with operators of its own.

pub(crate) mod ask;
mod bring;
pub(crate) mod follow;
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

/// One shard, the others, and those that may have more.
const ROUNDS: usize = 3;

/// What the operators of a process share beside their streams.
pub(crate) struct ShardWiring {
    /// Of each round.
    wakers: [Arc<Wakers>; ROUNDS],
    desks: [Arc<QueryDesk<Option<FirstStage>, ShardHits>>; ROUNDS],
    /// Of all rounds but the first.
    later: Box<dyn Engines>,
    known: Arc<Mutex<KnownTerms>>,
}

impl ShardWiring {
    /// For engines that `wakers` wake.
    pub(crate) fn new(wakers: &Arc<Wakers>) -> Self {
        let more = || Wakers::new(wakers.workers());
        let wakers = [wakers.clone(), more(), more()];
        let desk = |wakers: &Arc<Wakers>| Arc::new(QueryDesk::new(wakers.clone()));
        let desks = wakers.each_ref().map(desk);
        // What answers queries whole needs no wakers.
        let later = Model::Inter.engines(&wakers[1]);
        Self { wakers, desks, later, known: Arc::default() }
    }
}

/// Answers queries of worker 0 together with the shards of other processes.
pub(crate) fn answer_together<'scope>(
    queries: StreamVec<'scope, u64, Local<NumberedQuery>>,
    context: &Arc<Context>,
    engines: &dyn Engines,
    wiring: &ShardWiring,
) -> StreamVec<'scope, u64, Local<LaidOutAnswer>> {
    // Where a query is cut into tasks, all shards have theirs at once.
    let looks_first = engines.answers_whole();
    let home = Home::new(context, &wiring.known, queries.scope().index(), looks_first);
    let round = |round: usize, questions, engines: &dyn Engines| {
        let questions = receive(questions, context);
        let (wakers, desk) = (&wiring.wakers[round], &wiring.desks[round]);
        let found = answer(questions, context, engines, wakers, desk, tell::answer);
        gather(tell(found), context, &home)
    };
    let Asked { questions, unknown, answers: refused } =
        ask(post(queries, context), context, &home);
    let counted = count(look_up(unknown, context), context, &home);
    let (first, questions) = round(0, questions.concat(counted), engines);
    let (second, questions) = round(1, questions, &*wiring.later);
    let (third, _) = round(2, questions, &*wiring.later);
    let answers = first.concat(second).concat(third).concat(refused);
    bring(answers, context)
}

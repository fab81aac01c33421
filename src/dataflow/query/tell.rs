//! Sends the hits of this shard to the process that writes.
//!
//! - In: the shard's hits with their names, on the first worker. Out: the same, as what may cross
//!   processes.
//! - Memory: none. Work per activation: all that has come.
//!
//! AND+OR is decided where all hits are: a shard that has k hits with all terms sends those, for
//! then there are k; another sends both kinds. So an engine of a shard is asked for AND, and then
//! for OR if that found fewer than k.

use super::context::Context;
use super::desk::{DeskOutcome, Request, TakenQuery};
use super::local::Local;
use super::messages::ShardHits;
use crate::dataflow::control::Cause;
use crate::dataflow::crossing::Crossing;
use crate::index::error::IndexError;
use crate::query::engines::engine::Answer;
use crate::query::top_k::{Hit, NamedHit};
use crate::query::wanted::{Mode, Stage, Wanted};
use std::cell::OnceCell;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// The hits of the first stage of AND+OR, and how many documents match it.
pub(crate) type FirstStage = (Vec<NamedHit>, u64);

/// Makes the message of an engine's answer, or asks the engine for the next stage.
pub(crate) fn answer(
    context: &Context,
    taken: TakenQuery<Option<FirstStage>>,
    answer: Option<Answer>,
) -> Result<DeskOutcome<Option<FirstStage>, ShardHits>, Cause> {
    let Answer { number, hits, found, known, .. } =
        answer.ok_or("a shard was asked something that is not a query")?;
    let TakenQuery { batch, asked, before, began } = taken;
    let named = name(context, &hits)?;
    let here = found.unwrap_or(0);
    let (hits, any, found) = match (before, asked) {
        (Some((hits, found)), _) => (hits, named, [found, here]),
        (None, Some(Request::Planned(_, mut plan)))
            if Stage::first(plan.wanted().mode).next(plan.wanted(), hits.len()).is_some() =>
        {
            let wanted = *plan.wanted();
            plan.want(Wanted { mode: Mode::Or, ..wanted });
            let before = Some((named, here));
            let taken = TakenQuery { batch, asked: None, before, began };
            return Ok(DeskOutcome::Again(Box::new((taken, plan))));
        }
        (None, _) => (named, Vec::new(), [here, 0]),
    };
    if context.shard.process > 0 {
        context.tally.queries.fetch_add(1, Ordering::Relaxed);
        context.tally.hits.fetch_add((hits.len() + any.len()) as u64, Ordering::Relaxed);
    }
    Ok(DeskOutcome::Out(ShardHits { number, known, hits, any, found }))
}

/// Gives hits of the shard their names and their docids in the whole index.
fn name(context: &Context, hits: &[Hit]) -> Result<Vec<NamedHit>, IndexError> {
    let snapshot = context.snapshot();
    let documents = snapshot.generation().documents();
    let failed = OnceCell::new();
    let name = documents.names(|at| hits.get(at).map(|hit| hit.docid), &failed);
    let named = hits.iter().enumerate().map(|(at, hit)| {
        // The manifest of the whole index has fewer documents than docids.
        let docid = context.shard.first_docid.saturating_add(hit.docid);
        NamedHit { name: name(at).into_owned(), docid, score: hit.score }
    });
    let named: Vec<_> = named.collect();
    drop(name);
    failed.into_inner().map_or(Ok(named), Err)
}

/// Lets records cross processes.
pub(crate) fn tell<'scope>(
    stream: StreamVec<'scope, u64, Local<ShardHits>>,
) -> Stream<'scope, u64, Crossing<ShardHits>> {
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Tell", |_, _| {
        |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                data.drain(..).for_each(|Local(found)| session.give(found));
            });
        }
    })
}

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
use super::messages::{ShardHit, ShardHits, StageHits};
use crate::dataflow::control::Cause;
use crate::dataflow::crossing::Crossing;
use crate::index::error::IndexError;
use crate::query::engines::engine::Answer;
use crate::query::listing::Listing;
use crate::query::top_k::{Hit, NamedHit};
use crate::query::wanted::{Mode, Stage, Wanted};
use std::cell::OnceCell;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// The first stage of AND+OR.
pub(crate) type FirstStage = StageHits;

/// Makes the message of an engine's answer, or asks the engine for the next stage.
pub(crate) fn answer(
    context: &Context,
    taken: TakenQuery<Option<FirstStage>>,
    answer: Option<Answer>,
) -> Result<DeskOutcome<Option<FirstStage>, ShardHits>, Cause> {
    let Answer { number, hits, found, known, facets, listing, .. } =
        answer.ok_or("a shard was asked something that is not a query")?;
    let TakenQuery { batch, asked, before, began } = taken;
    let count = hits.len();
    let hits = name(context, &hits, listing.as_deref())?;
    let here = StageHits { hits, found: found.unwrap_or(0), facets };
    let (first, any) = match (before, asked) {
        (Some(first), _) => (first, here),
        (None, Some(Request::Planned(_, mut plan)))
            if Stage::first(plan.wanted().mode).next(plan.wanted(), count).is_some() =>
        {
            let wanted = *plan.wanted();
            plan.want(Wanted { mode: Mode::Or, ..wanted });
            let taken = TakenQuery { batch, asked: None, before: Some(here), began };
            return Ok(DeskOutcome::Again(Box::new((taken, plan))));
        }
        (None, _) => (here, StageHits::default()),
    };
    if context.shard.process > 0 {
        context.tally.queries.fetch_add(1, Ordering::Relaxed);
        let hits = (first.hits.len() + any.hits.len()) as u64;
        context.tally.hits.fetch_add(hits, Ordering::Relaxed);
    }
    Ok(DeskOutcome::Out(ShardHits { number, known, first, any }))
}

/// Gives hits of the shard their names, their docids in the whole index, and what a listing needs.
fn name(
    context: &Context,
    hits: &[Hit],
    listing: Option<&Listing>,
) -> Result<Vec<ShardHit>, IndexError> {
    let snapshot = context.snapshot();
    let generation = snapshot.generation();
    let failed = OnceCell::new();
    let docids = hits.iter().map(|hit| hit.docid);
    let values = listing.map(|listing| listing.values(generation, docids)).transpose()?;
    let mut values = values.unwrap_or_default().into_iter();
    let name = generation.documents().names(|at| hits.get(at).map(|hit| hit.docid), &failed);
    let named = hits.iter().enumerate().map(|(at, hit)| {
        let docid = generation.docid_in_whole(hit.docid);
        let key = listing.map(|listing| listing.key(generation, hit.docid)).transpose()?;
        let named = NamedHit { name: name(at).into_owned(), docid, score: hit.score };
        let values = values.next().unwrap_or_default();
        Ok(ShardHit { named, key: key.flatten(), values })
    });
    let named: Result<Vec<_>, IndexError> = named.collect();
    drop(name);
    failed.into_inner().map_or(named, Err)
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

//! Sends the hits of this shard to the home of the query.
//!
//! - In: questions, exchanged to the first worker of each process, which puts them on the desk; the
//!   shard's hits with their names, from there. Out: the same, as what may cross processes.
//! - Memory: none. Work per activation: all that has come.
//!
//! AND+OR is decided where all hits are: a shard that has as many hits with all terms as it was
//! asked for sends those; another sends both kinds. So an engine of a shard is asked for AND, and
//! then for OR if that found fewer.

use super::messages::{Names, Question, ShardHits, StageHits};
use super::request::ShardRequest;
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::crossing::{Crossing, to_worker};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::desk::{DeskOutcome, Request, TakenQuery};
use crate::dataflow::query::local::Local;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::query::engines::engine::Answer;
use crate::query::listing::Listing;
use crate::query::top_k::Hit;
use crate::query::wanted::{Mode, Stage, Wanted};
use std::cell::OnceCell;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// The first stage of AND+OR.
pub(crate) type FirstStage = StageHits;

/// Takes questions in.
pub(super) fn receive<'scope>(
    stream: Stream<'scope, u64, Crossing<Question>>,
    context: &Context,
) -> StreamVec<'scope, u64, Local<Request>> {
    let guard = OperatorGuard::new(&context.control, "Receive", stream.scope().index());
    let named = to_worker(|asked: &Question| asked.worker);
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Receive", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                guard.work(|| {
                    for question in data.0.drain(..) {
                        let request = ShardRequest { question: question?, whole: None };
                        session.give(Local(Request::Shard(request)));
                    }
                    Ok(())
                });
            });
        }
    })
}

/// Makes the message of an engine's answer, or asks the engine for the next stage.
pub(crate) fn answer(
    context: &Context,
    taken: TakenQuery<Option<FirstStage>>,
    answer: Option<Answer>,
) -> Result<DeskOutcome<Option<FirstStage>, ShardHits>, Cause> {
    let Answer { number, hits, found, known, facets, listing, .. } =
        answer.ok_or("a shard was asked something that is not a query")?;
    let TakenQuery { batch, asked, before, began } = taken;
    let Some(Request::Shard(mut request)) = asked else {
        return Err("a shard was not asked by a home".into());
    };
    let count = hits.len();
    let snapshot = context.snapshot_of(request.question.about.generation)?;
    let here = stage(snapshot.generation(), &hits, listing.as_deref())?;
    let here = StageHits { found: found.unwrap_or(0), facets, ..here };
    let (first, any) = match (before, request.whole.take()) {
        (Some(first), _) => (first, here),
        (None, Some(mut plan))
            if Stage::first(plan.wanted().mode).next(plan.wanted(), count).is_some() =>
        {
            let wanted = *plan.wanted();
            plan.want(Wanted { mode: Mode::Or, ..wanted });
            let asked = Some(Request::Shard(request));
            let taken = TakenQuery { batch, asked, before: Some(here), began };
            return Ok(DeskOutcome::Again(Box::new((taken, plan))));
        }
        (None, _) => (here, StageHits::default()),
    };
    if context.shard.process > 0 {
        context.tally.queries.fetch_add(1, Ordering::Relaxed);
        let hits = (first.hits.len() + any.hits.len()) as u64;
        context.tally.hits.fetch_add(hits, Ordering::Relaxed);
    }
    let home = request.question.home;
    let process = context.shard.process as u32;
    Ok(DeskOutcome::Out(ShardHits { home, number, process, known, first, any }))
}

/// Gives hits of the shard their names, their docids in the whole index, and what a listing needs.
fn stage(
    generation: &Generation,
    hits: &[Hit],
    listing: Option<&Listing>,
) -> Result<StageHits, IndexError> {
    let (list, failed) = <(OnceCell<_>, OnceCell<_>)>::default();
    let mut names = Names::default();
    let name = generation.documents();
    let name = name.names(|at| hits.get(at).map(|hit| hit.docid), (&list, &failed));
    (0..hits.len()).for_each(|at| names.push(&name(at)));
    drop(name);
    failed.into_inner().map_or(Ok(()), Err)?;
    let docids = hits.iter().map(|hit| hit.docid);
    let values = listing.map(|listing| listing.values(generation, docids)).transpose()?;
    let values = values.unwrap_or_default();
    let sorted = listing.filter(|listing| listing.falls().is_some());
    let key = |listing: &Listing| {
        hits.iter().map(|hit| listing.key(generation, hit.docid)).collect::<Result<_, _>>()
    };
    let keys = sorted.map(key).transpose()?.unwrap_or_default();
    let whole = |hit: &Hit| Hit { docid: generation.docid_in_whole(hit.docid), score: hit.score };
    let hits = hits.iter().map(whole).collect();
    Ok(StageHits { hits, names, keys, values, ..StageHits::default() })
}

/// Lets records cross processes.
pub(super) fn tell<'scope>(
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

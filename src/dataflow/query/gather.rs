//! Merges the hits of all shards, and lays the answers out.
//!
//! - In: queries, and the hits of every shard; both exchanged to the worker of process 0 whose turn
//!   the query is. Out: answers that are laid out, at the batch's time, in no order.
//! - Memory: the queries of the batches under way and their hits.
//! - Work per activation: all that has come; a merge costs about as much as sorting 2 k hits.

use super::batch::NumberedQuery;
use super::context::Context;
use super::lay_out::{LaidOutAnswer, tell};
use super::local::Local;
use super::messages::{ShardHit, ShardHits, StageHits};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::Crossing;
use crate::dataflow::sole_time::SoleTime;
use crate::query::answers::returned::ReturnedValues;
use crate::query::engines::engine::Answer;
use crate::query::listing::best;
use crate::query::top_k::Hit;
use crate::query::wanted::{Stage, Wanted};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange, ExchangeCore};
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// A query whose hits come in.
struct GatheredQuery {
    cap: Capability<u64>,
    came: Instant,
    query: Option<NumberedQuery>,
    found: Vec<ShardHits>,
}

/// See the [module](self).
pub(crate) fn gather<'scope>(
    queries: StreamVec<'scope, u64, Local<NumberedQuery>>,
    found: Stream<'scope, u64, Crossing<ShardHits>>,
    context: &Arc<Context>,
) -> StreamVec<'scope, u64, Local<LaidOutAnswer>> {
    let context = context.clone();
    let guard = OperatorGuard::new(&context.control, "Gather", queries.scope().index());
    let workers = context.workers as u64;
    let query_turn =
        Exchange::new(move |Local(query): &Local<NumberedQuery>| query.number % workers);
    let found_turn = ExchangeCore::new(move |found: &Result<ShardHits, _>| {
        found.as_ref().map_or(0, |found| found.number % workers)
    });
    queries.binary::<_, CapacityContainerBuilder<_>, _, _, _, _>(
        found,
        query_turn,
        found_turn,
        "Gather",
        move |_, _| {
            let mut open: BTreeMap<u64, GatheredQuery> = BTreeMap::new();
            move |queries, found, output| {
                let mut touched = Vec::new();
                queries.for_each(|cap, data| {
                    for Local(query) in data.drain(..) {
                        let number = query.number;
                        if query.query.is_err() {
                            let refused = |query| Ok(context.lay_out_refused(query));
                            let refused = guard.work(|| tell(query, false, refused));
                            output.session(&cap).give_iterator(refused.into_iter().map(Local));
                            continue;
                        }
                        touched.push(number);
                        entry(&mut open, number, || cap.retain(0)).query = Some(query);
                    }
                });
                found.for_each(|cap, data| {
                    guard.work(|| {
                        for found in data.0.drain(..) {
                            let found = found?;
                            touched.push(found.number);
                            let query = entry(&mut open, found.number, || cap.retain(0));
                            query.found.push(found);
                        }
                        Ok(())
                    });
                });
                for number in touched {
                    let complete = open.get(&number).is_some_and(|query| {
                        query.query.is_some() && query.found.len() == context.shard.processes
                    });
                    if complete
                        && let Some(GatheredQuery { cap, came, query: Some(query), found }) =
                            open.remove(&number)
                    {
                        let answered = guard.work(|| {
                            tell(query, false, |query| Ok(answer(&context, query, found, came)))
                        });
                        let Some(answered) = answered else { return };
                        output.session(&cap).give(Local(answered));
                    }
                }
            }
        },
    )
}

fn entry(
    open: &mut BTreeMap<u64, GatheredQuery>,
    number: u64,
    cap: impl FnOnce() -> Capability<u64>,
) -> &mut GatheredQuery {
    open.entry(number).or_insert_with(|| GatheredQuery {
        cap: cap(),
        came: Instant::now(),
        query: None,
        found: Vec::new(),
    })
}

fn answer(
    context: &Context,
    query: NumberedQuery,
    found: Vec<ShardHits>,
    came: Instant,
) -> LaidOutAnswer {
    let wanted = query.query.as_ref().map_or(context.wanted, |query| context.wanted_of(query));
    let falls = query.listing.as_ref().and_then(|listing| listing.falls());
    let (answer, mut told) = put_together(found, &wanted, falls);
    let take = |hit: &Hit| told.remove(&hit.docid).unwrap_or_default();
    let (names, mut values): (Vec<_>, Vec<_>) = answer.hits.iter().map(take).unzip();
    // None are asked for.
    values.retain(|of: &ReturnedValues| !of.0.is_empty());
    let name = |at: usize| Cow::Borrowed(names.get(at).map_or("", |name: &String| name));
    context.lay_out(query, &answer, &values, came.elapsed(), name)
}

/// Names and values of hits by docid.
type ToldByDocid = HashMap<u32, (String, ReturnedValues)>;

/// Puts the parts of an answer together, whose hits are sorted by values that fall or rise, or by
/// score.
fn put_together(
    found: Vec<ShardHits>,
    wanted: &Wanted,
    falls: Option<bool>,
) -> (Answer, ToldByDocid) {
    let known = found.iter().any(|found| found.known);
    let mut stages = [StageHits::default(), StageHits::default()];
    for shard in found {
        for (all, own) in stages.iter_mut().zip([shard.first, shard.any]) {
            all.hits.extend(own.hits);
            // Overflow is a wrong message.
            all.found = all.found.saturating_add(own.found);
            all.facets.add(own.facets);
        }
    }
    let mut told = ToldByDocid::new();
    let mut answer = |StageHits { hits, found, facets }| {
        let mut keyed = Vec::new();
        for ShardHit { named, key, values } in hits {
            keyed.push((key, named.hit()));
            told.insert(named.docid, (named.name, values));
        }
        best(falls, &mut keyed, wanted.k);
        let hits = keyed.into_iter().map(|(_, hit)| hit).collect();
        let found = wanted.count.then_some(found);
        Answer { hits, found, known, facets, ..Answer::default() }
    };
    let [first, any] = stages;
    let mut answered = answer(first);
    if Stage::first(wanted.mode).next(wanted, answered.hits.len()).is_some() {
        answered = answer(any);
    }
    (answered, told)
}

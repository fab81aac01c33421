//! Merges the hits of all shards.
//!
//! - In: queries, and the hits of every shard; both exchanged to the worker of process 0 that has
//!   the query's turn. Out: answers as text, at the batch's time, in no order.
//! - Memory: the queries of the batches under way and their hits.
//! - Work per activation: all that has come; a merge costs about as much as sorting 2 k hits.

use super::answer::Answered;
use super::asked::{Found, NamedHit};
use super::batch::Numbered;
use super::control::Guard;
use super::crossing::Crossing;
use super::query::QueryJob;
use crate::dictionary::group::Local;
use crate::query::searcher::{Mode, Settings};
use crate::query::top_k::Hit;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange, ExchangeCore};
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// A query whose hits come in.
struct Open {
    cap: Capability<u64>,
    came: Instant,
    query: Option<Numbered>,
    found: Vec<Found>,
}

/// Merges hits: see the [module](self).
pub fn gather<'scope>(
    queries: StreamVec<'scope, u64, Local<Numbered>>,
    found: Stream<'scope, u64, Crossing<Found>>,
    job: &Arc<QueryJob>,
) -> StreamVec<'scope, u64, Local<Answered>> {
    let job = job.clone();
    let guard = Guard::new(&job.control, "Gather", queries.scope().index());
    let workers = job.workers as u64;
    let query_turn = Exchange::new(move |Local(query): &Local<Numbered>| query.number % workers);
    let found_turn = ExchangeCore::new(move |found: &Result<Found, _>| {
        found.as_ref().map_or(0, |found| found.number % workers)
    });
    queries.binary::<_, CapacityContainerBuilder<_>, _, _, _, _>(
        found,
        query_turn,
        found_turn,
        "Gather",
        move |_, _| {
            let mut open: BTreeMap<u64, Open> = BTreeMap::new();
            move |queries, found, output| {
                let mut touched = Vec::new();
                queries.for_each(|cap, data| {
                    for Local(query) in data.drain(..) {
                        let number = query.number;
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
                    let Some(query) = open.get(&number) else { continue };
                    let Some(numbered) = &query.query else { continue };
                    if query.found.len() == job.shard.processes {
                        let answered = guard.work(|| Ok(answer(&job, numbered, query)));
                        let Some(answered) = answered else { return };
                        output.session(&query.cap).give(Local(answered));
                        open.remove(&number);
                    }
                }
            }
        },
    )
}

fn entry(
    open: &mut BTreeMap<u64, Open>,
    number: u64,
    cap: impl FnOnce() -> Capability<u64>,
) -> &mut Open {
    open.entry(number).or_insert_with(|| Open {
        cap: cap(),
        came: Instant::now(),
        query: None,
        found: Vec::new(),
    })
}

/// Lays the answer to a query out.
fn answer(job: &QueryJob, numbered: &Numbered, open: &Open) -> Answered {
    let best = merge(&open.found, job.shared.settings());
    let hits: Vec<Hit> = best.iter().map(|named| named.hit).collect();
    let mut text = String::new();
    let name = |at: usize| Cow::Borrowed(best[at].name.as_str());
    job.form.write(&numbered.query, &hits, open.came.elapsed(), name, &mut text);
    let known = open.found.iter().any(|found| found.known);
    job.queries.fetch_add(1, Ordering::Relaxed);
    job.hits.fetch_add(hits.len() as u64, Ordering::Relaxed);
    job.unknown.fetch_add(u64::from(!known), Ordering::Relaxed);
    Answered { place: numbered.place, text }
}

/// The best k hits of all shards, best first, of equal scores the smaller docid.
fn merge<'a>(found: &'a [Found], settings: &Settings) -> Vec<&'a NamedHit> {
    let mut all: Vec<&NamedHit> = found.iter().flat_map(|found| &found.hits).collect();
    if settings.mode == Mode::AndOr && all.len() < settings.k {
        all = found.iter().flat_map(|found| &found.any).collect();
    }
    all.sort_unstable_by(|a, b| {
        b.hit.score.total_cmp(&a.hit.score).then(a.hit.docid.cmp(&b.hit.docid))
    });
    all.truncate(settings.k);
    all
}

//! Answers every query on every worker, each over its share of the documents: `--parallelism
//! docp-ui` and `docp-pi` (`tatikonda11`, section 3.2.1).
//!
//! Two operators. *Spread*, on the worker that has the batches:
//!
//! - In: queries. Out: each query once for every worker, at the batch's time.
//! - Memory: none; the copies share one query. Work per activation: all that has come.
//!
//! *Share*, on all workers:
//!
//! - In: queries, exchanged to the workers that they name. Out: answers as text, at the batch's time,
//!   in no order, on whichever worker is the last to add its hits to a query.
//! - Memory: the queries that wait, which are bounded; of docp-pi a copy of the share's postings,
//!   which is made before the first query comes.
//! - Work per activation: queries for about a millisecond.

use super::answer::{Answered, SLICE};
use super::batch::Numbered;
use super::control::Guard;
use super::query::{Parallelism, QueryJob};
use crate::dictionary::group::Local;
use crate::query::searcher::{Partial, Searcher};
use crate::query::share::{Copied, Share};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::operator::Operator;

/// See the [module](self).
pub trait Docp<'scope> {
    /// Answers queries, with all workers together.
    fn docp(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>>;
}

/// A query that all workers answer.
struct Asked {
    query: Numbered,
    came: Instant,
    /// What the workers have found.
    parts: Mutex<Vec<Partial>>,
}

impl Asked {
    /// Adds what a worker has found; gives all parts to the last of `workers`.
    fn add(&self, part: Partial, workers: usize) -> Option<Vec<Partial>> {
        let mut parts = self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        parts.push(part);
        (parts.len() == workers).then(|| std::mem::take(&mut *parts))
    }
}

impl<'scope> Docp<'scope> for StreamVec<'scope, u64, Local<Numbered>> {
    fn docp(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, Local<Answered>> {
        share(spread(self, job), job)
    }
}

fn spread<'scope>(
    queries: StreamVec<'scope, u64, Local<Numbered>>,
    job: &Arc<QueryJob>,
) -> StreamVec<'scope, u64, Local<(usize, Arc<Asked>)>> {
    let job = job.clone();
    let guard = Guard::new(&job.control, "Spread", queries.scope().index());
    queries.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Spread", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                guard.work(|| {
                    let mut session = output.session(&cap);
                    for Local(query) in data.drain(..) {
                        let (came, parts) = (Instant::now(), Mutex::default());
                        let asked = Arc::new(Asked { query, came, parts });
                        (0..job.workers).for_each(|to| session.give(Local((to, asked.clone()))));
                    }
                    Ok(())
                });
            });
        }
    })
}

fn share<'scope>(
    asked: StreamVec<'scope, u64, Local<(usize, Arc<Asked>)>>,
    job: &Arc<QueryJob>,
) -> StreamVec<'scope, u64, Local<Answered>> {
    let job = job.clone();
    let scope = asked.scope();
    let worker = scope.index();
    let named = Exchange::new(|Local((to, _)): &Local<(usize, _)>| *to as u64);
    asked.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Share", move |_, info| {
        let guard = Guard::new(&job.control, "Share", worker);
        let activator = scope.activator_for(info.address);
        let share = guard.work(|| {
            let generation = job.shared.generation();
            let docids = job.shared.share(worker, job.workers);
            Ok(match job.parallelism {
                Parallelism::DocpPi => Share::Copy(Arc::new(Copied::new(generation, &docids)?)),
                _ => Share::Range(docids),
            })
        });
        // Without its share the job has failed, and no query comes.
        let mut searcher = Searcher::of_share(job.shared.clone(), share.unwrap_or_default());
        let mut waiting = VecDeque::new();
        move |input, output| {
            input.for_each(|cap, data| {
                waiting.extend(data.drain(..).map(|Local((_, asked))| (cap.retain(0), asked)));
            });
            let start = Instant::now();
            while let Some((cap, asked)) = waiting.pop_front() {
                let done = guard.work(|| {
                    let part = searcher.search_share(&asked.query.query.text)?;
                    Ok(asked.add(part, job.workers).map(|parts| {
                        let hits = Partial::merge(&parts, job.shared.settings());
                        let known = parts.iter().any(|part| part.known);
                        job.write(&asked.query, &hits, known, asked.came.elapsed())
                    }))
                });
                let Some(answered) = done else { return };
                if let Some(answered) = answered {
                    output.session(&cap).give(Local(answered));
                }
                if start.elapsed() > SLICE && !waiting.is_empty() {
                    return activator.activate();
                }
            }
        }
    })
}

//! Finds the best hits of this shard, with weights of the whole collection.
//!
//! - In: counts from every shard, exchanged to the workers that they name. Out: the shard's hits with
//!   their names, at the batch's time, in no order. AND+OR is decided where all hits are: a shard
//!   that has k hits with all terms sends those, for then there are k; another sends both kinds.
//! - Memory: the queries whose counts are not all there or that wait; batches under way are bounded.
//! - Work per activation: queries for about a millisecond.

use super::answer::SLICE;
use super::asked::{Counted, Found, NamedHit};
use super::control::{Cause, Guard};
use super::crossing::Crossing;
use super::query::QueryJob;
use crate::query::searcher::{Mode, Searcher};
use crate::query::top_k::Hit;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ExchangeCore;
use timely::dataflow::operators::generic::operator::Operator;

/// See the [module](self).
pub trait Score<'scope> {
    /// Finds the best hits of this shard.
    fn score(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Found>>;
}

/// A query whose counts come in.
#[derive(Default)]
struct Open {
    /// Shards whose counts are added.
    shards: usize,
    text: Option<String>,
    dfs: Vec<u64>,
}

impl Open {
    /// Adds the counts of a shard.
    fn add(&mut self, counted: Counted) -> Result<(), Cause> {
        if self.shards == 0 {
            self.dfs = counted.dfs;
        } else if self.dfs.len() == counted.dfs.len() {
            self.dfs.iter_mut().zip(counted.dfs).for_each(|(sum, df)| *sum += df);
        } else {
            return Err("two shards find different terms in a query".into());
        }
        self.shards += 1;
        self.text = self.text.take().or(counted.text);
        Ok(())
    }
}

impl<'scope> Score<'scope> for Stream<'scope, u64, Crossing<Counted>> {
    fn score(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Found>> {
        let job = job.clone();
        let scope = self.scope();
        let guard = Guard::new(&job.control, "Score", scope.index());
        let named = ExchangeCore::new(|counted: &Result<Counted, _>| {
            counted.as_ref().map_or(0, |counted| counted.worker.into())
        });
        self.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Score", move |_, info| {
            let activator = scope.activator_for(info.address);
            let mut searcher = Searcher::new(job.shared.clone());
            let mut open: BTreeMap<u64, Open> = BTreeMap::new();
            let mut waiting = VecDeque::new();
            move |input, output| {
                input.for_each(|cap, data| {
                    guard.work(|| {
                        for counted in data.0.drain(..) {
                            let counted = counted?;
                            let number = counted.number;
                            let query = open.entry(number).or_default();
                            query.add(counted)?;
                            if query.shards == job.shard.processes
                                && let Some(query) = open.remove(&number)
                            {
                                waiting.push_back((cap.retain(0), number, query));
                            }
                        }
                        Ok(())
                    });
                });
                let start = Instant::now();
                while let Some((cap, number, query)) = waiting.pop_front() {
                    let found = guard.work(|| find(&job, &mut searcher, number, &query));
                    let Some(found) = found else { return };
                    output.session(&cap).give(found);
                    if start.elapsed() > SLICE && !waiting.is_empty() {
                        return activator.activate();
                    }
                }
            }
        })
    }
}

/// Finds the shard's hits for a query whose counts are all there.
fn find(
    job: &QueryJob,
    searcher: &mut Searcher,
    number: u64,
    query: &Open,
) -> Result<Found, Cause> {
    let text = query.text.as_deref().ok_or("a query came without its text")?;
    let settings = *job.shared.settings();
    let most = u64::from(job.shared.whole().documents);
    let dfs: Vec<u32> = query.dfs.iter().map(|&df| df.min(most) as u32).collect();
    let (mut hits, mut any) = (Vec::new(), Vec::new());
    let first = if settings.mode == Mode::AndOr { Mode::And } else { settings.mode };
    name(job, searcher.search_shard(text, &dfs, first)?, &mut hits);
    if settings.mode == Mode::AndOr && hits.len() < settings.k {
        name(job, searcher.search_shard(text, &dfs, Mode::Or)?, &mut any);
    }
    if job.shard.process > 0 {
        job.queries.fetch_add(1, Ordering::Relaxed);
        job.hits.fetch_add((hits.len() + any.len()) as u64, Ordering::Relaxed);
    }
    Ok(Found { number, known: dfs.iter().any(|&df| df > 0), hits, any })
}

/// Gives hits of the shard their names and their docids in the whole index.
fn name(job: &QueryJob, hits: &[Hit], named: &mut Vec<NamedHit>) {
    let documents = job.shared.generation().documents();
    named.extend(hits.iter().map(|hit| {
        let name = String::from_utf8_lossy(documents.name(hit.docid).unwrap_or_default());
        // The manifest of the whole index has fewer documents than docids.
        let docid = job.shard.first_docid.saturating_add(hit.docid);
        NamedHit { hit: Hit { docid, score: hit.score }, name: name.into_owned() }
    }));
}

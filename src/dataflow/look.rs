//! Looks up how many documents of this shard have the terms of a query.
//!
//! - In: queries for this shard, exchanged to the workers that they name. Out: the counts, once for
//!   the worker of every process that answers the query, at the batch's time, in no order.
//! - Memory: the queries that wait; the number of batches under way is bounded.
//! - Work per activation: queries for about a millisecond.

use super::answer::SLICE;
use super::asked::{Asked, Counted};
use super::control::Guard;
use super::crossing::Crossing;
use super::query::QueryJob;
use crate::query::searcher::Searcher;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ExchangeCore;
use timely::dataflow::operators::generic::operator::Operator;

/// See the [module](self).
pub trait Look<'scope> {
    /// Counts, in this shard.
    fn look(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Counted>>;
}

impl<'scope> Look<'scope> for Stream<'scope, u64, Crossing<Asked>> {
    fn look(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Counted>> {
        let job = job.clone();
        let scope = self.scope();
        let guard = Guard::new(&job.control, "Look", scope.index());
        let named = ExchangeCore::new(|asked: &Result<Asked, _>| {
            asked.as_ref().map_or(0, |asked| asked.worker.into())
        });
        self.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Look", move |_, info| {
            let activator = scope.activator_for(info.address);
            let mut searcher = Searcher::new(job.shared.clone());
            let mut waiting = VecDeque::new();
            move |input, output| {
                input.for_each(|cap, data| {
                    waiting.extend(data.0.drain(..).map(|asked| (cap.retain(0), asked)));
                });
                let start = Instant::now();
                while let Some((cap, asked)) = waiting.pop_front() {
                    let looked = guard.work(|| {
                        let Asked { number, text, .. } = asked?;
                        let dfs = searcher.frequencies(&text)?;
                        let dfs: Vec<u64> = dfs.iter().map(|&df| df.into()).collect();
                        let mut session = output.session(&cap);
                        for process in 0..job.shard.processes {
                            let worker = job.worker_of(process, number);
                            let own = process == job.shard.process;
                            let text = own.then(|| text.clone());
                            session.give(Counted { worker, number, text, dfs: dfs.clone() });
                        }
                        Ok(())
                    });
                    if looked.is_none() {
                        return;
                    }
                    if start.elapsed() > SLICE && !waiting.is_empty() {
                        return activator.activate();
                    }
                }
            }
        })
    }
}

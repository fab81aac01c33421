//! Weighs the plans of this shard by the counts of all shards.
//!
//! - In: counts from every shard, exchanged to the first worker of each process. Out, there: plans
//!   that are ready for an engine, at the batch's time, in no order.
//! - Memory: the counts that are not all there; batches under way are bounded.
//! - Work per activation: all that has come, a few additions and logarithms for each query.

use super::context::Context;
use super::desk::Request;
use super::local::Local;
use super::look_up::PlansByNumber;
use super::messages::CountedTerms;
use crate::crew::lock;
use crate::dataflow::control::{Cause, OperatorGuard};
use crate::dataflow::crossing::Crossing;
use std::collections::BTreeMap;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::ExchangeCore;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// A query whose counts come in.
#[derive(Default)]
struct Weighing {
    shards: usize,
    dfs: Vec<u64>,
}

impl Weighing {
    fn add(&mut self, counted: CountedTerms) -> Result<(), Cause> {
        if self.shards == 0 {
            self.dfs = counted.dfs;
        } else if self.dfs.len() == counted.dfs.len() {
            self.dfs.iter_mut().zip(counted.dfs).for_each(|(sum, df)| *sum += df);
        } else {
            return Err("two shards find different terms in a query".into());
        }
        self.shards += 1;
        Ok(())
    }
}

/// Weighs plans by the numbers of all shards.
pub(crate) fn weigh<'scope>(
    stream: Stream<'scope, u64, Crossing<CountedTerms>>,
    context: &Arc<Context>,
    planned: &Arc<PlansByNumber>,
) -> StreamVec<'scope, u64, Local<Request>> {
    let context = context.clone();
    let planned = planned.clone();
    let guard = OperatorGuard::new(&context.control, "Weigh", stream.scope().index());
    let named = ExchangeCore::new(|counted: &Result<CountedTerms, _>| {
        counted.as_ref().map_or(0, |counted| counted.worker.into())
    });
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "Weigh", move |_, _| {
        let mut open: BTreeMap<u64, Weighing> = BTreeMap::new();
        move |input, output| {
            input.for_each(|cap, data| {
                guard.work(|| {
                    for counted in data.0.drain(..) {
                        let counted = counted?;
                        let number = counted.number;
                        let query = open.entry(number).or_default();
                        query.add(counted)?;
                        if query.shards == context.shard.processes
                            && let Some(Weighing { dfs, .. }) = open.remove(&number)
                        {
                            let plan = lock(&planned).remove(&number);
                            let mut plan = plan.ok_or("counts came without their query")?;
                            let most = u64::from(plan.snapshot().whole().documents);
                            plan.weigh(dfs.into_iter().map(|df| df.min(most) as u32));
                            output.session(&cap).give(Local(Request::Planned(number, plan)));
                        }
                    }
                    Ok(())
                });
            });
        }
    })
}

//! Plans the queries for this shard, and sends every shard the document frequencies of their terms.
//!
//! - In: queries for this shard, exchanged to the workers that they name. Out: the counts, once for
//!   the first worker of every process, at the batch's time, in no order. The plans wait in memory
//!   that the workers of the process share.
//! - Memory: the queries that wait; the number of batches under way is bounded.
//! - Work per activation: queries for about a millisecond.

use super::answer::SLICE;
use super::context::Context;
use super::messages::{CountedTerms, Question};
use crate::crew::lock;
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::Crossing;
use crate::dataflow::sole_time::SoleTime;
use crate::query::plan::{Plan, Planner};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ExchangeCore;
use timely::dataflow::operators::generic::operator::Operator;

pub(crate) type PlansByNumber = Mutex<HashMap<u64, Plan>>;

/// Plans, and counts in this shard.
pub(crate) fn look_up<'scope>(
    stream: Stream<'scope, u64, Crossing<Question>>,
    context: &Arc<Context>,
    planned: &Arc<PlansByNumber>,
) -> Stream<'scope, u64, Crossing<CountedTerms>> {
    let context = context.clone();
    let planned = planned.clone();
    let scope = stream.scope();
    let guard = OperatorGuard::new(&context.control, "LookUp", scope.index());
    let named = ExchangeCore::new(|asked: &Result<Question, _>| {
        asked.as_ref().map_or(0, |asked| asked.worker.into())
    });
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "LookUp", move |_, info| {
        let activator = scope.activator_for(info.address);
        let mut planner = Planner::default();
        let mut waiting = VecDeque::new();
        move |input, output| {
            input.for_each(|cap, data| {
                waiting.extend(data.0.drain(..).map(|asked| (cap.retain(0), asked)));
            });
            let start = Instant::now();
            while let Some((cap, asked)) = waiting.pop_front() {
                let looked = guard.work(|| {
                    let asked = asked?;
                    let wanted = asked.wanted(context.algorithms)?;
                    let Question { number, query, .. } = asked;
                    let snapshot = context.snapshot().under(query.filter.as_ref())?;
                    let mut plan = planner.plan(&snapshot, wanted, &query.text)?;
                    plan.list(query.listing(&snapshot.generation().manifest().settings)?);
                    let dfs: Vec<u64> = plan.terms().iter().map(|term| term.df.into()).collect();
                    // It is there before the counts that ask for it.
                    lock(&planned).insert(number, plan);
                    let mut session = output.session(&cap);
                    for process in 0..context.shard.processes {
                        let worker = context.first_of(process);
                        session.give(CountedTerms { worker, number, dfs: dfs.clone() });
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

//! Counts the documents of a shard with some terms, and tells the home of the query what all shards
//! have counted.
//!
//! - In: terms that a home does not know, exchanged to the first worker of each process. Out: their
//!   counts, exchanged to the home; and from there the questions to all shards.
//! - Memory: terms that wait; the number of batches under way is bounded.
//! - Work per activation: terms for about a millisecond.

use super::home::{HomeStep, SharedHome};
use super::messages::{CountedTerms, Question, UnknownTerms};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::{Crossing, to_worker};
use crate::dataflow::query::answer::SLICE;
use crate::dataflow::query::context::Context;
use crate::dataflow::sole_time::SoleTime;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::operators::generic::operator::Operator;

/// Counts in this shard.
pub(super) fn look_up<'scope>(
    stream: Stream<'scope, u64, Crossing<UnknownTerms>>,
    context: &Arc<Context>,
) -> Stream<'scope, u64, Crossing<CountedTerms>> {
    let context = context.clone();
    let scope = stream.scope();
    let guard = OperatorGuard::new(&context.control, "LookUp", scope.index());
    let named = to_worker(|asked: &UnknownTerms| asked.worker);
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(named, "LookUp", move |_, info| {
        let activator = scope.activator_for(info.address);
        let process = context.shard.process as u32;
        let mut waiting = VecDeque::new();
        move |input, output| {
            input.for_each(|cap, data| {
                waiting.extend(data.0.drain(..).map(|asked| (cap.retain(0), asked)));
            });
            let start = Instant::now();
            while let Some((cap, asked)) = waiting.pop_front() {
                let looked = guard.work(|| {
                    let UnknownTerms { home, number, generation, terms, .. } = asked?;
                    let snapshot = context.snapshot_of(generation)?;
                    let df = |term: &String| snapshot.df(term).map(u64::from);
                    let dfs = terms.iter().map(df).collect::<Result<_, _>>()?;
                    output.session(&cap).give(CountedTerms { home, number, process, dfs });
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

/// Asks the shards once all counts of a query have come.
pub(super) fn count<'scope>(
    stream: Stream<'scope, u64, Crossing<CountedTerms>>,
    context: &Context,
    home: &SharedHome,
) -> Stream<'scope, u64, Crossing<Question>> {
    let home = home.clone();
    let guard = OperatorGuard::new(&context.control, "Count", stream.scope().index());
    let to_home = to_worker(|counted: &CountedTerms| counted.home);
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(to_home, "Count", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                guard.work(|| {
                    for counted in data.0.drain(..) {
                        if let HomeStep::Ask(questions) = home.borrow_mut().count(counted?)? {
                            session.give_iterator(questions.into_iter());
                        }
                    }
                    Ok(())
                });
            });
        }
    })
}

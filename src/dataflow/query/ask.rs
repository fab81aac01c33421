//! Sends each query to every shard.
//!
//! - In: queries, on worker 0 of process 0. Out: each query once for every process, for the worker
//!   whose turn it is there, at the batch's time. A line that is no query is not sent.
//! - Memory: none. Work per activation: all that has come, a few copies of a text for each query.

use super::batch::NumberedQuery;
use super::context::Context;
use super::local::Local;
use super::messages::Question;
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::Crossing;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

pub(crate) fn ask<'scope>(
    stream: StreamVec<'scope, u64, Local<NumberedQuery>>,
    context: &Arc<Context>,
) -> Stream<'scope, u64, Crossing<Question>> {
    let context = context.clone();
    let guard = OperatorGuard::new(&context.control, "Ask", stream.scope().index());
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Ask", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                guard.work(|| {
                    let mut session = output.session(&cap);
                    for Local(NumberedQuery { number, query, .. }) in data.drain(..) {
                        let Ok(query) = query else { continue };
                        let wanted = context.wanted_of(&query);
                        for process in 0..context.shard.processes {
                            let worker = context.worker_of(process, number);
                            session.give(Question::new(worker, number, wanted, &query));
                        }
                    }
                    Ok(())
                });
            });
        }
    })
}

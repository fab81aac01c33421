//! Asks every shard.
//!
//! - In: queries, on worker 0 of process 0. Out: each query once for every process, for the worker
//!   there that has its turn, at the batch's time.
//! - Memory: none. Work per activation: all that has come, a few copies of a text for each query.

use super::asked::Asked;
use super::batch::Numbered;
use super::control::Guard;
use super::crossing::Crossing;
use super::query::QueryJob;
use crate::dictionary::group::Local;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// See the [module](self).
pub trait Ask<'scope> {
    /// Asks every shard.
    fn ask(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Asked>>;
}

impl<'scope> Ask<'scope> for StreamVec<'scope, u64, Local<Numbered>> {
    fn ask(self, job: &Arc<QueryJob>) -> Stream<'scope, u64, Crossing<Asked>> {
        let job = job.clone();
        let guard = Guard::new(&job.control, "Ask", self.scope().index());
        self.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Ask", move |_, _| {
            move |input, output| {
                input.for_each(|cap, data| {
                    guard.work(|| {
                        let mut session = output.session(&cap);
                        for Local(query) in data.drain(..) {
                            for process in 0..job.shard.processes {
                                let worker = job.worker_of(process, query.number);
                                let text = query.query.text.clone();
                                session.give(Asked { worker, number: query.number, text });
                            }
                        }
                        Ok(())
                    });
                });
            }
        })
    }
}

//! Merges the hits of all shards at the home of a query, and lays its answer out.
//!
//! - In: hits of the shards, exchanged to the home. Out: answers that are laid out, in no order,
//!   and questions to shards that may have more of the best hits.
//! - Memory: the home's. Work per activation: all that has come; a merge costs less than sorting
//!   the hits.

use super::home::{HomeStep, SharedHome};
use super::messages::{Question, ShardHits};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::{Crossing, to_worker};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::lay_out::LaidOutAnswer;
use crate::dataflow::sole_time::SoleTime;
use timely::dataflow::Stream;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// See the [module](self).
pub(super) fn gather<'scope>(
    found: Stream<'scope, u64, Crossing<ShardHits>>,
    context: &Context,
    home: &SharedHome,
) -> (Stream<'scope, u64, Crossing<LaidOutAnswer>>, Stream<'scope, u64, Crossing<Question>>) {
    let home = home.clone();
    let scope = found.scope();
    let guard = OperatorGuard::new(&context.control, "Gather", scope.index());
    let mut builder = OperatorBuilder::new("Gather".to_owned(), scope);
    let to_home = to_worker(|found: &ShardHits| found.home);
    let mut input = builder.new_input(found, to_home);
    let (answers_out, answers) = builder.new_output();
    let (again_out, again) = builder.new_output();
    let mut answers_out = OutputBuilder::from(answers_out);
    let mut again_out = OutputBuilder::from(again_out);
    builder.build(move |_| {
        move |_frontiers| {
            let mut answers = answers_out.activate();
            let mut again = again_out.activate();
            input.for_each(|cap, data| {
                let caps = [cap.retain(0), cap.retain(1)];
                guard.work(|| {
                    for found in data.0.drain(..) {
                        match home.borrow_mut().hear(found?)? {
                            HomeStep::Answer(answer) => answers.session(&caps[0]).give(answer),
                            HomeStep::Ask(all) => {
                                again.session(&caps[1]).give_iterator(all.into_iter())
                            }
                            HomeStep::Nothing | HomeStep::Count(_) => {}
                        }
                    }
                    Ok(())
                });
            });
        }
    });
    (answers, again)
}

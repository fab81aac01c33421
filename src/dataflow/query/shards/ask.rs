//! Asks the shards about each query, at its home.
//!
//! - In: queries, exchanged to their homes. Out: a question for each shard if all document
//!   frequencies are known; else the unknown terms for each shard; and answers to lines that are no
//!   queries.
//! - Memory: the home's. Work per activation: all that has come.

use super::home::{HomeStep, SharedHome, home_of};
use super::messages::{PostedQuery, Question, UnknownTerms};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::{Crossing, to_worker};
use crate::dataflow::query::batch::NumberedQuery;
use crate::dataflow::query::context::{Context, number_of};
use crate::dataflow::query::lay_out::LaidOutAnswer;
use crate::dataflow::query::local::Local;
use crate::dataflow::sole_time::SoleTime;
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

/// Sends queries, on worker 0, to their homes.
pub(super) fn post<'scope>(
    stream: StreamVec<'scope, u64, Local<NumberedQuery>>,
    context: &Arc<Context>,
) -> Stream<'scope, u64, Crossing<PostedQuery>> {
    let context = context.clone();
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Post", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                for Local(query) in data.drain(..) {
                    let home = home_of(&context, &query);
                    let NumberedQuery { place, number, query, snapshot, waiter, .. } = query;
                    let generation = number_of(&snapshot);
                    session.give(PostedQuery { home, place, number, generation, query, waiter });
                }
            });
        }
    })
}

/// What a home does next with queries.
pub(super) struct Asked<'scope> {
    pub(super) questions: Stream<'scope, u64, Crossing<Question>>,
    pub(super) unknown: Stream<'scope, u64, Crossing<UnknownTerms>>,
    pub(super) answers: Stream<'scope, u64, Crossing<LaidOutAnswer>>,
}

/// See the [module](self).
pub(super) fn ask<'scope>(
    posted: Stream<'scope, u64, Crossing<PostedQuery>>,
    context: &Context,
    home: &SharedHome,
) -> Asked<'scope> {
    let home = home.clone();
    let scope = posted.scope();
    let guard = OperatorGuard::new(&context.control, "Ask", scope.index());
    let mut builder = OperatorBuilder::new("Ask".to_owned(), scope);
    let to_home = to_worker(|posted: &PostedQuery| posted.home);
    let mut input = builder.new_input(posted, to_home);
    let (questions_out, questions) = builder.new_output();
    let (unknown_out, unknown) = builder.new_output();
    let (answers_out, answers) = builder.new_output();
    let mut questions_out = OutputBuilder::from(questions_out);
    let mut unknown_out = OutputBuilder::from(unknown_out);
    let mut answers_out = OutputBuilder::from(answers_out);
    builder.build(move |_| {
        move |_frontiers| {
            let mut questions = questions_out.activate();
            let mut unknown = unknown_out.activate();
            let mut answers = answers_out.activate();
            input.for_each(|cap, data| {
                let caps = [cap.retain(0), cap.retain(1), cap.retain(2)];
                guard.work(|| {
                    for posted in data.0.drain(..) {
                        match home.borrow_mut().take(posted?)? {
                            HomeStep::Ask(all) => {
                                questions.session(&caps[0]).give_iterator(all.into_iter())
                            }
                            HomeStep::Count(all) => {
                                unknown.session(&caps[1]).give_iterator(all.into_iter())
                            }
                            HomeStep::Answer(answer) => answers.session(&caps[2]).give(answer),
                            HomeStep::Nothing => {}
                        }
                    }
                    Ok(())
                });
            });
        }
    });
    Asked { questions, unknown, answers }
}

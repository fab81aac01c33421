//! Brings answers from their homes to worker 0, which writes them.
//!
//! - In: answers that are laid out, exchanged to worker 0. Out: the same.
//! - Memory: none. Work per activation: all that has come.

use super::words::{list, put_list};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::crossing::{Crossing, CrossingRecord, Words, put_bytes, put_text, to_worker};
use crate::dataflow::query::context::Context;
use crate::dataflow::query::lay_out::{AnswerOut, CountedAnswer, LaidOutAnswer};
use crate::dataflow::query::local::Local;
use std::sync::Arc;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{Stream, StreamVec};

impl CrossingRecord for LaidOutAnswer {
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.place.into());
        match &self.out {
            AnswerOut::Text(text) => put_bytes(text, to),
            // The homes of queries whose answers are values are in process 0.
            AnswerOut::Value(_) => put_bytes(&[], to),
        }
        put_list(self.counted.as_slice(), to, |counted, to| {
            let CountedAnswer { number, qid, text, took, hits, known } = &**counted;
            to.extend([*number, took.as_nanos() as u64, *hits, u64::from(*known)]);
            put_text(qid, to);
            put_text(text, to);
        });
    }

    fn read(words: &mut Words<'_>) -> Option<Self> {
        let place = words.small()?;
        let out = AnswerOut::Text(words.bytes()?);
        let counted = |words: &mut Words<'_>| {
            let number = words.word()?;
            let took = Duration::from_nanos(words.word()?);
            let hits = words.word()?;
            let known = words.flag()?;
            let [qid, text] = [words.text()?, words.text()?];
            Some(Box::new(CountedAnswer { number, qid, text, took, hits, known }))
        };
        Some(Self { place, out, counted: list(words, counted)?.pop() })
    }
}

/// Counts those that are not counted yet.
pub(super) fn bring<'scope>(
    answers: Stream<'scope, u64, Crossing<LaidOutAnswer>>,
    context: &Arc<Context>,
) -> StreamVec<'scope, u64, Local<LaidOutAnswer>> {
    let context = context.clone();
    let guard = OperatorGuard::new(&context.control, "Bring", answers.scope().index());
    let to_writer = to_worker(|_: &LaidOutAnswer| 0);
    answers.unary::<CapacityContainerBuilder<_>, _, _, _>(to_writer, "Bring", move |_, _| {
        move |input, output| {
            input.for_each(|cap, data| {
                let mut session = output.session(&cap);
                guard.work(|| {
                    for answer in data.0.drain(..) {
                        let mut answer = answer?;
                        if let Some(of) = answer.counted.take() {
                            context.count(of.number, &of.qid, &of.text, of.took, of.hits, of.known);
                        }
                        session.give(Local(answer));
                    }
                    Ok(())
                });
            });
        }
    })
}

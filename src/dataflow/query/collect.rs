//! Writes the answers of each batch, in the order of the queries, as soon as all are there.
//!
//! - In: answers that are laid out, exchanged to worker 0. Out: a stream without records whose
//!   frontier tells which batches are written.
//! - A slow reader of the output makes this operator wait in its write; batches under way are
//!   bounded, so that nothing piles up. A reader that has gone ends the job.
//! - Work per activation: all complete batches.

#![warn(missing_docs)]

use super::context::{AnswerLayout, Context};
use super::lay_out::{AnswerOut, LaidOutAnswer, QueryAnswer};
use super::local::Local;
use crate::crew::lock;
use crate::dataflow::control::{JobError, OperatorGuard};
use crate::dataflow::sole_time::SoleTime;
use crate::index::error::IndexError;
use crate::query::answers::output::AnswerForm;
use crate::query::reading::lines::Refused;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;

/// Takes answers, and refusals of lines that are no queries.
type TakeAnswer = Box<dyn FnMut(Result<QueryAnswer, Refused>) + Send>;

/// Where answers go, in the order of the queries.
pub enum Sink {
    /// They are written as text, and flushed after each batch.
    Text(AnswerForm, Box<dyn Write + Send>),
    /// This is called with each. It makes the job wait as long as it takes.
    Values(TakeAnswer),
}

impl Sink {
    /// Writes answers as text.
    pub fn text(form: AnswerForm, out: impl Write + Send + 'static) -> Self {
        Self::Text(form, Box::new(out))
    }

    /// Gives answers to a function.
    pub fn values(take: impl FnMut(Result<QueryAnswer, Refused>) + Send + 'static) -> Self {
        Self::Values(Box::new(take))
    }

    pub(crate) fn layout(&self) -> AnswerLayout {
        match self {
            Self::Text(form, _) => AnswerLayout::Text(*form),
            Self::Values(_) => AnswerLayout::Values,
        }
    }

    fn put(&mut self, answers: Vec<LaidOutAnswer>) -> io::Result<()> {
        for LaidOutAnswer { out, .. } in answers {
            match (&mut *self, out) {
                (Self::Text(_, to), AnswerOut::Text(text)) => to.write_all(&text)?,
                (Self::Values(take), AnswerOut::Value(answer)) => take(*answer),
                // The layout is that of the sink.
                (Self::Text(..), AnswerOut::Value(_)) | (Self::Values(_), AnswerOut::Text(_)) => {}
            }
        }
        match self {
            Self::Text(_, to) => to.flush(),
            Self::Values(_) => Ok(()),
        }
    }
}

/// Holds the sink until worker 0 takes it.
pub(crate) type AnswerWriter = Mutex<Option<Sink>>;

/// Writes answers in order.
pub(crate) fn collect<'scope>(
    stream: StreamVec<'scope, u64, Local<LaidOutAnswer>>,
    context: &Arc<Context>,
    writer: &AnswerWriter,
) -> StreamVec<'scope, u64, ()> {
    let context = context.clone();
    let worker = stream.scope().index();
    let mut sink = if worker == 0 { lock(writer).take() } else { None };
    let to_writer = Exchange::new(|_: &Local<LaidOutAnswer>| 0);
    stream.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
        to_writer,
        "Collect",
        move |_, _| {
            let guard = OperatorGuard::new(&context.control, "Collect", worker);
            let mut batches: BTreeMap<u64, (Capability<u64>, Vec<LaidOutAnswer>)> = BTreeMap::new();
            move |(input, frontier), _output| {
                input.for_each(|cap, data| {
                    let batch =
                        batches.entry(*cap.time()).or_insert_with(|| (cap.retain(0), Vec::new()));
                    batch.1.extend(data.drain(..).map(|Local(answer)| answer));
                });
                while let Some(entry) = batches.first_entry()
                    && !frontier.less_equal(entry.key())
                {
                    let (_cap, mut answers) = entry.remove();
                    guard.work(|| {
                        let sink = sink.as_mut().ok_or("answers go to worker 0")?;
                        answers.sort_unstable_by_key(|answer| answer.place);
                        match sink.put(answers) {
                            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                                context.control.fail(JobError::OutputClosed);
                            }
                            put => put.map_err(IndexError::io("writing the answers"))?,
                        }
                        context.tally.batches.fetch_add(1, Ordering::Relaxed);
                        context.tally.answering();
                        Ok(())
                    });
                }
            }
        },
    )
}

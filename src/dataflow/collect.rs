//! Writes the answers of each batch, in the order of the queries, as soon as all are there.
//!
//! - In: answers, exchanged to worker 0. Out: a stream without records whose frontier tells which
//!   batches are written.
//! - A slow reader of the output makes this operator wait in its write; batches under way are
//!   bounded, so that nothing piles up. A reader that has gone ends the job.
//! - Work per activation: all complete batches.

use super::answer::Answered;
use super::control::{Guard, JobError};
use super::query::QueryJob;
use crate::dictionary::group::Local;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::operator::Operator;

/// See the [module](self).
pub trait Collect<'scope> {
    /// Writes answers in order.
    fn collect(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, ()>;
}

impl<'scope> Collect<'scope> for StreamVec<'scope, u64, Local<Answered>> {
    fn collect(self, job: &Arc<QueryJob>) -> StreamVec<'scope, u64, ()> {
        let job = job.clone();
        let worker = self.scope().index();
        let to_writer = Exchange::new(|_: &Local<Answered>| 0);
        self.unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
            to_writer,
            "Collect",
            move |_, _| {
                let guard = Guard::new(&job.control, "Collect", worker);
                let mut batches: BTreeMap<u64, (Capability<u64>, Vec<Answered>)> = BTreeMap::new();
                let mut out = None;
                if worker == 0 {
                    out = job.output.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
                }
                move |(input, frontier), _output| {
                    input.for_each(|cap, data| {
                        let batch = batches
                            .entry(*cap.time())
                            .or_insert_with(|| (cap.retain(0), Vec::new()));
                        batch.1.extend(data.drain(..).map(|Local(answer)| answer));
                    });
                    while let Some(entry) = batches.first_entry()
                        && !frontier.less_equal(entry.key())
                    {
                        let (_cap, mut answers) = entry.remove();
                        guard.work(|| {
                            let out = out.as_mut().ok_or("answers go to worker 0")?;
                            answers.sort_unstable_by_key(|answer| answer.place);
                            let mut write = || {
                                answers
                                    .iter()
                                    .try_for_each(|a| out.write_all(a.text.as_bytes()))?;
                                out.flush()
                            };
                            match write() {
                                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                                    job.control.fail(JobError::OutputClosed);
                                }
                                written => written?,
                            }
                            job.batches.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        });
                    }
                }
            },
        )
    }
}

//! Writes runs: the one writer joins the owners' lists in the order of the lexicon.
//!
//! - In: chunks of all owners, exchanged to the last worker, for worker 0 has the documents' table to
//!   end while the last run is written; those of an owner come in the order of the
//!   lexicon, and a trie collection has one owner, so the next list is that of the least collection
//!   at the head of the owners' queues. Out: a stream without records.
//! - Memory: the chunks that the owners may have under way, and the writers' buffers.
//! - Work per activation: all lists that can be written.

use super::build_context::{Build, Progress};
use super::control::{Guard, lock};
use super::local::Local;
use crate::index::run::{EncodedChunk, RunAssembler};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use tracing::debug;

/// See the [module](self).
pub trait Flush<'scope> {
    /// Writes runs; they are noted in `Build::done`.
    fn flush(self, build: &Arc<Build>) -> StreamVec<'scope, u64, ()>;
}

impl<'scope> Flush<'scope> for StreamVec<'scope, u64, Local<EncodedChunk>> {
    fn flush(self, build: &Arc<Build>) -> StreamVec<'scope, u64, ()> {
        let build = build.clone();
        let worker = self.scope().index();
        let writing = build.wiring.writing as u64;
        let to_writer = Exchange::new(move |_: &Local<EncodedChunk>| writing);
        self.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_writer, "Flush", move |_, _| {
            let guard = Guard::new(&build.control, "Flush", worker);
            // An owner that is ahead may have begun the next run.
            let mut runs: BTreeMap<u32, RunAssembler> = BTreeMap::new();
            move |input, _output| {
                input.for_each(|_, data| {
                    for Local(chunk) in data.drain(..) {
                        let part = chunk.part;
                        let owners = if chunk.whole { 1 } else { build.owners.len() };
                        let run = runs.entry(part.run).or_insert_with(|| {
                            RunAssembler::new(&build.directory, build.form, owners, part)
                                .threaded(chunk.whole)
                        });
                        run.take(chunk);
                    }
                });
                while let Some(mut entry) = runs.first_entry() {
                    let done = guard.work(|| {
                        let written = entry.get_mut().write(|owner| {
                            build.wiring.encoded[owner]
                                .written_chunks
                                .fetch_add(1, Ordering::Release);
                        });
                        if !written? {
                            return Ok(false);
                        }
                        let run = entry.remove().finish()?;
                        debug!(run = run.0.name, documents = run.0.documents, "wrote a run");
                        lock(&build.done).runs.push(run);
                        Progress::add(&build.progress.runs, 1);
                        Ok(true)
                    });
                    if done != Some(true) {
                        return;
                    }
                }
            }
        })
    }
}

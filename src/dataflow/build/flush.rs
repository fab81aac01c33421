//! Writes runs: the one writer joins the owners' lists in the order of the lexicon.
//!
//! - In: chunks of all owners, exchanged to the last worker, since worker 0 ends the documents'
//!   table while the last run is written. Those of an owner are put in the order of the lexicon by
//!   the numbers of their shares, and a trie collection has one owner, or owners whose ranges of its
//!   terms rise with their numbers. So the next list is that of the least collection at the head of
//!   the owners' queues, of the first of two owners. Out: a stream without records.
//! - The operator places chunks and writes the lexicon; threads gather, sum and write the lists.
//!   Where a device encodes a whole run, its lists are in their places already.
//! - Memory: the chunks that the owners may have under way, and the writers' buffers.
//! - Work per activation: all lists that can be placed.

use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildPlan, Progress};
use crate::dataflow::control::OperatorGuard;
use crate::dataflow::query::local::Local;
use crate::index::error::IndexError;
use crate::index::run::{LaidChunk, NewRun, RunPart, RunWriter};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;
use tracing::debug;

/// Threads that write the lists, unless one worker does everything: the system lets one at a time
/// write to a file, and the others gather and take checksums meanwhile.
fn writers(workers: usize) -> usize {
    if workers == 1 { 0 } else { (workers / 4).clamp(2, 6) }
}

pub(crate) fn flush<'scope>(
    stream: StreamVec<'scope, u64, Local<LaidChunk>>,
    build: &Build,
) -> StreamVec<'scope, u64, ()> {
    let build = build.clone();
    let worker = stream.scope().index();
    let writing = build.wiring.writing as u64;
    let to_writer = Exchange::new(move |_: &Local<LaidChunk>| writing);
    stream.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_writer, "Flush", move |_, _| {
        let guard = OperatorGuard::new(&build.wiring.control, "Flush", worker);
        // An owner that is ahead may have begun the next run.
        let mut runs: BTreeMap<u32, (RunPart, RunWriter)> = BTreeMap::new();
        move |input, _output| {
            input.for_each(|_, data| {
                for Local(chunk) in data.drain(..) {
                    let run = match runs.entry(chunk.part.run) {
                        Entry::Occupied(open) => open.into_mut(),
                        Entry::Vacant(none) => {
                            match guard.work(|| Ok(create(&build.plan, &chunk)?)) {
                                Some(run) => none.insert((chunk.part, run)),
                                None => return,
                            }
                        }
                    };
                    run.1.take(chunk.part.owner, chunk);
                }
            });
            while let Some(mut entry) = runs.first_entry() {
                let done = guard.work(|| {
                    if !entry.get_mut().1.write()? {
                        return Ok(false);
                    }
                    let (part, run) = entry.remove();
                    let run = run.finish(part.first_docid, part.documents)?;
                    debug!(run = run.0.name, documents = run.0.documents, "wrote a run");
                    lock(&build.progress.done).runs.push(run);
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

/// Not synced: a merge may make the run superfluous.
fn create(plan: &BuildPlan, chunk: &LaidChunk) -> Result<RunWriter, IndexError> {
    let owners = if chunk.whole { 1 } else { plan.owners.len() };
    let run = NewRun {
        folder: &plan.directory,
        number: chunk.part.run,
        form: plan.form,
        lists: chunk.placed.clone(),
        threads: writers(plan.workers),
    };
    RunWriter::create(run, vec![0; owners])
}

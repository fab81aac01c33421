//! Writes the documents of all runs: the one writer, on worker 0.
//!
//! - In: the documents of every piece, exchanged to worker 0. Out: a stream without records whose
//!   frontier tells which pieces are written.
//! - Batches wait until every earlier piece is written, for docids are places in this order. Where a
//!   run ends is known from the counts of the pieces, as every owner knows it.
//! - Memory: `NAMES_SHARE` of the budget for the hashes of names.
//! - Work per activation: all batches whose turn it is.

use super::build_context::Build;
use super::control::Guard;
use super::local::Local;
use crate::input::documents::{DocumentsTable, NAMES_SHARE, PieceDocuments};
use std::collections::BTreeMap;
use std::sync::Arc;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

/// Makes the writing operator.
pub fn write_documents<'scope>(
    batches: StreamVec<'scope, u64, Local<PieceDocuments>>,
    build: &Arc<Build>,
) -> StreamVec<'scope, u64, ()> {
    let build = build.clone();
    let scope = batches.scope();
    let worker = scope.index();
    let mut builder = OperatorBuilder::new("Documents".to_owned(), scope);
    let mut input = builder.new_input(batches, Exchange::new(|_: &Local<PieceDocuments>| 0));
    let (output, written) = builder.new_output::<Vec<()>>();
    drop(output);
    builder.build(move |_| {
        let guard = Guard::new(&build.control, "Documents", worker);
        let mut waiting: BTreeMap<u64, (Capability<u64>, PieceDocuments)> = BTreeMap::new();
        // Worker 0 writes, the others have nothing to do.
        let mut table = (worker == 0).then(|| {
            let (directory, budget) = (&build.directory, &build.budget);
            DocumentsTable::new(directory, budget.run_limit, budget.memory / NAMES_SHARE)
        });
        move |frontiers| {
            input.for_each(|cap, data| {
                for Local(batch) in data.drain(..) {
                    waiting.insert(*cap.time(), (cap.retain(0), batch));
                }
            });
            let frontier = &frontiers[0];
            while let Some(entry) = waiting.first_entry()
                && !frontier.less_equal(entry.key())
            {
                let (_cap, batch) = entry.remove();
                build.wiring.flow.absorbed(batch.bytes());
                guard.work(|| {
                    let table = table.as_mut().ok_or("documents go to worker 0")?;
                    table.write(&build.plan, build.strict, &batch)
                });
            }
            if waiting.is_empty()
                && frontier.is_empty()
                && let Some(table) = table.take()
            {
                guard.work(|| {
                    let done = table.finish()?;
                    build.done.lock().unwrap_or_else(|p| p.into_inner()).documents = Some(done);
                    Ok(())
                });
            }
        }
    });
    written
}

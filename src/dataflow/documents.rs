//! Writes the documents of all runs: the one writer, on worker 0. Where documents are passed over because they are known, all
//! are noted beside that.
//!
//! - In: the documents of every piece, exchanged to worker 0. Out: a stream without records whose
//!   frontier tells which pieces are written.
//! - Batches wait until every earlier piece is written, for docids are places in this order. Where a
//!   run ends is known from the counts of the pieces, as every owner knows it.
//! - Memory: `NAMES_SHARE` of the budget for the hashes of names.
//! - Work per activation: all batches whose turn it is.

use super::build_context::Build;
use super::control::{Cause, Guard, lock};
use super::local::Local;
use super::sole_time::SoleTime;
use crate::input::documents::{DocumentsTable, NAMES_SHARE, PieceDocuments};
use crate::rebuild::scanned::Scan;
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
    // Worker 0 writes, the others have nothing to do.
    let tables = (batches.scope().index() == 0).then(|| {
        let (directory, budget) = (&build.directory, &build.budget);
        let table = DocumentsTable::new(directory, budget.run_limit, budget.memory / NAMES_SHARE);
        Ok((table, lock(&build.scan).take()))
    });
    let write = |(table, scan): &mut (DocumentsTable, Option<Scan>), build: &Build, batch: &_| {
        if let Some(scan) = scan {
            scan.take(&build.plan, batch)?;
        }
        build.wiring.ahead.expect(batch.counts.list_bytes);
        table.write(&build.plan, build.strict, batch)
    };
    take_in_order("Documents", (batches, build), tables, write, |(table, scan), build| {
        let scanned = scan.map(Scan::finish).transpose()?;
        let mut done = lock(&build.done);
        (done.documents, done.scanned) = (Some(table.finish(build.workers)?), scanned);
        Ok(())
    })
}

/// Makes an operator that lets worker 0, which alone has a `taker`, take the documents of all pieces in
/// the order of the input, and finish when there are no more.
pub(super) fn take_in_order<'scope, T: 'static>(
    name: &'static str,
    (batches, build): (StreamVec<'scope, u64, Local<PieceDocuments>>, &Arc<Build>),
    taker: Option<Result<T, Cause>>,
    mut take: impl FnMut(&mut T, &Build, &PieceDocuments) -> Result<(), Cause> + 'static,
    mut finish: impl FnMut(T, &Build) -> Result<(), Cause> + 'static,
) -> StreamVec<'scope, u64, ()> {
    let (build, scope) = (build.clone(), batches.scope());
    let worker = scope.index();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let mut input = builder.new_input(batches, Exchange::new(|_: &Local<PieceDocuments>| 0));
    let (output, taken) = builder.new_output::<Vec<()>>();
    drop(output);
    builder.build(move |_| {
        let guard = Guard::new(&build.control, name, worker);
        let mut waiting: BTreeMap<u64, (Capability<u64>, PieceDocuments)> = BTreeMap::new();
        let mut taker = taker.and_then(|taker| guard.work(|| taker));
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
                    let taker = taker.as_mut().ok_or("documents go to worker 0")?;
                    take(taker, &build, &batch)
                });
            }
            if waiting.is_empty()
                && frontier.is_empty()
                && let Some(taker) = taker.take()
            {
                guard.work(|| finish(taker, &build));
            }
        }
    });
    taken
}

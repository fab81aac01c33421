//! Writes the documents of all runs: worker 0 places those of each piece, and all workers write
//! them. Where known documents are skipped, all are noted too.
//!
//! - In: the documents of every piece, exchanged to worker 0, and from there to one worker after
//!   the other. Out: a stream without records whose frontier tells which pieces are written.
//! - Batches wait until every earlier piece is placed, for docids are places in this order. The
//!   counts of the pieces tell where a run ends, as they tell every owner.
//! - Memory: `NAMES_SHARE` of the budget for the hashes of names.
//! - Work per activation: all batches that no earlier one is missing before; one that is to be
//!   written here, since many are placed at once where a device counts, and workers would wait.

use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildPlan, Progress};
use crate::dataflow::control::{Cause, Control, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::rebuild::seen::SeenWriter;
use crate::dataflow::sole_time::SoleTime;
use crate::index::documents::pieces::PieceDocuments;
use crate::index::documents::pieces::table::{
    DocumentsDone, DocumentsTable, LinesBefore, PieceRows,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::generic::operator::Operator;

/// The worker that writes, and the documents of a piece.
type ToWrite = Local<(u64, PieceRows)>;

pub(crate) fn write_documents<'scope>(
    batches: StreamVec<'scope, u64, Local<PieceDocuments>>,
    build: &Build,
) -> StreamVec<'scope, u64, ()> {
    let tables = (batches.scope().index() == 0).then(|| {
        let BuildPlan { directory, first_run, budget, input, .. } = &*build.plan;
        let table = DocumentsTable::new(directory, *first_run, budget, input.columns.clone())
            .with_fields(input.index_fields.len());
        let plan = build.plan.clone();
        let before: LinesBefore = Box::new(move || Ok(plan.input.lines_before()?));
        let table = table.behind(Some(before).filter(|_| input.begins_within()));
        Ok((table, lock(&build.progress.seen).take()))
    });
    let mut writer = 0;
    let (plan, wiring) = (build.plan.clone(), build.wiring.clone());
    let place = move |(table, seen): &mut (DocumentsTable, Option<SeenWriter>),
                      mut batch: PieceDocuments| {
        if let Some(seen) = seen {
            let noted = std::mem::take(&mut batch.seen);
            wiring.flow.absorbed(noted.bytes());
            seen.take(&plan.input, &batch, noted)?;
        }
        let bytes = batch.bytes();
        let path = |input| plan.input.path(input);
        let Some(rows) = table.place(plan.strict, batch, path)? else {
            wiring.flow.absorbed(bytes);
            return Ok(None);
        };
        writer += 1;
        Ok(Some(Local((writer, rows))))
    };
    let progress = build.progress.clone();
    let finish = move |(table, seen): (DocumentsTable, Option<SeenWriter>)| {
        lock(&progress.done).seen = seen.map(SeenWriter::finish).transpose()?;
        note(&progress, table.finish()?);
        Ok(())
    };
    let control = &build.wiring.control;
    write(take_in_order("Documents", batches, control, tables, place, finish), build)
}

/// The names of inputs, after which documents without a name are called.
fn input_name<'a>(plan: &'a BuildPlan) -> impl Fn(u32) -> Cow<'a, str> {
    |input| plan.input.inputs.name(input as usize)
}

/// Stores what came of the table, if it is complete.
fn note(progress: &Progress, done: Option<DocumentsDone>) {
    if done.is_some() {
        lock(&progress.done).documents = done;
    }
}

fn write<'scope>(
    rows: StreamVec<'scope, u64, ToWrite>,
    build: &Build,
) -> StreamVec<'scope, u64, ()> {
    let build = build.clone();
    let worker = rows.scope().index();
    let to_writer = Exchange::new(|Local((writer, _)): &ToWrite| *writer);
    let name = "WriteDocuments";
    let scope = rows.scope();
    rows.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_writer, name, move |_, info| {
        let guard = OperatorGuard::new(&build.wiring.control, name, worker);
        let activator = scope.activator_for(info.address);
        let mut waiting = VecDeque::new();
        move |input, _output| {
            input.for_each(|cap, data| {
                waiting.extend(data.drain(..).map(|Local((_, rows))| (cap.retain(0), rows)));
            });
            let Some((_until_written, rows)) = waiting.pop_front() else { return };
            let bytes = rows.bytes();
            guard.work(|| {
                note(&build.progress, rows.write(input_name(&build.plan))?);
                Ok(())
            });
            build.wiring.flow.absorbed(bytes);
            if !waiting.is_empty() {
                activator.activate();
            }
        }
    })
}

/// Makes an operator by which worker 0, which alone has a `taker`, takes the documents of all
/// pieces in the order of the input, and finishes behind the last. The result for a piece goes out
/// at its position; the taker says when the piece is absorbed.
pub(crate) fn take_in_order<'scope, T: 'static, R: 'static>(
    name: &'static str,
    batches: StreamVec<'scope, u64, Local<PieceDocuments>>,
    control: &Arc<Control>,
    taker: Option<Result<T, Cause>>,
    mut take: impl FnMut(&mut T, PieceDocuments) -> Result<Option<R>, Cause> + 'static,
    mut finish: impl FnMut(T) -> Result<(), Cause> + 'static,
) -> StreamVec<'scope, u64, R> {
    let control = control.clone();
    let scope = batches.scope();
    let worker = scope.index();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let mut input = builder.new_input(batches, Exchange::new(|_: &Local<PieceDocuments>| 0));
    let (output, taken) = builder.new_output::<Vec<R>>();
    let mut output = OutputBuilder::from(output);
    builder.build(move |_| {
        let guard = OperatorGuard::new(&control, name, worker);
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
                let (cap, batch) = entry.remove();
                let came = guard.work(|| {
                    let taker = taker.as_mut().ok_or("documents go to worker 0")?;
                    take(taker, batch)
                });
                if let Some(Some(came)) = came {
                    output.activate().session(&cap).give(came);
                }
            }
            if waiting.is_empty()
                && frontier.is_empty()
                && let Some(taker) = taker.take()
            {
                guard.work(|| finish(taker));
            }
        }
    });
    taken
}

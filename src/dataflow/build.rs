//! Joins the operators of the build job.

pub(crate) mod context;
pub(crate) mod decompress;
pub(crate) mod documents;
pub(crate) mod encode;
pub(crate) mod feed;
pub(crate) mod flow;
pub(crate) mod flush;
pub(crate) mod handed;
pub(crate) mod index;
#[cfg(feature = "gpu")]
pub(crate) mod invert;
pub(crate) mod parse;
pub(crate) mod read;
#[cfg(test)]
mod tests;

use crate::dataflow::build::context::Build;
use crate::dataflow::build::documents::write_documents;
use crate::dataflow::build::encode::encode;
use crate::dataflow::build::flush::flush;
use crate::dataflow::build::handed::{HandedLane, Joining};
use crate::dataflow::build::index::index;
#[cfg(feature = "gpu")]
use crate::dataflow::build::invert::invert;
use crate::dataflow::build::parse::parse_input;
use crate::dictionary::device::texts::TextGatherer;
use crate::dictionary::indexer::Indexing;
use crate::dictionary::tally::Tally;
use std::sync::Arc;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::{Concat, Probe};
use timely::worker::Worker;

/// Joins the operators on one worker:
///
/// ```text
/// read -> decompress -> parse -> (exchange by owner) -> index, or a lane handed in
///                          `---> (exchange) -> documents        |
///                                                  (exchange) <-'
///                                                       `-> encode -> (exchange) -> flush
/// ```
///
/// or, where a device takes texts,
///
/// ```text
/// read -> decompress -> parse -> (exchange) -> invert -> documents
///                                                 |`--> (exchange) -> encode -----------.
///                                                 |                 (exchange) -> flush <'
///                                                 `--> lists of the device --^
/// ```
pub(crate) fn assemble(build: &Build, handed: Option<&Arc<dyn HandedLane>>, worker: &mut Worker) {
    worker.dataflow_named::<u64, _, _>("build", |scope| {
        let absorbed = ProbeHandle::new();
        let Build { plan, wiring, .. } = build;
        let analysis = plan.analysis.clone();
        let memo_bytes = plan.budget.memo() as usize;
        let (runs, indexed, batches, encoded) = match wiring.indexing {
            Indexing::Postings => {
                let tally = Tally::new(analysis, plan.owners.clone(), memo_bytes)
                    .with_positions(plan.form.has_positions())
                    .with_fields(plan.input.index_fields.len());
                let (groups, batches) = parse_input(scope, build, &absorbed, tally);
                let (runs, indexed) = index(groups, plan, wiring);
                (runs, indexed, batches, None)
            }
            Indexing::Tokens => {
                let lane = handed.expect("this indexer was handed in").clone();
                let at = Joining { scope, build, absorbed: &absorbed };
                let ((runs, indexed), batches) = lane.join(at);
                (runs, indexed, batches, None)
            }
            #[cfg(not(feature = "gpu"))]
            Indexing::Texts => unreachable!("no build without GPUs has this indexer"),
            #[cfg(feature = "gpu")]
            Indexing::Texts => {
                let texts = TextGatherer::new(wiring.texts.clone()).prepared_by(&analysis);
                let (texts, batches) = parse_input(scope, build, &absorbed, texts);
                let (runs, batches, indexed, encoded) = invert(texts, batches, build);
                (runs, indexed, batches, Some(encoded))
            }
        };
        let written = write_documents(batches, build);
        indexed.concat(written).probe_with(&absorbed);
        let lists = encode(runs, plan, wiring);
        match encoded {
            Some(encoded) => flush(lists.concat(encoded), build),
            None => flush(lists, build),
        };
    });
}

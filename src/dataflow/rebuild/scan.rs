//! Lists the documents of the input without indexing them: names, places and content hashes.
//!
//! ```text
//! read -> decompress -> parse (of nothing) -> (exchange) -> scan
//! ```
//!
//! - In: the inputs of a build. Out: [`Scanned`](super::scanned::Scanned), once the dataflow is
//!   complete: a table of all documents sorted by name, and their places in the order of the input,
//!   both on disk.
//! - Memory: a build's for what is under way, and a part of the budget for sorting.
//! - Work per activation: as in a build; in `scan` all batches whose turn it is.

use crate::crew::lock;
use crate::dataflow::build::context::Build;
use crate::dataflow::build::documents::take_in_order;
use crate::dataflow::build::parse::parse_input;
use crate::dataflow::control::JobError;
use crate::dataflow::query::local::Local;
use crate::dataflow::rebuild::scanned::InputScan;
use crate::dataflow::workers;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::dictionary::vector::Vector;
use crate::index::documents::pieces::PieceDocuments;
use std::convert::Infallible;
use timely::dataflow::operators::Probe;
use timely::dataflow::{ProbeHandle, StreamVec};
use timely::worker::Worker;

/// Reads the inputs of `build`, on its workers; its `scan` takes all documents and becomes
/// `scanned`.
pub(crate) fn scan(build: &Build) -> Result<(), JobError> {
    let shared = build.clone();
    workers::run(build.plan.workers, &build.wiring.control, move |worker| assemble(worker, &shared))
}

fn assemble(worker: &mut Worker, build: &Build) {
    worker.dataflow_named::<u64, _, _>("scan", |scope| {
        let absorbed = ProbeHandle::new();
        let (_groups, batches) = parse_input(scope, build, &absorbed, Nothing { documents: 0 });
        take_documents(batches, build).probe_with(&absorbed);
    });
}

fn take_documents<'scope>(
    batches: StreamVec<'scope, u64, Local<PieceDocuments>>,
    build: &Build,
) -> StreamVec<'scope, u64, ()> {
    let scan = (batches.scope().index() == 0)
        .then(|| lock(&build.progress.scan).take().ok_or("nothing notes the documents".into()));
    let (plan, wiring, progress) =
        (build.plan.clone(), build.wiring.clone(), build.progress.clone());
    let take = move |scan: &mut InputScan, batch: PieceDocuments| {
        wiring.flow.absorbed(batch.bytes());
        scan.take(&plan.input, &batch)?;
        Ok(None)
    };
    take_in_order("Scan", batches, &build.wiring.control, scan, take, move |scan| {
        lock(&progress.done).scanned = Some(scan.finish()?);
        Ok(())
    })
}

/// Makes no groups: only the documents of a piece are wanted.
struct Nothing {
    documents: u32,
}

impl PieceGroup for Infallible {
    fn memory_bytes(&self) -> usize {
        match *self {}
    }
}

impl Regroup for Nothing {
    type Group = Infallible;

    fn document(&mut self, _: &[u8]) -> u32 {
        self.documents += 1;
        0
    }

    fn vector(&mut self, _: Vector<'_>) -> u32 {
        self.documents += 1;
        0
    }

    fn documents(&self) -> u32 {
        self.documents
    }

    fn finish(&mut self) -> Vec<Infallible> {
        self.documents = 0;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::harness::{WorkerStep, build, failure, pass, plan_of};
    use crate::dataflow::rebuild::table::name_hash;
    use crate::index::documents::Location;
    use crate::index::documents::pieces::Skipped;

    /// A piece with one document, which has no name if that is empty.
    fn batch(name: &str, offset: u64, skipped: Vec<Skipped>) -> Local<PieceDocuments> {
        let mut batch = PieceDocuments::new(0, skipped.into_iter().collect());
        let location = Location { offset, bytes: 3, input: 0 };
        batch.push(name, 1, location, Some((2, 7 + offset)));
        Local(batch)
    }

    #[test]
    fn all_documents_are_taken_in_order_and_a_folder_that_is_not_there_ends_the_job() {
        for is_there in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let plan = plan_of(folder.path(), "a.jsonl", b"");
            let shared = build(plan, folder.path());
            let scan = InputScan::new(folder.path(), 1 << 16).unwrap();
            *lock(&shared.progress.scan) = Some(scan);
            if !is_there {
                // The folder of the table is gone when it is written.
                std::fs::remove_dir_all(folder.path()).unwrap();
            }
            let given = shared.clone();
            let passed = pass(
                || {
                    let reason = "bad JSON";
                    let detail = "no object".to_string();
                    let bad = Skipped { input: 0, offset: 5, line: 2, reason, detail };
                    vec![
                        WorkerStep { records: vec![(2, batch("", 20, vec![bad]))], then: Some(2) },
                        WorkerStep { records: vec![(4, batch("b", 40, vec![]))], then: Some(5) },
                        WorkerStep { records: vec![], then: None },
                    ]
                },
                move |stream| take_documents(stream, &given),
                |()| (),
            );
            let Some(scanned) = lock(&shared.progress.done).scanned.take() else {
                assert!(!is_there);
                assert_eq!(failure(&shared.wiring.control).unwrap().0, "Scan");
                continue;
            };
            assert!(is_there);
            assert_eq!(passed.frontier, [Some(2), Some(5), None], "an earlier piece may come");
            let entries = scanned.table.entries(0..scanned.table.len()).unwrap();
            let content = |name: &str| {
                let name = name_hash(name.as_bytes());
                entries.iter().find(|e| e.name == name).map(|e| (e.number, e.content))
            };
            let unnamed = format!("{}:1", shared.plan.input.inputs.name(0));
            assert_eq!((entries.len(), content("b")), (2, Some((1, 47))));
            assert_eq!(
                content(&unnamed),
                Some((0, 27)),
                "a document without a name has its line's"
            );
            let places = std::fs::read(&scanned.places).unwrap();
            assert_eq!(places.len(), 2 * size_of::<Location>());
            assert_eq!(scanned.skipped.get("bad JSON"), Some(&1));
        }
    }
}

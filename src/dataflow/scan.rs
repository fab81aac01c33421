//! Which documents are in the input, without indexing them? Their names, places and content hashes.
//!
//! ```text
//! read -> decompress -> parse (of nothing) -> (exchange) -> scan
//! ```
//!
//! - In: the inputs of a build. Out: [`Scanned`], once the dataflow is complete: a table of all documents
//!   sorted by name, and their places in the order of the input, both on disk.
//! - Memory: a build's for what is under way, and a part of the budget for sorting.
//! - Work per activation: as in a build; in `scan` all batches whose turn it is.

use super::build_context::Build;
use super::control::{Cause, JobError, lock};
use super::decompress::Decompress;
use super::documents::take_in_order;
use super::local::Local;
use super::parse::Parse;
use super::read::read;
use super::workers;
use crate::dictionary::owners::Owners;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::input::documents::PieceDocuments;
use crate::order::PieceCounts;
use crate::rebuild::table::{Entry, Sorter, Table, name_hash};
use crate::text::analysis::Analysis;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use timely::dataflow::operators::Probe;
use timely::dataflow::{ProbeHandle, StreamVec};
use timely::worker::Worker;

/// What is in the input.
pub struct Scanned {
    /// All documents; their numbers are places in `places`.
    pub table: Table,
    /// The place of each document, 16 bytes each, in the order of the input.
    pub places: PathBuf,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Messages of the first of them.
    pub first_skipped: Vec<String>,
}

/// Reads the inputs of `build`, on its workers; files are made in `folder`, which sorting `memory` bytes at a
/// time may use too.
///
/// # Errors
/// When an input cannot be read or is cut short, or the job is told to end.
pub fn scan(build: &Arc<Build>, folder: &Path, memory: u64) -> Result<Scanned, JobError> {
    let done: Arc<Mutex<Option<Scanned>>> = Arc::default();
    let (shared, result, folder) = (build.clone(), done.clone(), folder.to_path_buf());
    workers::run(build.workers, &build.control, move |worker| {
        let scan = (worker.index() == 0).then(|| Scan::new(&folder, memory));
        assemble(worker, &shared, scan, &done);
    })?;
    let scanned = lock(&result).take();
    scanned.ok_or_else(|| JobError::Start("the scan left no table".into()))
}

fn assemble(
    worker: &mut Worker,
    build: &Arc<Build>,
    scan: Option<Result<Scan, Cause>>,
    done: &Arc<Mutex<Option<Scanned>>>,
) {
    worker.dataflow_named::<u64, _, _>("scan", |scope| {
        let absorbed = ProbeHandle::new();
        let (blocks, feed) = read(scope, build);
        let pieces = blocks.decompress(build, feed.clone(), absorbed.clone());
        let (_groups, batches) = pieces.parse::<Nothing>(build, feed);
        take_documents(batches, build, scan, done.clone()).probe_with(&absorbed);
    });
}

/// Makes the operator that puts all documents into the table, and says when it is `done`.
fn take_documents<'scope>(
    batches: StreamVec<'scope, u64, Local<PieceDocuments>>,
    build: &Arc<Build>,
    scan: Option<Result<Scan, Cause>>,
    done: Arc<Mutex<Option<Scanned>>>,
) -> StreamVec<'scope, u64, ()> {
    take_in_order("Scan", (batches, build), scan, Scan::take, move |scan, _| {
        *lock(&done) = Some(scan.finish()?);
        Ok(())
    })
}

/// Skipped records that are named.
const NAMED: usize = 5;

/// The table that grows.
struct Scan {
    sorter: Sorter,
    table: PathBuf,
    places: PathBuf,
    file: BufWriter<File>,
    number: u32,
    skipped: BTreeMap<String, u64>,
    first_skipped: Vec<String>,
    /// The current input, and its lines before the current piece.
    input: u32,
    lines: u64,
    name: String,
}

impl Scan {
    fn new(folder: &Path, memory: u64) -> Result<Self, Cause> {
        let places = folder.join("places");
        Ok(Self {
            sorter: Sorter::new(folder, memory),
            table: folder.join("documents"),
            file: BufWriter::with_capacity(1 << 18, File::create(&places)?),
            places,
            number: 0,
            skipped: BTreeMap::new(),
            first_skipped: Vec::new(),
            input: 0,
            lines: 0,
            name: String::new(),
        })
    }

    fn take(&mut self, build: &Build, batch: &PieceDocuments) -> Result<(), Cause> {
        if batch.input != self.input {
            (self.input, self.lines) = (batch.input, 0);
        }
        for (name, line, location, content) in batch.rows() {
            let mut name = name;
            if name.is_empty() {
                let file = build.plan.inputs.name(location.input as usize);
                self.name = format!("{file}:{}", self.lines + line);
                name = &self.name;
            }
            let (name, input) = (name_hash(name.as_bytes()), location.input);
            self.sorter.push(Entry { name, content, input, number: self.number })?;
            self.file.write_all(bytemuck::bytes_of(&location))?;
            self.number = self.number.checked_add(1).ok_or("more than 2^32 - 1 documents")?;
        }
        for skipped in &batch.skipped {
            if self.first_skipped.len() < NAMED {
                let place = build.plan.path(skipped.input);
                self.first_skipped
                    .push(format!("{place}: byte {}: {}", skipped.offset, skipped.detail));
            }
            *self.skipped.entry(skipped.reason.to_string()).or_default() += 1;
        }
        self.lines += batch.lines;
        Ok(())
    }

    fn finish(self) -> Result<Scanned, Cause> {
        self.file.into_inner().map_err(|error| error.into_error())?;
        let (places, skipped, first_skipped) = (self.places, self.skipped, self.first_skipped);
        Ok(Scanned { table: self.sorter.finish(&self.table)?, places, skipped, first_skipped })
    }
}

/// Makes no groups: the documents of a piece are all that is wanted.
struct Nothing {
    documents: u32,
}

/// What nobody gets: there is none.
enum NoGroup {}

impl PieceGroup for NoGroup {
    fn memory_bytes(&self) -> usize {
        match *self {}
    }

    fn owner(&self) -> u32 {
        match *self {}
    }

    fn counts(&self) -> &Arc<PieceCounts> {
        match *self {}
    }

    fn lengths(&self) -> &Arc<[u8]> {
        match *self {}
    }
}

impl Regroup for Nothing {
    type Group = NoGroup;

    fn new(_: Analysis, _: Arc<Owners>, _: usize) -> Self {
        Self { documents: 0 }
    }

    fn document(&mut self, _: &[u8]) -> u32 {
        self.documents += 1;
        0
    }

    fn documents(&self) -> u32 {
        self.documents
    }

    fn finish(&mut self) -> Vec<NoGroup> {
        self.documents = 0;
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::harness::{Step, build, failure, pass, plan_of};
    use crate::index::documents::Location;
    use crate::input::piece::Skipped;

    /// A piece with one document, which has no name if that is empty.
    fn batch(name: &str, offset: u64, skipped: Vec<Skipped>) -> Local<PieceDocuments> {
        let mut batch = PieceDocuments::new(0, skipped);
        batch.push(name, 1, 2, Location { offset, bytes: 3, input: 0 }, 7 + offset);
        Local(batch)
    }

    #[test]
    fn all_documents_are_taken_in_order_and_a_folder_that_is_not_there_ends_the_job() {
        for is_there in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let plan = plan_of(folder.path(), "a.jsonl", b"");
            let shared = Arc::new(build(plan, folder.path()));
            let folder = folder.path().join(if is_there { "." } else { "gone" });
            let done: Arc<Mutex<Option<Scanned>>> = Arc::default();
            let (given, result) = (shared.clone(), done.clone());
            let passed = pass(
                || {
                    let (reason, detail) = ("bad JSON", "no object".to_string());
                    let bad = Skipped { input: 0, offset: 5, line: 2, reason, detail };
                    vec![
                        Step { records: vec![(2, batch("", 20, vec![bad]))], then: Some(2) },
                        Step { records: vec![(4, batch("b", 40, vec![]))], then: Some(5) },
                        Step { records: vec![], then: None },
                    ]
                },
                move |stream| {
                    let scan = Scan::new(&folder, 1 << 16);
                    take_documents(stream, &given, Some(scan), done.clone())
                },
                |()| (),
            );
            let Some(scanned) = lock(&result).take() else {
                assert!(!is_there);
                assert_eq!(failure(&shared.control).unwrap().0, "Scan");
                continue;
            };
            assert!(is_there);
            assert_eq!(passed.frontier, [Some(2), Some(5), None], "an earlier piece may come");
            let entries = scanned.table.entries(0..scanned.table.len()).unwrap();
            let content = |name: &str| {
                let name = name_hash(name.as_bytes());
                entries.iter().find(|e| e.name == name).map(|e| (e.number, e.content))
            };
            let unnamed = format!("{}:1", shared.plan.inputs.name(0));
            assert_eq!((entries.len(), content("b")), (2, Some((1, 47))));
            assert_eq!(
                content(&unnamed),
                Some((0, 27)),
                "a document without a name has its line's"
            );
            let places = std::fs::read(&scanned.places).unwrap();
            assert_eq!(places.len(), 2 * size_of::<Location>());
            assert_eq!(scanned.skipped.get("bad JSON"), Some(&1));
            let bad = "a.jsonl: byte 5: no object";
            assert!(scanned.first_skipped[0].ends_with(bad), "{:?}", scanned.first_skipped);
        }
    }
}

//! Which documents did the pieces hold? The documents of one piece, and the table of all, which is written
//! run by run in the order of the input.

use super::piece::Skipped;
use super::splits::Plan;
use crate::dictionary::names::{Duplicates, Names};
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location};
use crate::index::storage::Durability;
use crate::order::{PieceCounts, Sequencer};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Any error of the table.
type Cause = Box<dyn Error + Send + Sync>;

/// The documents of one piece.
pub struct PieceDocuments {
    /// Number of the input of the piece, or of the last document while the batch grows.
    pub input: u32,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
    /// Lines of the piece, where lines count.
    pub lines: u64,
    /// What the piece counts.
    pub counts: Arc<PieceCounts>,
    rows: Rows,
    /// All documents, where only some are indexed and all are looked at.
    seen: Option<Rows>,
}

/// Documents with their names.
#[derive(Default)]
struct Rows {
    names: String,
    documents: Vec<Row>,
}

impl Rows {
    fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.names.push_str(name);
        let name_end = self.names.len();
        self.documents.push(Row { name_end, line, length, location, content });
    }

    fn bytes(&self) -> usize {
        self.names.capacity() + self.documents.capacity() * size_of::<Row>()
    }
}

/// A document of a [`PieceDocuments`].
struct Row {
    /// Where its name ends; an empty name is made from input and line.
    name_end: usize,
    line: u64,
    length: u32,
    location: Location,
    content: u64,
}

impl PieceDocuments {
    /// Makes a batch without documents.
    pub fn new(input: u32, skipped: Vec<Skipped>) -> Self {
        let (lines, counts, rows, seen) = Default::default();
        Self { input, skipped, lines, counts, rows, seen }
    }

    /// Adds a document with the hash of its `content`; an empty name is missing.
    pub fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.rows.push(name, line, length, location, content);
    }

    /// Notes a document, whether it is indexed or not; all are noted, or none.
    pub fn see(&mut self, name: &str, line: u64, location: Location, content: u64) {
        self.seen.get_or_insert_default().push(name, line, 0, location, content);
    }

    /// Says what the piece counts, and the lengths of its documents, where these were not known as they were pushed.
    ///
    /// # Panics
    /// If there are not as many lengths as documents.
    pub fn count(&mut self, counts: Arc<PieceCounts>, lengths: &[u32]) {
        let documents = &mut self.rows.documents;
        assert_eq!(lengths.len(), documents.len(), "each document has a length");
        for (row, &length) in documents.iter_mut().zip(lengths) {
            row.length = length;
        }
        self.counts = counts;
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.seen.as_ref().map_or(0, Rows::bytes)
    }

    /// All documents, those among them that are not indexed: name, or none if it has to be made, line, place, and hash of
    /// the content.
    pub fn all(&self) -> impl Iterator<Item = (&str, u64, Location, u64)> {
        let (rows, mut start) = (self.seen.as_ref().unwrap_or(&self.rows), 0);
        rows.documents.iter().map(move |row| {
            let name = &rows.names[start..row.name_end];
            start = row.name_end;
            (name, row.line, row.location, row.content)
        })
    }

    /// Documents in the batch that are indexed.
    pub fn documents(&self) -> u32 {
        self.rows.documents.len() as u32
    }
}

/// The documents of all runs and what was found on the way.
pub struct DocumentsDone {
    /// What was written of each run. It is not synced: a merge may make it superfluous.
    pub runs: Vec<DocumentsEntry>,
    /// Documents, their indexed tokens, and documents without one.
    pub documents: u32,
    /// Indexed tokens.
    pub tokens: u64,
    /// Documents without an indexed token.
    pub empty: u64,
    /// Names that occur more than once.
    pub duplicates: Counting,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Messages of the first of them.
    pub first_skipped: Vec<String>,
}

/// A thread that has the names counted that occur more than once, while the last run is encoded.
pub struct Counting(JoinHandle<io::Result<Duplicates>>);

impl Counting {
    /// What it has found.
    ///
    /// # Errors
    /// The file of the names' hashes, in `directory`, cannot be read.
    pub fn wait(self, directory: &Path) -> Result<Duplicates, Cause> {
        let counted = self.0.join().map_err(|_| "counting the names panicked")?;
        counted.map_err(|e| names_error(directory, &e))
    }
}

/// Skipped records that are named.
const NAMED: usize = 5;

/// The part of the memory that hashes of names may take: one of so many.
pub const NAMES_SHARE: u64 = 64;

/// The documents of all runs of a build, which are written as they come.
pub struct DocumentsTable {
    directory: PathBuf,
    sequencer: Sequencer,
    /// The open run's, once it has a document.
    writer: Option<DocumentsWriter>,
    runs: Vec<DocumentsEntry>,
    names: Names,
    documents: u32,
    tokens: u64,
    empty: u64,
    skipped: BTreeMap<String, u64>,
    first_skipped: Vec<String>,
    /// Lines of the current input before the current piece.
    input: u32,
    lines: u64,
    name: String,
}

impl DocumentsTable {
    /// A table in the folder of a generation of which runs end at `run_limit`; the hashes of names take
    /// `names_bytes` of memory.
    pub fn new(directory: &Path, run_limit: u64, names_bytes: u64) -> Self {
        Self {
            directory: directory.to_path_buf(),
            sequencer: Sequencer::new(run_limit),
            writer: None,
            runs: Vec::new(),
            names: Names::new(directory, names_bytes),
            documents: 0,
            tokens: 0,
            empty: 0,
            skipped: BTreeMap::new(),
            first_skipped: Vec::new(),
            input: 0,
            lines: 0,
            name: String::new(),
        }
    }

    /// Writes the documents of the next piece. What was passed over is counted, or an error of a `strict`
    /// build.
    ///
    /// # Errors
    /// When the files cannot be written, there are more documents than docids, or of a strict build.
    pub fn write(
        &mut self,
        plan: &Plan,
        strict: bool,
        batch: &PieceDocuments,
    ) -> Result<(), Cause> {
        if batch.input != self.input {
            (self.input, self.lines) = (batch.input, 0);
        }
        let placement = self.sequencer.place(&batch.counts)?;
        let mut start = 0;
        for row in &batch.rows.documents {
            let mut name = &batch.rows.names[start..row.name_end];
            start = row.name_end;
            if name.is_empty() {
                let file = plan.inputs.name(row.location.input as usize);
                self.name = format!("{file}:{}", self.lines + row.line);
                name = &self.name;
            }
            self.names
                .push(name.as_bytes(), self.documents)
                .map_err(|e| names_error(&self.directory, &e))?;
            let writer = match &mut self.writer {
                Some(writer) => writer,
                none => {
                    let (run, input) = (placement.run, row.location.input);
                    let (folder, scratch) = (&self.directory, Durability::Scratch);
                    none.insert(DocumentsWriter::create(folder, run, scratch, input)?)
                }
            };
            writer.push(name.as_bytes(), row.length, row.location, row.content)?;
            self.documents += 1;
            self.tokens += u64::from(row.length);
            self.empty += u64::from(row.length == 0);
        }
        if placement.closes {
            self.end_run()?;
        }
        for skipped in &batch.skipped {
            let place = plan.path(skipped.input);
            let line = match skipped.line {
                0 => String::new(),
                line => format!(" (line {})", self.lines + line),
            };
            let Skipped { offset, detail, .. } = skipped;
            let message = format!("{place}: byte {offset}{line}: {detail}");
            if strict {
                return Err(message.into());
            }
            if self.first_skipped.len() < NAMED {
                self.first_skipped.push(message);
            }
            *self.skipped.entry(skipped.reason.to_string()).or_default() += 1;
        }
        self.lines += batch.lines;
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), Cause> {
        if let Some(writer) = self.writer.take() {
            self.runs.push(writer.finish()?);
        }
        Ok(())
    }

    /// Ends the last run, and begins to count the names that occur more than once, with so many `threads`.
    ///
    /// # Errors
    /// When the files cannot be written, or there is no thread.
    pub fn finish(mut self, threads: usize) -> Result<DocumentsDone, Cause> {
        self.end_run()?;
        let Self { runs, documents, tokens, empty, skipped, first_skipped, .. } = self;
        let thread = Builder::new().name("names".into());
        let duplicates = Counting(thread.spawn(move || self.names.finish(threads))?);
        Ok(DocumentsDone { runs, documents, tokens, empty, duplicates, skipped, first_skipped })
    }
}

/// The file of the names' hashes has no name, so the folder's has to do.
fn names_error(directory: &Path, error: &io::Error) -> Cause {
    format!("{}: cannot keep hashes of the names: {error}", directory.display()).into()
}

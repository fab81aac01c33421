//! Which documents did the pieces hold? The documents of one piece, and the table of all, which is written
//! run by run in the order of the input.

use super::piece::Skipped;
use super::splits::Plan;
use crate::dictionary::names::{Duplicates, Names, name_hash};
use crate::index::documents::{DocumentColumns, DocumentsEntry, DocumentsWriter, Location};
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
    /// The hash of each name, which many workers take beside each other.
    name_hashes: Vec<u128>,
    /// All documents, where only some are indexed and all are looked at.
    seen: Option<Rows>,
}

/// Documents, as columns: what lies so in the files of a run, as far as it is known before the documents of earlier pieces are.
#[derive(Default)]
struct Rows {
    names: String,
    /// Where each name ends; an empty name is made from input and line.
    ends: Vec<u64>,
    is_nameless: bool,
    lines: Vec<u64>,
    lengths: Vec<u32>,
    locations: Vec<Location>,
    contents: Vec<u64>,
}

impl Rows {
    fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.is_nameless |= name.is_empty();
        self.names.push_str(name);
        self.ends.push(self.names.len() as u64);
        self.lines.push(line);
        self.lengths.push(length);
        self.locations.push(location);
        self.contents.push(content);
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        const ROW: usize = 3 * size_of::<u64>() + size_of::<u32>() + size_of::<Location>();
        self.names.capacity() + self.ends.capacity() * ROW
    }

    /// The documents' names.
    fn names(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let end = end as usize;
            &self.names[std::mem::replace(&mut start, end)..end]
        })
    }
}

impl PieceDocuments {
    /// Makes a batch without documents.
    pub fn new(input: u32, skipped: Vec<Skipped>) -> Self {
        let (lines, counts, rows, name_hashes, seen) = Default::default();
        Self { input, skipped, lines, counts, rows, name_hashes, seen }
    }

    /// Adds a document with the hash of its `content`; an empty name is missing.
    pub fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.rows.push(name, line, length, location, content);
        self.name_hashes.push(name_hash(name.as_bytes()));
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
        assert_eq!(lengths.len(), self.rows.len(), "each document has a length");
        self.rows.lengths.copy_from_slice(lengths);
        self.counts = counts;
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let hashes = self.name_hashes.capacity() * size_of::<u128>();
        hashes + self.rows.bytes() + self.seen.as_ref().map_or(0, Rows::bytes)
    }

    /// All documents, those among them that are not indexed: name, or none if it has to be made, line, place, and hash of
    /// the content.
    pub fn all(&self) -> impl Iterator<Item = (&str, u64, Location, u64)> {
        let rows = self.seen.as_ref().unwrap_or(&self.rows);
        let others = rows.lines.iter().zip(&rows.locations).zip(&rows.contents);
        rows.names()
            .zip(others)
            .map(|(name, ((&line, &location), &content))| (name, line, location, content))
    }

    /// Documents in the batch that are indexed.
    pub fn documents(&self) -> u32 {
        self.rows.len() as u32
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
        let rows = &batch.rows;
        if let Some(first) = rows.locations.first() {
            let made;
            let (names, ends, name_hashes) = if rows.is_nameless {
                made = self.made_names(plan, rows);
                (&made.0, &made.1, &made.2)
            } else {
                (&rows.names, &rows.ends, &batch.name_hashes)
            };
            let noted = self.names.extend(name_hashes, self.documents);
            noted.map_err(|e| names_error(&self.directory, &e))?;
            let writer = match &mut self.writer {
                Some(writer) => writer,
                none => {
                    let (folder, scratch) = (&self.directory, Durability::Scratch);
                    let (run, input) = (placement.run, first.input);
                    none.insert(DocumentsWriter::create(folder, run, scratch, input)?)
                }
            };
            let (lengths, hashes) = (&rows.lengths, &rows.contents);
            let locations = &rows.locations;
            writer.extend(&DocumentColumns { names, ends, lengths, locations, hashes })?;
            self.documents += batch.documents();
            self.tokens += lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
            self.empty += lengths.iter().filter(|&&length| length == 0).count() as u64;
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

    /// The names of the documents of a piece in which some have none, where each ends, and their hashes.
    fn made_names(&self, plan: &Plan, rows: &Rows) -> (String, Vec<u64>, Vec<u128>) {
        let (mut names, mut ends, mut hashes) = (String::new(), Vec::new(), Vec::new());
        for (name, (location, line)) in rows.names().zip(rows.locations.iter().zip(&rows.lines)) {
            let start = names.len();
            if name.is_empty() {
                let file = plan.inputs.name(location.input as usize);
                names += &format!("{file}:{}", self.lines + line);
            } else {
                names += name;
            }
            ends.push(names.len() as u64);
            hashes.push(name_hash(&names.as_bytes()[start..]));
        }
        (names, ends, hashes)
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

//! The table of a build's documents, run by run. One thread places the documents of each piece, in
//! input order; any thread writes them there.

use super::{PieceDocuments, Rows, Skipped, SkippedRecords};
use crate::crew::lock;
use crate::index::columns::{Column, ColumnParts, ColumnsWriter, MisfitValue, PieceColumns};
use crate::index::documents::{DocumentColumns, DocumentsEntry, PlacedDocuments};
use crate::index::texts::{PieceTexts, TextsFile};
use crate::order::{Budget, Sequencer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type TableCause = Box<dyn Error + Send + Sync>;

pub(crate) struct DocumentsDone {
    /// They are not synced: a merge may make them superfluous.
    pub runs: Vec<DocumentsEntry>,
    pub documents: u32,
    pub tokens: u64,
    /// Documents without an indexed token.
    pub empty: u64,
    pub skipped: BTreeMap<String, u64>,
    /// Messages of the first of them.
    pub first_skipped: Vec<String>,
    /// Values that their columns cannot take, and messages of the first.
    pub misfits: u64,
    pub first_misfits: Vec<String>,
    /// Whether any document has a value of each column, and of each text that is kept.
    pub filled: Vec<bool>,
}

/// Says where the documents of a build stand. The last of it and of the [`PieceRows`] that it gave
/// ends the table.
pub(crate) struct DocumentsTable {
    sequencer: Sequencer,
    /// Fields of the index.
    fields: usize,
    /// The open run, once it has a document, and how many of it are placed.
    run: Option<(Arc<TableRun>, u32)>,
    shared: Arc<SharedTable>,
    /// Lines of the current input before the current piece.
    input: u32,
    lines: u64,
    /// Counts those of the first input that come before, if another process reads them.
    before: Option<LinesBefore>,
}

/// Counts lines, if that is needed.
pub(crate) type LinesBefore = Box<dyn FnOnce() -> Result<u64, TableCause> + Send>;

/// A run that is written; its last owner ends it.
struct TableRun {
    number: u32,
    files: PlacedDocuments,
    columns: Mutex<ColumnParts>,
    texts: Option<TextsFile>,
}

/// What all writers share; the last owner ends the table.
struct SharedTable {
    directory: PathBuf,
    columns: Arc<[Column]>,
    sum: Mutex<TableSum>,
}

#[derive(Default)]
struct TableSum {
    runs: BTreeMap<u32, DocumentsEntry>,
    empty: u64,
    skipped: BTreeMap<String, u64>,
    first_skipped: Vec<String>,
    misfits: u64,
    first_misfits: Vec<String>,
    filled: Vec<bool>,
}

/// The documents of a piece, and where they stand.
pub(crate) struct PieceRows {
    piece: PieceDocuments,
    /// Of the first.
    docid: u32,
    lines: u64,
    run: Arc<TableRun>,
    shared: Arc<SharedTable>,
}

impl DocumentsTable {
    /// A table of a generation in a folder, from run `first_run` on, whose documents have values
    /// in these `columns`.
    pub(crate) fn new(
        directory: &Path,
        first_run: u32,
        budget: &Budget,
        columns: Arc<[Column]>,
    ) -> Self {
        let directory = directory.to_path_buf();
        let sum = Mutex::default();
        let shared = SharedTable { directory, columns, sum }.into();
        let sequencer = Sequencer::new(first_run, budget.run_limit);
        let (fields, run, input, lines) = Default::default();
        Self { sequencer, fields, run, shared, input, lines, before: None }
    }

    /// For an index with this many fields.
    #[must_use]
    pub(crate) fn with_fields(self, fields: usize) -> Self {
        Self { fields, ..self }
    }

    /// For a first input of which another process reads what comes before, with this many lines.
    #[must_use]
    pub(crate) fn behind(self, before: Option<LinesBefore>) -> Self {
        Self { before, ..self }
    }

    /// Places the documents of the next piece, if it has any. Skipped records, which lie in
    /// `input_path`, are counted, or an error if the build is `strict`.
    ///
    /// # Errors
    /// When files cannot be created or ended, there are more documents than docids, or of a strict
    /// build.
    pub(crate) fn place(
        &mut self,
        strict: bool,
        mut piece: PieceDocuments,
        input_path: impl Fn(u32) -> String,
    ) -> Result<Option<PieceRows>, TableCause> {
        if piece.input != self.input {
            self.input = piece.input;
            self.lines = 0;
        }
        let needs_lines = piece.rows.is_nameless || !piece.skipped.is_empty();
        if piece.input == 0
            && needs_lines
            && let Some(before) = self.before.take()
        {
            self.lines += before()?;
        }
        let placement = self.sequencer.place(&piece.counts)?;
        self.note_skipped(strict, std::mem::take(&mut piece.skipped), &input_path)?;
        if let Some(columns) = &mut piece.columns {
            self.note_misfits(strict, columns, &input_path)?;
        }
        let lines = self.lines;
        self.lines += piece.lines;
        let mut placed = None;
        if let Some(first) = piece.rows.locations.first() {
            self.note_filled(&piece);
            let first_input = first.input;
            let (run, next) =
                match &mut self.run {
                    Some(open) => open,
                    none => {
                        let number = placement.run;
                        let folder = &self.shared.directory;
                        let files = PlacedDocuments::create(folder, number, first_input)?
                            .with_fields(folder, number, self.fields)?;
                        let parts = piece.texts.as_ref().map(PieceTexts::parts);
                        let texts = parts.map(|n| TextsFile::create(folder, number, n));
                        let (columns, texts) = (Mutex::default(), texts.transpose()?);
                        let run = TableRun { number, files, columns, texts };
                        none.insert((Arc::new(run), 0))
                    }
                };
            let documents = piece.documents();
            let run = run.clone();
            let shared = self.shared.clone();
            let docid = *next;
            *next += documents;
            placed = Some(PieceRows { piece, docid, lines, run, shared });
        }
        if placement.closes {
            self.end_run()?;
        }
        Ok(placed)
    }

    fn note_skipped(
        &self,
        strict: bool,
        skipped: SkippedRecords,
        input_path: impl Fn(u32) -> String,
    ) -> Result<(), TableCause> {
        let mut sum = lock(&self.shared.sum);
        for (reason, records) in skipped.counts() {
            *sum.skipped.entry(reason.to_string()).or_default() += records;
        }
        for (Skipped { input, offset, line, detail, .. }, ends) in skipped.named() {
            if sum.first_skipped.len() == SkippedRecords::NAMED && !ends {
                break;
            }
            let place = input_path(*input);
            let line = match line {
                0 => String::new(),
                line => format!(" (line {})", self.lines + line),
            };
            let message = format!("{place}: byte {offset}{line}: {detail}");
            if strict || ends {
                return Err(message.into());
            }
            sum.first_skipped.push(message);
        }
        Ok(())
    }

    /// Counts the values of a piece that do not fit; the first is an error of a strict build.
    fn note_misfits(
        &self,
        strict: bool,
        columns: &mut PieceColumns,
        input_path: impl Fn(u32) -> String,
    ) -> Result<(), TableCause> {
        let mut sum = lock(&self.shared.sum);
        sum.misfits += columns.misfits;
        for MisfitValue { input, offset, detail } in columns.first_misfits.drain(..) {
            let message = format!("{}: byte {offset}: {detail}", input_path(input));
            if strict {
                return Err(message.into());
            }
            if sum.first_misfits.len() < PieceColumns::NAMED {
                sum.first_misfits.push(message);
            }
        }
        Ok(())
    }

    fn note_filled(&self, piece: &PieceDocuments) {
        let mut sum = lock(&self.shared.sum);
        let columns = piece.columns.iter().flat_map(PieceColumns::filled);
        let own: Vec<_> = columns.chain(piece.texts.iter().flat_map(PieceTexts::filled)).collect();
        sum.filled.resize(own.len(), false);
        sum.filled.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
    }

    fn end_run(&mut self) -> Result<(), TableCause> {
        self.run.take().map_or(Ok(()), |(run, _)| self.shared.leave(run))
    }

    /// Ends the last run. Returns the table's sums, unless some of what it placed is not written.
    pub(crate) fn finish(mut self) -> Result<Option<DocumentsDone>, TableCause> {
        self.end_run()?;
        SharedTable::end(self.shared)
    }
}

impl PieceRows {
    pub(crate) fn bytes(&self) -> usize {
        self.piece.bytes()
    }

    /// Writes the documents; nameless ones are called by `input_name`. Returns the table's sums if
    /// these were its last.
    pub(crate) fn write<'a>(
        self,
        input_name: impl Fn(u32) -> Cow<'a, str>,
    ) -> Result<Option<DocumentsDone>, TableCause> {
        let Self { piece, docid, lines, run, shared } = self;
        let PieceDocuments { mut rows, columns: values, texts, .. } = piece;
        if rows.is_nameless {
            rows.make_names(input_name, lines);
        }
        let columns = DocumentColumns {
            names: &rows.names,
            ends: &rows.ends,
            lengths: &rows.lengths,
            locations: &mut rows.locations,
            hashes: &rows.contents,
        };
        run.files.write(docid, columns)?;
        run.files.write_fields(docid, &rows.field_lengths)?;
        if let Some(values) = values {
            lock(&run.columns).put(docid, values);
        }
        if let (Some(texts), Some(file)) = (texts, &run.texts) {
            file.put(docid, texts)?;
        }
        let empty = rows.lengths.iter().filter(|&&length| length == 0).count();
        lock(&shared.sum).empty += empty as u64;
        shared.leave(run)?;
        SharedTable::end(shared)
    }
}

impl SharedTable {
    /// Ends a run if this is its last owner.
    fn leave(&self, run: Arc<TableRun>) -> Result<(), TableCause> {
        if let Some(TableRun { number, files, columns: parts, texts }) = Arc::into_inner(run) {
            let mut entry = files.finish()?;
            let Self { directory, columns, .. } = self;
            if !columns.is_empty() {
                let parts = std::mem::take(&mut *lock(&parts));
                let documents = entry.documents;
                let write = ColumnsWriter::write_all;
                entry.files.push(write(directory, number, documents, columns, parts)?);
            }
            if let Some(texts) = texts {
                entry.files.push(texts.finish(entry.documents)?);
            }
            lock(&self.sum).runs.insert(number, entry);
        }
        Ok(())
    }

    /// The last owner of the table sums it up.
    fn end(shared: Arc<Self>) -> Result<Option<DocumentsDone>, TableCause> {
        let Some(Self { sum, .. }) = Arc::into_inner(shared) else {
            return Ok(None);
        };
        let sum = sum.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let TableSum { runs, empty, skipped, first_skipped, misfits, first_misfits, filled } = sum;
        let runs: Vec<DocumentsEntry> = runs.into_values().collect();
        Ok(Some(DocumentsDone {
            documents: runs.iter().map(|run| run.documents).sum(),
            tokens: runs.iter().map(|run| run.tokens).sum(),
            runs,
            empty,
            skipped,
            first_skipped,
            misfits,
            first_misfits,
            filled,
        }))
    }
}

impl Rows {
    /// Makes the missing names.
    fn make_names<'a>(&mut self, input_name: impl Fn(u32) -> Cow<'a, str>, lines: u64) {
        use std::fmt::Write;
        let mut names = String::new();
        let mut ends = Vec::with_capacity(self.len());
        let mut input = None;
        let mut file = Cow::Borrowed("");
        for (name, (location, line)) in self.names().zip(self.locations.iter().zip(&self.lines)) {
            if name.is_empty() {
                if input != Some(location.input) {
                    input = Some(location.input);
                    file = input_name(location.input);
                }
                _ = write!(names, "{file}:{}", lines + line);
            } else {
                names += name;
            }
            ends.push(names.len() as u64);
        }
        self.names = names;
        self.ends = ends;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::documents::{Location, RunDocuments};
    use crate::index::format::run_name;
    use crate::index::generations::manifest::RunEntry;
    use crate::order::PieceCounts;

    #[test]
    fn pieces_that_are_written_in_any_order_have_their_names_and_the_last_ends_the_table() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let file = "a.jsonl";
        let budget =
            Budget { memory: 64 << 20, run_limit: u64::MAX, worker: 0, open_files: 0, waiting: 0 };
        let mut table = DocumentsTable::new(folder.path(), 0, &budget, Arc::default());
        let mut expected = Vec::new();
        let mut placed = Vec::new();
        let mut lines = 0;
        for names in [&["b", "", "", "x"][..], &[], &["", "b", "", "", "", "", ""], &["z"]] {
            let mut piece = PieceDocuments::new(0, SkippedRecords::default());
            for (line, name) in (1..).zip(names) {
                piece.push(name, line, Location::default(), Some((line as u32 - 1, line)));
                let made = format!("{file}:{}", lines + line);
                expected.push(if name.is_empty() { made } else { (*name).to_owned() });
            }
            piece.lines = names.len() as u64;
            lines += piece.lines;
            let documents = names.len() as u32;
            piece.counts = Arc::new(PieceCounts { documents, ..PieceCounts::default() });
            placed.extend(table.place(true, piece, |_| file.into()).unwrap());
        }
        assert_eq!(placed.len(), 3);
        assert!(table.finish().unwrap().is_none(), "nothing is written yet");
        let done: Vec<_> = placed
            .into_iter()
            .rev()
            .filter_map(|rows| rows.write(|_| file.into()).unwrap())
            .collect();
        let [done] = <[_; 1]>::try_from(done).ok().expect("the last ends the table");
        assert_eq!((done.documents, done.tokens, done.empty), (12, 27, 3));
        let mut run =
            RunEntry { name: run_name(0), documents: done.documents, ..RunEntry::default() };
        let mut runs = done.runs.into_iter();
        let mut files = Vec::new();
        let entry = runs.next().expect("there is one run");
        entry.complete(folder.path(), &mut run, &mut files).unwrap();
        let read = RunDocuments::open(folder.path(), &run, &files).unwrap();
        for (docid, name) in (0..).zip(&expected) {
            assert_eq!(&*read.name(docid).unwrap(), name.as_bytes());
        }
    }
}

//! The documents of the files that were read, whether they are indexed or not: hashes of name and
//! content, and the place, in a scratch file.

use crate::index::documents::pieces::{NotedDocument, PieceDocuments};
use crate::index::documents::{Location, name_hash};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::input::splits::InputPlan;
use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(crate) struct SeenDocument {
    name: [u64; 2],
    pub content: u64,
    /// Its input is a number among the files that were read.
    pub place: Location,
}

impl SeenDocument {
    pub(crate) fn new(name: &[u8], content: u64, place: Location) -> Self {
        let name = name_hash(name);
        Self { name: [name as u64, (name >> 64) as u64], content, place }
    }

    pub(crate) fn name(&self) -> u128 {
        u128::from(self.name[1]) << 64 | u128::from(self.name[0])
    }
}

#[derive(Debug)]
pub(crate) struct SeenDocuments {
    path: PathBuf,
    count: u32,
    /// By file, how many documents come before its first one.
    before: Vec<u32>,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// Reads them in any order, best in that of the input.
pub(crate) struct SeenReader(FileWindow);

const WINDOW_BYTES: usize = 64 << 10;

impl SeenDocuments {
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    pub(crate) fn reader(&self) -> Result<SeenReader, IndexError> {
        FileWindow::open(&self.path, WINDOW_BYTES).map(SeenReader)
    }

    /// How many files have documents, or lie before others that have.
    pub(super) fn files(&self) -> u32 {
        self.before.len() as u32
    }

    /// The numbers of the documents of a file.
    pub(super) fn of_file(&self, file: u32) -> Range<u32> {
        let before = |file: usize| self.before.get(file).copied().unwrap_or(self.count);
        before(file as usize)..before((file as usize).saturating_add(1))
    }

    pub(super) fn read(
        &self,
        wanted: Range<u32>,
        rows: &mut Vec<SeenDocument>,
    ) -> Result<(), IndexError> {
        rows.resize(wanted.len(), SeenDocument::zeroed());
        let at = size_of::<SeenDocument>() as u64 * u64::from(wanted.start);
        let read = |file: File| file.read_exact_at(bytemuck::cast_slice_mut(rows), at);
        let read = File::open(&self.path).and_then(read);
        read.map_err(IndexError::storage("read", &self.path))
    }

    #[cfg(test)]
    pub(crate) fn of_rows(folder: &Path, rows: &[SeenDocument]) -> Self {
        let path = folder.join("documents");
        std::fs::write(&path, bytemuck::cast_slice(rows)).unwrap();
        let file = |row: &SeenDocument| row.place.input;
        let files = rows.last().map_or(0, |last| file(last) + 1);
        let before = |number| rows.partition_point(|row| file(row) < number) as u32;
        let before = (0..files).map(before).collect();
        Self { path, count: rows.len() as u32, before, skipped: BTreeMap::new() }
    }
}

impl SeenReader {
    /// The document of this number, in the order of the input.
    pub(crate) fn get(&mut self, number: u32) -> Result<SeenDocument, IndexError> {
        const BYTES: usize = size_of::<SeenDocument>();
        let bytes = self.0.read(BYTES as u64 * u64::from(number), BYTES)?;
        Ok(bytemuck::pod_read_unaligned(bytes))
    }
}

pub(crate) struct SeenWriter {
    path: PathBuf,
    file: BufWriter<File>,
    documents: u32,
    /// See [`SeenDocuments`].
    before: Vec<u32>,
    skipped: BTreeMap<String, u64>,
    /// The current input, and its lines before the current piece.
    input: u32,
    lines: u64,
    name: String,
}

impl SeenWriter {
    /// Its file comes into `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self, IndexError> {
        let path = folder.join("documents");
        let file = File::create(&path).map_err(IndexError::storage("write", &path))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        let (documents, before, skipped, input, lines, name) = Default::default();
        Ok(Self { path, file, documents, before, skipped, input, lines, name })
    }

    pub(crate) fn take(
        &mut self,
        plan: &InputPlan,
        batch: &PieceDocuments,
    ) -> Result<(), IndexError> {
        if batch.input != self.input {
            self.input = batch.input;
            self.lines = 0;
        }
        let path = &self.path;
        for NotedDocument { mut name, line, location, content } in batch.all() {
            if name.is_empty() {
                let file = plan.inputs.name(location.input as usize);
                self.name = format!("{file}:{}", self.lines + line);
                name = &self.name;
            }
            while self.before.len() <= location.input as usize {
                self.before.push(self.documents);
            }
            let document = SeenDocument::new(name.as_bytes(), content, location);
            let written = self.file.write_all(bytemuck::bytes_of(&document));
            written.map_err(IndexError::storage("write", path))?;
            let more = self.documents.checked_add(1);
            let too_many = || IndexError::refused(path, "more than 2^32 - 1 documents");
            self.documents = more.ok_or_else(too_many)?;
        }
        for (reason, records) in batch.skipped.counts() {
            *self.skipped.entry(reason.to_string()).or_default() += records;
        }
        self.lines += batch.lines;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<SeenDocuments, IndexError> {
        let Self { path, file, documents: count, before, skipped, .. } = self;
        let written = file.into_inner();
        written.map_err(|error| IndexError::storage("write", &path)(error.into_error()))?;
        Ok(SeenDocuments { path, count, before, skipped })
    }
}

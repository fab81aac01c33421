//! The documents of the files that were read, whether they are indexed or not: hashes of name and
//! content, and the place, in a scratch file.

use crate::index::documents::pieces::{PieceDocuments, PieceSeen, SeenDocument};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::input::splits::InputPlan;
use bytemuck::Zeroable;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

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
    file: File,
    documents: u32,
    /// See [`SeenDocuments`].
    before: Vec<u32>,
    skipped: BTreeMap<String, u64>,
    /// The current input, and its lines before the current piece.
    input: u32,
    lines: u64,
}

impl SeenWriter {
    /// Its file comes into `folder`.
    pub(crate) fn new(folder: &Path) -> Result<Self, IndexError> {
        let path = folder.join("documents");
        let file = File::create(&path).map_err(IndexError::storage("write", &path))?;
        let (documents, before, skipped, input, lines) = Default::default();
        Ok(Self { path, file, documents, before, skipped, input, lines })
    }

    pub(crate) fn take(
        &mut self,
        plan: &InputPlan,
        batch: &PieceDocuments,
        PieceSeen { mut documents, nameless }: PieceSeen,
    ) -> Result<(), IndexError> {
        if batch.input != self.input {
            self.input = batch.input;
            self.lines = 0;
        }
        let path = &self.path;
        for (at, line) in nameless {
            let SeenDocument { content, place, .. } = documents[at as usize];
            let file = plan.inputs.name(place.input as usize);
            let name = format!("{file}:{}", self.lines + line);
            documents[at as usize] = SeenDocument::new(name.as_bytes(), content, place);
        }
        for (number, document) in (self.documents..).zip(&documents) {
            while self.before.len() <= document.place.input as usize {
                self.before.push(number);
            }
        }
        let written = self.file.write_all(bytemuck::cast_slice(&documents));
        written.map_err(IndexError::storage("write", path))?;
        let more = u32::try_from(documents.len()).ok();
        let all = more.and_then(|more| self.documents.checked_add(more));
        let too_many = || IndexError::refused(path, "more than 2^32 - 1 documents");
        self.documents = all.ok_or_else(too_many)?;
        for (reason, records) in batch.skipped.counts() {
            *self.skipped.entry(reason.to_string()).or_default() += records;
        }
        self.lines += batch.lines;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<SeenDocuments, IndexError> {
        let Self { path, documents: count, before, skipped, .. } = self;
        Ok(SeenDocuments { path, count, before, skipped })
    }
}

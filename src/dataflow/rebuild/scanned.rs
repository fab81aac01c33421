//! The documents of the files that were read: a table of their names and contents, and their
//! places, both on disk.

use super::table::{Sorter, Table, TableEntry, name_hash};
use crate::index::documents::pieces::{NotedDocument, PieceDocuments};
use crate::index::error::IndexError;
use crate::input::splits::InputPlan;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) struct Scanned {
    /// Numbers of documents are places in `places`.
    pub table: Table,
    /// 16 bytes a document, in the order of the input.
    pub places: PathBuf,
    /// Records that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
}

pub(crate) struct InputScan {
    sorter: Sorter,
    table: PathBuf,
    places: PathBuf,
    file: BufWriter<File>,
    number: u32,
    skipped: BTreeMap<String, u64>,
    /// The current input, and its lines before the current piece.
    input: u32,
    lines: u64,
    name: String,
}

impl InputScan {
    /// Its files come into `folder`; sorting takes `memory` bytes at a time.
    pub(crate) fn new(folder: &Path, memory: u64) -> Result<Self, IndexError> {
        let places = folder.join("places");
        let file = File::create(&places).map_err(IndexError::storage("write", &places))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        let sorter = Sorter::new(folder, memory);
        let table = folder.join("documents");
        let (number, skipped, input, lines, name) = Default::default();
        Ok(Self { sorter, table, places, file, number, skipped, input, lines, name })
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
        let table = &self.table;
        let too_many = || IndexError::refused(table, "more than 2^32 - 1 documents");
        for NotedDocument { mut name, line, location, content } in batch.all() {
            if name.is_empty() {
                let file = plan.inputs.name(location.input as usize);
                self.name = format!("{file}:{}", self.lines + line);
                name = &self.name;
            }
            let name = name_hash(name.as_bytes());
            let input = location.input;
            self.sorter.push(TableEntry { name, content, input, number: self.number })?;
            let written = self.file.write_all(bytemuck::bytes_of(&location));
            written.map_err(IndexError::storage("write", &self.places))?;
            self.number = self.number.checked_add(1).ok_or_else(too_many)?;
        }
        for (reason, records) in batch.skipped.counts() {
            *self.skipped.entry(reason.to_string()).or_default() += records;
        }
        self.lines += batch.lines;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Scanned, IndexError> {
        let written = self.file.into_inner();
        written.map_err(|error| IndexError::storage("write", &self.places)(error.into_error()))?;
        let table = self.sorter.finish(&self.table)?;
        Ok(Scanned { table, places: self.places, skipped: self.skipped })
    }
}

//! Writes the documents of a run in one go.

#![forbid(unsafe_code)]

use super::Location;
use crate::index::error::IndexError;
use crate::index::files::storage::{Durability, FileEntry, StorageFile};
use crate::index::format::{Header, Kind, LONG, run_file, run_name};
use crate::index::generations::manifest::RunEntry;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentsEntry {
    pub documents: u32,
    pub tokens: u64,
    /// The first of the generation's inputs that they lie in, and how many there are from that one
    /// to the last.
    pub first_input: u32,
    pub inputs: u32,
    pub files: Vec<FileEntry>,
}

impl DocumentsEntry {
    /// Completes the entry of the run whose lists were written, and adds the files to `files`.
    pub(crate) fn complete(
        self,
        generation: &Path,
        run: &mut RunEntry,
        files: &mut Vec<FileEntry>,
    ) -> Result<(), IndexError> {
        if run.documents != self.documents {
            let (lists, table) = (run.documents, self.documents);
            let reason = format!("run {} has lists of {lists} documents, but {table}", run.name);
            return Err(IndexError::refused(generation, reason));
        }
        (run.tokens, run.first_input, run.inputs) = (self.tokens, self.first_input, self.inputs);
        files.extend(self.files);
        Ok(())
    }
}

/// Writes the five files of a run's documents. Memory: five write buffers, 1.3 MB, and 8 bytes for
/// each document of 65,535 tokens or more.
#[derive(Debug)]
pub(crate) struct DocumentsWriter {
    files: Files<StorageFile>,
    long: Vec<[u32; 2]>,
    documents: u32,
    tokens: u64,
    first_input: u32,
    inputs: u32,
}

impl DocumentsWriter {
    /// Creates the files of run `number`. No document lies in an input before `first_input`.
    pub(crate) fn create(
        generation: &Path,
        number: u32,
        durability: Durability,
        first_input: u32,
    ) -> Result<Self, IndexError> {
        let files = Files::create(generation, number, durability)?;
        let (long, documents, tokens, inputs) = Default::default();
        Ok(Self { files, long, documents, tokens, first_input, inputs })
    }

    /// Adds the next document: its UTF-8 name, its length in tokens, its place, whose input is
    /// numbered in the generation, and the hash of its content.
    ///
    /// # Errors
    /// `Refused` if the name is not UTF-8, there are 2^32 - 1 documents already or the input is
    /// before the run's first.
    pub(crate) fn push(
        &mut self,
        name: &[u8],
        length: u32,
        location: Location,
        hash: u64,
    ) -> Result<(), IndexError> {
        let refused = |reason| Err(IndexError::refused(self.files.names.path(), reason));
        if self.documents == u32::MAX {
            return refused("an index has at most 2^32 - 1 documents");
        }
        if !name.is_ascii() && std::str::from_utf8(name).is_err() {
            return refused("a document's name is UTF-8");
        }
        let Some(input) = location.input.checked_sub(self.first_input) else {
            return refused("a document lies in none of the run's inputs");
        };
        let location = Location { input, ..location };
        let short = u16::try_from(length).unwrap_or(LONG);
        self.files.lengths.write(&short.to_le_bytes())?;
        if short == LONG {
            self.long.push([self.documents, length]);
        }
        self.files.names.write(name)?;
        self.files.ends.write(&self.files.names.body_bytes().to_le_bytes())?;
        self.files.locations.write(bytemuck::bytes_of(&location))?;
        self.files.hashes.write(&hash.to_le_bytes())?;
        self.documents += 1;
        self.tokens += u64::from(length);
        self.inputs = self.inputs.max(input.saturating_add(1));
        Ok(())
    }

    #[cfg(any(test, fuzzing))]
    pub(crate) fn documents(&self) -> u32 {
        self.documents
    }

    #[cfg(test)]
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Writes the headers, and syncs the files if they have to last.
    pub(crate) fn finish(self) -> Result<DocumentsEntry, IndexError> {
        let Self { files, long, documents, tokens, first_input, inputs } = self;
        files.end(&Ending { long, documents, tokens, first_input, inputs })
    }
}

#[derive(Debug)]
pub(super) struct Files<F> {
    pub(super) lengths: F,
    pub(super) names: F,
    pub(super) ends: F,
    pub(super) locations: F,
    pub(super) hashes: F,
}

/// What stands behind the entries of the files, and in their headers.
pub(super) struct Ending {
    /// Docids and lengths of documents that are too long for their entry.
    pub(super) long: Vec<[u32; 2]>,
    pub(super) documents: u32,
    pub(super) tokens: u64,
    pub(super) first_input: u32,
    /// From the first to the last.
    pub(super) inputs: u32,
}

impl<F> Files<F> {
    pub(super) fn map<G, E>(self, form: impl Fn(F) -> Result<G, E>) -> Result<Files<G>, E> {
        Ok(Files {
            lengths: form(self.lengths)?,
            names: form(self.names)?,
            ends: form(self.ends)?,
            locations: form(self.locations)?,
            hashes: form(self.hashes)?,
        })
    }
}

impl Files<StorageFile> {
    pub(super) fn create(
        generation: &Path,
        number: u32,
        durability: Durability,
    ) -> Result<Self, IndexError> {
        let run = run_name(number);
        let file = |kind| StorageFile::create(generation, &run_file(&run, kind), durability);
        Ok(Self {
            lengths: file(Kind::Lengths)?,
            names: file(Kind::Names)?,
            ends: file(Kind::Ends)?,
            locations: file(Kind::Locations)?,
            hashes: file(Kind::Hashes)?,
        })
    }

    /// Writes the headers and what stands behind the entries, and syncs the files if they have to
    /// last.
    pub(super) fn end(mut self, ending: &Ending) -> Result<DocumentsEntry, IndexError> {
        let (documents, name_bytes) = (u64::from(ending.documents), self.names.body_bytes());
        self.lengths.pad()?;
        self.lengths.write(bytemuck::cast_slice(&ending.long))?;
        self.names.pad()?;
        let header = |kind, b| Header { kind, values: [documents, b, 0, 0, 0], last: 0 };
        let long = ending.long.len() as u64;
        let values = [documents, ending.tokens, long, 0, 0];
        let lengths = Header { kind: Kind::Lengths, values, last: 0 };
        let files = vec![
            self.lengths.finish(lengths)?,
            self.names.finish(header(Kind::Names, name_bytes))?,
            self.ends.finish(header(Kind::Ends, name_bytes))?,
            self.locations.finish(header(Kind::Locations, 0))?,
            self.hashes.finish(header(Kind::Hashes, 0))?,
        ];
        let Ending { documents, tokens, inputs, .. } = *ending;
        let first_input = if inputs == 0 { 0 } else { ending.first_input };
        Ok(DocumentsEntry { documents, tokens, first_input, inputs, files })
    }
}

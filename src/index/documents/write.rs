//! Writes the documents of a run in one go.

use super::placed::{DocumentColumns, PlacedDocuments};
use super::{DocumentsEntry, Location};
use crate::index::error::IndexError;
use std::path::Path;
use std::sync::Arc;

/// Documents that are written together, if their names have no more bytes than the second; one at
/// least.
const AT_ONCE: usize = 1 << 12;
const NAMES_AT_ONCE: usize = 128 << 10;

/// Writes the documents of a run, one after the other.
///
/// Memory: [`AT_ONCE`] documents and their names, a write buffer, and 8 bytes for each document of
/// 65,535 tokens or more.
#[derive(Debug)]
pub(crate) struct DocumentsWriter {
    files: Arc<PlacedDocuments>,
    /// Of the next document that is written.
    docid: u32,
    /// Documents that are not written, as columns.
    names: String,
    ends: Vec<u64>,
    lengths: Vec<u32>,
    /// Those of the fields of each document.
    fields: Vec<u32>,
    locations: Vec<Location>,
    hashes: Vec<u64>,
}

impl DocumentsWriter {
    /// Creates the files of run `number`. No document lies in an input before `first_input`.
    pub(crate) fn create(
        generation: &Path,
        number: u32,
        first_input: u32,
    ) -> Result<Self, IndexError> {
        let files = PlacedDocuments::create(generation, number, first_input)?;
        Ok(Self::at(&Arc::new(files), 0))
    }

    /// Documents have lengths of this many fields.
    pub(crate) fn with_fields(
        mut self,
        generation: &Path,
        number: u32,
        fields: usize,
    ) -> Result<Self, IndexError> {
        let files = Arc::into_inner(self.files).expect("nobody else writes");
        self.files = Arc::new(files.with_fields(generation, number, fields)?);
        Ok(self)
    }

    /// Writes some neighbouring documents from a docid on, while others write others.
    pub(crate) fn at(files: &Arc<PlacedDocuments>, docid: u32) -> Self {
        let (names, ends) = Default::default();
        let (lengths, fields, locations, hashes) = Default::default();
        Self { files: files.clone(), docid, names, ends, lengths, fields, locations, hashes }
    }

    /// Adds the next document: its name, its length in tokens, its place, whose input is one of the
    /// generation's, and the hash of its content.
    ///
    /// # Errors
    /// Those of [`PlacedDocuments::write`].
    pub(crate) fn push(
        &mut self,
        name: &str,
        length: u32,
        location: Location,
        hash: u64,
    ) -> Result<(), IndexError> {
        self.names.push_str(name);
        self.ends.push(self.names.len() as u64);
        self.lengths.push(length);
        self.locations.push(location);
        self.hashes.push(hash);
        let is_enough = self.ends.len() >= AT_ONCE || self.names.len() >= NAMES_AT_ONCE;
        if is_enough { self.write() } else { Ok(()) }
    }

    /// Adds the length of a field of the next document, whose [`push`](Self::push) follows those
    /// of all fields.
    pub(crate) fn push_field(&mut self, length: u32) {
        self.fields.push(length);
    }

    pub(crate) fn write(&mut self) -> Result<(), IndexError> {
        let Self { files, docid, names, ends, lengths, fields, locations, hashes } = self;
        files.write_fields(*docid, fields)?;
        let columns = DocumentColumns { names, ends, lengths, locations, hashes };
        files.write(*docid, columns)?;
        *docid += ends.len() as u32;
        names.clear();
        ends.clear();
        lengths.clear();
        fields.clear();
        locations.clear();
        hashes.clear();
        Ok(())
    }

    /// Writes the headers and syncs the files, if they have to last.
    ///
    /// # Panics
    /// If others write, too.
    pub(crate) fn finish(mut self) -> Result<DocumentsEntry, IndexError> {
        self.write()?;
        Arc::into_inner(self.files).expect("nobody else writes").finish()
    }
}

//! Writes the documents of a run in one go.

use super::placed::{DocumentColumns, DocumentsPlace, PlacedDocuments};
use super::{DocumentsEntry, Location};
use crate::index::error::IndexError;
use crate::index::files::storage::Durability;
use std::path::Path;

/// Documents that are written together.
const AT_ONCE: usize = 1 << 12;

/// Writes the documents of a run, one after the other.
///
/// Memory: [`AT_ONCE`] documents and their names, a write buffer, and 8 bytes for each document of
/// 65,535 tokens or more.
#[derive(Debug)]
pub(crate) struct DocumentsWriter {
    files: PlacedDocuments,
    place: DocumentsPlace,
    /// Documents that are not written, as columns.
    names: String,
    ends: Vec<u64>,
    lengths: Vec<u32>,
    locations: Vec<Location>,
    hashes: Vec<u64>,
}

impl DocumentsWriter {
    /// Creates the files of run `number`. No document lies in an input before `first_input`.
    pub(crate) fn create(
        generation: &Path,
        number: u32,
        durability: Durability,
        first_input: u32,
    ) -> Result<Self, IndexError> {
        let files = PlacedDocuments::create(generation, number, durability, first_input)?;
        let (place, names, ends) = Default::default();
        let (lengths, locations, hashes) = Default::default();
        Ok(Self { files, place, names, ends, lengths, locations, hashes })
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
        let name = std::str::from_utf8(name)
            .map_err(|_| IndexError::refused(self.files.path(), "a document's name is UTF-8"))?;
        self.names.push_str(name);
        self.ends.push(self.names.len() as u64);
        self.lengths.push(length);
        self.locations.push(location);
        self.hashes.push(hash);
        if self.ends.len() < AT_ONCE { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), IndexError> {
        let Self { files, place, names, ends, lengths, locations, hashes } = self;
        let columns = DocumentColumns { names, ends, lengths, locations, hashes };
        files.write(*place, columns)?;
        place.documents += ends.len() as u32;
        place.name_bytes += names.len() as u64;
        names.clear();
        ends.clear();
        lengths.clear();
        locations.clear();
        hashes.clear();
        Ok(())
    }

    /// Writes the headers and syncs the files, if they have to last.
    pub(crate) fn finish(mut self) -> Result<DocumentsEntry, IndexError> {
        self.write()?;
        self.files.finish()
    }
}

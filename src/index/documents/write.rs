//! How is the documents' table written in one go?

#![forbid(unsafe_code)]

use super::Location;
use crate::index::error::IndexError;
use crate::index::format::{ENDS, Header, Kind, LENGTHS, LOCATIONS, LONG, NAMES};
use crate::index::storage::{Durability, FileEntry, StorageFile};
use std::path::Path;

/// Writes the four files of the documents' table.
///
/// Memory: four write buffers, 1 MB, however many documents come, and 8 bytes for each of 65,535
/// tokens or more.
#[derive(Debug)]
pub struct DocumentsWriter {
    lengths: StorageFile,
    /// Long documents and their lengths.
    long: Vec<[u32; 2]>,
    names: StorageFile,
    ends: StorageFile,
    locations: StorageFile,
    documents: u32,
    tokens: u64,
}

impl DocumentsWriter {
    /// Creates the files in the folder of a generation.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(generation: &Path) -> Result<Self, IndexError> {
        let file = |name| StorageFile::create(generation, name, Durability::Lasting);
        Ok(Self {
            lengths: file(LENGTHS)?,
            long: Vec::new(),
            names: file(NAMES)?,
            ends: file(ENDS)?,
            locations: file(LOCATIONS)?,
            documents: 0,
            tokens: 0,
        })
    }

    /// Adds the next document: its name, which is UTF-8, its length in tokens, and its place.
    ///
    /// # Errors
    /// `Refused` if the name is not UTF-8 or there are 2^32 - 1 documents already; `Storage`.
    pub fn push(&mut self, name: &[u8], length: u32, location: Location) -> Result<(), IndexError> {
        if self.documents == u32::MAX {
            let reason = "an index has at most 2^32 - 1 documents";
            return Err(IndexError::refused(self.names.path(), reason));
        }
        if !name.is_ascii() && std::str::from_utf8(name).is_err() {
            return Err(IndexError::refused(self.names.path(), "a document's name is UTF-8"));
        }
        let short = u16::try_from(length).unwrap_or(LONG);
        self.lengths.write(&short.to_le_bytes())?;
        if short == LONG {
            self.long.push([self.documents, length]);
        }
        self.names.write(name)?;
        self.ends.write(&self.names.body_bytes().to_le_bytes())?;
        self.locations.write(bytemuck::bytes_of(&location))?;
        self.documents += 1;
        self.tokens += u64::from(length);
        Ok(())
    }

    /// Returns how many documents have come.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Returns how many tokens they have.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Writes the headers and syncs the files.
    ///
    /// # Errors
    /// `Storage`.
    pub fn finish(mut self) -> Result<Vec<FileEntry>, IndexError> {
        let (documents, name_bytes) = (u64::from(self.documents), self.names.body_bytes());
        self.lengths.pad()?;
        self.lengths.write(bytemuck::cast_slice(&self.long))?;
        self.names.pad()?;
        let header = |kind, b| Header { kind, values: [documents, b, 0, 0, 0] };
        let long = self.long.len() as u64;
        let lengths = Header { kind: Kind::Lengths, values: [documents, self.tokens, long, 0, 0] };
        Ok(vec![
            self.lengths.finish(lengths)?,
            self.names.finish(header(Kind::Names, name_bytes))?,
            self.ends.finish(header(Kind::Ends, name_bytes))?,
            self.locations.finish(header(Kind::Locations, 0))?,
        ])
    }
}

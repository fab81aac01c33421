//! How are the documents of a run written in one go?

#![forbid(unsafe_code)]

use super::Location;
use crate::index::error::IndexError;
use crate::index::format::{Header, Kind, LONG, run_file, run_name};
use crate::index::manifest::RunEntry;
use crate::index::storage::{Durability, FileEntry, StorageFile};
use std::path::Path;

/// What was written of a run's documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentsEntry {
    /// Documents.
    pub documents: u32,
    /// Their tokens.
    pub tokens: u64,
    /// The first of the generation's inputs that they lie in, and how many inputs there are from that
    /// one to the last.
    pub first_input: u32,
    /// See `first_input`.
    pub inputs: u32,
    /// The files.
    pub files: Vec<FileEntry>,
}

impl DocumentsEntry {
    /// Completes the entry of the run whose lists were written, and adds the files to its files.
    ///
    /// # Errors
    /// `Refused` if the run has other documents.
    pub fn complete(
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

/// Documents as columns, each with an entry for each of them.
#[derive(Clone, Copy, Debug)]
pub struct DocumentColumns<'a> {
    /// Their names, end to end.
    pub names: &'a str,
    /// Where each name ends there.
    pub ends: &'a [u64],
    /// Their lengths in tokens.
    pub lengths: &'a [u32],
    /// Their places; inputs are some of the generation's.
    pub locations: &'a [Location],
    /// The hashes of their contents.
    pub hashes: &'a [u64],
}

/// Writes the five files of a run's documents.
///
/// Memory: five write buffers, 1.3 MB, however many documents come, 24 bytes for each document that comes together with others, and
/// 8 bytes for each of 65,535 tokens or more.
#[derive(Debug)]
pub struct DocumentsWriter {
    lengths: StorageFile,
    /// Long documents and their lengths.
    long: Vec<[u32; 2]>,
    names: StorageFile,
    ends: StorageFile,
    locations: StorageFile,
    hashes: StorageFile,
    documents: u32,
    tokens: u64,
    first_input: u32,
    inputs: u32,
}

impl DocumentsWriter {
    /// Creates the files of run `number` in the folder of a generation. No document lies in an input
    /// before `first_input`.
    ///
    /// # Errors
    /// `Storage`.
    pub fn create(
        generation: &Path,
        number: u32,
        durability: Durability,
        first_input: u32,
    ) -> Result<Self, IndexError> {
        let run = run_name(number);
        let file = |kind| StorageFile::create(generation, &run_file(&run, kind), durability);
        Ok(Self {
            lengths: file(Kind::Lengths)?,
            long: Vec::new(),
            names: file(Kind::Names)?,
            ends: file(Kind::Ends)?,
            locations: file(Kind::Locations)?,
            hashes: file(Kind::Hashes)?,
            documents: 0,
            tokens: 0,
            first_input,
            inputs: 0,
        })
    }

    /// Adds the next document: its name, which is UTF-8, its length in tokens, its place, whose input
    /// is one of the generation's, and the hash of its content.
    ///
    /// # Errors
    /// `Refused` if the name is not UTF-8, there are 2^32 - 1 documents already or the input is one
    /// before the run's first; `Storage`.
    pub fn push(
        &mut self,
        name: &[u8],
        length: u32,
        location: Location,
        hash: u64,
    ) -> Result<(), IndexError> {
        let refused = |reason| Err(IndexError::refused(self.names.path(), reason));
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
        self.lengths.write(&short.to_le_bytes())?;
        if short == LONG {
            self.long.push([self.documents, length]);
        }
        self.names.write(name)?;
        self.ends.write(&self.names.body_bytes().to_le_bytes())?;
        self.locations.write(bytemuck::bytes_of(&location))?;
        self.hashes.write(&hash.to_le_bytes())?;
        self.documents += 1;
        self.tokens += u64::from(length);
        self.inputs = self.inputs.max(input.saturating_add(1));
        Ok(())
    }

    /// Adds the next documents, as [`push`](Self::push) does one by one. The columns are equally long.
    ///
    /// # Errors
    /// `Refused` if there would be more than 2^32 - 1 documents or an input is one before the run's first;
    /// `Storage`.
    ///
    /// # Panics
    /// If the columns are not equally long.
    pub fn extend(&mut self, columns: &DocumentColumns<'_>) -> Result<(), IndexError> {
        let DocumentColumns { names, ends, lengths, locations, hashes } = *columns;
        let count = ends.len();
        assert!([lengths.len(), locations.len(), hashes.len()] == [count; 3]);
        let refused = |reason| Err(IndexError::refused(self.names.path(), reason));
        let documents = u32::try_from(count).ok().and_then(|more| self.documents.checked_add(more));
        let Some(documents) = documents else {
            return refused("an index has at most 2^32 - 1 documents");
        };
        let inputs = locations.iter().map(|location| location.input);
        let Some((least, most)) = inputs.clone().min().zip(inputs.max()) else { return Ok(()) };
        if least < self.first_input {
            return refused("a document lies in none of the run's inputs");
        }
        let shorts: Vec<u16> =
            lengths.iter().map(|&length| u16::try_from(length).unwrap_or(LONG).to_le()).collect();
        self.lengths.write(bytemuck::cast_slice(&shorts))?;
        for (docid, &length) in (self.documents..).zip(lengths) {
            if length >= u32::from(LONG) {
                self.long.push([docid, length]);
            }
        }
        let begin = self.names.body_bytes();
        self.names.write(names.as_bytes())?;
        let ends: Vec<u64> = ends.iter().map(|end| (begin + end).to_le()).collect();
        self.ends.write(bytemuck::cast_slice(&ends))?;
        if self.first_input == 0 {
            self.locations.write(bytemuck::cast_slice(locations))?;
        } else {
            let of_run = |location: &Location| {
                let input = location.input - self.first_input;
                Location { input, ..*location }
            };
            let locations: Vec<Location> = locations.iter().map(of_run).collect();
            self.locations.write(bytemuck::cast_slice(&locations))?;
        }
        self.hashes.write(bytemuck::cast_slice(hashes))?;
        self.documents = documents;
        self.tokens += lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
        self.inputs = self.inputs.max((most - self.first_input).saturating_add(1));
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

    /// Writes the headers and syncs the files, if they have to last.
    ///
    /// # Errors
    /// `Storage`.
    pub fn finish(mut self) -> Result<DocumentsEntry, IndexError> {
        let (documents, name_bytes) = (u64::from(self.documents), self.names.body_bytes());
        self.lengths.pad()?;
        self.lengths.write(bytemuck::cast_slice(&self.long))?;
        self.names.pad()?;
        let header = |kind, b| Header { kind, values: [documents, b, 0, 0, 0], last: 0 };
        let long = self.long.len() as u64;
        let values = [documents, self.tokens, long, 0, 0];
        let lengths = Header { kind: Kind::Lengths, values, last: 0 };
        let files = vec![
            self.lengths.finish(lengths)?,
            self.names.finish(header(Kind::Names, name_bytes))?,
            self.ends.finish(header(Kind::Ends, name_bytes))?,
            self.locations.finish(header(Kind::Locations, 0))?,
            self.hashes.finish(header(Kind::Hashes, 0))?,
        ];
        let Self { documents, tokens, inputs, .. } = self;
        let first_input = if inputs == 0 { 0 } else { self.first_input };
        Ok(DocumentsEntry { documents, tokens, first_input, inputs, files })
    }
}

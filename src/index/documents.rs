//! The documents of a run: names, lengths, places in the input, hashes of their content, and who
//! has a name, in six files (`docs/index-format.md`, Documents).

mod blocks;
pub(crate) mod duplicates;
pub(crate) mod fields;
pub(crate) mod lookup;
pub(crate) mod moves;
pub(crate) mod names;
pub(crate) mod pieces;
mod placed;
pub(crate) mod ramps;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use placed::{DocumentColumns, PlacedDocuments};
pub(crate) use read::RunDocuments;
pub(crate) use table::Documents;
pub(crate) use write::DocumentsWriter;

use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::generations::manifest::RunEntry;
use bytemuck::{AnyBitPattern, NoUninit};
use std::path::Path;
use twox_hash::XxHash3_128;

/// Where a document lies in the uncompressed input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(crate) struct Location {
    pub offset: u64,
    pub bytes: u32,
    /// Number among the manifest's inputs; in the files of a run, among the run's.
    pub input: u32,
}

/// A long hash of a name: XXH3 (128 bits, no seed). Among ten thousand million names two share one
/// with a probability below 10^-18.
pub(crate) fn name_hash(name: &[u8]) -> u128 {
    XxHash3_128::oneshot(name)
}

/// What was written of a run's documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentsEntry {
    pub documents: u32,
    pub tokens: u64,
    /// Of each field of the index.
    pub field_tokens: Vec<u64>,
    /// The first of the generation's inputs that they lie in, and how many inputs there are from
    /// that one to the last.
    pub first_input: u32,
    /// See `first_input`.
    pub inputs: u32,
    pub files: Vec<FileEntry>,
}

impl DocumentsEntry {
    /// Completes the entry of the run whose lists were written, and adds the files to its files.
    pub(crate) fn complete(
        self,
        generation: &Path,
        run: &mut RunEntry,
        files: &mut Vec<FileEntry>,
    ) -> Result<(), IndexError> {
        if run.documents != self.documents {
            let lists = run.documents;
            let table = self.documents;
            let reason = format!("run {} has lists of {lists} documents, but {table}", run.name);
            return Err(IndexError::refused(generation, reason));
        }
        run.tokens = self.tokens;
        run.field_tokens = self.field_tokens;
        run.first_input = self.first_input;
        run.inputs = self.inputs;
        files.extend(self.files);
        Ok(())
    }
}

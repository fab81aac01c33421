//! Which documents are there: their names, their lengths, where they lie in the input, and what is
//! their content? Each run has them in five arrays of as many entries as it has documents
//! (`docs/index-format.md`, Documents).

#![forbid(unsafe_code)]

pub(crate) mod pieces;
mod placed;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use placed::{DocumentColumns, DocumentsPlace, PlacedDocuments};
pub(crate) use read::RunDocuments;
pub(crate) use table::Documents;
pub(crate) use write::{DocumentsEntry, DocumentsWriter};

use bytemuck::{AnyBitPattern, NoUninit};

/// Where a document lies in the uncompressed input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(crate) struct Location {
    /// Its first byte, counted from the start of the input.
    pub offset: u64,
    pub bytes: u32,
    /// Which of the manifest's inputs; in the files of a run, counted from the run's first.
    pub input: u32,
}

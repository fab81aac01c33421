//! Which documents are there: their names, their lengths, where they lie in the input, and what is
//! their content? Each run has them in five arrays of as many entries as it has documents
//! (`docs/index-format.md`, Documents).

#![forbid(unsafe_code)]

pub mod pieces;
mod placed;
mod read;
mod table;
#[cfg(test)]
mod tests;
mod write;

pub use placed::{DocumentColumns, DocumentsPlace, PlacedDocuments};
pub use read::RunDocuments;
pub use table::Documents;
pub use write::{DocumentsEntry, DocumentsWriter};

use bytemuck::{AnyBitPattern, NoUninit};

/// Where a document lies in the uncompressed input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub struct Location {
    /// Its first byte, counted from the start of the input.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// Which of the manifest's inputs; in the files of a run, counted from the run's first.
    pub input: u32,
}

//! The documents of a run: names, lengths, places in the input, and hashes of their content, in
//! five arrays with an entry for each document (`docs/index-format.md`, Documents).

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
    pub offset: u64,
    pub bytes: u32,
    /// Number among the manifest's inputs; in the files of a run, among the run's.
    pub input: u32,
}

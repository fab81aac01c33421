//! Which documents are there: their names, their lengths and where they lie in the input? Four
//! arrays of as many entries as there are documents (`docs/FORMAT.md`, Documents).

#![forbid(unsafe_code)]

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::Documents;
pub use write::DocumentsWriter;

use bytemuck::{AnyBitPattern, NoUninit};

/// Where a document lies in the uncompressed input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub struct Location {
    /// Its first byte, counted from the start of the input.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// Which of the manifest's inputs.
    pub input: u32,
}

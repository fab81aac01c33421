//! Errors in the bytes of a list.

use crate::codec::CodecError;
use crate::score::bounds::Bound;
use thiserror::Error;

/// Offsets count from the list's first byte.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListError {
    #[error("byte 0 of the list: expected postings, found a document frequency of 0")]
    Empty,
    /// The list or a part of it reaches beyond the data.
    #[error("byte {offset} of the list: expected {expected} bytes, found {found}")]
    CutShort { offset: u64, expected: u64, found: u64 },
    #[error("byte {offset} of the list: expected a width of 0 to 32 bits, found {found}")]
    Width { offset: u64, found: u8 },
    /// A width that is not the least for the block.
    #[error("byte {offset} of the list: expected a block of {expected} bits, found {found}")]
    Wasteful { offset: u64, expected: u8, found: u8 },
    #[error("byte {offset} of the list: expected a bound of {expected:?}, found {found:?}")]
    Bound { offset: u64, expected: Bound, found: Bound },
    #[error("byte {offset} of the list: the block is damaged")]
    Body { offset: u64, source: CodecError },
    #[error("byte {offset} of the list: expected a block as its codec writes it")]
    Unusual { offset: u64 },
    #[error("byte {offset} of the list: expected place {expected}, found {found}")]
    Place {
        offset: u64,
        /// The end of the block before, in the codec's units.
        expected: u64,
        found: u64,
    },
    /// Docids that do not rise, or do not end at the block's last docid.
    #[error(
        "byte {offset} of the list: expected docids that rise to {expected}, found {found} last"
    )]
    Order {
        offset: u64,
        /// The block's last docid in the arrays.
        expected: u32,
        found: u32,
    },
    #[error("byte {offset} of the list: expected a docid below {expected}, found {found}")]
    Docid {
        /// Where the part or the docid stands.
        offset: u64,
        expected: u32,
        found: u64,
    },
    #[error("byte {offset} of the list: expected a term frequency below 2^32, found {found}")]
    TermFrequency {
        /// Where the part or the term frequency stands.
        offset: u64,
        found: u64,
    },
    /// A posting of the tail that is cut short or not in its shortest form.
    #[error("byte {offset} of the list: expected a vbyte integer in its shortest form")]
    Integer { offset: u64 },
    /// A block of positions that is cut short, or that does not fit its postings.
    #[error("byte {offset} of the positions: expected a block as it is written")]
    Positions { offset: u64 },
    #[error("byte {offset} of the list: expected the end of the tail, found {found} bytes more")]
    Rest {
        /// The end of the tail's last posting.
        offset: u64,
        found: u64,
    },
}

//! The piece: what flows from the reader of a file to a parser.

use super::Format;
use crate::buffers::TextBuffer;
use crate::index::documents::pieces::SkippedRecords;
use std::sync::Arc;

/// Some megabytes of a split that end at a record border: the unit that is parsed, timed, ordered
/// and placed.
pub struct Piece {
    /// Number of the input that the bytes come from, where it is not one of `files`.
    pub input: u32,
    pub format: Format,
    /// Where the piece begins in the input's uncompressed stream.
    pub offset: u64,
    pub bytes: TextBuffer,
    /// Number of each file and where it ends in `bytes`, where a file is a document; else empty.
    pub files: Vec<(u32, usize)>,
    /// The first record of the input, where it says what the others mean; else empty.
    pub head: Arc<[u8]>,
    /// The input's stream ends with the piece.
    pub ends_input: bool,
    /// What was passed over on the way to this piece.
    pub skipped: SkippedRecords,
}

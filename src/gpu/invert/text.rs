//! Which texts make a batch? Those of consecutive pieces, laid out as the kernels read them.

pub use crate::dictionary::texts::{PieceText, SEPARATOR};

/// A longer form is looked at by the host alone, wherever it occurs.
pub const LONGEST_FORM: u32 = 255;

/// Pieces of a batch, at most.
pub const MOST_PIECES: usize = 1024;

/// Bytes of the texts of a batch, at most: places are numbers of 32 bits, and a bit of those of tokens says something else.
pub const MOST_BYTES: usize = 1 << 30;

/// Bytes of a tile of text: texts are filled up to whole ones.
pub const TILE_BYTES: usize = 4096;

/// The form that begins at a place of a text.
pub(super) fn form_at(text: &[u8], start: usize) -> &[u8] {
    let is_word = |&byte: &u8| byte >= 0x80 || byte.is_ascii_alphanumeric();
    let length = text[start..].iter().position(|byte| !is_word(byte)).unwrap_or(text.len() - start);
    &text[start..start + length]
}

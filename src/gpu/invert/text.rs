//! The texts of a batch: those of consecutive pieces, end to end, as the kernels read them.

pub(crate) use crate::dictionary::device::texts::{PieceText, SEPARATOR};
#[cfg(test)]
use twox_hash::XxHash3_64;

/// The host alone looks at longer forms.
pub(crate) const LONGEST_FORM: u32 = 255;

/// Of a batch.
pub const MOST_PIECES: usize = 1024;

/// Of a batch: places have 32 bits, and those of tokens a bit for something else.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Texts are filled up to whole tiles.
pub(crate) const TILE_BYTES: usize = 4096;

static SEPARATORS: [u8; TILE_BYTES] = [SEPARATOR; TILE_BYTES];

/// As `invert_hash_documents`.
#[cfg(test)]
pub(crate) fn content(text: &[u8]) -> u64 {
    XxHash3_64::oneshot(text)
}

/// The texts of a batch, filled up to whole tiles.
pub(super) fn parts(pieces: &[PieceText]) -> Vec<&[u8]> {
    let mut parts: Vec<&[u8]> = pieces.iter().map(|piece| &*piece.bytes).collect();
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    parts.push(&SEPARATORS[..bytes.next_multiple_of(TILE_BYTES) - bytes]);
    parts
}

/// How many of the first pieces a device takes at once.
pub(super) fn fitting(pieces: &[PieceText]) -> usize {
    let mut bytes = 0;
    let fits = |piece: &&PieceText| {
        bytes += piece.bytes.len();
        bytes <= MOST_BYTES - TILE_BYTES
    };
    pieces.iter().take(MOST_PIECES).take_while(fits).count()
}

pub(super) fn is_fitting(pieces: &[PieceText]) -> bool {
    fitting(pieces) == pieces.len()
}

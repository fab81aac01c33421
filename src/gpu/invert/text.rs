//! Which texts make a batch? Those of consecutive pieces, laid out as the kernels read them.

pub(crate) use crate::dictionary::device::texts::{PieceText, SEPARATOR};
#[cfg(any(test, fuzzing))]
use twox_hash::XxHash3_64;

/// A longer form is looked at by the host alone, wherever it occurs.
pub(crate) const LONGEST_FORM: u32 = 255;

/// Pieces of a batch, at most.
pub const MOST_PIECES: usize = 1024;

/// Bytes of the texts of a batch, at most: places are numbers of 32 bits, and a bit of those of
/// tokens says something else.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Bytes of a tile of text: texts are filled up to whole ones.
pub(crate) const TILE_BYTES: usize = 4096;

static SEPARATORS: [u8; TILE_BYTES] = [SEPARATOR; TILE_BYTES];

/// The hash of a text, which `invert_hash_documents` finds too.
#[cfg(any(test, fuzzing))]
pub(crate) fn content(text: &[u8]) -> u64 {
    XxHash3_64::oneshot(text)
}

/// What fills so many bytes up to whole tiles.
pub(super) fn padding(bytes: usize) -> &'static [u8] {
    &SEPARATORS[..bytes.next_multiple_of(TILE_BYTES) - bytes]
}

/// The texts of a batch, or its lines, as parts, filled up to whole tiles.
pub(super) fn parts<'a>(pieces: impl Iterator<Item = &'a PieceText>) -> Vec<&'a [u8]> {
    let mut parts: Vec<&[u8]> = pieces.map(|piece| &*piece.bytes).collect();
    parts.push(padding(parts.iter().map(|part| part.len()).sum()));
    parts
}

/// How many of the pieces a device takes at once, from the first on.
pub(super) fn fitting(pieces: &[PieceText]) -> usize {
    let mut bytes = 0;
    let fits = |piece: &&PieceText| {
        bytes += piece.bytes.len();
        bytes <= MOST_BYTES - TILE_BYTES
    };
    pieces.iter().take(MOST_PIECES).take_while(fits).count()
}

/// Whether a device takes all of the pieces at once.
pub(super) fn is_fitting(pieces: &[PieceText]) -> bool {
    fitting(pieces) == pieces.len()
}

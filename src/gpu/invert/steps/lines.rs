//! The kernels that find names and texts in lines of JSON.

use super::{InvertArray, InvertStep, SCAN_SHARED_BYTES, THREADS, counted, of, scan, step};
use crate::gpu::floor::steps::Argument::Number;

/// Of a warp, which has a line.
const LANES: u32 = 32;

pub(crate) fn count_lines(tiles: u32) -> Vec<InvertStep> {
    let arguments = vec![of(InvertArray::Raw), of(InvertArray::Tiles)];
    counted(step("invert_count_lines", tiles, SCAN_SHARED_BYTES, arguments), tiles)
}

#[derive(Clone, Copy, Default)]
pub(crate) struct LinesOf {
    pub lines: u32,
    pub pieces: u32,
    /// The lines of all pieces have the same shape.
    pub are_alike: bool,
    /// Bytes of a document that a device reads, at most.
    pub longest: u32,
}

pub(crate) fn end_lines(tiles: u32) -> InvertStep {
    let ends = [InvertArray::Raw, InvertArray::Tiles, InvertArray::LineEnds].map(of).to_vec();
    step("invert_end_lines", tiles, SCAN_SHARED_BYTES, ends)
}

/// Finds where names and texts begin, and where these go.
pub(crate) fn read_lines(batch: LinesOf) -> Vec<InvertStep> {
    let LinesOf { lines, pieces, are_alike, longest } = batch;
    let arguments = vec![
        of(InvertArray::Raw),
        of(InvertArray::LineEnds),
        Number(lines),
        of(InvertArray::PiecePlaces),
        Number(pieces),
        of(InvertArray::Shapes),
        Number(are_alike.into()),
        Number(longest),
        of(InvertArray::OddPieces),
        of(InvertArray::PieceStarts),
        of(InvertArray::LineTexts),
        of(InvertArray::LineNames),
        of(InvertArray::NameLengths),
        of(InvertArray::NamePlaces),
        of(InvertArray::DocumentStarts),
    ];
    let mut steps = vec![step("invert_read_lines", warps(lines), 0, arguments)];
    for places in [InvertArray::NamePlaces, InvertArray::DocumentStarts] {
        steps.extend(scan(places, lines + 1));
    }
    steps
}

/// Blocks with a warp for each item.
fn warps(items: u32) -> u32 {
    items.div_ceil(THREADS / LANES)
}

pub(crate) fn write_lines(batch: LinesOf) -> InvertStep {
    let LinesOf { lines, pieces, are_alike, .. } = batch;
    let arguments = vec![
        of(InvertArray::Raw),
        of(InvertArray::LineEnds),
        Number(lines),
        of(InvertArray::PiecePlaces),
        Number(pieces),
        of(InvertArray::Shapes),
        Number(are_alike.into()),
        of(InvertArray::LineTexts),
        of(InvertArray::LineNames),
        of(InvertArray::NamePlaces),
        of(InvertArray::DocumentStarts),
        of(InvertArray::Names),
        of(InvertArray::Text),
    ];
    step("invert_write_lines", warps(lines), 0, arguments)
}

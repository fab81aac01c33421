//! Which kernels find names and texts in lines of JSON?

use super::{Array, SCAN_SHARED_BYTES, Step, THREADS, counted, of, scan, step};
use crate::gpu::query::steps::Argument::Number;

/// Threads of a device that share a line.
const LANES: u32 = 32;

/// Counts the lines of so many tiles.
pub fn count_lines(tiles: u32) -> Vec<Step> {
    let arguments = vec![of(Array::Raw), of(Array::Tiles)];
    counted(step("invert_count_lines", (tiles, SCAN_SHARED_BYTES), arguments), tiles)
}

/// Finds where lines end, names and texts begin, and where these go; in each of so many pieces documents of at most `longest` bytes. There is a line in each.
pub fn read_lines((tiles, lines): (u32, u32), pieces: u32, longest: u32) -> Vec<Step> {
    let ends = [Array::Raw, Array::Tiles, Array::LineEnds].map(of).to_vec();
    let arguments = vec![
        of(Array::Raw),
        of(Array::LineEnds),
        Number(lines),
        of(Array::PiecePlaces),
        Number(pieces),
        of(Array::Arounds),
        Number(longest),
        of(Array::Counters),
        of(Array::PieceStarts),
        of(Array::LineTexts),
        of(Array::LineNames),
        of(Array::NameLengths),
        of(Array::NamePlaces),
        of(Array::DocumentStarts),
    ];
    let mut steps = vec![
        step("invert_end_lines", (tiles, SCAN_SHARED_BYTES), ends),
        step("invert_read_lines", (lines.div_ceil(THREADS / LANES), 0), arguments),
    ];
    for places in [Array::NamePlaces, Array::DocumentStarts] {
        steps.extend(scan(places, lines + 1));
    }
    steps
}

/// Writes names and texts of so many lines to their places.
pub fn write_lines(lines: u32) -> Step {
    let arguments = vec![
        of(Array::Raw),
        of(Array::LineEnds),
        Number(lines),
        of(Array::LineTexts),
        of(Array::LineNames),
        of(Array::NamePlaces),
        of(Array::DocumentStarts),
        of(Array::Names),
        of(Array::Text),
    ];
    step("invert_write_lines", (lines.div_ceil(THREADS / LANES), 0), arguments)
}

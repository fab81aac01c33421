//! Exceptions of PForDelta: two arrays, each coded by PForDelta again, down to plain ones.
//!
//! An array of m values, where m is known from elsewhere, at level 0: m x u32. At level L above 0:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | b, 0 to 32 |
//! | [`vbyte`] | e: how many values have more than b bits |
//! | m x b / 8, rounded up | the low b bits of each value, as [`bits`] writes them |
//! | | and if e > 0: |
//! | the rest | exceptions at level L - 1 |
//!
//! e exceptions at a level: the array of their overflows, (value >> b) - 1, at that level, then the
//! array of their places at that level, each as the places between it and the one before.

use crate::codec::column::{Widths, count_widths};
use crate::codec::{CodecError, bits, bp128, vbyte};

pub const MAX_LEVELS: u8 = 4;

/// Bits added to the cost of an exception for the time to read it.
const EXCEPTION_BITS: u64 = 2;

/// The width that makes values of these widths smallest by estimate, with exceptions at `levels`.
pub(super) fn choose_width(widths: &Widths, levels: u8) -> u8 {
    estimate(widths, widths.iter().sum(), levels).1
}

/// The estimated bits of `count` values of these widths and the width that makes them fewest. It
/// takes an overflow to be as wide as its value's high bits and places to be spread evenly, and
/// ignores levels beyond two, which save little.
fn estimate(widths: &[u64], count: u64, levels: u8) -> (u64, u8) {
    let widest = widths.iter().rposition(|&n| n > 0).unwrap_or(0);
    let mut best = (count * widest as u64, widest as u8);
    let mut exceptions = 0;
    for width in (0..widest).rev() {
        exceptions += widths[width + 1];
        let slots = count * width as u64;
        let cost = slots
            + exceptions * EXCEPTION_BITS
            + match levels {
                0 => exceptions * 64,
                _ => {
                    // An overflow of one bit is 1, and written as 0.
                    let mut overflows = [0; 33];
                    overflows[0] = widths[width + 1];
                    overflows[2..=widest - width]
                        .copy_from_slice(widths.get(width + 2..=widest).unwrap_or(&[]));
                    let distance = u64::from((count / exceptions.max(1)).max(1).ilog2());
                    let array_bits = 16 + estimate(&overflows, exceptions, (levels - 1).min(1)).0;
                    let places_bits = 16 + exceptions * (distance + 3);
                    array_bits + places_bits
                }
            };
        if cost < best.0 {
            best = (cost, width as u8);
        }
    }
    best
}

/// Calls `each` with the place and the overflow plus 1 of every exception.
pub(super) fn each_exception(values: &[u32], width: u8, mut each: impl FnMut(usize, u32)) {
    for (place, &value) in values.iter().enumerate() {
        match value.checked_shr(width.into()) {
            None | Some(0) => {}
            Some(high) => each(place, high),
        }
    }
}

/// `highs` are overflows plus 1, `gaps` the places between each exception and the one before.
pub(super) fn write_exceptions(highs: &[u32], gaps: &[u32], levels: u8, out: &mut Vec<u8>) {
    let overflows: Vec<u32> = highs.iter().map(|high| high - 1).collect();
    write_array(&overflows, levels, out);
    write_array(gaps, levels, out);
}

fn write_array(values: &[u32], levels: u8, out: &mut Vec<u8>) {
    if levels == 0 {
        values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        return;
    }
    let mut widths = [0; 33];
    count_widths(values, &mut widths);
    let width = choose_width(&widths, levels - 1);
    let mut highs = Vec::new();
    let mut gaps = Vec::new();
    let mut next = 0;
    each_exception(values, width, |place, high| {
        highs.push(high);
        gaps.push((place - next) as u32);
        next = place + 1;
    });
    out.push(width);
    vbyte::put(highs.len() as u64, out);
    bits::pack(values, width, out);
    if !highs.is_empty() {
        write_exceptions(&highs, &gaps, levels - 1, out);
    }
}

/// Number of exceptions, number of values, and width in bits.
pub(super) struct Exceptions {
    pub(super) count: usize,
    pub(super) values: usize,
    pub(super) width: u8,
}

/// Reads the places and the overflows plus 1 of exceptions from `bytes[*at]` on. Fails if the bytes
/// are damaged; allocates a few bytes for each of `values` at most.
pub(super) fn read_exceptions(
    bytes: &[u8],
    at: &mut usize,
    exceptions: &Exceptions,
    levels: u8,
    places: &mut Vec<u32>,
    highs: &mut Vec<u32>,
) -> Result<(), CodecError> {
    let &Exceptions { count, values, width } = exceptions;
    // Values of 32 bits have no exceptions.
    let most = if width < bp128::MAX_WIDTH { values } else { 0 };
    CodecError::at_most("exceptions", most, count)?;
    read_array(bytes, at, count, levels, highs)?;
    // An overflow of only ones, which no encoder writes, adds nothing to its value.
    let most = u32::MAX.checked_shr(width.into()).unwrap_or(0);
    let all = highs.iter().fold(0, |all, overflow| all | overflow);
    CodecError::at_most("an overflow", most as usize, all as usize)?;
    highs.iter_mut().for_each(|high| *high = high.wrapping_add(1));
    read_array(bytes, at, count, levels, places)?;
    bp128::sum_docids(u32::MAX, places);
    // Each place is the one before plus 1 to 2^32, so a sum that wraps does not rise.
    let falls = places.windows(2).fold(false, |falls, pair| falls | (pair[0] >= pair[1]));
    match places.last() {
        Some(&found) if falls || found as usize >= values => {
            Err(CodecError::Place { values: values as u64, found: found.into() })
        }
        _ => Ok(()),
    }
}

fn read_array(
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    levels: u8,
    out: &mut Vec<u32>,
) -> Result<(), CodecError> {
    let rest = &bytes[*at..];
    out.clear();
    if levels == 0 {
        CodecError::need(4 * count, rest.len())?;
        out.extend(rest.as_chunks().0[..count].iter().map(|&word| u32::from_le_bytes(word)));
        *at += 4 * count;
        return Ok(());
    }
    let (width, exceptions) = read_head(bytes, at)?;
    let slots = bits::bytes(count, width);
    CodecError::need(slots, bytes.len() - *at)?;
    out.resize(count, 0);
    bits::unpack(&bytes[*at..], width, out);
    *at += slots;
    if exceptions > 0 {
        let mut places = Vec::new();
        let mut highs = Vec::new();
        let of = Exceptions { count: exceptions, values: count, width };
        read_exceptions(bytes, at, &of, levels - 1, &mut places, &mut highs)?;
        for (&place, &high) in places.iter().zip(&highs) {
            out[place as usize] |= high << width;
        }
    }
    Ok(())
}

pub(super) fn read_head(bytes: &[u8], at: &mut usize) -> Result<(u8, usize), CodecError> {
    let Some(&width) = bytes.get(*at) else {
        return Err(CodecError::CutShort { expected: *at as u64 + 1, found: bytes.len() as u64 });
    };
    CodecError::at_most("a width", bp128::MAX_WIDTH.into(), width.into())?;
    *at += 1;
    let begin = *at as u64;
    let exceptions = vbyte::get(bytes, at).and_then(|n| usize::try_from(n).ok());
    Ok((width, exceptions.ok_or(CodecError::Integer { at: begin })?))
}

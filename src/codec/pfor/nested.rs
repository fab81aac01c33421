//! How are the exceptions of PForDelta coded? As two arrays, each of them by PForDelta again, down
//! to a level at which arrays stand as they are.
//!
//! An array of m values, where m is known from elsewhere, at level 0: m x u32. At level L above 0:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | b, 0 to 32 |
//! | [`vbyte`] | e: how many values have more than b bits |
//! | m x b / 8, rounded up | the low b bits of each value, as [`bits`] writes them |
//! | | and if e > 0: |
//! | the rest | [exceptions](write_exceptions) at level L - 1 |
//!
//! e exceptions at a level: the array of their overflows, (value >> b) - 1, at that level, then the
//! array of their places at that level, each as the places between it and the one before.

use crate::codec::column::{Widths, count_widths};
use crate::codec::{CodecError, bits, bp128, sums, vbyte};

/// The greatest level.
pub const MAX_LEVELS: u8 = 4;

/// The width for values of these widths, whose exceptions are coded at `levels`, that makes them
/// smallest by estimate: an exception at level 0 costs two u32; above, its overflow costs the bits
/// that it has and its place the bits of the mean distance, and each a little more for the
/// exceptions among them.
pub(super) fn choose_width(widths: &Widths, levels: u8) -> u8 {
    let count: u64 = widths.iter().sum();
    let widest = widths.iter().rposition(|&n| n > 0).unwrap_or(0);
    let mut best = (u64::MAX, 0);
    for width in 0..=widest {
        let exceptions: u64 = widths[width + 1..].iter().sum();
        let mut cost = count * width as u64;
        if levels == 0 {
            cost += exceptions * 64;
        } else if exceptions > 0 {
            let overflow = |(more, n): (usize, &u64)| n * (more as u64 + 1);
            cost += widths[width + 1..].iter().enumerate().map(overflow).sum::<u64>();
            cost += exceptions * (u64::from((count / exceptions).ilog2()) + 2);
        }
        best = best.min((cost, width as u8));
    }
    best.1
}

/// Calls `each` with the place and the overflow plus 1 of every value of more than `width` bits.
pub(super) fn each_exception(values: &[u32], width: u8, mut each: impl FnMut(usize, u32)) {
    for (place, &value) in values.iter().enumerate() {
        match value.checked_shr(width.into()) {
            None | Some(0) => {}
            Some(high) => each(place, high),
        }
    }
}

/// Writes exceptions: `highs` are overflows plus 1, `gaps` the places between each and the last.
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
    let (mut highs, mut gaps, mut next) = (Vec::new(), Vec::new(), 0);
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

/// Reads `count` exceptions of `values` values of `width` bits from `bytes[*at]` on: their places
/// and their overflows plus 1.
///
/// # Errors
///
/// If the bytes are damaged. Nothing is allocated beyond a few bytes for each of `values`.
pub(super) fn read_exceptions(
    bytes: &[u8],
    at: &mut usize,
    (count, values, width): (usize, usize, u8),
    levels: u8,
    places: &mut Vec<u32>,
    highs: &mut Vec<u32>,
) -> Result<(), CodecError> {
    CodecError::at_most("exceptions", values, count)?;
    read_array(bytes, at, count, levels, highs)?;
    // Above, a value of 32 bits has no exceptions.
    let most = u32::MAX.checked_shr(width.into()).unwrap_or(0);
    let mut greatest = 0;
    for high in highs.iter_mut() {
        greatest = greatest.max(u64::from(*high) + 1);
        *high = high.wrapping_add(1);
    }
    CodecError::at_most("an overflow", most as usize, greatest as usize)?;
    read_array(bytes, at, count, levels, places)?;
    let widest = places.iter().copied().max().unwrap_or(0) as usize;
    CodecError::at_most("a distance of exceptions", values, widest)?;
    sums::docids(u32::MAX, places);
    // Each step is at most `values` + 1, so a sum that wraps falls.
    let falls = places.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| pair[1]);
    let beyond = places.last().filter(|&&last| last as usize >= values);
    match falls.or(beyond.copied()) {
        Some(found) => Err(CodecError::Place { values: values as u64, found: found.into() }),
        None => Ok(()),
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
        let (mut places, mut highs) = (Vec::new(), Vec::new());
        let what = (exceptions, count, width);
        read_exceptions(bytes, at, what, levels - 1, &mut places, &mut highs)?;
        for (&place, &high) in places.iter().zip(&highs) {
            out[place as usize] |= high << width;
        }
    }
    Ok(())
}

/// Reads a width and a number of exceptions.
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

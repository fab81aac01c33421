//! Most values of a block in few bits each, the rest of the others apart: NewPFD, as huang uses it,
//! with a width for each block chosen for the least size.
//!
//! Value v keeps its low b bits in its slot; where more is left, v is an *exception*, and
//! (v >> b) - 1 stands apart with its place. What was changed from NewPFD (Yan, Ding, Suel, WWW
//! 2009): places and overflows are not coded with Simple16, but each so that it is smallest and can be
//! read by many threads: places as bytes, or as a bit vector where there are many; overflows, most of
//! which are 0 or 1, as Rice codes.
//!
//! - Head: b, 0 to 32, plus 64 if there are exceptions.
//! - Body of a block of n values with m exceptions:
//!
//! | bytes | what |
//! | --- | --- |
//! | n x b / 8, rounded up | the low b bits of each value, as [`bits`] writes them |
//! | | and if there are exceptions: |
//! | 1 | m, 1 to n |
//! | 1 | c, 0 to 32 |
//! | m, if that is less than n / 8, rounded up | the places, rising: a byte each |
//! | n / 8, rounded up, otherwise | bit i, counted from the low bit of the first byte: is value i an exception? |
//! | m x c / 8, rounded up | the low c bits of each overflow, as [`bits`] writes them |
//! | the rest | overflow >> c in unary, that many ones and a zero; the last byte is filled with ones |
//!
//! Nothing is shared by blocks.

use super::unary::{self, UnaryWriter};
use super::{Block, Codec, CodecError, Encoder, List, bits, bp128};
use super::{check_values, checked_block_len};

/// The most values of a block.
const MAX_LEN: usize = 128;

/// The bit of a head that says that there are exceptions.
const EXCEPTIONS: u8 = 64;

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct NewPfd;

#[derive(Debug)]
struct Writer {
    block_len: usize,
    unary: UnaryWriter,
}

/// Widths, and the bytes of the body that they make.
#[derive(Clone, Copy, Debug)]
struct Choice {
    bytes: usize,
    width: u8,
    overflow_width: u8,
}

/// The widths that make the smallest body.
fn choose(values: &[u32]) -> Choice {
    let widest = bits::width(values);
    let bytes = bits::bytes(values.len(), widest);
    let mut best = Choice { bytes, width: widest, overflow_width: 0 };
    let mut overflows = [0; MAX_LEN];
    for width in (0..widest).rev() {
        let mut count = 0;
        for &value in values {
            let high = value >> width;
            overflows[count] = high.wrapping_sub(1);
            count += usize::from(high > 0);
        }
        let slots = bits::bytes(values.len(), width);
        // A width at which everything is an exception serves nothing.
        if count == values.len() {
            break;
        }
        let places = count.min(values.len().div_ceil(8));
        let (overflow_width, bytes) = choose_overflow_width(&overflows[..count]);
        let bytes = slots + 2 + places + bytes;
        if bytes < best.bytes {
            best = Choice { bytes, width, overflow_width };
        }
    }
    best
}

/// The width that makes the smallest Rice codes of these values, and their bytes.
fn choose_overflow_width(overflows: &[u32]) -> (u8, usize) {
    let sum: u64 = overflows.iter().map(|&value| u64::from(value)).sum();
    let near = (sum / overflows.len() as u64).checked_ilog2().unwrap_or(0) as u8;
    let sizes = (near.saturating_sub(1)..=(near + 1).min(31)).map(|width| {
        let ones: u64 = overflows.iter().map(|&value| u64::from(value >> width)).sum();
        let unary = (ones as usize + overflows.len()).div_ceil(8);
        (width, bits::bytes(overflows.len(), width) + unary)
    });
    sizes.min_by_key(|&(_, bytes)| bytes).unwrap_or((0, 0))
}

impl Encoder for Writer {
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let Choice { width, overflow_width, .. } = choose(values);
        bits::pack(values, width, out);
        let (mut places, mut overflows) = ([0; MAX_LEN], [0; MAX_LEN]);
        let mut count = 0;
        for (place, &value) in values.iter().enumerate() {
            let high = value.checked_shr(width.into()).unwrap_or(0);
            if high > 0 {
                (places[count], overflows[count]) = (place as u8, high - 1);
                count += 1;
            }
        }
        if count == 0 {
            return width;
        }
        let (places, overflows) = (&places[..count], &overflows[..count]);
        out.extend_from_slice(&[count as u8, overflow_width]);
        let map = values.len().div_ceil(8);
        if count < map {
            out.extend_from_slice(places);
        } else {
            let begin = out.len();
            out.resize(begin + map, 0);
            for place in places {
                out[begin + usize::from(place / 8)] |= 1 << (place % 8);
            }
        }
        bits::pack(overflows, overflow_width, out);
        overflows.iter().for_each(|&overflow| self.unary.put(overflow >> overflow_width));
        self.unary.finish(out);
        width | EXCEPTIONS
    }
}

/// Where the parts of a body lie.
#[derive(Clone, Copy, Debug)]
struct Parts<'a> {
    width: u8,
    /// Exceptions, and the width of their overflows.
    count: usize,
    overflow_width: u8,
    places: &'a [u8],
    /// From the low bits of the overflows on.
    lows: &'a [u8],
    unary: &'a [u8],
    /// Bytes before the unary codes.
    bytes: usize,
}

impl<'a> Parts<'a> {
    #[inline]
    fn of(block: Block<'a>, len: usize) -> Result<Self, CodecError> {
        let Block { head, body, .. } = block;
        let width = head & !EXCEPTIONS;
        CodecError::at_most("a width", bp128::MAX_WIDTH.into(), width.into())?;
        let slots = bits::bytes(len, width);
        CodecError::need(slots, body.len())?;
        let rest = &body[slots..];
        if head & EXCEPTIONS == 0 {
            let nothing = Parts {
                width,
                count: 0,
                overflow_width: 0,
                places: &[],
                lows: rest,
                unary: rest,
                bytes: slots,
            };
            return Ok(nothing);
        }
        let Some((&[count, overflow_width], rest)) = rest.split_first_chunk::<2>() else {
            return Err(CodecError::CutShort {
                expected: slots as u64 + 2,
                found: body.len() as u64,
            });
        };
        CodecError::at_most(
            "a width",
            (bp128::MAX_WIDTH - width.min(31)).into(),
            overflow_width.into(),
        )?;
        let count = usize::from(count);
        CodecError::at_most("exceptions", len, count)?;
        let place_bytes = count.min(len.div_ceil(8));
        let low_bytes = bits::bytes(count, overflow_width);
        CodecError::need(place_bytes + low_bytes, rest.len())?;
        let (places, lows) = rest.split_at(place_bytes);
        let bytes = slots + 2 + place_bytes + low_bytes;
        Ok(Parts { width, count, overflow_width, places, lows, unary: &lows[low_bytes..], bytes })
    }

    /// Bytes of the body up to bit `end` of the unary codes.
    #[inline]
    fn body_bytes(&self, end: u64) -> usize {
        self.bytes + end.div_ceil(8) as usize
    }

    #[cold]
    fn unary_error(&self) -> CodecError {
        CodecError::Unary { from: 0, values: self.count as u64 }
    }
}

/// The places of a block's exceptions, in order, each at most once and below `len`.
#[inline]
fn each_place(
    places: &[u8],
    count: usize,
    len: usize,
    mut each: impl FnMut(usize, usize),
) -> Result<(), CodecError> {
    let wrong = |found: usize| CodecError::Place { values: len as u64, found: found as u64 };
    if count == places.len() && count < len.div_ceil(8) {
        let mut least = 0;
        for (i, &place) in places.iter().enumerate() {
            let place = usize::from(place);
            if place < least || place >= len {
                return Err(wrong(place));
            }
            each(i, place);
            least = place + 1;
        }
        return Ok(());
    }
    let mut map = [0; 16];
    map[..places.len()].copy_from_slice(places);
    let mut map = u128::from_le_bytes(map);
    if map.count_ones() as usize != count || (128 - map.leading_zeros()) as usize > len {
        return Err(CodecError::Place { values: len as u64, found: map.count_ones().into() });
    }
    for i in 0..count {
        each(i, map.trailing_zeros() as usize);
        map &= map - 1;
    }
    Ok(())
}

/// Reads the overflows of a block, plus 1, and returns the bytes of the body.
#[inline]
fn read_highs(parts: &Parts<'_>, highs: &mut [u32]) -> Result<usize, CodecError> {
    let end = unary::read(parts.unary, 0, highs).ok_or_else(|| parts.unary_error())?;
    let most = u64::from(u32::MAX) >> parts.width;
    let mut greatest = 0;
    if parts.overflow_width == 0 {
        for high in highs {
            greatest = greatest.max(u64::from(*high) + 1);
            *high = high.wrapping_add(1);
        }
    } else {
        let mut lows = [0; MAX_LEN];
        let lows = &mut lows[..highs.len()];
        bits::unpack(parts.lows, parts.overflow_width, lows);
        for (high, &low) in highs.iter_mut().zip(&*lows) {
            let sum = (u64::from(*high) << parts.overflow_width | u64::from(low)) + 1;
            greatest = greatest.max(sum);
            *high = sum as u32;
        }
    }
    CodecError::at_most("an overflow", most as usize, greatest as usize)?;
    Ok(parts.body_bytes(end))
}

impl Codec for NewPfd {
    fn name(&self) -> &'static str {
        "newpfd"
    }

    fn block_lens(&self) -> &'static [usize] {
        &[MAX_LEN, 64]
    }

    fn has_heads(&self) -> bool {
        true
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        let block_len = checked_block_len(self, block_len);
        Box::new(Writer { block_len, unary: UnaryWriter::default() })
    }

    #[inline]
    fn values(&self, _: List<'_>, block: Block<'_>, out: &mut [u32]) -> Result<usize, CodecError> {
        CodecError::at_most("values", MAX_LEN, out.len())?;
        let parts = Parts::of(block, out.len())?;
        bits::unpack(block.body, parts.width, out);
        if parts.count == 0 {
            return Ok(parts.bytes);
        }
        let mut highs = [0; MAX_LEN];
        let highs = &mut highs[..parts.count];
        let bytes = read_highs(&parts, highs)?;
        each_place(parts.places, parts.count, out.len(), |i, place| {
            out[place] |= highs[i] << parts.width;
        })?;
        Ok(bytes)
    }

    fn value(
        &self,
        _: List<'_>,
        block: Block<'_>,
        len: usize,
        i: usize,
    ) -> Result<u32, CodecError> {
        assert!(i < len && len <= MAX_LEN, "value {i} of a block of {len}");
        let parts = Parts::of(block, len)?;
        let low = bits::get(block.body, parts.width, i);
        let mut found = None;
        each_place(parts.places, parts.count, len, |exception, place| {
            if place == i {
                found = Some(exception);
            }
        })?;
        let Some(exception) = found else { return Ok(low) };
        let high = unary::nth(parts.unary, 0, exception).ok_or_else(|| parts.unary_error())?;
        let overflow = u64::from(high) << parts.overflow_width
            | u64::from(bits::get(parts.lows, parts.overflow_width, exception));
        let most = u64::from(u32::MAX) >> parts.width;
        CodecError::at_most("an overflow", most as usize, overflow as usize + 1)?;
        Ok(((overflow + 1) << parts.width) as u32 | low)
    }

    fn body_bytes(&self, _: List<'_>, block: Block<'_>, len: usize) -> Result<usize, CodecError> {
        let parts = Parts::of(block, len)?;
        match parts.count {
            0 => Ok(parts.bytes),
            count => unary::end_of(parts.unary, 0, count)
                .map(|end| parts.body_bytes(end))
                .ok_or_else(|| parts.unary_error()),
        }
    }
}

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

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::level::{Level, level};
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
        // What has 32 bits has no exceptions.
        let most = if width < bp128::MAX_WIDTH { len } else { 0 };
        CodecError::at_most("exceptions", most, count)?;
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

/// Bits above the slots of up to 128 exceptions, with room for loads that reach beyond them.
type Highs = [u32; MAX_LEN + 16];

/// Which of `len` values are exceptions, value 0 in the lowest bit.
#[inline]
fn map_of(places: &[u8], count: usize, len: usize) -> Result<u128, CodecError> {
    let mut map = 0;
    if count < len.div_ceil(8) {
        let mut least = 0;
        for &place in places {
            if place < least || usize::from(place) >= len {
                return Err(CodecError::Place { values: len as u64, found: place.into() });
            }
            map |= 1 << place;
            least = place + 1;
        }
        return Ok(map);
    }
    let mut bytes = [0; MAX_LEN / 8];
    bytes[..places.len()].copy_from_slice(places);
    map = u128::from_le_bytes(bytes);
    let widest = (u128::BITS - map.leading_zeros()) as usize;
    if map.count_ones() as usize != count || widest > len {
        return Err(CodecError::Place { values: len as u64, found: widest as u64 });
    }
    Ok(map)
}

/// Reads the overflows of a block, plus 1, and returns the bytes of the body.
#[inline]
fn read_highs(parts: &Parts<'_>, highs: &mut Highs) -> Result<usize, CodecError> {
    let end = match level() {
        // SAFETY: `level` found the instructions; `Parts::of` made sure of the count.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { avx512::read_unary(parts.unary, parts.count, highs) },
        _ => unary::read(parts.unary, 0, &mut highs[..parts.count]),
    };
    let end = end.ok_or_else(|| parts.unary_error())?;
    let highs = &mut highs[..parts.count];
    check_quotients(parts, highs.iter().fold(0, |all, high| all | high))?;
    // An overflow of only ones, which the encoder never writes, adds nothing to its value.
    if parts.overflow_width == 0 {
        highs.iter_mut().for_each(|high| *high = high.wrapping_add(1));
    } else {
        let mut lows = [0; MAX_LEN];
        let lows = &mut lows[..parts.count];
        bits::unpack(parts.lows, parts.overflow_width, lows);
        for (high, &low) in highs.iter_mut().zip(&*lows) {
            let quotient = high.checked_shl(parts.overflow_width.into()).unwrap_or(0);
            *high = (quotient | low).wrapping_add(1);
        }
    }
    Ok(parts.body_bytes(end))
}

/// Makes sure that the quotients of overflows, all bits of which are in `all`, fit above the slots.
#[inline]
fn check_quotients(parts: &Parts<'_>, all: u32) -> Result<(), CodecError> {
    let below = u32::from(parts.width) + u32::from(parts.overflow_width);
    let most = u32::MAX.checked_shr(below).unwrap_or(0);
    CodecError::at_most("a quotient", most as usize, all as usize)
}

/// Adds the bits above the slots to the values that have some.
#[inline]
fn patch(values: &mut [u32], mut map: u128, highs: &[u32], width: u8) {
    for &high in highs {
        if map == 0 {
            return;
        }
        values[map.trailing_zeros() as usize] |= high << width;
        map &= map - 1;
    }
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
        let map = map_of(parts.places, parts.count, out.len())?;
        let mut highs = [0; MAX_LEN + 16];
        let bytes = read_highs(&parts, &mut highs)?;
        match level() {
            // SAFETY: `level` found the instructions.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::patch(out, map, &highs, parts.width) },
            _ => patch(out, map, &highs, parts.width),
        }
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
        let map = map_of(parts.places, parts.count, len)?;
        if map >> i & 1 == 0 {
            return Ok(low);
        }
        let exception = (map & ((1 << i) - 1)).count_ones() as usize;
        let quotient = unary::nth(parts.unary, 0, exception);
        let quotient = quotient.ok_or_else(|| parts.unary_error())?;
        check_quotients(&parts, quotient)?;
        let overflow = quotient.checked_shl(parts.overflow_width.into()).unwrap_or(0)
            | bits::get(parts.lows, parts.overflow_width, exception);
        Ok(overflow.wrapping_add(1) << parts.width | low)
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

//! NewPFD, as huang uses it, with a width for each block chosen for the least size: most values in
//! few bits each, the rest of the others apart.
//!
//! Value v keeps its low b bits in its slot; where more is left, v is an *exception*, and its
//! *overflow*, `(v >> b) - 1`, stands apart with its place. Unlike in NewPFD (Yan, Ding, Suel, WWW
//! 2009), places and overflows are not coded with Simple16, but each so that it is smallest and
//! many threads can read it: places as bytes, or as a bit vector where there are many; overflows,
//! most of which are 0 or 1, as Rice codes.
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
//! | n / 8, rounded up, otherwise | bit i, from the low bit of byte 0: is value i an exception? |
//! | m x c / 8, rounded up | the low c bits of each overflow, as [`bits`] writes them |
//! | the rest | overflow >> c in unary, this many ones and a zero; ones fill the last byte |
//!
//! Nothing is shared by blocks.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod avx512;

use super::unary::{self, UnaryWriter};
use super::{
    Codec, CodecError, CodedBlock, Encoder, List, bits, bp128, check_values, checked_block_len,
};

const MAX_LEN: usize = 128;

/// The bit of a head that marks exceptions.
const EXCEPTIONS: u8 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPfd;

#[derive(Debug)]
struct NewPfdWriter {
    block_len: usize,
    unary: UnaryWriter,
}

/// Bits added to the cost of an exception for the time to read it.
const EXCEPTION_BITS: usize = 1;

/// Widths, and the cost of a body with them, in bits.
#[derive(Clone, Copy, Debug)]
struct WidthChoice {
    cost: usize,
    width: u8,
    overflow_width: u8,
}

/// The widths of the cheapest body.
fn choose(values: &[u32]) -> WidthChoice {
    let widest = bits::width(values);
    let cost = 8 * bits::bytes(values.len(), widest);
    let mut best = WidthChoice { cost, width: widest, overflow_width: 0 };
    let mut overflows = [0; MAX_LEN];
    for width in (0..widest).rev() {
        let mut count = 0;
        for &value in values {
            let high = value >> width;
            overflows[count] = high.wrapping_sub(1);
            count += usize::from(high > 0);
        }
        let slots = bits::bytes(values.len(), width);
        // A width at which everything is an exception is of no use.
        if count == values.len() {
            break;
        }
        let places = count.min(values.len().div_ceil(8));
        let (overflow_width, bytes) = choose_overflow_width(&overflows[..count]);
        let cost = 8 * (slots + 2 + places + bytes) + EXCEPTION_BITS * count;
        if cost < best.cost {
            best = WidthChoice { cost, width, overflow_width };
        } else if cost > best.cost + values.len() {
            // The cost falls with the width while exceptions are few and rises when they are many.
            break;
        }
    }
    best
}

/// The width of the smallest Rice codes of these values, and their bytes.
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

impl Encoder for NewPfdWriter {
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let WidthChoice { width, overflow_width, .. } = choose(values);
        bits::pack(values, width, out);
        let mut places = [0; MAX_LEN];
        let mut overflows = [0; MAX_LEN];
        let mut count = 0;
        for (place, &value) in values.iter().enumerate() {
            let high = value.checked_shr(width.into()).unwrap_or(0);
            if high > 0 {
                places[count] = place as u8;
                overflows[count] = high - 1;
                count += 1;
            }
        }
        if count == 0 {
            return width;
        }
        let places = &places[..count];
        let overflows = &overflows[..count];
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

#[derive(Clone, Copy, Debug)]
struct BlockParts<'a> {
    width: u8,
    count: usize,
    overflow_width: u8,
    places: &'a [u8],
    /// From the low bits of the overflows on.
    lows: &'a [u8],
    unary: &'a [u8],
    /// Bytes before the unary codes.
    bytes: usize,
}

impl<'a> BlockParts<'a> {
    #[inline]
    fn of(block: CodedBlock<'a>, len: usize) -> Result<Self, CodecError> {
        let CodedBlock { head, body, .. } = block;
        let width = head & !EXCEPTIONS;
        CodecError::at_most("a width", bp128::MAX_WIDTH.into(), width.into())?;
        let slots = bits::bytes(len, width);
        CodecError::need(slots, body.len())?;
        let rest = &body[slots..];
        if head & EXCEPTIONS == 0 {
            let nothing = BlockParts {
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
        // Values of 32 bits have no exceptions.
        let most = if width < bp128::MAX_WIDTH { len } else { 0 };
        CodecError::at_most("exceptions", most, count)?;
        let place_bytes = count.min(len.div_ceil(8));
        let low_bytes = bits::bytes(count, overflow_width);
        CodecError::need(place_bytes + low_bytes, rest.len())?;
        let (places, lows) = rest.split_at(place_bytes);
        let bytes = slots + 2 + place_bytes + low_bytes;
        Ok(BlockParts {
            width,
            count,
            overflow_width,
            places,
            lows,
            unary: &lows[low_bytes..],
            bytes,
        })
    }

    /// What an exception adds to its slot. An overflow of only ones, never written, adds nothing.
    #[inline]
    fn high(&self, quotient: u32, low: u32) -> u32 {
        let overflow = quotient.checked_shl(self.overflow_width.into()).unwrap_or(0) | low;
        overflow.wrapping_add(1) << self.width
    }

    #[inline]
    fn body_bytes(&self, end: u64) -> usize {
        self.bytes + end.div_ceil(8) as usize
    }
}

/// The exceptions among `len` values as bits, value 0 in the lowest.
#[inline]
fn map_of(places: &[u8], count: usize, len: usize) -> Result<u128, CodecError> {
    let wrong = |found| CodecError::Place { values: len as u64, found };
    if count < len.div_ceil(8) {
        let mut low = 0u64;
        let mut high = 0u64;
        let mut least = 0;
        let mut rises = true;
        for &place in places {
            let bit = 1 << (place % 64);
            low |= if place < 64 { bit } else { 0 };
            high |= if place < 64 { 0 } else { bit };
            rises &= place >= least;
            least = place.saturating_add(1);
        }
        if !rises || usize::from(least) > len {
            return Err(wrong(u64::from(least)));
        }
        return Ok(u128::from(high) << 64 | u128::from(low));
    }
    let bytes = match places.first_chunk() {
        Some(whole) => *whole,
        None => {
            let mut bytes = [0; MAX_LEN / 8];
            bytes[..places.len()].copy_from_slice(places);
            bytes
        }
    };
    let map = u128::from_le_bytes(bytes);
    let widest = (u128::BITS - map.leading_zeros()) as usize;
    if map.count_ones() as usize != count || widest > len {
        return Err(wrong(widest as u64));
    }
    Ok(map)
}

/// Adds the high bits of exceptions to the values and returns the bytes of the body.
#[inline]
fn add_exceptions(
    parts: &BlockParts<'_>,
    map: u128,
    values: &mut [u32],
) -> Result<usize, CodecError> {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        // SAFETY: `level` found the instructions; `BlockParts::of` made sure of the count and the
        // lows.
        let added = unsafe { avx512::add_exceptions(parts, map, values) };
        if let Some((end, quotients)) = added {
            check_quotients(parts, quotients)?;
            return Ok(parts.body_bytes(end));
        }
    }
    add_exceptions_portable(parts, map, values)
}

/// The path of every machine, and of unary codes of any length.
#[inline(never)]
fn add_exceptions_portable(
    parts: &BlockParts<'_>,
    mut map: u128,
    values: &mut [u32],
) -> Result<usize, CodecError> {
    let mut highs = [0; MAX_LEN];
    let mut lows = [0; MAX_LEN];
    let highs = &mut highs[..parts.count];
    let lows = &mut lows[..parts.count];
    let wrong = CodecError::Unary { from: 0, values: parts.count as u64 };
    let end = unary::read(parts.unary, 0, highs).ok_or(wrong)?;
    check_quotients(parts, highs.iter().fold(0, |all, high| all | high))?;
    bits::unpack(parts.lows, parts.overflow_width, lows);
    for (&quotient, &low) in highs.iter().zip(&*lows) {
        values[map.trailing_zeros() as usize] |= parts.high(quotient, low);
        map &= map - 1;
    }
    Ok(parts.body_bytes(end))
}

/// Checks that the quotients of overflows, whose bits are or-ed in `all`, fit above the slots.
#[inline]
fn check_quotients(parts: &BlockParts<'_>, all: u32) -> Result<(), CodecError> {
    let below = u32::from(parts.width) + u32::from(parts.overflow_width);
    let most = u32::MAX.checked_shr(below).unwrap_or(0);
    CodecError::at_most("a quotient", most as usize, all as usize)
}

impl Codec for NewPfd {
    fn block_lens(&self) -> &'static [usize] {
        &[MAX_LEN, 64]
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        let block_len = checked_block_len(self, block_len);
        Box::new(NewPfdWriter { block_len, unary: UnaryWriter::default() })
    }

    #[inline]
    fn values(
        &self,
        _: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        CodecError::at_most("values", MAX_LEN, out.len())?;
        let parts = BlockParts::of(block, out.len())?;
        bits::unpack(block.body, parts.width, out);
        if parts.count == 0 {
            return Ok(parts.bytes);
        }
        let map = map_of(parts.places, parts.count, out.len())?;
        add_exceptions(&parts, map, out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head_and_body(values: &[u32]) -> (u8, Vec<u8>) {
        let mut body = Vec::new();
        let head = NewPfd.encoder(MAX_LEN).block(values, &mut body);
        (head, body)
    }

    #[test]
    fn the_bytes_are_as_specified() {
        let mut values = [1; 64];
        (values[3], values[60]) = (9, 5);
        let (head, body) = head_and_body(&values);
        assert_eq!(head, 1 | EXCEPTIONS);
        // One bit each; 9 is 1 + 2 x 4, 5 is 1 + 2 x 2: overflows 3 and 1 in unary.
        let mut expected = vec![0xff; 8];
        expected.extend([2, 0, 3, 60, 0b1101_0111]);
        assert_eq!(body, expected);

        // As many places as a bit vector has bytes, so it is one. The overflow 256 is 2 x 2^7.
        let values: Vec<u32> = (0..64).map(|i| if i % 8 == 0 { 257 } else { 0 }).collect();
        let (head, body) = head_and_body(&values);
        assert_eq!(head, EXCEPTIONS);
        assert_eq!(body[..10], [8, 7, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(body[10..17], [0; 7]);
        assert_eq!(body[17..], [0b1101_1011, 0b1011_0110, 0b0110_1101]);
    }

    type Add = fn(&BlockParts<'_>, u128, &mut [u32]) -> Result<usize, CodecError>;

    proptest! {
        #[test]
        fn twin_all_paths_add_the_same(
            values in prop::collection::vec((any::<u32>(), 0..33u32, 0..5u32), 1..=MAX_LEN),
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let values: Vec<u32> = values
                .iter()
                .map(|&(v, wide, choice)| v.checked_shr(if choice == 0 { wide } else { 28 }).unwrap_or(0))
                .collect();
            let (head, mut body) = head_and_body(&values);
            if let Some((place, bits)) = damage && !body.is_empty() {
                let place = place.index(body.len());
                body[place] ^= bits;
            }
            let read = |add: Add| {
                let parts = BlockParts::of(CodedBlock { index: 0, head, body: &body }, values.len())?;
                let mut out = vec![0; values.len()];
                bits::unpack(&body, parts.width, &mut out);
                let map = map_of(parts.places, parts.count, values.len())?;
                let bytes = add(&parts, map, &mut out)?;
                Ok::<_, CodecError>((bytes, out))
            };
            let portable = read(add_exceptions_portable);
            prop_assert_eq!(&portable, &read(add_exceptions));
            if damage.is_none() {
                prop_assert_eq!(portable, Ok((body.len(), values)));
            }
        }
    }
}

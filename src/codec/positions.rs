//! Codes the positions of a block of postings: of each posting its first position and the gaps
//! between the others, one behind the other. Rice codes whose low part is chosen for each block.
//!
//! One value alone is a `vbyte`. Of more:
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | b, 0 to 32, plus 128 if values have a high part |
//! | n x b / 8, rounded up | the low b bits of each value, as [`bits`] writes them |
//! | the rest | the high part of each in unary, as [`unary`] writes them |
//!
//! So a block is read whole, or any of its values alone: how many there are follows from the term
//! frequencies.

mod sums;

pub(crate) use sums::decode_sums;

use super::unary::{self, UnaryWriter};
use super::{bits, vbyte};

const HAS_HIGH: u8 = 128;

/// Widths below that of the mean that may be the best.
const TRIED: u8 = 2;

/// Appends the values, at least one, with the cheapest width; of equal ones the least, and without
/// high parts if that is as cheap.
pub(crate) fn encode(values: &[u32], unary: &mut UnaryWriter, out: &mut Vec<u8>) {
    if let [value] = values {
        return vbyte::put(u64::from(*value), out);
    }
    let count = values.len() as u64;
    let plain = bits::width(values);
    // In half the bits, if no sum is greater.
    let is_small = count << plain <= 1 << 32;
    let sum_of = |shift: u8| match is_small {
        true => values.iter().map(|value| value >> shift).sum::<u32>().into(),
        false => values.iter().map(|value| u64::from(value >> shift)).sum::<u64>(),
    };
    let sum = sum_of(0);
    let top = bits::width_of((sum / count.max(1)) as u32);
    let (mut width, mut least) = (plain, count * u64::from(plain));
    let mut has_high = false;
    for tried in top.saturating_sub(TRIED)..=top.min(plain) {
        let cost = count * (u64::from(tried) + 1) + sum_of(tried);
        if cost < least {
            (width, least, has_high) = (tried, cost, true);
        }
    }
    out.push(width | if has_high { HAS_HIGH } else { 0 });
    bits::pack(values, width, out);
    if has_high {
        values.iter().for_each(|&value| unary.put(value >> width));
        unary.finish(out);
    }
}

/// Whether a block of this many bytes may have this many values: each takes a bit at least, but
/// where all are 0, which is one for each posting.
pub(crate) fn may_hold(bytes: usize, count: u64, postings: usize) -> bool {
    count <= 8 * bytes as u64 || count <= postings as u64 && bytes > 0
}

/// The width of a block, its low parts, and its high parts, if there are any.
type BlockParts<'b> = (u8, &'b [u8], Option<&'b [u8]>);

/// The parts of a block of `count` values, more than one.
fn parts(bytes: &[u8], count: usize) -> Option<BlockParts<'_>> {
    let (&head, rest) = bytes.split_first()?;
    let width = head & !HAS_HIGH;
    let low = (width <= 32).then(|| bits::bytes(count, width))?;
    rest.get(..low)?;
    Some((width, rest, (head & HAS_HIGH != 0).then(|| &rest[low..])))
}

#[inline]
fn join(lows: &mut [u32], highs: &[u32], width: u8) {
    for (low, &high) in lows.iter_mut().zip(highs) {
        *low |= high.checked_shl(width.into()).unwrap_or(0);
    }
}

const AT_ONCE: usize = 128;

/// Reads all values of a block, which begins the bytes; `None` if these end before.
pub(crate) fn decode(bytes: &[u8], out: &mut [u32]) -> Option<()> {
    if let [value] = out {
        *value = u32::try_from(vbyte::get(bytes, &mut 0)?).ok()?;
        return Some(());
    }
    let (width, lows, highs) = parts(bytes, out.len())?;
    bits::unpack(lows, width, out);
    let Some(highs) = highs else { return Some(()) };
    let mut from = 0;
    for part in out.chunks_mut(AT_ONCE) {
        let mut here = [0; AT_ONCE];
        from = unary::read(highs, from, &mut here[..part.len()])?;
        join(part, &here, width);
    }
    Some(())
}

/// Reads the values from number `first` on of a block of `count`.
pub(crate) fn decode_from(bytes: &[u8], count: usize, first: usize, out: &mut [u32]) -> Option<()> {
    if count == 1 {
        return decode(bytes, out);
    }
    let (width, lows, highs) = parts(bytes, count)?;
    for (number, value) in (first..).zip(&mut *out) {
        *value = bits::get(lows, width, number);
    }
    let Some(highs) = highs else { return Some(()) };
    let mut from = unary::skip(highs, first)?;
    for part in out.chunks_mut(AT_ONCE) {
        let mut here = [0; AT_ONCE];
        from = unary::read(highs, from, &mut here[..part.len()])?;
        join(part, &here, width);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coded(values: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, &mut UnaryWriter::default(), &mut out);
        out
    }

    #[test]
    fn bytes_are_as_specified() {
        assert_eq!(coded(&[300]), [0xac, 2]);
        // All alike: no high part.
        assert_eq!(coded(&[3, 3, 3, 3]), [2, 0xff]);
        // Widths 0 to 2 cost 14, 12 and 12 bits, plain 5 x 4 = 20.
        assert_eq!(coded(&[1, 1, 1, 1, 9]), [0x81, 0b0001_1111, 0b1111_0000, 0b1111_1110]);
    }

    proptest! {
        #[test]
        fn law_values_come_back_whole_and_alone(
            values in prop::collection::vec(prop_oneof![8 => 0u32..40, 3 => 0u32..3000, 1 => any::<u32>()], 1..600),
            first in any::<prop::sample::Index>(),
        ) {
            let mut bytes = coded(&values);
            let length = bytes.len();
            let mut out = vec![7; values.len()];
            prop_assert_eq!(decode(&bytes, &mut out), Some(()));
            prop_assert_eq!(&out, &values);
            let first = first.index(values.len());
            let mut some = vec![7; (values.len() - first).min(5)];
            prop_assert_eq!(decode_from(&bytes, values.len(), first, &mut some), Some(()));
            prop_assert_eq!(&some[..], &values[first..][..some.len()]);
            bytes.truncate(length - 1);
            prop_assert_eq!(decode(&bytes, &mut out), None);
        }

        #[test]
        fn law_noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 1usize..300, first in 0usize..300) {
            let mut out = vec![0; count];
            let _ = decode(&bytes, &mut out);
            let first = first % count;
            let mut some = vec![0; (count - first).min(3)];
            let _ = decode_from(&bytes, count, first, &mut some);
        }
    }
}

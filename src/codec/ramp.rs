//! Blocks of 128 numbers that lie near a straight line, each of which is read alone: where things
//! end that lie end to end, say, or numbers that are all alike.
//!
//! A number is `base + slope x step + rest` modulo 2^64. Its step is its place in the block, or
//! what else its reader knows. The rests of a block have one width, 0 to 64 bits, in one
//! little-endian bit stream.

use bytemuck::{Pod, Zeroable};
use std::ops::Range;

/// Numbers of a block.
pub(crate) const BLOCK: usize = 128;
/// Bytes that the rests of a block take for each bit of their width.
pub(crate) const UNIT: u64 = BLOCK as u64 / 8;
pub(crate) const MAX_WIDTH: u32 = u64::BITS;

/// The line that the numbers of a block lie near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Ramp {
    base: u64,
    slope: u32,
    /// Where the rests begin, in units, which is where those of the ramp before end.
    pub place: u32,
}

impl Ramp {
    /// Without rests.
    pub(crate) fn line(base: u64, slope: u32) -> Self {
        Self { base, slope, place: 0 }
    }

    /// That of numbers that are greater by so much.
    pub(crate) fn raised(self, by: u64) -> Self {
        Self { base: self.base.wrapping_add(by), ..self }
    }

    /// The same, so many units farther behind.
    pub(crate) fn behind(self, units: u32) -> Self {
        Self { place: self.place + units, ..self }
    }

    /// The ramp of at most 128 numbers by the slope, one of two, that leaves the narrower rests,
    /// which are appended to `out`. Its place is 0.
    pub(crate) fn of(numbers: &[u64], steps: &[u64], slopes: [u32; 2], out: &mut Vec<u8>) -> Self {
        let rest = |slope: u32, number: u64, step: u64| {
            number.wrapping_sub(step.wrapping_mul(slope.into()))
        };
        let fit = |slope| {
            let rests = numbers.iter().zip(steps);
            let rests = rests.map(|(&number, &step)| rest(slope, number, step) as i64);
            let none = (i64::MAX, i64::MIN);
            let (least, most) = rests.fold(none, |(l, m), rest| (l.min(rest), m.max(rest)));
            let spread = most.wrapping_sub(least) as u64;
            (MAX_WIDTH - spread.leading_zeros(), slope, least as u64)
        };
        let (width, slope, base) = slopes.map(fit).into_iter().min().expect("there are two");
        let end = out.len() + width as usize * UNIT as usize;
        let (mut window, mut bits) = (0u128, 0);
        for (&number, &step) in numbers.iter().zip(steps) {
            window |= u128::from(rest(slope, number, step).wrapping_sub(base)) << bits;
            bits += width;
            if bits >= u64::BITS {
                out.extend_from_slice(&(window as u64).to_le_bytes());
                window >>= u64::BITS;
                bits -= u64::BITS;
            }
        }
        if bits > 0 {
            out.extend_from_slice(&(window as u64).to_le_bytes());
        }
        out.resize(end, 0);
        Self { base, slope, place: 0 }
    }

    /// The slope of these numbers by their places, from the first to the last; 0 if they fall.
    pub(crate) fn slope(numbers: &[u64]) -> u32 {
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return 0 };
        let steps = numbers.len().saturating_sub(1).max(1) as u64;
        let rise = last.checked_sub(*first).map_or(0, |rise| rise / steps);
        u32::try_from(rise).unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn number(&self, step: u64, rest: u64) -> u64 {
        let line = step.wrapping_mul(self.slope.into()).wrapping_add(self.base);
        line.wrapping_add(rest)
    }
}

/// The words, of 64 bits, among the rests of a block that have rest `i` of this width: one or two,
/// for a width above 0.
#[inline(always)]
pub(crate) fn words(i: usize, width: u32) -> Range<usize> {
    let bit = i * width as usize;
    bit / 64..(bit + width as usize - 1) / 64 + 1
}

/// Rest `i` from its first [word](words), and from the second if there is one.
#[inline(always)]
pub(crate) fn rest([low, high]: [u64; 2], i: usize, width: u32) -> u64 {
    let window = u128::from(high) << 64 | u128::from(low);
    let shift = i as u32 * width % 64;
    (window >> shift) as u64 & (u64::MAX >> (MAX_WIDTH - width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(ramp: &Ramp, rests: &[u8], i: usize, step: u64) -> u64 {
        let width = (rests.len() as u64 / UNIT) as u32;
        if width == 0 {
            return ramp.number(step, 0);
        }
        let (rests, _) = rests.as_chunks();
        let rests: Vec<u64> = rests.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let words = &rests[words(i, width)];
        ramp.number(step, rest([words[0], words.get(1).copied().unwrap_or(0)], i, width))
    }

    proptest! {
        #[test]
        fn law_every_number_comes_back(
            numbers in prop::collection::vec(any::<u64>(), 1..=BLOCK),
            bits in 0..64u32,
            slope in any::<u32>(),
            other in any::<bool>(),
        ) {
            let steps: Vec<u64> = (0..numbers.len() as u64).map(|i| i ^ u64::from(other)).collect();
            let numbers: Vec<u64> = numbers
                .iter()
                .zip(&steps)
                .map(|(n, step)| step.wrapping_mul(slope.into()).wrapping_add(n >> bits))
                .collect();
            let mut rests = vec![];
            let ramp = Ramp::of(&numbers, &steps, [Ramp::slope(&numbers), slope], &mut rests);
            prop_assert_eq!(rests.len() as u64 % UNIT, 0);
            prop_assert!(rests.len() as u64 <= UNIT * u64::from(MAX_WIDTH - bits));
            for (i, (&number, &step)) in numbers.iter().zip(&steps).enumerate() {
                prop_assert_eq!(read(&ramp, &rests, i, step), number);
            }
        }
    }

    #[test]
    fn numbers_on_a_line_take_no_rests() {
        let steps: Vec<u64> = (0..BLOCK as u64).collect();
        for numbers in [vec![7; BLOCK], (0..BLOCK as u64).map(|i| 16 * i + 5).collect(), vec![9]] {
            let mut rests = vec![];
            let ramp = Ramp::of(&numbers, &steps, [Ramp::slope(&numbers), 0], &mut rests);
            assert!(rests.is_empty());
            let all = numbers.iter().zip(&steps);
            assert!(all.into_iter().all(|(&number, &step)| ramp.number(step, 0) == number));
        }
    }
}

//! Packing of any number of integers at one width, as [`bp128`] packs 128: value i occupies bits i
//! x w to (i + 1) x w - 1 of one little-endian bit stream, which ends with a whole byte.

use super::bp128;

#[inline]
pub(crate) fn bytes(len: usize, width: u8) -> usize {
    (len * usize::from(width)).div_ceil(8)
}

/// The least width that holds every value: 0 to 32 bits.
#[inline]
pub(crate) fn width(values: &[u32]) -> u8 {
    width_of(values.iter().fold(0, |all, value| all | value))
}

#[inline]
pub(crate) fn width_of(value: u32) -> u8 {
    (u32::BITS - value.leading_zeros()) as u8
}

/// Appends the values with `width` bits each; higher bits are lost; zeros fill the last byte.
///
/// # Panics
/// If `width` is above 32.
pub(crate) fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    let (blocks, rest) = values.as_chunks::<{ bp128::BLOCK }>();
    for block in blocks {
        bp128::pack(block, width, out);
    }
    if !rest.is_empty() {
        let mut block = [0; bp128::BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        let end = out.len() + bytes(rest.len(), width);
        bp128::pack(&block, width, out);
        out.truncate(end);
    }
}

/// Reads values of `width` bits from the beginning of `from`; fastest if 16 bytes follow.
///
/// # Panics
/// If `width` is above 32 or `from` is shorter than [`bytes`]. Any contents are fine.
#[inline]
pub(crate) fn unpack(from: &[u8], width: u8, out: &mut [u32]) {
    let (blocks, rest) = out.as_chunks_mut::<{ bp128::BLOCK }>();
    let mut at = 0;
    for block in blocks {
        bp128::unpack(&from[at..], width, block);
        at += bp128::bytes(width);
    }
    if !rest.is_empty() {
        unpack_few(&from[at..], width, rest);
    }
}

/// [`unpack`] for fewer than 128 values.
fn unpack_few(from: &[u8], width: u8, out: &mut [u32]) {
    let mut at = 0;
    let (halves, rest) = out.as_chunks_mut::<64>();
    for half in halves {
        bp128::unpack(from, width, half);
        at += bytes(64, width);
    }
    let (parts, rest) = rest.as_chunks_mut::<32>();
    for part in parts {
        bp128::unpack(&from[at..], width, part);
        at += bytes(32, width);
    }
    if rest.is_empty() {
        return;
    }
    let from = &from[at..];
    let mut part = [0; 32];
    if from.len() >= bytes(32, width) {
        bp128::unpack(from, width, &mut part);
    } else {
        let mut copy = [0; 128];
        let needed = bytes(rest.len(), width);
        copy[..needed].copy_from_slice(&from[..needed]);
        bp128::unpack(&copy, width, &mut part);
    }
    rest.copy_from_slice(&part[..rest.len()]);
}

/// Reads value `i` alone, and no bytes but those that it lies in.
///
/// # Panics
/// If `width` is above 32 or `from` ends before the value does.
#[inline]
pub(crate) fn get(from: &[u8], width: u8, i: usize) -> u32 {
    assert!(width <= bp128::MAX_WIDTH, "a width of {width} bits");
    let bit = i * usize::from(width);
    let rest = &from[bit / 8..];
    let window = match rest.first_chunk::<8>() {
        Some(window) => u64::from_le_bytes(*window),
        None => {
            assert!(rest.len() * 8 >= bit % 8 + usize::from(width), "value {i} is cut short");
            rest.iter().rev().fold(0, |window, &byte| window << 8 | u64::from(byte))
        }
    };
    (window >> (bit % 8)) as u32 & bp128::mask(width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn law_any_number_of_values_comes_back(
            values in prop::collection::vec(any::<u32>(), 0..300),
            width in 0..=32u8,
            slack in prop::sample::select(vec![0usize, 1, 64, 200]),
        ) {
            let mut packed = vec![1];
            pack(&values, width, &mut packed);
            prop_assert_eq!(packed.len(), 1 + bytes(values.len(), width));
            packed.resize(packed.len() + slack, 0xa5);
            let packed: Box<[u8]> = packed[1..].into();
            let expected: Vec<u32> = values.iter().map(|v| v & bp128::mask(width)).collect();
            let mut back = vec![7; values.len()];
            unpack(&packed, width, &mut back);
            prop_assert_eq!(&back, &expected);
            for (i, &value) in expected.iter().enumerate() {
                prop_assert_eq!(get(&packed, width, i), value);
            }
        }
    }

    #[test]
    fn width_is_the_least() {
        assert_eq!(width(&[]), 0);
        assert_eq!(width(&[0, 0]), 0);
        assert_eq!(width(&[1, 4, 2]), 3);
        assert_eq!(width(&[u32::MAX]), 32);
    }
}

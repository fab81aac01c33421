use crate::codec::bits::width;
use proptest::prelude::*;

use super::*;

/// A name, `unpack_plus` and `unpack_docids`.
type Path =
    (&'static str, fn(&[u8], u8, u32, &mut [u32; BLOCK]), fn(&[u8], u8, u32, &mut [u32; BLOCK]));

fn paths() -> Vec<Path> {
    let mut paths: Vec<Path> = vec![
        ("portable", portable::unpack, portable::unpack_docids),
        ("chosen", unpack_plus, unpack_docids),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        if level() >= Level::Avx2 {
            paths.push((
                "avx2",
                // SAFETY: the level is there; the tests give whole blocks.
                |bytes, width, more, out| unsafe {
                    avx2::unpack::<false, BLOCK>(bytes, width, more, out)
                },
                // SAFETY: as above.
                |bytes, width, previous, out| unsafe {
                    avx2::unpack::<true, BLOCK>(bytes, width, previous, out)
                },
            ));
        }
    }
    paths
}

/// Value i of the block, bit by bit.
fn oracle_value(bytes: &[u8], width: u8, i: usize) -> u32 {
    let bits = i * usize::from(width)..(i + 1) * usize::from(width);
    bits.rev().fold(0, |value, bit| value << 1 | u32::from(bytes[bit / 8] >> (bit % 8) & 1))
}

/// A copy that ends with its allocation, so that a memory checker sees a read behind it.
fn exact(bytes: &[u8]) -> Box<[u8]> {
    bytes.into()
}

#[test]
fn a_block_has_the_specified_bits() {
    let values = std::array::from_fn(|i| i as u32 % 8);
    let mut bytes = Vec::new();
    pack(&values, 3, &mut bytes);
    // 0 | 1 << 3 | 2 << 6 | 3 << 9 | ...
    assert_eq!(bytes[..3], [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    assert_eq!(bytes.len(), 48);
}

#[test]
fn width_is_the_least_that_holds_all() {
    assert_eq!(width(&[0; BLOCK]), 0);
    for bits in 1..=32u8 {
        let mut values = [0; BLOCK];
        values[usize::from(bits) * 3] = 1 << (bits - 1);
        assert_eq!(width(&values), bits);
    }
}

#[test]
fn twin_every_width_with_all_bits_set_and_with_none() {
    for width in 0..=32 {
        for byte in [0x00, 0xff] {
            let block = exact(&vec![byte; bytes(width)]);
            let expected = if byte == 0 { 0 } else { mask(width) };
            for (name, unpack_plus, _) in paths() {
                let mut values = [1; BLOCK];
                unpack_plus(&block, width, 0, &mut values);
                assert_eq!(values, [expected; BLOCK], "{name}, {width} bits");
            }
        }
    }
}

#[test]
#[should_panic(expected = "bytes of a block of 9 bits")]
fn a_block_cut_short_is_refused() {
    unpack(&[0; 143], 9, &mut [0; BLOCK]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn law_unpack_of_pack_is_the_values(values in prop::array::uniform32(any::<u32>()), shift in 0..=32u32) {
        let values: [u32; BLOCK] = std::array::from_fn(|i| {
            let value = values[i % 32].rotate_left(i as u32 / 32 * 5);
            value.checked_shr(shift).unwrap_or(0)
        });
        for width in 0..=32 {
            let mut bytes = vec![7];
            pack(&values, width, &mut bytes);
            let block = exact(&bytes[1..]);
            let mut back = [0; BLOCK];
            unpack(&block, width, &mut back);
            // What is above the width is lost.
            prop_assert_eq!(back, values.map(|value| value & mask(width)));
        }
    }

    #[test]
    fn twin_all_paths_read_the_same_from_any_bytes(
        random in prop::collection::vec(any::<u8>(), 512),
        slack in prop::sample::select(vec![0usize, 1, 7, 15, 16, 63, 64, 100]),
        previous in any::<u32>(),
    ) {
        for width in 0..=32 {
            let mut block = random[..bytes(width)].to_vec();
            block.resize(bytes(width) + slack, 0xa5);
            let block = exact(&block);
            let expected: [u32; BLOCK] =
                std::array::from_fn(|i| oracle_value(&block, width, i));
            let mut docid = previous;
            let docids = expected.map(|gap| {
                docid = docid.wrapping_add(gap).wrapping_add(1);
                docid
            });
            for (name, unpack_plus, unpack_docids) in paths() {
                let mut values = [0; BLOCK];
                unpack_plus(&block, width, previous, &mut values);
                let plus = expected.map(|value| value.wrapping_add(previous));
                prop_assert_eq!(values, plus, "{}, {} bits", name, width);
                unpack_docids(&block, width, previous, &mut values);
                prop_assert_eq!(values, docids, "{}, {} bits", name, width);
            }
        }
    }

    #[test]
    fn twin_all_paths_sum_to_the_same_docids(
        gaps in prop::collection::vec(any::<u32>(), 0..150),
        previous in any::<u32>(),
    ) {
        let mut expected = gaps.clone();
        portable::sum_docids(previous, &mut expected);
        let mut found = gaps.clone();
        sum_docids(previous, &mut found);
        prop_assert_eq!(&found, &expected);
        #[cfg(target_arch = "x86_64")]
        if level() >= Level::Avx2 {
            let mut found = gaps;
            // SAFETY: the level is there.
            unsafe { avx2::sum_docids(previous, &mut found) };
            prop_assert_eq!(&found, &expected);
        }
    }
}

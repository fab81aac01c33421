//! Tests of every codec of postings.

use proptest::prelude::*;

use super::pfor::Pfor;
use super::*;

/// The codecs of an index, and every level of recursion.
const EVERY: [&dyn Codec; 9] = [
    &bp128::Bp128,
    &newpfd::NewPfd,
    &rice::Rice,
    &vbyte::VByte,
    &Pfor::new(0),
    &Pfor::new(1),
    &Pfor::new(2),
    &Pfor::new(3),
    &Pfor::new(4),
];

#[derive(Clone, Debug, PartialEq)]
struct Coded {
    /// Head, first byte of the body and number of values of each block.
    blocks: Vec<(u8, usize, usize)>,
    bodies: Vec<u8>,
    shared: Vec<u8>,
}

fn encode(encoder: &mut dyn Encoder, block_len: usize, values: &[u32]) -> Coded {
    let mut coded = Coded { blocks: Vec::new(), bodies: Vec::new(), shared: Vec::new() };
    for part in values.chunks(100) {
        encoder.survey(part);
    }
    for block in values.chunks(block_len) {
        let begin = coded.bodies.len();
        let head = encoder.block(block, &mut coded.bodies);
        coded.blocks.push((head, begin, block.len()));
    }
    encoder.finish(&mut coded.shared);
    coded
}

/// Reads a column from its last block to its first, whole blocks and single values, with `slack`
/// bytes behind its bodies.
fn decode(
    codec: &dyn Codec,
    block_len: usize,
    coded: &Coded,
    slack: usize,
    opened: &mut OpenedColumn,
) -> Result<Vec<u32>, CodecError> {
    let count = coded.blocks.iter().map(|&(_, _, len)| len).sum();
    codec.open(&coded.shared, count, block_len, opened)?;
    let list = List { shared: &coded.shared, opened };
    let mut bodies = coded.bodies.clone();
    bodies.resize(bodies.len() + slack, 0xc3);
    // Ends with its allocation, so that a memory checker sees a read behind it.
    let bodies: Box<[u8]> = bodies.into();
    let mut values = vec![0; count];
    for (index, &(head, begin, len)) in coded.blocks.iter().enumerate().rev() {
        let block = CodedBlock { index, head, body: &bodies[begin..] };
        let first = index * block_len;
        let out = &mut values[first..first + len];
        let bytes = codec.values(list, block, out)?;
        let mut docids = vec![0; len];
        assert_eq!(codec.docids(list, block, 77, &mut docids), Ok(bytes));
        let sum = |docid: &mut u32, gap: &u32| {
            *docid = docid.wrapping_add(*gap).wrapping_add(1);
            Some(*docid)
        };
        let expected: Vec<u32> = out.iter().scan(77, sum).collect();
        assert_eq!(docids, expected);
        let next = coded.blocks.get(index + 1).map_or(coded.bodies.len(), |&(_, begin, _)| begin);
        assert_eq!(begin + bytes, next, "{codec:?}");
    }
    Ok(values)
}

fn holds(codec: &dyn Codec, values: &[u32]) {
    let mut opened = OpenedColumn::default();
    for &block_len in codec.block_lens() {
        let mut encoder = codec.encoder(block_len);
        // The same encoder and buffers serve one list after the other.
        encode(&mut *encoder, block_len, &[u32::MAX, 0, 5]);
        let coded = encode(&mut *encoder, block_len, values);
        for slack in [0, 3, 100] {
            let back = decode(codec, block_len, &coded, slack, &mut opened);
            assert_eq!(back.as_deref(), Ok(values), "{codec:?} {block_len}");
        }
        assert_eq!(encode(&mut *encoder, block_len, values), coded, "{codec:?}");
    }
}

#[test]
fn borders_of_blocks_and_all_widths_come_back() {
    for codec in EVERY {
        for len in [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 511, 512, 513, 1100] {
            for width in [0, 1, 7, 8, 25, 31, 32] {
                let most = u32::MAX.checked_shr(32 - width).unwrap_or(0);
                holds(codec, &vec![most; len]);
                let values: Vec<u32> =
                    (0..len as u32).map(|i| i.wrapping_mul(0x9e37_79b9) & most).collect();
                holds(codec, &values);
            }
        }
    }
}

#[test]
fn rice_codes_without_what_is_added_to_their_width_are_refused() {
    let mut coded = encode(&mut *rice::Rice.encoder(64), 64, &[3; 100]);
    coded.shared[0] -= 64;
    let found = decode(&rice::Rice, 64, &coded, 0, &mut OpenedColumn::default());
    assert!(matches!(found, Err(CodecError::Number { .. })), "{found:?}");
}

#[test]
fn adversarial_exceptions_come_back() {
    for codec in EVERY {
        for len in [128usize, 700] {
            // One huge value among zeros, at every kind of place.
            for place in [0, 1, 63, 64, 127, len - 1] {
                for huge in [1, 1 << 16, u32::MAX] {
                    let mut values = vec![0; len];
                    values[place] = huge;
                    holds(codec, &values);
                    values.fill(u32::MAX);
                    values[place] = huge;
                    holds(codec, &values);
                }
            }
            // Every second, every eighth, all but every eighth; growing overflows.
            for step in [2, 8, 9] {
                holds(
                    codec,
                    &(0..len).map(|i| if i % step == 0 { 1 << 20 } else { 1 }).collect::<Vec<_>>(),
                );
                holds(
                    codec,
                    &(0..len).map(|i| if i % step == 0 { 0 } else { 5 }).collect::<Vec<_>>(),
                );
                holds(
                    codec,
                    &(0..len)
                        .map(|i| if i % step == 0 { 1 << (i / step % 32) } else { 3 })
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
}

#[test]
fn a_codec_is_found_by_its_name() {
    for codec in ListCodec::ALL {
        assert_eq!(ListCodec::named(codec.name()), Some(codec));
        assert!(!codec.block_lens().is_empty());
    }
    assert!(ListCodec::named("gzip").is_none());
}

#[test]
#[should_panic(expected = "values for a block of 64")]
fn a_block_that_is_too_long_is_refused() {
    newpfd::NewPfd.encoder(64).block(&[1; 65], &mut Vec::new());
}

/// Values of mixed widths: most narrow, some of any width.
fn values() -> impl Strategy<Value = Vec<u32>> {
    let lens = prop::sample::select(vec![1usize, 5, 63, 64, 100, 128, 130, 300, 512, 900]);
    (lens, 0..=32u32, 0..=32u32, 1..40u32).prop_flat_map(|(len, narrow, wide, rarely)| {
        let below = |width: u32| u32::MAX.checked_shr(32 - width).unwrap_or(0);
        let value = (any::<u32>(), 0..rarely).prop_map(move |(value, choice)| {
            value & below(if choice == 0 { wide } else { narrow })
        });
        prop::collection::vec(value, len)
    })
}

/// Reads everything in damaged bytes; only a panic fails.
fn read_all(codec: &dyn Codec, block_len: usize, coded: &Coded, opened: &mut OpenedColumn) {
    let count = coded.blocks.iter().map(|&(_, _, len)| len).sum();
    if codec.open(&coded.shared, count, block_len, opened).is_err() {
        return;
    }
    let list = List { shared: &coded.shared, opened };
    for (index, &(head, begin, len)) in coded.blocks.iter().enumerate() {
        let body: Box<[u8]> = coded.bodies[begin.min(coded.bodies.len())..].into();
        let block = CodedBlock { index, head, body: &body };
        let mut out = vec![0; len];
        let whole = codec.values(list, block, &mut out);
        if let Ok(bytes) = whole {
            assert!(bytes <= body.len(), "{codec:?}");
        }
        let mut docids = vec![0; len];
        assert_eq!(codec.docids(list, block, 0, &mut docids), whole, "{codec:?}");
        // A missing block is an error or nothing, never a panic.
        let _ = codec.values(list, CodedBlock { index: index + 1000, ..block }, &mut out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn law_decode_of_encode_is_the_values(values in values()) {
        for codec in EVERY {
            holds(codec, &values);
        }
    }

    #[test]
    fn law_damaged_bytes_give_values_or_errors(
        values in values(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        part in 0..3u8,
    ) {
        for codec in EVERY {
            let mut opened = OpenedColumn::default();
            for &block_len in codec.block_lens() {
                let mut coded = encode(&mut *codec.encoder(block_len), block_len, &values);
                for (place, bit) in &flips {
                    match part {
                        0 if !coded.bodies.is_empty() => {
                            let place = place.index(coded.bodies.len());
                            coded.bodies[place] ^= 1 << bit;
                        }
                        1 if !coded.shared.is_empty() => {
                            let place = place.index(coded.shared.len());
                            coded.shared[place] ^= 1 << bit;
                        }
                        _ => {
                            let place = place.index(coded.blocks.len());
                            coded.blocks[place].0 ^= 1 << bit;
                        }
                    }
                }
                if let Some(cut) = cut {
                    coded.bodies.truncate(cut.index(coded.bodies.len() + 1));
                    let shared = cut.index(coded.shared.len() + 1);
                    coded.shared.truncate(if part == 1 { shared } else { usize::MAX });
                }
                read_all(codec, block_len, &coded, &mut opened);
            }
        }
    }

    #[test]
    fn law_any_bytes_give_values_or_errors(
        bodies in prop::collection::vec(any::<u8>(), 0..700),
        shared in prop::collection::vec(prop_oneof![any::<u8>(), 0..5u8], 0..200),
        head in any::<u8>(),
        len in 1..=512usize,
    ) {
        for codec in EVERY {
            for &block_len in codec.block_lens() {
                let blocks = vec![(head, 0, len.min(block_len))];
                let coded = Coded { blocks, bodies: bodies.clone(), shared: shared.clone() };
                read_all(codec, block_len, &coded, &mut OpenedColumn::default());
                let own = Coded { shared: Vec::new(), ..coded };
                read_all(codec, block_len, &own, &mut OpenedColumn::default());
            }
        }
    }
}

mod laws;

use proptest::prelude::*;

use super::form::SEGMENT_POSTINGS;
use super::*;
use crate::score::bm25::{Bm25, score};
use crate::score::bounds::{BoundNorms, code_below};

type Postings = Vec<(u32, u32)>;

fn length(docid: u32) -> u32 {
    docid.wrapping_mul(0x9e37_79b1) >> (12 + docid % 20)
}

const KEPT: u32 = 1 << 16;

fn lengths() -> Vec<u32> {
    (0..KEPT).map(length).collect()
}

fn forms() -> impl Strategy<Value = Form> {
    prop::sample::select(Form::all().collect::<Vec<_>>())
}

fn encode(postings: &[(u32, u32)], drain: usize) -> (u32, u64, Vec<u8>) {
    encode_as(Form::BP128, postings, drain)
}

/// Writes a list and takes the bytes that are ready after every `drain` postings.
fn encode_as(form: Form, postings: &[(u32, u32)], drain: usize) -> (u32, u64, Vec<u8>) {
    let mut encoder = ListEncoder::of_form(form);
    let mut bytes = Vec::new();
    for (count, &(docid, tf)) in postings.iter().enumerate() {
        encoder.push(docid, tf, code_below(length(docid)));
        if count % drain == 0 {
            bytes.append(encoder.payload());
        }
    }
    let (df, size) = encoder.finish();
    bytes.append(encoder.payload());
    assert_eq!(size, bytes.len() as u64);
    (df, size, bytes)
}

fn decode(df: u32, size: u64, data: &[u8], documents: u32) -> Result<Postings, ListError> {
    decode_as(Form::BP128, df, size, data, documents)
}

fn decode_as(
    form: Form,
    df: u32,
    size: u64,
    data: &[u8],
    documents: u32,
) -> Result<Postings, ListError> {
    decode_view(&ListView::of_form(form, df, size, data)?, documents)
}

fn decode_view(list: &ListView<'_>, documents: u32) -> Result<Postings, ListError> {
    let mut postings = Vec::new();
    let mut docids = vec![0; list.block_len()];
    let mut tfs = vec![0; list.block_len()];
    let mut columns = SegmentColumns::default();
    for block in 0..list.full_blocks() {
        list.decode_block(block, documents, &mut columns, &mut docids)?;
        list.decode_tfs(block, &mut columns, &mut tfs)?;
        for i in [0, list.block_len() / 2 + 13, list.block_len() - 1] {
            assert_eq!(list.tf(block, i, &mut columns)?, tfs[i]);
        }
        assert_eq!(docids.last(), Some(&list.last_docid(block)));
        assert_eq!(docids[0], list.first_docid(block, &mut columns)?);
        postings.extend(docids.iter().copied().zip(tfs.iter().copied()));
    }
    let count = list.decode_tail(documents, &mut docids, &mut tfs)?;
    assert_eq!(count, list.tail_len());
    postings.extend(docids.into_iter().zip(tfs).take(count));
    Ok(postings)
}

/// Lists of every interesting length, with gaps and tfs from narrow to the widest there is.
fn postings() -> impl Strategy<Value = Postings> {
    let lengths = vec![1usize, 2, 63, 64, 65, 127, 128, 129, 256, 400, 511, 512, 513, 1100];
    let lengths = prop::sample::select(lengths);
    (lengths, 0..=32u32, 0..=32u32).prop_flat_map(|(length, gap_bits, tf_bits)| {
        let below = |bits: u32| (u64::from(u32::MAX) >> (32 - bits)).max(1);
        let pairs = (0..below(gap_bits), 0..below(tf_bits));
        prop::collection::vec(pairs, length).prop_map(|pairs| {
            let mut least = 0;
            let mut postings = Vec::new();
            for (gap, tf) in pairs {
                let docid = least + gap;
                if docid >= u64::from(u32::MAX) {
                    break;
                }
                postings.push((docid as u32, tf as u32 + 1));
                least = docid + 1;
            }
            postings
        })
    })
}

#[test]
fn the_bytes_are_as_specified() {
    let (df, size, bytes) = encode(&[(3, 1), (4, 2), (300, 300)], 1);
    assert_eq!((df, size), (3, 7));
    assert_eq!(bytes, [6, 1, 0, 0xcf, 0x04, 0xaa, 0x02]);

    let mut encoder = ListEncoder::new();
    for docid in 10..139 {
        let length = if docid < 138 { 100 + docid } else { 9 };
        encoder.push(docid, 2, code_below(length));
    }
    let (df, size) = encoder.finish();
    let bytes = std::mem::take(encoder.payload());
    assert_eq!(df, 129);
    let mut expected = vec![0; 64 + 16];
    expected[0] = 10; // gaps: the first docid in 4 bits, then zeros
    expected[64..].fill(0xff); // tf - 1 in 1 bit
    expected.extend([1, 0]); // the tail: gap 0 with the flag, tf - 2
    expected.extend(137u32.to_le_bytes());
    expected.extend(0u32.to_le_bytes());
    expected.extend([4, 1]);
    expected.extend([2, 59, 2, 59, 2, 59]); // 110 is at least 108: (16 + 11) << 2
    expected.extend([2, 9, 2, 9, 2, 9]); // the tail
    assert_eq!(bytes, expected);
    assert_eq!(size, expected.len() as u64);
}

#[test]
fn the_bytes_of_segments_are_as_specified() {
    let record = |words: [u32; 3], bodies: [u16; 2]| {
        let mut record = words.map(u32::to_le_bytes).as_flattened().to_vec();
        record.extend_from_slice(bodies.map(u16::to_le_bytes).as_flattened());
        record
    };
    // 64 documents from 0 on with a tf of 2 each: gaps of 0 and tf - 1 of 1.
    let rice = Form::named("rice", 64).unwrap();
    let list: Postings = (0..64).map(|docid| (docid, 2)).collect();
    let (_, _, bytes) = encode_as(rice, &list, 1);
    let mut expected = vec![64, 64, 0, 0, 0]; // gaps: 64 + b, and 64 bits of the unary vector
    expected.extend([0; 4 + 8]); // the block, zeros
    expected.extend([64, 128, 0, 0, 0]);
    expected.extend([0; 4]);
    expected.extend([0b0101_0101; 16]); // a one and a zero each
    expected.extend([0; 2]); // up to a multiple of 4
    let segment = expected.len();
    expected.extend(63u32.to_le_bytes());
    expected.extend(record([0, 17, 25], [0, 0]));
    assert_eq!(bytes[..segment + 20], expected);
    assert_eq!(bytes.len(), segment + 20 + BOUND_BYTES);

    // One has a tf of 10: 9 is 1 + 2 x 4, an overflow of 3.
    let pfor = Form::named("pfor", 64).unwrap();
    let tf = |docid| if docid == 5 { 10 } else { 2 };
    let list: Postings = (0..65).map(|docid| (docid, tf(docid))).collect();
    let (_, _, bytes) = encode_as(pfor, &list, 1);
    let mut expected = vec![1, 0, 0]; // gaps: levels, b, no exceptions
    expected.extend([1, 1, 1, 2, 0, 3, 3, 0, 5]); // one exception, in 2 bits, behind 5 values
    expected.extend([0xff; 8]);
    expected.extend([1, 0]); // the tail: gap 0 with the flag, tf - 2
    let tail = expected.len();
    expected.extend(63u32.to_le_bytes());
    expected.extend(record([0, 3, 9], [0, 8]));
    assert_eq!(bytes[..tail + 20], expected);
    assert_eq!(bytes.len(), tail + 20 + 2 * BOUND_BYTES);
}

#[test]
fn greatest_docids_and_tfs_come_back() {
    let ends: Postings = vec![(0, u32::MAX), (u32::MAX - 1, u32::MAX)];
    let (df, size, bytes) = encode(&ends, 1);
    assert_eq!(decode(df, size, &bytes, u32::MAX), Ok(ends));

    let mut wide: Postings = (0..127).map(|docid| (docid, 1)).collect();
    wide.push((u32::MAX - 1, u32::MAX));
    let (df, size, bytes) = encode(&wide, 1);
    assert_eq!(decode(df, size, &bytes, u32::MAX), Ok(wide.clone()));
    let expected =
        Err(ListError::Docid { offset: 0, expected: u32::MAX - 1, found: u64::from(u32::MAX) - 1 });
    assert_eq!(decode(df, size, &bytes, u32::MAX - 1), expected);
}

#[test]
fn an_encoder_keeps_lists_apart() {
    let mut encoder = ListEncoder::new();
    let lists: Vec<Postings> = [1u32, 200, 128, 5]
        .iter()
        .map(|&length| (0..length).map(|i| (i * i, i % 3 + 1)).collect())
        .collect();
    let mut sizes = Vec::new();
    for list in &lists {
        list.iter().for_each(|&(docid, tf)| encoder.push(docid, tf, 0));
        sizes.push(encoder.finish());
    }
    let mut rest = &encoder.payload()[..];
    for (list, (df, size)) in lists.into_iter().zip(sizes) {
        assert_eq!(decode(df, size, rest, u32::MAX), Ok(list));
        rest = &rest[size as usize..];
    }
    assert!(rest.is_empty());
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    assert_eq!(ListView::new(0, 0, &[]).unwrap_err(), ListError::Empty);
    let cut = |offset, expected, found| ListError::CutShort { offset, expected, found };
    assert_eq!(ListView::new(128, 15, &[0; 15]).unwrap_err(), cut(0, 16, 15));
    assert_eq!(ListView::new(3, 9, &[0; 8]).unwrap_err(), cut(0, 9, 8));
    assert_eq!(ListView::new(u32::MAX, 1 << 20, &[0; 1 << 20]).unwrap_err(), {
        cut(0, 411_041_792, 1 << 20)
    });
}

#[test]
fn heads_are_summed_up_whatever_follows_them() {
    let heads: Vec<u8> = (0..64u32).map(|i| ((i * 37 + 11) % 33) as u8).chain([255; 8]).collect();
    for count in 0..16 {
        let expected: u32 = heads[..2 * count].iter().map(|&bits| u32::from(bits)).sum();
        for length in 2 * count..heads.len() {
            assert_eq!(packed::units(&heads[..length], count), expected);
        }
    }
    assert_eq!(packed::units(&[255; 32], 15), 30 * 255);
}

#[test]
fn a_wrap_around_is_found_at_every_width() {
    for (gap_bits, previous) in [(24u8, u32::MAX - 5000), (25, 7), (32, 0), (32, u32::MAX)] {
        let gap = ((1u64 << gap_bits) - 1) as u32;
        let mut block = Vec::new();
        bp128::pack(&[gap; BLOCK], gap_bits, &mut block);
        let mut docids = [0; BLOCK];
        bp128::unpack_docids(&block, gap_bits, previous, &mut docids);
        let last = docids[BLOCK - 1];
        let line = PackedBlock::new(0, [gap_bits, 0], previous, last);
        let error = line.docids(BlockSource::alone(&block), u32::MAX, &mut docids).unwrap_err();
        assert_eq!(error, ListError::Order { offset: 0, expected: last, found: last });
    }
}

#[test]
fn check_finds_what_reading_leaves_alone() {
    let list: Postings = (0..1020).map(|i| (i * 3, 1)).collect();
    let (df, size, bytes) = encode(&list, 1);
    let check = |bytes: &[u8]| {
        let mut all = Postings::new();
        let view = ListView::new(df, size, bytes)?;
        view.check(3100, Some(&lengths()), |docids, tfs| {
            all.extend(docids.iter().copied().zip(tfs.iter().copied()));
        })?;
        Ok::<_, ListError>(all)
    };
    assert_eq!(check(&bytes), Ok(list));
    let places = ListLayout::new(Form::BP128, df, size).unwrap().places as usize;
    let mut moved = bytes.clone();
    moved[places] = 1;
    let found = check(&moved).unwrap_err();
    assert_eq!(found, ListError::Place { offset: places as u64, expected: 0, found: 1 });

    let bounds = ListLayout::new(Form::BP128, df, size).unwrap().bounds as usize;
    for (number, byte) in [(0, 0), (1, 5), (7, 1), (8, 3)] {
        let at = bounds + BOUND_BYTES * number + byte;
        let mut loose = bytes.clone();
        loose[at] ^= 1;
        let found = check(&loose).unwrap_err();
        let ListError::Bound { offset, expected, found } = found else { panic!("{found}") };
        assert_eq!(offset as usize, bounds + BOUND_BYTES * number);
        assert_eq!(expected[byte] ^ 1, found[byte]);
    }

    let line = PackedBlock::new(0, [3, 0], BEFORE_FIRST, 127);
    let found = line.check_packed(&[], &[0; BLOCK], &[0; BLOCK]).unwrap_err();
    assert_eq!(found, ListError::Wasteful { offset: 0, expected: 0, found: 3 });
}

#[test]
fn lists_of_several_segments_come_back() {
    for form in Form::all() {
        for length in [SEGMENT_POSTINGS - 1, SEGMENT_POSTINGS, 2 * SEGMENT_POSTINGS + 777] {
            let list: Postings = (0..length as u32)
                .map(|i| {
                    (i * 3 + length_noise(i) % 3, 1 + length_noise(i) % 5 * (length_noise(i) % 7))
                })
                .collect();
            let (df, size, bytes) = encode_as(form, &list, 1000);
            let view = ListView::of_form(form, df, size, &bytes).unwrap();
            assert!(decode_view(&view, 1 << 20) == Ok(list.clone()), "{form}");
            let mut all = Postings::new();
            view.check(1 << 20, None, |docids, tfs| {
                all.extend(docids.iter().copied().zip(tfs.iter().copied()));
            })
            .unwrap();
            assert!(all == list, "{form}");
            // Any block, whatever was open before.
            let mut columns = SegmentColumns::default();
            let mut docids = vec![0; form.block_len()];
            for block in [view.full_blocks() - 1, 0, view.full_blocks() / 2, 1] {
                view.decode_block(block, 1 << 20, &mut columns, &mut docids).unwrap();
                assert_eq!(docids[0], list[block * form.block_len()].0);
            }
        }
    }
}

fn length_noise(i: u32) -> u32 {
    i.wrapping_mul(0x9e37_79b1).rotate_left(9) >> 3
}

/// Every byte of a small list of every form is changed to one of some values, by turns, and the
/// list is cut short at every byte: it is read as other postings or not at all.
#[test]
fn every_damaged_byte_of_every_form_is_an_error_or_other_postings() {
    let list: Postings = (0..1100u32)
        .map(|i| (i * 2 + length_noise(i) % 2, 1 + length_noise(i) % 2 * (length_noise(i) >> 20)))
        .collect();
    for form in Form::all() {
        let (df, size, bytes) = encode_as(form, &list, 1);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= [1, 0x80, 0xff][at % 3];
            let read = decode_as(form, df, size, &damaged, 3000);
            if let Ok(read) = read {
                assert!(read.windows(2).all(|pair| pair[0].0 < pair[1].0));
                assert!(read.iter().all(|&(docid, tf)| docid < 3000 && tf > 0));
            }
            let view = ListView::of_form(form, df, size, &damaged);
            let found = view.and_then(|view| view.check(KEPT, Some(&lengths()), |_, _| ()));
            if found.is_ok() {
                // Other postings, written as the encoder writes them.
                let read = decode_as(form, df, size, &damaged, KEPT).unwrap();
                assert!(read != list, "{form}: byte {at}");
                assert!(encode_as(form, &read, 1).2 == damaged, "{form}: byte {at}");
            }
            assert!(decode_as(form, df, at as u64, &bytes[..at], 3000) != Ok(list.clone()));
        }
    }
}

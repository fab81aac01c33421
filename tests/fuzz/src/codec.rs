//! The integer codecs read any bytes, all of them as their formats say.

use crate::fuzzing::take::Take;
use millrace::codec::{Codec, CodedBlock, List, ListCodec, OpenedColumn, bp128, folded, vbyte};

/// Value `i` of the bit stream, bit by bit.
fn value(bytes: &[u8], width: u8, i: usize) -> u32 {
    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
    let width = usize::from(width);
    (0..width).fold(0, |value, j| value | bit(i * width + j) << j)
}

/// Reads a block of a column of `count` values in every way; all ways agree.
fn read(codec: &dyn Codec, block_len: usize, count: usize, head: u8, shared: &[u8], body: &[u8]) {
    let mut opened = OpenedColumn::default();
    if codec.open(shared, count, block_len, &mut opened).is_err() {
        return;
    }
    let list = List { shared, opened: &opened };
    // A vector of its own, so that a read behind the body is seen.
    let body: Box<[u8]> = body.into();
    let block = CodedBlock { index: 0, head, body: &body };
    let mut values = vec![0; count.min(block_len)];
    let whole = codec.values(list, block, &mut values);
    let mut docids = vec![0; values.len()];
    assert_eq!(codec.docids(list, block, 9, &mut docids), whole);
}

/// Values of the bytes come back from every codec, and any bytes are read without harm.
fn columns(take: &mut Take<'_>) {
    let codec = ListCodec::ALL[usize::from(take.u8()) % ListCodec::ALL.len()].codec();
    let lens = codec.block_lens();
    let block_len = lens[usize::from(take.u8()) % lens.len()];
    let (head, count) = (take.u8(), 1 + usize::from(take.u16() % 600));
    let shared = usize::from(take.u8());
    let shared = take.bytes(shared);
    read(codec, block_len, count, head, shared, take.0);

    let values: Vec<u32> = (0..count)
        .map(|_| {
            let wide = u32::from(take.u8() % 33);
            take.u32().checked_shr(wide).unwrap_or(0)
        })
        .collect();
    let mut encoder = codec.encoder(block_len);
    encoder.survey(&values);
    let (mut bodies, mut places, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for block in values.chunks(block_len) {
        let begin = bodies.len();
        places.push((encoder.block(block, &mut bodies), begin));
    }
    encoder.finish(&mut shared);
    let mut opened = OpenedColumn::default();
    codec.open(&shared, count, block_len, &mut opened).expect("what was written");
    let list = List { shared: &shared, opened: &opened };
    for (index, (expected, &(head, begin))) in values.chunks(block_len).zip(&places).enumerate() {
        let mut found = vec![0; expected.len()];
        let block = CodedBlock { index, head, body: &bodies[begin..] };
        codec.values(list, block, &mut found).expect("what was written");
        assert_eq!(found, expected);
    }
}

/// What is asked of an input.
pub fn codec(data: &[u8]) {
    let mut take = Take(data);
    if take.u8() % 2 == 1 {
        return columns(&mut take);
    }
    let width = take.u8() % (bp128::MAX_WIDTH + 1);
    let previous = take.u32();
    let slack = usize::from(take.u8() % 80);

    // A vector of its own, so that a read behind the block is seen.
    let mut block = take.bytes(bp128::bytes(width) + slack).to_vec();
    let len = block.len().max(bp128::bytes(width));
    block.resize(len, 0x5a);
    block.shrink_to_fit();
    let expected: [u32; bp128::BLOCK] = std::array::from_fn(|i| value(&block, width, i));
    let mut values = [1; bp128::BLOCK];
    bp128::unpack(&block, width, &mut values);
    assert_eq!(values, expected);
    let mut docids = [1; bp128::BLOCK];
    bp128::unpack_docids(&block, width, previous, &mut docids);
    let mut docid = previous;
    for (i, gap) in expected.into_iter().enumerate() {
        docid = docid.wrapping_add(gap).wrapping_add(1);
        assert_eq!(docids[i], docid);
    }
    let mut packed = Vec::new();
    bp128::pack(&values, width, &mut packed);
    assert_eq!(packed, block[..bp128::bytes(width)]);

    let bytes = take.rest();
    let mut at = 0;
    while let Some(number) = vbyte::get(bytes, &mut at) {
        let mut again = Vec::new();
        vbyte::put(number, &mut again);
        assert_eq!(again.len(), vbyte::bytes(number));
        assert!(bytes[..at].ends_with(&again));
    }
    let mut at = 0;
    loop {
        let before = at;
        let Some((gap, tf)) = folded::get(bytes, &mut at) else { break };
        let mut again = Vec::new();
        folded::put(gap, tf, &mut again);
        assert_eq!(again, bytes[before..at]);
    }
}

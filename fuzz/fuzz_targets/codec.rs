//! Do the integer codecs read any bytes, all of them as their formats say?
#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace::codec::{bp128, folded, vbyte};
use millrace_fuzz::take::Take;

/// Value `i` of the bit stream, bit by bit.
fn value(bytes: &[u8], width: u8, i: usize) -> u32 {
    let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
    let width = usize::from(width);
    (0..width).fold(0, |value, j| value | bit(i * width + j) << j)
}

fuzz_target!(|data: &[u8]| {
    let mut take = Take(data);
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
        assert_eq!(bp128::get(&block, width, i), gap);
    }
    let mut packed = Vec::new();
    bp128::pack(&values, width, &mut packed);
    assert_eq!(packed, block[..bp128::bytes(width)]);
    assert!(bp128::width(&values) <= width);

    let bytes = take.rest();
    let mut at = 0;
    while let Some(number) = vbyte::get(bytes, &mut at) {
        let mut again = Vec::new();
        vbyte::put(number, &mut again);
        assert_eq!(again.len(), vbyte::len(number));
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
});

//! Any positions of a list are either those that are written for what is read of them, or an error;
//! a block and each of its postings say the same.

use crate::fuzzing::damage::edit;
use crate::fuzzing::take::Take;
use millrace::index::positions::{ListPositions, PositionsCheck, PositionsEncoder};

/// What is asked of an input.
pub(super) fn positions(data: &[u8]) {
    let mut take = Take(data);
    let block_len = [64, 128, 512][usize::from(take.u8()) % 3];
    let tfs: Vec<u32> = (0..1 + take.u16() % 700).map(|i| 1 + (u32::from(i) * 7919) % 4).collect();
    let count: u32 = tfs.iter().sum();
    let (bits, mut noise) = (take.u8() % 20, take.u32() | 1);
    let values: Vec<u32> = (0..count)
        .map(|_| {
            noise = noise.wrapping_mul(0x9e37_79b1).rotate_left(13) ^ 0x5bd1;
            1 + (noise >> 8 & ((1 << bits) - 1))
        })
        .collect();
    let mut encoder = PositionsEncoder::new(block_len);
    encoder.push(&tfs, &values);
    encoder.finish().expect("they are short");
    let mut bytes = std::mem::take(&mut encoder.payload);
    while !take.is_empty() {
        edit(&mut bytes, &mut take);
    }
    let Ok(list) = ListPositions::new(tfs.len() as u32, block_len, bytes.len() as u64, &bytes)
    else {
        return;
    };
    let mut check = PositionsCheck::new(list, block_len);
    let mut read = Vec::new();
    for (block, tfs) in tfs.chunks(block_len).enumerate() {
        let Ok(values) = check.block(tfs) else { return };
        let mut first = 0;
        for &tf in tfs {
            let mut one = vec![0; tf as usize];
            let alone = list.decode_from(block, values.len(), first, &mut one);
            assert_eq!(alone, Ok(()), "a block that is read is read posting by posting");
            assert_eq!(one, values[first..][..tf as usize]);
            first += tf as usize;
        }
        read.extend_from_slice(values);
    }
    if check.end().is_ok() {
        let mut again = PositionsEncoder::new(block_len);
        again.push(&tfs, &read);
        again.finish().expect("they are short");
        assert!(again.payload == bytes, "one form alone is accepted");
    }
}

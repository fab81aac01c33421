use super::*;
use crate::index::list::Form;
use proptest::prelude::*;

fn postings(tfs: &[u32], noise: u32) -> Vec<u32> {
    let mut state = noise | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 16
    };
    tfs.iter()
        .flat_map(|&tf| (0..tf).map(|at| u32::from(at > 0)).collect::<Vec<_>>())
        .map(|least| least + next() % [3, 40, 900][next() as usize % 3])
        .collect()
}

fn encode(block_len: usize, lists: &[(Vec<u32>, Vec<u32>)], step: usize) -> Vec<Vec<u8>> {
    let mut encoder = PositionsEncoder::new(block_len);
    let encoded = lists.iter().map(|(tfs, values)| {
        let mut values = &values[..];
        for tfs in tfs.chunks(step) {
            let count: u32 = tfs.iter().sum();
            encoder.push(tfs, values.split_off(..count as usize).unwrap());
        }
        encoder.finish().unwrap();
        std::mem::take(&mut encoder.payload)
    });
    encoded.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Lists come back by blocks and by postings, whatever the steps in which they were written,
    /// and pass the check; with any bit changed they are wrong or others, and no read panics.
    #[test]
    fn law_positions_come_back(
        lists in prop::collection::vec((prop::collection::vec(1u32..5, 1..700), any::<u32>()), 1..4),
        step in 1usize..300,
        flip in any::<prop::sample::Index>(),
    ) {
        let lists: Vec<_> =
            lists.into_iter().map(|(tfs, noise)| (tfs.clone(), postings(&tfs, noise))).collect();
        for block_len in [64, Form::BP128.block_len(), 512] {
            let encoded = encode(block_len, &lists, step);
            prop_assert_eq!(&encoded, &encode(block_len, &lists, 1000));
            for ((tfs, values), bytes) in lists.iter().zip(&encoded) {
                let df = tfs.len() as u32;
                let list = ListPositions::new(df, block_len, bytes.len() as u64, bytes).unwrap();
                let mut check = PositionsCheck::new(list, block_len);
                let mut rest = &values[..];
                for (block, tfs) in tfs.chunks(block_len).enumerate() {
                    let count = tfs.iter().sum::<u32>() as usize;
                    let own = rest.split_off(..count).unwrap();
                    prop_assert_eq!(check.block(tfs).unwrap(), own);
                    let mut first = 0;
                    for &tf in tfs {
                        let mut one = vec![0; tf as usize];
                        list.decode_from(block, count, first, &mut one).unwrap();
                        prop_assert_eq!(&one[..], &own[first..][..tf as usize]);
                        first += tf as usize;
                    }
                }
                prop_assert_eq!(check.end(), Ok(()));
                let mut wrong = bytes.clone();
                let bit = flip.index(8 * wrong.len());
                wrong[bit / 8] ^= 1 << (bit % 8);
                let list = ListPositions::new(df, block_len, wrong.len() as u64, &wrong).unwrap();
                let mut check = PositionsCheck::new(list, block_len);
                let mut found = Vec::new();
                let read = tfs.chunks(block_len).try_for_each(|tfs| {
                    check.block(tfs).map(|values| found.extend_from_slice(values))
                });
                prop_assert!(read.and_then(|()| check.end()).is_err() || found != *values);
            }
        }
    }
}

#[test]
fn lists_that_are_cut_short_are_refused() {
    let tfs = vec![2; 300];
    let bytes = &encode(128, &[(tfs.clone(), postings(&tfs, 7))], 128)[0];
    ListPositions::new(300, 128, 3, &bytes[..3]).unwrap_err();
    ListPositions::new(300, 128, bytes.len() as u64 + 1, bytes).unwrap_err();
    let list = ListPositions::new(300, 128, bytes.len() as u64, bytes).unwrap();
    assert!(list.expect_count(0, 1 << 40, 128).is_err(), "no memory is taken for so many");
    let mut one = [0; 300];
    list.decode_from(0, 1 << 20, 1 << 19, &mut one).unwrap_err();
}

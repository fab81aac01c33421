use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

proptest! {
    #[test]
    fn oracle_counts_like_a_map(names in prop::collection::vec(0u32..300, 0..1500), spread in prop::sample::select(vec![1u32, 1000]), most in 1u64..40_000, at_once in 1usize..1500, threads in 1usize..4) {
        let dir = tempfile::tempdir().unwrap();
        let counted = Names { at_once, ..Names::new(dir.path(), most) };
        let mut seen: HashMap<u32, u32> = HashMap::new();
        let mut expected = Duplicates::default();
        for (docid, name) in (0u32..).zip(&names) {
            // Many names, or few, occur more than once.
            let name = &(name * spread + docid % spread);
            // Pieces of one name and of some.
            match docid % 3 {
                0 => counted.extend(docid, vec![name_hash(&name.to_le_bytes())]).unwrap(),
                _ => counted.push(&name.to_le_bytes(), docid).unwrap(),
            }
            match seen.get(name) {
                Some(&earlier) => {
                    expected.count += 1;
                    expected.first.get_or_insert((docid, earlier));
                }
                None => _ = seen.insert(*name, docid),
            }
        }
        prop_assert_eq!(counted.finish(threads).unwrap(), expected);
        prop_assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn threads_count_alike() {
    let dir = tempfile::tempdir().unwrap();
    let counted = |threads| {
        let names = Names::new(dir.path(), u64::MAX);
        for docid in 0..300_000u32 {
            // Two of five have a name that an earlier one has.
            let name = if docid % 5 < 3 { docid } else { docid / 7 };
            names.push(&name.to_le_bytes(), docid).unwrap();
        }
        names.finish(threads).unwrap()
    };
    let expected = counted(1);
    assert!(expected.count > 100_000);
    for threads in [2, 3, 16] {
        assert_eq!(counted(threads), expected, "{threads} threads");
    }
}

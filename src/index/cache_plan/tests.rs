use super::*;
use crate::index::generations::folder::current;
use crate::index::testing::{build, collection};
use proptest::prelude::*;

fn list(run: u32, offset: u64, df: u32, blocks: u32) -> CachedList {
    let entry = TermEntry { df, offset, bytes: u64::from(df), ..TermEntry::default() };
    CachedList { run, entry, blocks, queries: df / 2 }
}

fn plan(of: PlanOf, lists: &[CachedList]) -> CachePlan {
    CachePlan {
        of,
        policy: CachePolicy::Vfb,
        lambda: 0.75,
        k: 10,
        queries: 7000,
        memory_bytes: 1 << 33,
        cached_bytes: 12345,
        cached: CachedLists::new(lists.iter().copied()),
    }
}

fn some() -> CachePlan {
    let of = PlanOf { generation: 3, manifest_crc: 0xfedc_ba98 };
    plan(of, &[list(1, 4096, 900, 6), list(0, 0, 20, 1), list(1, 0, 128, 1)])
}

fn decode(bytes: &[u8]) -> Result<CachePlan, IndexError> {
    CachePlan::decode(Path::new("cache.plan"), bytes)
}

proptest! {
    #[test]
    fn law_what_is_read_is_what_was_written(
        numbers in prop::collection::vec((0..3u32, 0..1000u64, 1..u32::MAX, 1..50u32, any::<u32>()), 0..40),
        policy in 0..3usize, lambda in 0.0..=1.0f64, k: u32, queries: u64, of: (u32, u32),
    ) {
        let lists = numbers.iter().map(|&(run, offset, df, blocks, queries)| {
            CachedList { queries, ..list(run, offset, df.max(blocks), blocks) }
        });
        let of = PlanOf { generation: of.0, manifest_crc: of.1 };
        let lists: Vec<CachedList> = lists.collect();
        let policy = CachePolicy::ALL[policy];
        let plan = CachePlan { policy, lambda, k, queries, ..plan(of, &lists) };
        let again = decode(&plan.encode()).unwrap();
        prop_assert_eq!(&again, &plan);
        // Of two lists with a place the first counts.
        for list in &lists {
            let same = |other: &&CachedList| {
                (other.run, other.entry.offset) == (list.run, list.entry.offset)
            };
            let first = lists.iter().find(same).map(|list| list.blocks as usize);
            prop_assert_eq!(again.cached.blocks(list.run as usize, &list.entry), first);
        }
        let none = list(3, 0, 1, 1);
        prop_assert_eq!(again.cached.blocks(3, &none.entry), None);
    }
}

#[test]
fn every_flipped_bit_and_every_missing_byte_is_found() {
    let good = some().encode();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = decode(&bytes).unwrap_err().to_string();
        assert!(error.starts_with("cache.plan: "), "{error}");
    }
    for end in 0..good.len() {
        decode(&good[..end]).unwrap_err();
    }
    let longer = [&good[..], &[0]].concat();
    assert!(decode(&longer).unwrap_err().to_string().contains("a file of 200 bytes"));
}

/// Numbers that no writer gives, sealed as a faulty program would.
#[test]
fn numbers_that_cannot_be_are_named_with_their_place() {
    let wrong = |at: usize, with: &[u8]| {
        let mut bytes = some().encode();
        bytes[at..at + with.len()].copy_from_slice(with);
        let end = bytes.len() - 8;
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        decode(&bytes).unwrap_err().to_string()
    };
    let says = |error: String, text: &str| assert!(error.contains(text), "{error}");
    says(wrong(64, &[3]), "byte 64: expected the number of a policy, 0 to 2, found 3");
    says(wrong(72, &1.5f64.to_le_bytes()), "byte 72: expected a share from 0 to 1, found 1.5");
    says(wrong(72, &f64::NAN.to_le_bytes()), "byte 72");
    says(wrong(88, &[1]), "byte 88: expected 0, found 1");
    says(wrong(104, &0u32.to_le_bytes()), "byte 104: expected 1 to 900 blocks, found 0");
    says(wrong(104, &901u32.to_le_bytes()), "byte 104: expected 1 to 900 blocks, found 901");
    // The third list becomes the first.
    says(
        wrong(160 + 16, &4096u64.to_le_bytes()),
        "byte 160: expected a list that was not named yet",
    );
}

#[test]
fn a_plan_is_about_one_generation() {
    let folder = tempfile::tempdir().unwrap();
    let a = folder.path().join("a");
    let b = folder.path().join("b");
    build(&a, &collection(8, 400, 200), &[130]);
    build(&b, &collection(9, 400, 200), &[130]);
    let generation = Generation::open(&a).unwrap();
    let folder = |index: &Path| current(index).unwrap().unwrap();
    assert_eq!(CachePlan::open(&generation).unwrap(), None);
    let of = PlanOf::generation(&generation).unwrap();
    let runs = generation.runs();
    let place = |run: usize| runs[run].postings_header().list_bytes;
    let good = plan(of, &[list(1, 0, 270, 3), list(0, place(0) - 9, 9, 1)]);
    good.write(&folder(&a)).unwrap();
    assert_eq!(CachePlan::open(&generation).unwrap().as_ref(), Some(&good));
    assert_eq!(CachePlan::read(&folder(&b)).unwrap(), None);

    // Lists that are not there.
    for wrong in [list(2, 0, 1, 1), list(0, place(0), 1, 1), list(1, 0, 271, 1), list(1, 0, 256, 3)]
    {
        plan(of, &[list(1, 4, 1, 1), wrong]).write(&folder(&a)).unwrap();
        let error = CachePlan::open(&generation).unwrap_err().to_string();
        assert!(
            error.contains("byte 128: expected a list of the generation, found run"),
            "{error}"
        );
    }

    let refused = |index: &Path, text: &str| {
        let generation = Generation::open(index).unwrap();
        let error = CachePlan::open(&generation).unwrap_err();
        assert!(matches!(error, IndexError::Lacks { .. }));
        assert!(error.to_string().contains(text), "{error}");
    };
    good.write(&folder(&b)).unwrap();
    refused(&b, "the plan is about another index with a generation 1: make a new one");
    build(&a, &collection(8, 400, 200), &[130]);
    good.write(&folder(&a)).unwrap();
    refused(&a, "the plan is about generation 1, and this is generation 2: make a new one");
}

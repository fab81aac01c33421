use super::*;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/searcher.txt")
        )
    })]

    /// Over a range of docids every algorithm, whole, in shares and in tasks, finds the answers of
    /// the whole collection less those outside of the range.
    #[test]
    fn oracle_a_range_finds_what_is_left_of_the_whole(
        seed in any::<u64>(),
        documents in prop::sample::select(vec![2u32, 300, 9000]),
        end in any::<prop::sample::Index>(),
        bounds in any::<(prop::sample::Index, prop::sample::Index)>(),
        queries in prop::collection::vec(prop::collection::vec(0..66u32, 1..5), 6),
        order in prop::collection::vec(0..1000usize, 1..40),
    ) {
        let ends = Vec::from_iter(Some(end.index(documents as usize)).filter(|&end| end > 0));
        let fixture = Fixture::new(seed, documents, &ends);
        let at = |bound: prop::sample::Index| bound.index(documents as usize + 2) as u32;
        let docids = at(bounds.0).min(at(bounds.1))..at(bounds.0).max(at(bounds.1));
        let left = |mode: Mode, text: &str| -> Vec<(u32, u32)> {
            let k = documents as usize;
            let algorithm = Algorithm::Exhaustive;
            let wanted = Wanted { k, mode, algorithm };
            let mut searcher = Searcher::new();
            let mut hits = bits(searcher.search(&fixture.snapshot(), &wanted, text).unwrap().0);
            hits.retain(|(docid, _)| docids.contains(docid));
            hits
        };
        for query in &queries {
            let words: Vec<String> = query.iter().map(|&number| term(number)).collect();
            let text = words.join(" ");
            let any = left(Mode::Or, &text);
            let all = left(Mode::And, &text);
            for algorithm in ALGORITHMS {
                for (mode, k) in [(Mode::Or, 10), (Mode::And, 10), (Mode::AndOr, 3), (Mode::Or, 2000)] {
                    let expected = match mode {
                        Mode::Or => &any,
                        Mode::AndOr if all.len() < k => &any,
                        _ => &all,
                    };
                    let expected = &expected[..expected.len().min(k)];
                    let snapshot = fixture.snapshot_within(docids.clone());
                    let wanted = Wanted { k, mode, algorithm };
                    let plan = plan(&snapshot, &wanted, &text);
                    let mut searcher = Searcher::new();
                    let found = bits(searcher.search(&snapshot, &wanted, &text).unwrap().0);
                    prop_assert_eq!(&found, expected, "{:?} {:?} {} {:?}", algorithm, mode, k, docids);
                    let tasks = bits(&by_tasks(&mut searcher, &plan, &ALL, &order));
                    prop_assert_eq!(&tasks, expected, "tasks: {:?} {:?} {}", algorithm, mode, k);
                    let share = |number| {
                        of_share(snapshot.docids_of_share(number, 3))
                    };
                    let merged = by_shares(&mut [0, 1, 2].map(share), &plan);
                    prop_assert_eq!(&bits(&merged), expected, "shares: {:?} {:?} {}", algorithm, mode, k);
                }
            }
        }
    }

    #[test]
    fn oracle_parts_put_together_find_what_one_search_finds(
        seed in any::<u64>(),
        documents in prop::sample::select(vec![2u32, 300, 3000, 30_000]),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        queries in prop::collection::vec(prop::collection::vec(0..66u32, 1..5), 6),
        shares in 1..6usize,
        order in prop::collection::vec(0..1000usize, 1..40),
        skip in 1..4usize,
    ) {
        let mut ends: Vec<usize> =
            ends.iter().map(|end| end.index(documents as usize)).filter(|&end| end > 0).collect();
        ends.sort_unstable();
        ends.dedup();
        let fixture = Fixture::new(seed, documents, &ends);
        let snapshot = fixture.snapshot();
        for algorithm in ALGORITHMS {
            for mode in [Mode::Or, Mode::And, Mode::AndOr] {
                for k in [1, 10, 1000] {
                    let wanted = Wanted { k, mode, algorithm };
                    let mut whole = Searcher::new();
                    let ranges: Vec<_> = (0..shares)
                        .map(|number| share_of(&(0..fixture.documents), number, shares))
                        .collect();
                    let mut in_place: Vec<Searcher> = ranges
                        .iter()
                        .map(|range| of_share(range.clone()))
                        .collect();
                    let copy = |range| Copied::new(snapshot.generation(), range).unwrap();
                    let copied: Vec<Copied> = ranges.iter().map(copy).collect();
                    for query in &queries {
                        let words: Vec<String> = query.iter().map(|&number| term(number)).collect();
                        let text = words.join(" ");
                        let expected = bits(whole.search(&snapshot, &wanted, &text).unwrap().0);
                        let plan = plan(&snapshot, &wanted, &text);
                        let merged = by_shares(&mut in_place, &plan);
                        prop_assert_eq!(bits(&merged), expected.clone(), "{:?} {:?} {}", algorithm, mode, k);
                        let merged = by_parts(shares, &plan, &mut |number, stage| {
                            let copied = &copied[number];
                            whole.find_in(&plan, copied, stage).unwrap().to_vec()
                        });
                        prop_assert_eq!(bits(&merged), expected.clone(), "copies: {:?} {:?} {}", algorithm, mode, k);
                        let cutting = Cutting { skip, ..ALL };
                        let tasks = by_tasks(&mut whole, &plan, &cutting, &order);
                        prop_assert_eq!(bits(&tasks), expected.clone(), "tasks: {:?} {:?} {}", algorithm, mode, k);
                    }
                }
            }
        }
    }
}

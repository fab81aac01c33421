use super::*;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// An index, queries, and how work is divided.
#[derive(Clone, Debug)]
pub(crate) struct PartsCase {
    seed: u64,
    pub(crate) documents: u32,
    ends: Vec<prop::sample::Index>,
    bounds: (prop::sample::Index, prop::sample::Index),
    queries: Vec<Vec<u32>>,
    pub(crate) shares: usize,
    order: Vec<usize>,
    skip: usize,
}

impl PartsCase {
    pub(crate) fn fixture(&self) -> Fixture {
        let documents = self.documents as usize;
        let ends = self.ends.iter().map(|end| end.index(documents)).filter(|&end| end > 0);
        let mut ends: Vec<usize> = ends.collect();
        ends.sort_unstable();
        ends.dedup();
        Fixture::new(self.seed, self.documents, &ends)
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |query: &Vec<u32>| {
            query.iter().map(|&number| term(number)).collect::<Vec<_>>().join(" ")
        };
        self.queries.iter().map(text).collect()
    }
}

pub(crate) fn parts() -> impl Strategy<Value = PartsCase> {
    (
        any::<u64>(),
        prop::sample::select(vec![2u32, 300, 3000, 30_000]),
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        any::<(prop::sample::Index, prop::sample::Index)>(),
        prop::collection::vec(prop::collection::vec(0..66u32, 1..5), 6),
        1..6usize,
        prop::collection::vec(0..1000usize, 1..40),
        1..4usize,
    )
        .prop_map(|(seed, documents, ends, bounds, queries, shares, order, skip)| PartsCase {
            seed,
            documents,
            ends,
            bounds,
            queries,
            shares,
            order,
            skip,
        })
}

/// Over a range of docids every algorithm, whole, in shares and in tasks, finds the answers of the
/// whole collection less those outside of the range.
pub(crate) fn check_range(case: &PartsCase, algorithms: &[Algorithm]) -> Result<(), TestCaseError> {
    let fixture = case.fixture();
    let at = |bound: prop::sample::Index| bound.index(case.documents as usize + 2) as u32;
    let bounds = case.bounds;
    let docids = at(bounds.0).min(at(bounds.1))..at(bounds.0).max(at(bounds.1));
    let [whole, snapshot] = [fixture.snapshot(), fixture.snapshot_within(docids.clone())];
    let left = |mode: Mode, text: &str| -> Vec<(u32, u32)> {
        let wanted = Wanted {
            k: case.documents as usize,
            mode,
            algorithm: Algorithm::Exhaustive,
            ..Wanted::default()
        };
        let mut searcher = Searcher::new();
        let mut hits = bits(searcher.search(&whole, &wanted, text).unwrap().0);
        hits.retain(|(docid, _)| docids.contains(docid));
        hits
    };
    for text in case.texts() {
        let any = left(Mode::Or, &text);
        let all = left(Mode::And, &text);
        for &algorithm in algorithms {
            for (mode, k) in [(Mode::Or, 10), (Mode::And, 10), (Mode::AndOr, 3), (Mode::Or, 2000)] {
                let expected = match mode {
                    Mode::Or => &any,
                    Mode::AndOr if all.len() < k => &any,
                    _ => &all,
                };
                let expected = &expected[..expected.len().min(k)];
                let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
                let plan = plan(&snapshot, &wanted, &text);
                let mut searcher = Searcher::new();
                let found = bits(searcher.search(&snapshot, &wanted, &text).unwrap().0);
                prop_assert_eq!(&found, expected, "{:?} {:?} {} {:?}", algorithm, mode, k, docids);
                let tasks = bits(&by_tasks(&mut searcher, &plan, &ALL, &case.order));
                prop_assert_eq!(&tasks, expected, "tasks: {:?} {:?} {}", algorithm, mode, k);
                let share = |number| of_share(snapshot.docids_of_share(number, 3));
                let merged = by_shares(&mut [0, 1, 2].map(share), &plan);
                prop_assert_eq!(&bits(&merged), expected, "{:?} {:?} {}", algorithm, mode, k);
            }
        }
    }
    Ok(())
}

/// Shares of the documents and tasks find what one search finds.
pub(crate) fn check_parts(case: &PartsCase, algorithms: &[Algorithm]) -> Result<(), TestCaseError> {
    let fixture = case.fixture();
    let snapshot = fixture.snapshot();
    let ranges =
        (0..case.shares).map(|number| share_of(&(0..fixture.documents), number, case.shares));
    let ranges: Vec<_> = ranges.collect();
    for &algorithm in algorithms {
        for mode in Mode::ALL {
            for k in [1, 10, 1000] {
                let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
                let mut whole = Searcher::new();
                let mut in_place: Vec<Searcher> = ranges.iter().cloned().map(of_share).collect();
                for text in case.texts() {
                    let expected = bits(whole.search(&snapshot, &wanted, &text).unwrap().0);
                    let plan = plan(&snapshot, &wanted, &text);
                    let merged = bits(&by_shares(&mut in_place, &plan));
                    prop_assert_eq!(&merged, &expected, "{:?} {:?} {}", algorithm, mode, k);
                    let cutting = Cutting { skip: case.skip, ..ALL };
                    let tasks = bits(&by_tasks(&mut whole, &plan, &cutting, &case.order));
                    prop_assert_eq!(&tasks, &expected, "tasks: {:?} {:?} {}", algorithm, mode, k);
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/searcher.txt")
        )
    })]

    #[test]
    fn oracle_a_range_finds_what_is_left_of_the_whole(case in parts()) {
        check_range(&case, &ALGORITHMS)?;
    }

    #[test]
    fn oracle_parts_put_together_find_what_one_search_finds(case in parts()) {
        check_parts(&case, &ALGORITHMS)?;
    }
}

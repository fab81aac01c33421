//! Merges of parts against all at once, and sums against whole numbers.

use super::facets::{Facet, FacetValues, FoundFacets, NumberFacet};
use super::*;
use crate::index::columns::{ColumnKind, key_of};
use crate::index::testing::{build, collection};
use crate::query::plan::Planner;
use crate::query::reading::asked::Query;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::wanted::{Syntax, Wanted};
use proptest::prelude::*;

fn settings(columns: &[Column]) -> Settings {
    Settings { columns: columns.to_vec(), ..Settings::default() }
}

#[test]
fn names_end_where_the_colon_of_an_order_or_a_number_is() {
    let sort = |text: &str| text.parse::<SortBy>().unwrap();
    for (text, column, falls) in [
        ("year", "year", false),
        ("year:desc", "year", true),
        ("year:asc", "year", false),
        ("a:b", "a:b", false),
        ("a:b:desc", "a:b", true),
    ] {
        assert_eq!(sort(text), SortBy { column: column.into(), falls }, "{text}");
    }
    for (text, column, most) in [("tags", "tags", 10), ("tags:3", "tags", 3), ("a:b", "a:b", 10)] {
        let facet = FacetBy { column: column.into(), most };
        assert_eq!(text.parse(), Ok(facet), "{text}");
    }
    assert!("tags:0".parse::<FacetBy>().unwrap_err().contains("from 1 on"));
}

#[test]
fn only_columns_of_one_value_give_an_order() {
    let columns: Vec<Column> =
        ["year:int", "tags:word[]"].iter().map(|column| column.parse().unwrap()).collect();
    let wrong = |text: &str| {
        let sort: SortBy = text.parse().unwrap();
        Listing::of(Some(&sort), &[], None, &settings(&columns)).unwrap_err()
    };
    assert!(wrong("tags:desc").ends_with("hits may be sorted by year"));
    assert!(wrong("yaer").starts_with("names `yaer`, which is no column"));
    assert_eq!(Listing::of(None, &[], None, &settings(&columns)), Ok(None));
    // A column is counted once.
    let facets = ["tags:2", "year", "tags:5"].map(|facet| facet.parse().unwrap());
    let listing = Listing::of(None, &facets, None, &settings(&columns)).unwrap().unwrap();
    assert_eq!(listing.facets, [(1, 2), (0, 10)]);
    assert!(listing.is_of_all());
    let returned: Arc<[String]> = ["year".to_string()].into();
    let listing = Listing::of(None, &[], Some(&returned), &settings(&columns)).unwrap().unwrap();
    assert!(!listing.is_of_all());
}

/// What a device or parts of a query cannot answer is said by the plan.
#[test]
fn plans_of_all_documents_and_of_all_that_matches_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(1, 40, 9), &[0, 25]);
    let generation = Generation::open(folder.path()).unwrap();
    let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
    let wanted = Wanted { k: 30, ..Wanted::default() };
    for syntax in [Syntax::Words, Syntax::Operators] {
        let wanted = Wanted { syntax, ..wanted };
        for (text, is_all) in [("*", true), (" *\t", true), ("* *", false), ("abc1", false)] {
            let plan = Planner::default().plan(&snapshot, wanted, text).unwrap();
            let known = is_all || text == "abc1";
            assert_eq!((plan.is_of_all(), plan.known()), (is_all, known), "{text}");
            assert!(!is_all || plan.is_whole(), "{text}");
        }
    }
    let mut plan = Planner::default().plan(&snapshot, wanted, "abc1").unwrap();
    for (listing, is_whole) in [
        (Listing { returned: ["year".to_string()].into(), ..Listing::default() }, false),
        (Listing { sort: Some((0, true)), ..Listing::default() }, true),
        (Listing { facets: vec![(0, 1)], ..Listing::default() }, true),
    ] {
        plan.list(Some(Arc::new(listing)));
        assert_eq!((plan.is_whole(), plan.depth()), (is_whole, if is_whole { 40 } else { 30 }));
    }
    let mut searcher = Searcher::new();
    let (hits, known) = searcher.search(&snapshot, &wanted, "*").unwrap();
    let first: Vec<Hit> = (0..30).map(|docid| Hit { docid, score: 0.0 }).collect();
    assert_eq!((hits, known), (&first[..], true));
    let asked = Query { offset: 35, ..Query::new("", "*") };
    let (hits, _) = searcher.ask(&snapshot, &wanted, &asked).unwrap();
    assert_eq!(hits.iter().map(|hit| hit.docid).collect::<Vec<_>>(), [35, 36, 37, 38, 39]);
    // What is asked next has no facets of this.
    assert!(searcher.take_facets().is_none());
}

fn float_facet(values: &[f64]) -> Facet {
    let mut facet = Facet::new("rate:float".parse().unwrap(), 1);
    let FacetValues::Numbers(of) = &mut facet.found else { panic!("{facet:?}") };
    for value in values {
        of.add_key(ColumnKind::Float, key_of(ColumnKind::Float, &value.to_string()).unwrap());
        of.documents += 1;
    }
    facet
}

fn mean(facet: &Facet) -> f64 {
    serde_json::to_value(facet).unwrap()["mean"].as_f64().unwrap()
}

#[test]
fn no_sum_is_too_large_and_no_value_is_lost_beside_a_large_one() {
    let most = f64::MAX;
    for (values, expected) in [
        (&[most, most, most][..], most),
        (&[1e300, 1.0, -1e300, 1.0], 0.5),
        (&[1e16, 1.0, 1e-16, -1e16], (1.0 + 1e-16) / 4.0),
        (&[-0.0, 0.0], 0.0),
    ] {
        assert_eq!(mean(&float_facet(values)), expected, "{values:?}");
    }
    let none = serde_json::to_string(&float_facet(&[])).unwrap();
    assert_eq!(none, r#"{"count":0,"greatest":null,"least":null,"mean":null}"#);
    let ends = NumberFacet::default();
    assert_eq!((ends.documents, ends.values), (0, 0));
}

proptest! {
    /// The mean is that of the exact sum, rounded once, however values come and in which parts.
    #[test]
    fn oracle_means_are_those_of_whole_numbers(
        numbers in prop::collection::vec((-(1i64 << 53)..1 << 53, 0..50u32), 1..30),
        cut in any::<prop::sample::Index>(),
        ints in prop::collection::vec(any::<i64>(), 1..20),
    ) {
        let values: Vec<f64> =
            numbers.iter().map(|&(bits, by)| bits as f64 * 2f64.powi(by as i32)).collect();
        let sum: i128 = numbers.iter().map(|&(bits, by)| i128::from(bits) << by).sum();
        let expected = sum as f64 / values.len() as f64;
        let (left, right) = values.split_at(cut.index(values.len()));
        let mut parts = FoundFacets::default();
        parts.add(FoundFacets(vec![float_facet(right)]));
        parts.add(FoundFacets(vec![float_facet(left)]));
        prop_assert_eq!(mean(&parts.0[0]), expected);
        prop_assert_eq!(mean(&float_facet(&values)), expected);

        let mut of_ints = Facet::new("n:int".parse().unwrap(), 1);
        let FacetValues::Numbers(of) = &mut of_ints.found else { panic!() };
        let ints: Vec<i64> = ints.into_iter().filter(|number| *number != i64::MIN).collect();
        for number in &ints {
            of.add_key(ColumnKind::Int, key_of(ColumnKind::Int, &number.to_string()).unwrap());
        }
        if let Some(&least) = ints.iter().min() {
            let told = serde_json::to_value(&of_ints).unwrap();
            let sum: i128 = ints.iter().map(|number| i128::from(*number)).sum();
            prop_assert_eq!(told["mean"].as_f64(), Some(sum as f64 / ints.len() as f64));
            prop_assert_eq!(told["least"].as_i64(), Some(least));
            prop_assert_eq!(told["greatest"].as_i64(), ints.iter().max().copied());
        }
    }

    /// The best of the best of parts are the best of all.
    #[test]
    fn oracle_the_best_of_parts_are_those_of_sorting_all(
        keys in prop::collection::vec((prop::option::of(0..5u32), 0..4u8), 0..40),
        cut in any::<prop::sample::Index>(),
        k in 0..45usize,
        falls in prop::option::of(any::<bool>()),
    ) {
        let hit = |(docid, (key, score)): (usize, (Option<u32>, u8))| {
            (key, Hit { docid: docid as u32, score: f32::from(score) }, ())
        };
        let all: Vec<_> = keys.into_iter().enumerate().map(hit).collect();
        let mut expected = all.clone();
        expected.sort_by(|(_, a, ()), (_, b, ())| b.score.total_cmp(&a.score));
        match falls {
            None => {}
            Some(false) => expected.sort_by_key(|(key, ..)| key.unwrap_or(u32::MAX)),
            Some(true) => expected.sort_by_key(|(key, ..)| key.map_or(6, |key| 5 - key)),
        }
        expected.truncate(k);
        let (left, right) = all.split_at(if all.is_empty() { 0 } else { cut.index(all.len()) });
        let (mut left, mut right) = (left.to_vec(), right.to_vec());
        best(falls, &mut left, k);
        best(falls, &mut right, k);
        right.append(&mut left);
        best(falls, &mut right, k);
        prop_assert_eq!(right, expected);
    }
}

//! Tests of queries over shards: messages cross unchanged, shares find what a merge of all finds,
//! and homes hear every shard.

use super::home::{Home, HomeStep, KnownTerms};
use super::messages::{
    About, CountedTerms, Names, PostedQuery, Question, ShardHits, StageHits, UnknownTerms,
};
use super::shares::{Again, Found, first_shard, first_share, parts, with_matches};
use crate::dataflow::crossing::{Crossing, CrossingRecord};
use crate::dataflow::query::context::{Context, number_of};
use crate::dataflow::query::lay_out::{AnswerOut, CountedAnswer, LaidOutAnswer};
use crate::dataflow::query::tests::{context, snapshot};
use crate::index::columns::{Column, ColumnValue};
use crate::index::testing::term;
use crate::query::answers::returned::ReturnedValues;
use crate::query::engines::shard::Shard;
use crate::query::listing::facets::{Facet, FacetValues, FoundFacets, NumberFacet};
use crate::query::reading::lines::{Query, Refused};
use crate::query::top_k::Hit;
use crate::query::wanted::{Algorithm, Mode, Syntax, Wanted};
use proptest::prelude::*;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timely::bytes::arc::BytesMut;
use timely::container::PushInto;
use timely::dataflow::channels::ContainerBytes;

/// What comes of a record that crosses twice, as text.
fn crossed<R: CrossingRecord + Debug>(record: R) -> (String, String) {
    let sent = format!("{:?}", [&record, &record]);
    let mut bytes = Vec::new();
    let mut container = Crossing::<R>::default();
    let mut all = Vec::new();
    record.write(&mut all);
    // The container of one record has its number of words and these.
    container.push_into(record);
    container.into_bytes(&mut bytes);
    assert_eq!(bytes.len(), 8 * (1 + all.len()));
    bytes.extend_from_within(8..);
    bytes[..8].copy_from_slice(&(2 * all.len() as u64).to_ne_bytes());
    let received = Crossing::<R>::from_bytes(BytesMut::from(bytes).freeze()).0;
    let received: Vec<R> = received.into_iter().collect::<Result<_, _>>().unwrap();
    (sent, format!("{received:?}"))
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn column() -> impl Strategy<Value = Column> {
    prop::sample::select(vec!["year:int", "a:b:float", "day:date[]", "\u{fc}:word[]"])
        .prop_map(|column| column.parse().unwrap())
}

fn facets() -> impl Strategy<Value = FoundFacets> {
    let words = prop::collection::btree_map(text(), any::<u64>(), 0..4);
    let numbers = (any::<[u64; 4]>(), prop::collection::vec(-1e9..1e9f64, 0..4));
    let facet = (column(), any::<usize>(), words, numbers);
    let facet = facet.prop_map(|(column, most, words, (numbers, parts))| {
        let mut facet = Facet::new(column, most);
        let [documents, values, least, greatest] = numbers;
        match &mut facet.found {
            FacetValues::Words(of) => *of = words,
            FacetValues::Numbers(of) => {
                *of = NumberFacet { documents, values, least, greatest, parts };
            }
        }
        facet
    });
    prop::collection::vec(facet, 0..3).prop_map(FoundFacets)
}

fn stage() -> impl Strategy<Value = StageHits> {
    let value = || {
        prop_oneof![
            any::<i64>().prop_map(ColumnValue::Int),
            any::<i64>().prop_map(ColumnValue::Date),
            (-1e9..1e9f64).prop_map(ColumnValue::Float),
            text().prop_map(ColumnValue::Word),
        ]
    };
    let values = prop::collection::vec((column(), prop::collection::vec(value(), 0..3)), 0..3);
    let key = prop::option::of(value());
    let hit = (any::<u32>(), 0..1u32 << 31, text(), key, values);
    let hits = prop::collection::vec(hit, 0..4);
    (hits, any::<u64>(), facets()).prop_map(|(hits, found, facets)| {
        let mut stage = StageHits { found, facets, ..StageHits::default() };
        for (docid, score, name, key, values) in hits {
            stage.hits.push(Hit { docid, score: score as f32 / 7.0 });
            stage.names.push(&name);
            stage.keys.push(key);
            stage.values.push(ReturnedValues(values));
        }
        stage
    })
}

fn query() -> impl Strategy<Value = Query> {
    let wishes = (0..4usize, 0..4usize, 0..6usize, any::<Option<bool>>());
    (text(), text(), any::<Option<usize>>(), wishes, any::<[bool; 3]>()).prop_map(
        |(qid, text, k, (mode, syntax, algorithm, count), [listed, filtered, snippets])| {
            let mut query = Query::new(qid, text);
            (query.k, query.count) = (k, count);
            query.mode = Mode::ALL.get(mode).copied();
            query.syntax = Syntax::ALL.get(syntax).copied();
            query.algorithm = Algorithm::ALL.get(algorithm).copied();
            query.filter = filtered.then(|| "year = 1".into());
            query.offset = mode;
            query.snippets = snippets.then_some(listed);
            if listed {
                query.sort = Some(Arc::new("year:desc".parse().unwrap()));
                query.returned = Some(["a".to_string(), "b".to_string()].into());
                query.facets = Some(["tags:3".parse().unwrap()].into());
            }
            query
        },
    )
}

proptest! {
    #[test]
    fn law_records_cross_unchanged(
        (worker, home, number, known) in any::<(u32, u32, u64, bool)>(),
        query in query(),
        wanted in (any::<usize>(), 0..3usize, 0..5usize, 0..3usize, any::<bool>()),
        dfs in prop::collection::vec(any::<u64>(), 0..4),
        terms in prop::collection::vec(text(), 0..4),
        (first, any) in (stage(), stage()),
        floor in -1e9..1e9f32,
    ) {
        let (k, mode, algorithm, syntax, count) = wanted;
        let (mode, syntax) = (Mode::ALL[mode], Syntax::ALL[syntax]);
        let wanted = Wanted { k, mode, algorithm: Algorithm::ALL[algorithm], syntax, count };
        let algorithm = wanted.algorithm.name().to_string();
        let (place, waiter, process, generation) = (worker, None, home, number ^ 1);
        let why = query.text.as_str().into();
        let refused = Refused { line: number, offset: k as u64, number: 3, why };
        let (qid, asked) = (query.qid.clone(), query.for_shards());
        for query in [Ok(query), Err(refused)] {
            let posted = PostedQuery { home, place, number, generation, query, waiter: waiter.clone() };
            let (sent, came) = crossed(posted);
            prop_assert_eq!(sent, came);
        }
        let (sent, came) = crossed(UnknownTerms { worker, home, number, generation, terms });
        prop_assert_eq!(sent, came);
        let (sent, came) = crossed(CountedTerms { home, number, process, dfs: dfs.clone() });
        prop_assert_eq!(sent, came);
        let query = asked;
        let about = Arc::new(About { generation, syntax, algorithm, dfs, query });
        let asked = Question { worker, home, number, k, mode, count, floor, about };
        prop_assert_eq!(asked.wanted(&[]), Ok(wanted));
        let (sent, came) = crossed(asked);
        prop_assert_eq!(sent, came);
        let (sent, came) = crossed(ShardHits { home, number, process, known, first, any });
        prop_assert_eq!(sent, came);
        let took = Duration::from_nanos(number >> 1);
        let counted = CountedAnswer { number, qid: qid.clone(), text: qid, took, hits: 4, known };
        let out = AnswerOut::Text(vec![0xff, 1, 2]);
        let counted = known.then_some(Box::new(counted));
        let (sent, came) = crossed(LaidOutAnswer { place, out, counted });
        prop_assert_eq!(sent, came);
    }

    /// Each shard answers as an engine does; what homes find is what one look at all finds.
    #[test]
    fn oracle_shares_find_the_best_of_all(
        documents in prop::collection::vec((0..5u32, 0..3usize, any::<bool>()), 0..120),
        shards in 1..9usize,
        k in 0..40usize,
        mode in 0..3usize,
        (skew, looks_first) in any::<(bool, bool)>(),
    ) {
        let mode = Mode::ALL[mode];
        let wanted = Wanted { k, mode, ..Wanted::default() };
        // By shard: hits with any term, and whether they have all.
        let mut of_shards = vec![Vec::new(); shards];
        for (docid, &(score, shard, all)) in documents.iter().enumerate() {
            let shard = if skew { shard } else { docid * 7 };
            let hit = Hit { docid: docid as u32, score: score as f32 + 1.0 };
            of_shards[shard % shards].push((hit, all));
        }
        let best = |of: &[(Hit, bool)], all: bool, k: usize, floor: f32| {
            let mut hits: Vec<Hit> = of.iter().filter(|(_, has)| *has || !all).map(|of| of.0).collect();
            hits.retain(|hit| hit.score >= floor);
            hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid)));
            hits.truncate(k);
            hits
        };
        let stage = |hits: Vec<Hit>| {
            let mut names = Names::default();
            hits.iter().for_each(|hit| names.push(&format!("d{}", hit.docid)));
            StageHits { hits, names, ..StageHits::default() }
        };
        let answer = |shard: usize, k: usize, mode: Mode, floor: f32| {
            let of = &of_shards[shard];
            let first = best(of, mode != Mode::Or, k, floor);
            let short = mode == Mode::AndOr && first.len() < k;
            let any = if short { best(of, false, k, floor) } else { Vec::new() };
            let (first, any) = (stage(first), stage(any));
            ShardHits { home: 0, number: 0, process: shard as u32, known: true, first, any }
        };
        let dfs: Vec<u64> = of_shards.iter().map(|of| of.len() as u64).collect();
        let parts = parts([&dfs[..]].into_iter(), shards, k);
        prop_assert_eq!(parts.is_none(), documents.is_empty());
        let parts = parts.unwrap_or(vec![1.0; shards]);
        let asked: Vec<usize> = parts.iter().map(|&part| first_share(k, part)).collect();
        let mut found = Found::new(asked.clone());
        // Those that have any document.
        let among = with_matches(&[&dfs], mode == Mode::And, shards);
        if mode == Mode::Or && looks_first {
            let first = first_shard(&among, &parts, 3);
            found.take(answer(first, asked[first], mode, f32::NEG_INFINITY)).unwrap();
            let Again { shards, floor, .. } = found.rest(&among, first, k);
            for shard in shards {
                found.take(answer(shard, found.asked[shard], mode, floor)).unwrap();
            }
        } else {
            for shard in among {
                found.take(answer(shard, asked[shard], mode, f32::NEG_INFINITY)).unwrap();
            }
        }
        if let Some(Again { shards, mode, floor, .. }) = found.again(&wanted) {
            for shard in shards {
                found.take(answer(shard, k, mode, floor)).unwrap();
            }
        }
        let (merged, any) = found.merge(&wanted, None);
        let all: Vec<(Hit, bool)> = of_shards.concat();
        let mut expected = best(&all, mode != Mode::Or, k, f32::NEG_INFINITY);
        if mode == Mode::AndOr && expected.len() < k {
            expected = best(&all, false, k, f32::NEG_INFINITY);
        }
        prop_assert_eq!(merged.iter().map(|of| of.hit).collect::<Vec<_>>(), expected);
        for of in merged {
            let shard = found.hits[of.shard].as_ref().unwrap();
            let stage = if any { &shard.any } else { &shard.first };
            prop_assert_eq!(stage.names.get(of.at), format!("d{}", of.hit.docid));
        }
    }
}

#[test]
fn parts_follow_the_rarest_terms_as_far_as_these_go() {
    let of = |terms: &[[u64; 2]], k| parts(terms.iter().map(|dfs| &dfs[..]), 2, k);
    assert_eq!(of(&[[500, 500], [0, 0], [50, 0]], 100), Some(vec![0.75, 0.25]));
    assert_eq!(of(&[[500, 500], [50, 0]], 50), Some(vec![1.0, 0.0]));
    assert_eq!(of(&[[1, 3]], 1000), Some(vec![0.25, 0.75]));
    assert_eq!([of(&[[0, 0]], 10), of(&[], 10)], [None, None]);
}

#[test]
fn shards_without_matches_are_not_asked() {
    let dfs: [&[u64]; 2] = [&[3, 0, 1, 0], &[1, 2, 0, 0]];
    assert_eq!(with_matches(&dfs, true, 4), [0]);
    assert_eq!(with_matches(&dfs, false, 4), [0, 1, 2]);
    assert_eq!(with_matches(&[&[0, 0], &[0, 5]], true, 2), [0], "one tells that there is nothing");
    assert_eq!(first_shard(&[1, 3], &[0.0, 0.3, 0.0, 0.3], 5), 3);
    assert_eq!(first_shard(&[1, 2, 3], &[0.0, 0.9, 0.05, 0.05], 5), 1);
}

#[test]
fn a_share_is_its_part_and_three_deviations_and_one() {
    assert_eq!([first_share(1000, 0.125), first_share(10, 0.125)], [160, 6]);
    assert_eq!([first_share(10, 1.0), first_share(10, 0.0), first_share(0, 0.5)], [10, 1, 0]);
}

/// The context of process 0 of two.
fn of_two(folder: &std::path::Path) -> Arc<Context> {
    let mut context = context(&snapshot(folder, 1, 30), 1);
    let shard = Shard { process: 0, processes: 2 };
    Arc::get_mut(&mut context).unwrap().shard = shard;
    context
}

fn found(number: u64, process: u32, hits: &[(u32, f32)]) -> ShardHits {
    let mut first = StageHits::default();
    for &(docid, score) in hits {
        first.hits.push(Hit { docid, score });
        first.names.push(&format!("d{docid}"));
    }
    ShardHits { home: 0, number, process, known: true, first, any: StageHits::default() }
}

#[test]
fn a_home_asks_for_counts_once_then_all_shards_and_merges_what_they_find() {
    let folder = tempfile::tempdir().unwrap();
    let context = of_two(folder.path());
    let known = Arc::new(Mutex::new(KnownTerms::default()));
    let home = Home::new(&context, &known, 0, false);
    let mut home = home.borrow_mut();
    let text = format!("{} nowhere", term(7));
    let generation = number_of(&context.snapshot());
    let mut post = |number| {
        let mut query = Query::new(format!("q{number}"), &text);
        query.k = Some(2);
        let query = Ok(query);
        home.take(PostedQuery { home: 0, place: 0, number, generation, query, waiter: None })
            .unwrap()
    };
    let HomeStep::Count(unknown) = post(5) else { panic!("terms were known") };
    assert_eq!(unknown.len(), 2);
    assert_eq!((unknown[0].worker, unknown[1].worker, unknown[1].terms.len()), (0, 1, 2));
    assert!(matches!(post(6), HomeStep::Count(_)), "they are not counted yet");
    let counted = |process, dfs| CountedTerms { home: 0, number: 5, process, dfs };
    assert!(matches!(home.count(counted(1, vec![4, 0])), Ok(HomeStep::Nothing)));
    let Ok(HomeStep::Ask(questions)) = home.count(counted(0, vec![12, 0])) else {
        panic!("no question")
    };
    let asked: Vec<_> =
        questions.iter().map(|of| (of.worker, of.k, of.about.dfs.clone())).collect();
    assert_eq!(asked, [(0, 2, vec![16, 0]), (1, 2, vec![16, 0])]);
    // The next query knows them.
    let mut query = Query::new("q7", &text);
    query.k = Some(2);
    let (number, query, waiter) = (7, Ok(query), None);
    let posted = PostedQuery { home: 0, place: 0, number, generation, query, waiter };
    assert!(matches!(home.take(posted), Ok(HomeStep::Ask(questions)) if questions.len() == 2));
    assert!(matches!(home.hear(found(5, 1, &[(40, 2.0), (41, 1.0)])), Ok(HomeStep::Nothing)));
    let heard = home.hear(found(5, 0, &[(4, 1.5)])).unwrap();
    let HomeStep::Answer(LaidOutAnswer { out: AnswerOut::Text(text), counted: None, .. }) = heard
    else {
        panic!("no answer")
    };
    let text = String::from_utf8(text).unwrap();
    let names: Vec<&str> = text.lines().map(|line| line.split('\t').nth(2).unwrap()).collect();
    assert_eq!(names, ["d40", "d4"]);
    assert!(home.hear(found(5, 0, &[])).is_err(), "it was answered");
    // A shard that counts other terms.
    let counted = |process, dfs| CountedTerms { home: 0, number: 6, process, dfs };
    home.count(counted(0, vec![1, 2])).unwrap();
    assert!(home.count(counted(1, vec![1])).is_err());
}

//! What is handed in is tested as what the core has, by the same functions.

mod leaps;

use super::{ALGORITHMS, MODELS};
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::engines::engine::Model;
use crate::query::engines::engine::tests::{
    Make, check_threads, check_turns, check_waking, mixed_queries,
};
use crate::query::engines::spreading::Spreading;
use crate::query::reading::objects::object;
use crate::query::searcher::tests::oracles::{check_parts, check_range, parts};
use crate::query::searcher::tests::{check_allocations, check_many_terms};
use crate::query::tests::{cases, check_handed, damage};
use crate::query::wanted::Algorithm;
use proptest::prelude::*;

/// An algorithm is a file and a line here.
const TOYS: HandedAlgorithms = &[&leaps::Leaps];

fn algorithms() -> Vec<Algorithm> {
    ALGORITHMS.iter().map(|&algorithm| Algorithm::Handed(algorithm)).collect()
}

fn models() -> impl Iterator<Item = Model> {
    let of = |&model| [true, false].map(|barrier| Model::Handed { model, barrier });
    MODELS.iter().flat_map(of)
}

fn crews() -> Vec<(String, Make)> {
    let of = |model: Model| {
        (format!("{model:?}"), Box::new(move |wakers: &_| model.engines(wakers)) as Make)
    };
    let crews = models().map(of);
    #[cfg(feature = "gpu")]
    let crews = crews.chain(super::ding09::hybrid::tests::crews());
    crews.collect()
}

#[test]
fn names_are_read_as_they_are_written_and_occur_once() {
    let mut all: Vec<Algorithm> = Algorithm::ALL.into_iter().chain(algorithms()).collect();
    for algorithm in &all {
        assert_eq!(Algorithm::among(algorithm.name(), ALGORITHMS), Ok(*algorithm));
        assert_eq!(
            Algorithm::named(algorithm.name()).is_some(),
            Algorithm::ALL.contains(algorithm)
        );
        let query = format!("{{\"query\": \"a\", \"algorithm\": \"{}\"}}", algorithm.name());
        assert_eq!(object(&query, 1, ALGORITHMS).unwrap().0.algorithm, Some(*algorithm));
    }
    all.sort_by_key(|algorithm| algorithm.name());
    all.dedup();
    assert_eq!(all.len(), Algorithm::ALL.len() + ALGORITHMS.len());
    let names = "auto, exhaustive, maxscore, blocks, galloping, wand, bmw, small-adaptive, wang";
    assert_eq!(Algorithm::among("Wand", ALGORITHMS), Err(names.to_string()));
}

#[test]
fn what_is_handed_in_is_asked_for_by_its_name() {
    let leaps = Algorithm::Handed(&leaps::Leaps);
    assert_eq!(Algorithm::among("leaps", TOYS), Ok(leaps));
    let line = "{\"query\": \"a\", \"algorithm\": \"leaps\"}";
    assert_eq!(object(line, 1, TOYS).unwrap().0.algorithm, Some(leaps));
    assert!(object(line, 1, &[]).is_err());
    check_many_terms(&[leaps]);
    check_allocations(&[leaps]);
}

#[test]
fn models_are_known_by_their_names() {
    for model in models() {
        let Model::Handed { barrier, .. } = model else { panic!("{model:?}") };
        let asked = Spreading { barrier, ..Spreading::default() };
        assert_eq!(asked.model(model.name(), MODELS), Ok(model));
    }
    let barrier = Spreading { barrier: true, ..Spreading::default() };
    let misfit = barrier.model("fgqp", MODELS).unwrap_err().to_string();
    assert_eq!(misfit, "barrier goes with parallelism docp-ui or docp-pi");
}

#[test]
fn queries_of_a_second_pass_allocate_nothing() {
    check_allocations(&algorithms());
}

#[test]
fn many_terms_are_answered_as_few() {
    check_many_terms(&algorithms());
}

#[test]
fn oracle_engines_of_threads_answer_mixed_queries() {
    let algorithms: Vec<_> = Algorithm::ALL.into_iter().chain(algorithms()).collect();
    check_threads(crews(), &algorithms);
}

#[test]
fn whoever_sleeps_is_woken_by_a_query() {
    models().for_each(check_waking);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn oracle_algorithms_find_the_same_and_stand_damage(
        case in cases(),
        damage in damage(),
        next in cases(),
    ) {
        check_handed((&case, &damage, &next), ALGORITHMS)?;
        check_handed((&case, &damage, &next), TOYS)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn oracle_a_range_and_parts_find_what_one_search_finds(case in parts()) {
        check_range(&case, &algorithms())?;
        check_parts(&case, &algorithms())?;
    }

    #[test]
    fn oracle_engines_answer_mixed_queries_in_any_order(mixed in mixed_queries()) {
        let algorithms: Vec<_> = Algorithm::ALL.into_iter().chain(algorithms()).collect();
        check_turns(&mixed, crews(), &algorithms)?;
    }
}

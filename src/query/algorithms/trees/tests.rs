//! Trees against a plain evaluation of what was asked, document by document.

use crate::index::generations::generation::Generation;
use crate::index::testing::{Collection, Noise, build, collection, term, with_deletions};
use crate::query::plan::Planner;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::top_k::{Combined, Hit};
use crate::query::wanted::{Algorithm, Mode, Stage, Syntax, Wanted};
use crate::score::weight::Weight;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const TERMS: u32 = 40;

/// A tree of this many levels.
fn tree(noise: &mut Noise, levels: u32) -> Value {
    let boost = [1.0, 1.0, 2.5][noise.below(3) as usize];
    if levels == 0 || noise.below(3) == 0 {
        let words = 1 + noise.below(2);
        let words: Vec<String> = (0..words).map(|_| term(noise.below(TERMS))).collect();
        return json!({"text": words.join(" "), "boost": boost});
    }
    let mut list = |most: u32| -> Vec<Value> {
        (0..noise.below(most + 1)).map(|_| tree(noise, levels - 1)).collect()
    };
    let (mut all, any, none) = (list(2), list(4), list(1));
    if all.is_empty() && any.is_empty() {
        all.push(json!(term(3)));
    }
    let mut object = json!({"all": all, "any": any, "none": none, "boost": boost});
    if noise.below(3) == 0 {
        object["at_least"] = json!(1 + noise.below(3));
    }
    object
}

/// Whether a document matches a node, and the sum of what it scores by `score`: in f64, since terms
/// that are asked for twice are weighed once.
fn evaluate(
    node: &Value,
    mode: Mode,
    document: &BTreeMap<String, u32>,
    score: &dyn Fn(&str) -> f64,
) -> Option<f64> {
    if let Some(text) = node.as_str() {
        return evaluate(&json!({"text": text}), mode, document, score);
    }
    let boost = node["boost"].as_f64().unwrap_or(1.0);
    if let Some(text) = node["text"].as_str() {
        let words: Vec<&str> = text.split(' ').collect();
        let here: Vec<&&str> = words.iter().filter(|word| document.contains_key(**word)).collect();
        let matches = if mode == Mode::And { here.len() == words.len() } else { !here.is_empty() };
        return matches.then(|| boost * here.iter().map(|word| score(word)).sum::<f64>());
    }
    let of = |key: &str| -> Vec<Option<f64>> {
        let nodes = node[key].as_array().unwrap();
        nodes.iter().map(|node| evaluate(node, mode, document, score)).collect()
    };
    let (all, any, none) = (of("all"), of("any"), of("none"));
    let least = node["at_least"].as_u64().unwrap_or(0).max(u64::from(all.is_empty()));
    let sum: f64 = all.iter().chain(&any).flatten().sum();
    let matches = all.iter().all(Option::is_some)
        && any.iter().flatten().count() as u64 >= least
        && none.iter().flatten().count() == 0;
    matches.then_some(boost * sum)
}

fn search(snapshot: &Arc<Snapshot>, wanted: &Wanted, text: &str) -> (Vec<Hit>, Option<u64>) {
    let mut searcher = Searcher::new();
    let hits = searcher.search(snapshot, wanted, text).unwrap().0.to_vec();
    (hits, searcher.found())
}

fn check(seed: u64, documents: u32, cuts: &[usize], deleted: bool) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let collection: Collection = collection(seed, documents, TERMS);
    let mut noise = Noise::new(seed ^ 77);
    let gone: Vec<u32> = (0..documents).filter(|_| deleted && noise.below(9) == 0).collect();
    match deleted {
        true => with_deletions(folder.path(), &collection, cuts, &gone, &[]),
        false => _ = build(folder.path(), &collection, cuts),
    }
    let generation = Generation::open(folder.path()).unwrap();
    let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
    let weight = |number| {
        let plan = Planner::default().plan(&snapshot, Wanted::default(), &term(number)).unwrap();
        (term(number), plan.terms()[0].weight)
    };
    let weights: BTreeMap<String, Weight> = (0..TERMS).map(weight).collect();
    for _ in 0..12 {
        let asked = tree(&mut noise, 3);
        let text = asked.to_string();
        for mode in [Mode::Or, Mode::And] {
            let wanted =
                Wanted { k: 5000, mode, syntax: Syntax::Tree, count: true, ..Wanted::default() };
            let (all, found) = search(&snapshot, &wanted, &text);
            let scoring = snapshot.scoring();
            let expected: Vec<(u32, f64)> = (0..)
                .zip(&collection)
                .filter(|(docid, _)| !gone.contains(docid))
                .filter_map(|(docid, document)| {
                    let norm = snapshot.norms()[docid as usize];
                    let score = |word: &str| f64::from(weights[word].score(document[word], norm));
                    Some((docid, evaluate(&asked, mode, document, &score)?))
                })
                .collect();
            prop_assert_eq!(scoring, &Scoring::default());
            let mut by_docid = all.clone();
            by_docid.sort_by_key(|hit| hit.docid);
            let docids = |hits: &[Hit]| hits.iter().map(|hit| hit.docid).collect::<Vec<_>>();
            let matching: Vec<u32> = expected.iter().map(|found| found.0).collect();
            prop_assert_eq!(docids(&by_docid), matching, "{} {:?}", text, mode);
            prop_assert_eq!(found, Some(expected.len() as u64));
            for (hit, (_, score)) in by_docid.iter().zip(&expected) {
                let close = (f64::from(hit.score) - score).abs() <= 1e-4 * score.abs().max(1e-3);
                prop_assert!(close, "{} {:?}: {} {}", text, mode, hit.score, score);
            }
            let best = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then(a.docid.cmp(&b.docid));
            prop_assert!(all.is_sorted_by(|a, b| best(a, b).is_lt()));
            // Fewer hits, counts alone, parts, and given documents.
            for k in [0, 1, 7] {
                let wanted = Wanted { k, ..wanted };
                let (hits, count) = search(&snapshot, &wanted, &text);
                prop_assert_eq!(&hits[..], &all[..k.min(all.len())]);
                prop_assert_eq!(count, found);
            }
            let plan = Planner::default().plan(&snapshot, wanted, &text).unwrap();
            let mut combined = Combined::new(5000);
            let mut counted = 0;
            for share in 0..3 {
                let mut searcher = Searcher::new();
                searcher.take_share(snapshot.docids_of_share(share, 3));
                combined
                    .add(searcher.answer_stage(&plan, Stage::first(plan.wanted().mode)).unwrap());
                counted += searcher.found().unwrap();
            }
            prop_assert_eq!(combined.take(), all.clone());
            prop_assert_eq!(Some(counted), found);
            let given: Arc<[u32]> = (0..documents).filter(|docid| docid % 3 != 1).collect();
            let mut searcher = Searcher::new();
            let (ranked, _) = searcher.rank_given(&snapshot, &wanted, &text, &given).unwrap();
            let kept: Vec<Hit> = all.iter().filter(|hit| hit.docid % 3 != 1).copied().collect();
            prop_assert_eq!(&ranked[..kept.len()], &kept[..]);
            prop_assert!(ranked[kept.len()..].iter().all(|hit| hit.score == 0.0));
        }
    }
    Ok(())
}

/// A count of a query of words is that of its hits, whatever finds them.
fn check_counts(
    seed: u64,
    documents: u32,
    cuts: &[usize],
    deleted: bool,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let collection: Collection = collection(seed, documents, TERMS);
    let gone: Vec<u32> = (0..documents).filter(|docid| deleted && docid % 7 == 3).collect();
    with_deletions(folder.path(), &collection, cuts, &gone, &[]);
    let generation = Generation::open(folder.path()).unwrap();
    let snapshot = Snapshot::new(generation, Scoring::default()).unwrap();
    let mut noise = Noise::new(seed);
    for _ in 0..20 {
        let words: Vec<String> =
            (0..1 + noise.below(4)).map(|_| term(noise.below(TERMS + 3))).collect();
        for mode in Mode::ALL {
            let all =
                Wanted { k: 5000, mode, algorithm: Algorithm::Exhaustive, ..Wanted::default() };
            let whole = search(&snapshot, &all, &words.join(" ")).0.len() as u64;
            for (k, syntax) in [(0, Syntax::Words), (3, Syntax::Words), (3, Syntax::Operators)] {
                // AND+OR is as AND only if that has as many as are asked for.
                let least = Wanted { k: if mode == Mode::AndOr { 5000 } else { k }, ..all };
                let wanted = Wanted { syntax, count: true, algorithm: Algorithm::Auto, ..least };
                let (hits, found) = search(&snapshot, &wanted, &words.join(" "));
                prop_assert_eq!(found, Some(whole), "{:?} {:?} {}", mode, words, k);
                prop_assert!(hits.len() <= wanted.k);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn oracle_trees_find_what_a_look_at_each_document_finds(
        seed: u64,
        documents in prop::sample::select(vec![1u32, 90, 400, 1000]),
        cut in any::<prop::sample::Index>(),
        deleted: bool,
    ) {
        let cut = cut.index(documents as usize);
        let cuts: Vec<usize> = [cut].into_iter().filter(|&cut| cut > 0).collect();
        check(seed, documents, &cuts, deleted)?;
        check_counts(seed, documents, &cuts, deleted)?;
    }
}

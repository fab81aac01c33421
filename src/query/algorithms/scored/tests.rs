//! Tests of the score `wang` against its formula.

use crate::index::files::storage::Stop;
use crate::index::generations::generation::Generation;
use crate::index::generations::merged::{Recode, merge_index};
use crate::index::order::DocumentOrder;
use crate::index::testing::{Collection, build, collection, rank, term, with_deletions};
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::wanted::{Algorithm, Mode, Wanted};
use crate::score::bm25::{Bm25, IdfKind};
use crate::score::named::Score;
use crate::score::wang::Wang;

/// The formula, document by document, in the precision of the engines: docid and score of the
/// documents with any term or all of them, best first.
fn naive(
    collection: &Collection,
    ranks: &[f32],
    (alpha, k1, b): (f64, f64, f64),
    terms: &[(String, u32)],
    all: bool,
) -> Vec<(u32, f32)> {
    let lengths: Vec<u32> = collection.iter().map(|document| document.values().sum()).collect();
    let documents = collection.len() as f64;
    let mean = lengths.iter().map(|&length| f64::from(length)).sum::<f64>() / documents;
    let part = |(term, times): &(String, u32)| {
        let df = collection.iter().filter(|document| document.contains_key(term)).count() as f64;
        let odds: f64 = (documents - df + 0.5) / (df + 0.5);
        f64::from(*times) * libm::log(odds).max(1e-6)
    };
    let sum: f64 = terms.iter().map(part).sum();
    let greatest = f64::from(ranks.iter().copied().fold(0.0, f32::max));
    let mut found = Vec::new();
    for (docid, document) in collection.iter().enumerate() {
        let has: Vec<bool> = terms.iter().map(|(term, _)| document.contains_key(term)).collect();
        let wanted = if all { has.iter().all(|&has| has) } else { has.contains(&true) };
        if !wanted || terms.is_empty() {
            continue;
        }
        let mut score = (alpha * (f64::from(ranks[docid]) / greatest)) as f32;
        let norm = (k1 * (1.0 - b + b * f64::from(lengths[docid]) / mean)) as f32;
        for term in terms.iter().filter(|(term, _)| document.contains_key(term)) {
            let tf = document[&term.0] as f32;
            let weight = ((1.0 - alpha) * part(term) / sum) as f32;
            score += weight * tf / (tf + norm);
        }
        found.push((docid as u32, score));
    }
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

#[test]
fn answers_follow_the_formula() {
    let collection = collection(11, 300, 40);
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection, &[70, 200]);
    let ranks: Vec<f32> = (0..300u32).map(|docid| (docid * 7919 % 101) as f32 / 7.0).collect();
    let uniform = vec![1.0; 300];
    let mut searcher = Searcher::new();
    for ranked in [false, true] {
        if ranked {
            rank(folder.path(), &ranks);
        }
        for (alpha, k1, b) in [(0.3, 1.2, 0.75), (0.0, 0.9, 0.4), (1.0, 1.2, 0.75)] {
            let generation = Generation::open(folder.path()).unwrap();
            let bm25 = Bm25::new(k1, b).unwrap();
            let score = Score::Wang(Wang::new(alpha).unwrap());
            let scoring = Scoring { bm25, idf: IdfKind::Robertson, score, ..Scoring::default() };
            let snapshot = Snapshot::new(generation, scoring).unwrap();
            assert_eq!(snapshot.has_ranks(), ranked);
            for (number, terms) in [vec![0], vec![0, 1], vec![2, 0, 3], vec![1, 900], vec![4, 1, 1]]
                .into_iter()
                .enumerate()
            {
                let words: Vec<String> = terms.into_iter().map(term).collect();
                let mut distinct: Vec<(String, u32)> = Vec::new();
                for word in &words {
                    match distinct.iter_mut().find(|(known, _)| known == word) {
                        Some((_, times)) => *times += 1,
                        None => distinct.push((word.clone(), 1)),
                    }
                }
                for (mode, all) in [(Mode::Or, false), (Mode::And, true)] {
                    let ranks = if ranked { &ranks } else { &uniform };
                    let mut expected = naive(&collection, ranks, (alpha, k1, b), &distinct, all);
                    let k = 1 + number * 60;
                    expected.truncate(k);
                    assert!(!expected.is_empty() || words.contains(&term(900)), "{words:?}");
                    for algorithm in Algorithm::ALL {
                        let wanted = Wanted { k, mode, algorithm, ..Wanted::default() };
                        let text = words.join(" ");
                        let (hits, _) = searcher.search(&snapshot, &wanted, &text).unwrap();
                        let found: Vec<(u32, f32)> =
                            hits.iter().map(|hit| (hit.docid, hit.score)).collect();
                        assert_eq!(found, expected, "{alpha} {words:?} {wanted:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_of_some_runs_alone_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(3, 60, 20), &[30]);
    let live = crate::index::generations::folder::current(folder.path()).unwrap().unwrap();
    let mut manifest = rank(folder.path(), &[0.5; 60]);
    manifest.files.retain(|file| file.name != "runs/000001.scores");
    std::fs::remove_file(live.join("manifest.json")).unwrap();
    manifest.write(&live).unwrap();
    let open = |score| {
        let generation = Generation::open(folder.path()).unwrap();
        Snapshot::new(generation, Scoring { score, ..Scoring::default() })
    };
    open(Score::Bm25).unwrap();
    let error = open(Score::Wang(Wang::default())).unwrap_err().to_string();
    assert!(error.contains("run 000000 has PageRanks and run 000001 has none"), "{error}");
}

/// Names and scores of all answers to some queries, equal scores by name.
fn answers(index: &std::path::Path, scoring: Scoring, mode: Mode) -> Vec<Vec<(String, u32)>> {
    let snapshot = Snapshot::new(Generation::open(index).unwrap(), scoring).unwrap();
    let mut searcher = Searcher::new();
    let wanted = Wanted { k: 1000, mode, algorithm: Algorithm::Auto, ..Wanted::default() };
    let ask = |terms: &[u32]| {
        let words: Vec<String> = terms.iter().copied().map(term).collect();
        let (hits, _) = searcher.search(&snapshot, &wanted, &words.join(" ")).unwrap();
        let named = hits.iter().map(|hit| {
            let name = snapshot.generation().documents().name(hit.docid).unwrap();
            (String::from_utf8(name.to_vec()).unwrap(), hit.score.to_bits())
        });
        let mut named: Vec<_> = named.collect();
        assert!(
            hits.is_sorted_by(|a, b| a.score > b.score || a.score == b.score && a.docid < b.docid)
        );
        named.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        named
    };
    [&[0][..], &[1, 0], &[2, 0, 3], &[5, 1]].into_iter().map(ask).collect()
}

#[test]
fn an_order_leaves_scores_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let collection = collection(12, 400, 40);
    let gone: Vec<u32> = (0..400).filter(|docid| docid % 11 == 3).collect();
    let ranks: Vec<f32> = (0..400u32).map(|docid| (docid * 7919 % 101) as f32).collect();
    with_deletions(index, &collection, &[70, 300], &gone, &ranks);
    let wang = Scoring { score: Score::Wang(Wang::new(0.6).unwrap()), ..Scoring::default() };
    let ask = || {
        let modes = [Mode::Or, Mode::And];
        modes.map(|mode| {
            [Scoring::default(), wang.clone()].map(|scoring| answers(index, scoring, mode))
        })
    };
    let before = ask();
    assert!(before.iter().flatten().flatten().all(|answer| answer.len() > 10));
    let global = DocumentOrder::Global { wang: Wang::default(), bm25: Bm25::default() };
    for order in [global, DocumentOrder::Length, DocumentOrder::Input] {
        let recode = Recode { order: Some(order), ..Recode::default() };
        merge_index(index, 32 << 20, "merge", 2, recode, &Stop::default()).unwrap();
        assert_eq!(ask(), before, "{order:?}");
    }
}

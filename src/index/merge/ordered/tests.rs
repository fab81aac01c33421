//! Tests of documents in another order: it changes docids and nothing else.

use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::merged::{Merged, Recode, merge_index};
use crate::index::inspect::check::check;
use crate::index::merge::Merging;
use crate::index::order::DocumentOrder;
use crate::index::ranks::RanksFound;
use crate::index::ranks::{RankCounts, RanksFile};
use crate::index::scores::{RunScores, ranks_of};
use crate::index::testing::{Collection, build, collection, rank, with_deletions};
use crate::score::bm25::Bm25;
use crate::score::wang::Wang;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const MEMORY: u64 = 32 << 20;

fn global(alpha: f64) -> DocumentOrder {
    DocumentOrder::Global { wang: Wang::new(alpha).unwrap(), bm25: Bm25::default() }
}

fn merge(index: &Path, recode: Recode, workers: u32) -> Result<Merged, IndexError> {
    merge_index(index, MEMORY, "merge", workers, recode, &Stop::default())
}

fn ordered(order: DocumentOrder) -> Recode {
    Recode { order: Some(order), ..Recode::default() }
}

/// The documents of an index in order: name and terms.
fn contents(index: &Path, vocabulary: &Collection) -> Vec<(String, BTreeMap<String, u32>)> {
    let generation = Generation::open(index).unwrap();
    let names = (0..generation.documents().len()).map(|docid| {
        let name = generation.documents().name(docid).unwrap().to_vec();
        (String::from_utf8(name).unwrap(), BTreeMap::new())
    });
    let mut found: Vec<_> = names.collect();
    let terms: BTreeSet<_> = vocabulary.iter().flat_map(BTreeMap::keys).collect();
    for term in terms {
        let collection = trie_collection(term);
        let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
        for run in generation.runs() {
            let Some(list) = run.find(collection, suffix).unwrap() else { continue };
            list.check(run.documents(), None, |docids, tfs| {
                for (docid, tf) in docids.iter().zip(tfs) {
                    found[(run.first_docid() + docid) as usize].1.insert(term.clone(), *tf);
                }
            })
            .unwrap();
        }
    }
    found
}

fn ranks_file(path: &Path) -> RanksFile {
    RanksFile { path: path.to_path_buf(), text: |file| Ok(Box::new(file)) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn law_an_order_changes_docids_and_nothing_else(
        seed: u64,
        documents in prop_oneof![1..40u32, 300..700u32],
        vocabulary in 1..200u32,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ranked: bool,
        workers in 1..4u32,
    ) {
        let all = collection(seed, documents, vocabulary);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(documents as usize + 1)).collect();
        cuts.sort_unstable();
        let gone: Vec<u32> = gone.iter().map(|d| d.index(documents as usize) as u32).collect();
        let ranks: Vec<f32> = match ranked {
            true => (0..documents).map(|docid| (docid.wrapping_mul(2_654_435_761) % 97) as f32).collect(),
            false => Vec::new(),
        };
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        with_deletions(index, &all, &cuts, &gone, &ranks);
        let left: Vec<u32> = (0..documents).filter(|docid| !gone.contains(docid)).collect();
        let before: Vec<_> = left
            .iter()
            .map(|&docid| (format!("doc-{docid}"), all[docid as usize].clone()))
            .collect();
        let length = |terms: &BTreeMap<String, u32>| terms.values().sum::<u32>();
        let tokens: u64 = before.iter().map(|(_, terms)| u64::from(length(terms))).sum();
        let mean = tokens as f64 / left.len().max(1) as f64;
        let rank_of = |docid: u32| ranks.get(docid as usize).copied().unwrap_or(1.0);
        let greatest = left.iter().map(|&docid| rank_of(docid)).fold(0.0, f32::max);
        let globals: Vec<f32> = left.iter().zip(&before).map(|(&docid, (_, terms))| {
            let norm = Bm25::default().norm(length(terms), mean);
            let tf = terms.values().copied().max().unwrap_or(0);
            Wang::default().global(rank_of(docid), greatest, tf, norm)
        }).collect();

        for order in [
            DocumentOrder::Name,
            DocumentOrder::Length,
            global(0.3),
            DocumentOrder::Url,
            DocumentOrder::Topic,
            DocumentOrder::Input,
        ] {
            let merged = merge(index, ordered(order), workers).unwrap();
            let Merged::Runs { manifest, ranks: found, .. } = merged else { panic!("{merged:?}") };
            let is_global = matches!(order, DocumentOrder::Global { .. });
            if ranked {
                prop_assert_eq!(found, RanksFound::Kept);
            }
            check(index).unwrap();
            prop_assert_eq!(manifest.runs.len(), 1);
            prop_assert_eq!(manifest.order.is_some(), order != DocumentOrder::Input);
            let mut sorted: Vec<usize> = (0..left.len()).collect();
            match order {
                DocumentOrder::Name | DocumentOrder::Url => sorted.sort_by_key(|&at| &before[at].0),
                DocumentOrder::Length => {
                    // Equals keep the order before: by name.
                    sorted.sort_by_key(|&at| (length(&before[at].1), &before[at].0));
                }
                DocumentOrder::Global { .. } => sorted.sort_by(|&a, &b| {
                    let lengths = length(&before[a].1).cmp(&length(&before[b].1));
                    globals[b].total_cmp(&globals[a]).then(lengths).then(before[a].0.cmp(&before[b].0))
                }),
                // Any will do.
                DocumentOrder::Topic => {
                    let names = contents(index, &all).into_iter().map(|(name, _)| name);
                    let at = |name: String| before.iter().position(|(other, _)| *other == name);
                    sorted = names.map(|name| at(name).unwrap()).collect();
                    prop_assert!(sorted.iter().copied().collect::<BTreeSet<_>>().into_iter().eq(0..left.len()));
                }
                DocumentOrder::Input => {}
            }
            let expected: Vec<_> = sorted.iter().map(|&at| before[at].clone()).collect();
            prop_assert!(contents(index, &all) == expected, "{:?}", order);
            let live = current(index).unwrap().unwrap();
            let run = &manifest.runs[0];
            let files = &manifest.files;
            match RunScores::open(&live, run, files).unwrap() {
                // A global order leaves ranks behind.
                None => prop_assert!(!ranked && matches!(order, DocumentOrder::Name | DocumentOrder::Length)),
                Some(scores) => {
                    let expected: Vec<f32> = sorted.iter().map(|&at| rank_of(left[at])).collect();
                    prop_assert_eq!(scores.ranks().unwrap(), &expected[..]);
                    let expected: Vec<f32> = sorted.iter().map(|&at| globals[at]).collect();
                    prop_assert_eq!(scores.globals().unwrap(), is_global.then_some(&expected[..]));
                }
            }
        }
    }
}

#[test]
fn an_order_is_kept_as_long_as_it_is_true() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let all = collection(5, 200, 50);
    build(index, &all, &[90]);
    let file = folder.path().join("ranks.tsv");
    let lines: String = (1..200).map(|docid| format!("doc-{docid}\t{docid}\n")).collect();
    std::fs::write(&file, lines + "doc-900\t3\n").unwrap();
    let recode = Recode { ranks: Some(ranks_file(&file)), ..ordered(global(0.5)) };
    let merged = merge(index, recode, 2).unwrap();
    let Merged::Runs { runs: 2, manifest, ranks } = merged else { panic!("{merged:?}") };
    let counts = RankCounts { found: 199, missing: 1, strangers: 1 };
    assert_eq!(ranks, RanksFound::Read(counts));
    assert!(ranks.remark().unwrap().contains("1 are not in the file"));
    let first = manifest.order.clone().unwrap();
    let parameters = first.global.as_ref().unwrap();
    assert_eq!((first.name.as_str(), parameters.alpha, parameters.k1), ("global", 0.5, 1.2));
    assert_eq!((parameters.documents, parameters.tokens), (200, manifest.statistics.tokens));
    assert!(matches!(merge(index, Recode::default(), 1), Ok(Merged::Nothing)));

    let codec = crate::index::list::ListCodec::NewPfd;
    let recode = Recode { codec: Some(codec), ..Recode::default() };
    let merged = merge(index, recode, 1).unwrap();
    let Merged::Runs { manifest, ranks: RanksFound::Kept, .. } = merged else {
        panic!("{merged:?}")
    };
    assert_eq!(manifest.order.as_ref(), Some(&first));
    check(index).unwrap();
    let merged =
        merge(index, Recode { ranks: Some(ranks_file(&file)), ..Recode::default() }, 1).unwrap();
    let Merged::Runs { manifest, .. } = merged else { panic!("{merged:?}") };
    assert_eq!(manifest.order, None);
    let live = current(index).unwrap().unwrap();
    assert_eq!(ranks_of(&live, &manifest).unwrap().unwrap().len(), 200);
    check(index).unwrap();
}

#[test]
fn ranks_are_not_lost_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    build(index, &collection(6, 100, 30), &[40]);
    let mut manifest = rank(index, &[0.25; 100]);
    manifest.files.retain(|file| file.name != "runs/000001.scores");
    let live = current(index).unwrap().unwrap();
    std::fs::remove_file(live.join("manifest.json")).unwrap();
    std::fs::remove_file(index.join("runs/000001.scores")).unwrap();
    manifest.write(&live).unwrap();
    let error = merge(index, Recode::default(), 1).unwrap_err().to_string();
    assert!(error.contains("run 000001 has none: merge the runs with the ranks"), "{error}");
    assert_eq!(current(index).unwrap().unwrap(), live);
    // A draft goes on, and says so.
    assert_eq!(draft(index, &DocumentOrder::Length).0, RanksFound::Lost);
    check(index).unwrap();
}

fn draft(index: &Path, order: &DocumentOrder) -> (RanksFound, Manifest) {
    let lock = IndexLock::acquire(index).unwrap();
    let live = current(index).unwrap().unwrap();
    let manifest = Manifest::read(&live).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&live, &manifest).unwrap();
    let form = manifest.settings.form().unwrap();
    let stop = Stop::default();
    let merging = Merging {
        memory_bytes: MEMORY,
        threads: 2,
        form,
        columns: Vec::new(),
        record_parts: 0,
        stop,
    };
    let found = draft.order(order, None, &merging).unwrap();
    let settings = manifest.settings.clone();
    let description = Description { settings, workers: 1, ..Description::default() };
    (found, draft.publish(&lock, description, MEMORY).unwrap())
}

#[test]
fn a_draft_in_order_is_a_merge_in_order() {
    for cuts in [&[][..], &[40, 70]] {
        for ranked in [false, true] {
            let folders = [(), ()].map(|()| tempfile::tempdir().unwrap());
            let [one, other] = folders.each_ref().map(|folder| folder.path());
            for index in [one, other] {
                build(index, &collection(6, 100, 30), cuts);
                if ranked {
                    let ranks: Vec<f32> = (0..100u8).map(|docid| f32::from(docid % 7)).collect();
                    rank(index, &ranks);
                }
            }
            let Merged::Runs { manifest, .. } = merge(one, ordered(global(0.3)), 2).unwrap() else {
                panic!("it was in order");
            };
            let (found, drafted) = draft(other, &global(0.3));
            assert_eq!(found, if ranked { RanksFound::Kept } else { RanksFound::Equal });
            check(other).unwrap();
            assert_eq!(drafted.order, manifest.order);
            let sums = |manifest: &Manifest| -> Vec<u32> {
                manifest.files.iter().map(|file| file.crc32).collect()
            };
            assert_eq!(sums(&drafted), sums(&manifest), "{cuts:?}, {ranked}");
        }
    }
}

#[test]
fn an_order_that_has_not_the_memory_says_how_much_it_takes() {
    let terms =
        |docid: u32| (0..700).map(|place| (format!("term{}", docid * 700 + place), 1)).collect();
    let large: Collection = (0..300).map(terms).collect();
    for (all, order, given, least) in [
        (collection(7, 300, 30), global(0.3), 4, 5),
        (collection(7, 300, 30), DocumentOrder::Topic, 4, 5),
        (large, DocumentOrder::Topic, 4, 8),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &all, &[]);
        let live = current(index).unwrap().unwrap();
        let merge =
            |mib: u64| merge_index(index, mib << 20, "", 1, ordered(order), &Stop::default());
        let error = merge(given).unwrap_err().to_string();
        let reason = format!(
            "to order 300 documents takes at least {least} MiB of memory, and {given} MiB are given"
        );
        assert!(error.ends_with(&reason), "{error}");
        assert_eq!(current(index).unwrap().unwrap(), live);
        assert!(!index.join("gen-000002").exists());
        merge(least).unwrap();
        check(index).unwrap();
    }
}

use super::*;
use crate::index::files::pages::seal;
use crate::index::format::before_sums;
use crate::index::format::{DELETIONS, MANIFEST};
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::{Deleted, Manifest};
use crate::index::inspect::check::check;
use crate::index::testing::{Collection, build, collection};
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

fn set(documents: u32, docids: impl IntoIterator<Item = u32>) -> DocidSet {
    DocidSet::default().with(documents, docids)
}

proptest! {
    #[test]
    fn law_deleted_documents_are_found_and_numbered(
        documents in 1..300u32,
        deleted in prop::collection::btree_map(0..300u32, any::<bool>(), 0..300),
    ) {
        let deleted: Vec<_> = deleted.into_iter().filter(|of| of.0 < documents).collect();
        let which = |counted| {
            let of_these = deleted.iter().filter(move |of| of.1 == counted);
            set(documents, of_these.map(|of| of.0))
        };
        let deletions =
            Deletions { counted: which(true), since: which(false), ..Deletions::default() };
        let deleted: Vec<u32> = deleted.iter().map(|of| of.0).collect();
        prop_assert_eq!(deletions.docids().collect::<Vec<_>>(), deleted.clone());
        prop_assert_eq!(deletions.is_empty(), deleted.is_empty());
        for docid in 0..documents + 100 {
            prop_assert_eq!(deletions.contains(docid), deleted.contains(&docid));
            let before = deleted.iter().filter(|other| **other < docid).count();
            prop_assert_eq!(deletions.before(docid) as usize, before);
        }
    }

    #[test]
    fn law_what_was_deleted_since_is_the_difference(
        documents in 1..300u32,
        before in prop::collection::btree_map(0..300u32, any::<bool>(), 0..60),
        more in prop::collection::btree_map(0..300u32, any::<bool>(), 0..60),
        is_more: bool,
    ) {
        let of = |docids: &BTreeMap<u32, bool>| {
            let [counted, since] = [true, false].map(|counted| {
                let of_these = docids.iter().filter(|of| *of.0 < documents && *of.1 == counted);
                set(documents, of_these.map(|of| *of.0))
            });
            Deletions { counted, since, ..Deletions::default() }
        };
        let mut now = more.clone();
        now.extend(before.iter().filter(|_| is_more));
        let (old, new) = (of(&before), of(&now));
        let all_stay = old.docids().all(|docid| new.contains(docid));
        let expected = all_stay.then(|| new.docids().filter(|d| !old.contains(*d)).collect());
        prop_assert_eq!(new.more_than(&old), expected);
        for first in [0, 64, 128] {
            let within: Vec<u32> = new.docids_in(first..first + 100).collect();
            let all = new.docids().filter(|docid| (first..first + 100).contains(docid));
            prop_assert_eq!(within, all.collect::<Vec<_>>());
        }
    }

    /// Sets of both forms, those at the border between them too.
    #[test]
    fn law_what_is_written_is_read(
        runs in prop::collection::vec(
            (
                prop_oneof![1..200u32, 6300..6500u32],
                prop::collection::vec(any::<prop::sample::Index>(), 0..110),
                prop::collection::vec(any::<prop::sample::Index>(), 0..110),
                prop::collection::btree_map(any::<u64>(), any::<prop::sample::Index>(), 0..9),
            ),
            0..4,
        ),
    ) {
        let mut all = Vec::new();
        let mut entries = Vec::new();
        for (documents, counted, since, lists) in runs {
            let docids = |some: &[prop::sample::Index]| {
                some.iter().map(|docid| docid.index(documents as usize) as u32).collect::<Vec<_>>()
            };
            let counted = set(documents, docids(&counted));
            let since = docids(&since).into_iter().filter(|docid| !counted.contains(*docid));
            let since = set(documents, since);
            let most = counted.len() as usize;
            let lists = lists.into_iter().filter(|_| most > 0);
            let (lists, counts): (Vec<_>, Vec<_>) =
                lists.map(|(list, count)| (list, 1 + count.index(most) as u32)).unzip();
            let postings = counts.iter().map(|count| u64::from(*count)).sum();
            let deletions = Deletions { counted, since, lists, counts };
            let deleted = (!deletions.is_empty()).then(|| Deleted {
                documents: deletions.counted.len() + deletions.since.len(),
                counted: deletions.counted.len(),
                postings,
                ..Deleted::default()
            });
            entries.push(RunEntry { documents, deleted, ..RunEntry::default() });
            all.push(Arc::new(deletions));
        }
        let folder = tempfile::tempdir().unwrap();
        let file = write_deletions(folder.path(), &entries, &all).unwrap();
        prop_assert_eq!(file.is_some(), entries.iter().any(|run| run.deleted.is_some()));
        let files = Vec::from_iter(file);
        prop_assert_eq!(read_deletions(folder.path(), &entries, Some(&files)).unwrap(), all);
    }
}

/// Publishes the live generation once more without some documents, by the number of the run.
fn delete(index: &Path, gone: &[(usize, &[u32])]) -> (PathBuf, Manifest) {
    let from = current(index).unwrap().unwrap();
    let old = Manifest::read(&from).unwrap();
    let lock = IndexLock::acquire(index).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&from, &old).unwrap();
    for (run, docids) in gone {
        draft.delete(*run, docids).unwrap();
    }
    let description = Description { settings: old.settings, ..Description::default() };
    let manifest = draft.publish(&lock, description, 1 << 20).unwrap();
    (current(index).unwrap().unwrap(), manifest)
}

/// Documents of each term, and how often they have it, without those that are `gone`.
fn plain(all: &Collection, gone: &BTreeSet<u32>) -> BTreeMap<String, (u32, u64)> {
    let mut terms = BTreeMap::new();
    for (docid, document) in (0..).zip(all) {
        for (term, tf) in document {
            let (df, cf) = terms.entry(term.clone()).or_insert((0, 0));
            if !gone.contains(&docid) {
                *df += 1;
                *cf += u64::from(*tf);
            }
        }
    }
    terms
}

/// The same by the index; `None` where a list cannot be read.
fn found(generation: &Generation, term: &str) -> Option<(u32, u64)> {
    let collection = trie_collection(term);
    let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
    let mut sums = (0, 0);
    for run in generation.runs() {
        let Some(entry) = run.lexicon().find(collection, suffix).unwrap() else { continue };
        sums.0 += run.live_df(&entry).ok()?;
        sums.1 += run.live_cf(&entry).ok()?;
    }
    Some(sums)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn law_counts_are_those_of_what_is_left_after_each_of_several_drafts(
        seed: u64,
        documents in prop_oneof![1..120u32, 300..900u32],
        vocabulary in 1..60u32,
        cut in any::<prop::sample::Index>(),
        drafts in prop::collection::vec(
            prop::collection::vec(any::<prop::sample::Index>(), 0..9),
            1..6,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let all = collection(seed, documents, vocabulary);
        let old = build(index, &all, &[cut.index(documents as usize + 1)]);
        let mut gone = BTreeSet::new();
        // As of the last time that more than 1 % were not counted, in each run.
        let mut counted = [BTreeSet::new(), BTreeSet::new()];
        for draft in drafts {
            let docids = draft.iter().map(|at| at.index(documents as usize) as u32);
            let docids: Vec<u32> = docids.collect();
            gone.extend(&docids);
            let mut of_runs = Vec::new();
            for (counted, run) in counted.iter_mut().zip(&old.runs) {
                let own = run.first_docid..run.first_docid + run.documents;
                let of_run: BTreeSet<u32> = gone.range(own.clone()).copied().collect();
                if 100 * (of_run.len() - counted.len()) > run.documents as usize {
                    *counted = of_run;
                }
                let docids = docids.iter().filter(|docid| own.contains(docid));
                of_runs.push(docids.map(|docid| docid - run.first_docid).collect::<Vec<_>>());
            }
            let of_runs: Vec<_> = of_runs.iter().map(|docids| &docids[..]).enumerate().collect();
            let (generation, manifest) = delete(index, &of_runs);

            let expected = plain(&all, &gone);
            let opened = Generation::open(index).unwrap();
            for term in expected.keys() {
                // What was found the first time is known the second time.
                for _ in 0..2 {
                    prop_assert_eq!(found(&opened, term), Some(expected[term]), "{}", term);
                }
            }
            let mut postings = 0;
            for (run, counted) in manifest.runs.iter().zip(&counted) {
                prop_assert_eq!(run.counted() as usize, counted.len());
                let own = run.first_docid as usize..(run.first_docid + run.documents) as usize;
                let len = |docid: u32| all[docid as usize].len() as u64;
                let tokens = |docid: u32| all[docid as usize].values().copied().map(u64::from).sum::<u64>();
                let of_run = gone.range(own.start as u32..own.end as u32).copied();
                let deleted = run.deleted.unwrap_or_default();
                prop_assert_eq!(deleted.documents as usize, of_run.clone().count());
                prop_assert_eq!(deleted.tokens, of_run.map(tokens).sum::<u64>());
                prop_assert_eq!(deleted.postings, counted.iter().copied().map(len).sum::<u64>());
                postings += run.postings - deleted.postings;
            }
            let statistics = &manifest.statistics;
            let as_of = plain(&all, &counted.iter().flatten().copied().collect());
            let terms = as_of.values().filter(|(df, _)| *df > 0).count();
            prop_assert_eq!((statistics.terms, statistics.postings), (terms as u64, postings));
            prop_assert_eq!(statistics.documents as usize, all.len() - gone.len());
            check(index).unwrap();

            // A generation of the same runs carries the deletions over.
            drop(opened);
            let read = |generation: &Path| fs::read(generation.join(DELETIONS)).ok();
            let before = read(&generation);
            prop_assert_eq!(read(&delete(index, &[]).0), before);
        }
    }
}

/// An index of two runs with deleted documents, its folder, and that of its generation: sets of
/// both forms, and a document whose postings are not counted.
fn example() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut documents = collection(4, 134, 3);
    // No other document has as many tokens.
    for docid in [3, 64, 77, 131] {
        documents[docid].insert("own".to_string(), 1_000_000 + docid as u32);
    }
    build(folder.path(), &documents, &[130]);
    delete(folder.path(), &[(0, &[64, 3, 64]), (1, &[1])]);
    let (generation, manifest) = delete(folder.path(), &[(0, &[77, 3])]);
    let numbers = |run: usize| {
        let deleted = manifest.runs[run].deleted.unwrap();
        (deleted.documents, deleted.counted)
    };
    assert_eq!((numbers(0), numbers(1)), ((3, 2), (1, 1)));
    (folder, generation)
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let (folder, generation) = example();
    let path = generation.join(DELETIONS);
    let good = fs::read(&path).unwrap();
    let mut manifest = Manifest::read(&generation).unwrap();
    let at = manifest.files.iter().position(|file| file.name == DELETIONS).unwrap();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        Generation::open(folder.path()).unwrap_err();
        // Under checksums that fit, as a faulty program might write it.
        if bit / 8 >= 60 && bit / 8 < 64 {
            continue;
        }
        if ((bit / 8) as u64) < before_sums(good.len() as u64) {
            seal(&path, &mut bytes);
        }
        fs::write(&path, &bytes).unwrap();
        manifest.files[at].crc32 = crc32fast::hash(&bytes);
        fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
        check(folder.path()).expect_err(&format!("bit {bit}"));
    }
    manifest.files[at].crc32 = crc32fast::hash(&good);
    fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        Generation::open(folder.path()).unwrap_err();
    }
    fs::remove_file(&path).unwrap();
    let error = Generation::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("/deletions"), "{error}");
    fs::write(&path, &good).unwrap();
    check(folder.path()).unwrap();
}

#[test]
fn a_manifest_must_fit_its_deletions() {
    let (folder, generation) = example();
    let good = Manifest::read(&generation).unwrap();
    let changes: [fn(&mut Deleted); 6] = [
        |deleted| deleted.documents += 1,
        |deleted| deleted.documents = 0,
        |deleted| deleted.tokens = u64::MAX,
        |deleted| deleted.postings -= 1,
        |deleted| deleted.counted += 1,
        |deleted| deleted.counted = deleted.documents + 1,
    ];
    for change in changes {
        let mut manifest = good.clone();
        change(manifest.runs[0].deleted.as_mut().unwrap());
        fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
        Generation::open(folder.path()).unwrap_err();
    }
    let mut manifest = good.clone();
    manifest.runs[0].deleted = None;
    fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
    Generation::open(folder.path()).unwrap_err();
    fs::write(generation.join(MANIFEST), good.encode()).unwrap();
    Generation::open(folder.path()).unwrap();
}

#[test]
fn what_is_counted_of_a_damaged_list_is_an_error_or_right() {
    let (folder, _) = example();
    let term = |name: &str| found(&Generation::open(folder.path()).unwrap(), name);
    let terms: Vec<String> = (0..3).map(crate::index::testing::term).collect();
    let good: Vec<_> = terms.iter().map(|name| term(name)).collect();
    assert!(good.iter().all(Option::is_some));
    let path = folder.path().join("runs/000000.postings");
    let bytes = fs::read(&path).unwrap();
    let mut errors = 0;
    for bit in (8 * 64..8 * bytes.len()).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let Ok(generation) = Generation::open(folder.path()) else { continue };
        for (name, good) in terms.iter().zip(&good) {
            match found(&generation, name) {
                None => errors += 1,
                found => assert!(found == *good, "{name}, bit {bit}"),
            }
        }
    }
    assert!(errors > 10, "{errors}");
}

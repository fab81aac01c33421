use super::*;
use crate::index::error::IndexError::{Damaged, NoIndex, Storage};
use crate::index::format::{INPUTS, MANIFEST, file_path};
use crate::index::testing::{build, collection};
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use std::collections::BTreeMap;
use std::fs;

#[test]
fn everything_that_was_built_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let collection = collection(8, 400, 200);
    build(folder.path(), &collection, &[0, 130, 400]);
    let generation = Generation::open(folder.path()).unwrap();
    generation.verify().unwrap();
    let mut found = vec![BTreeMap::new(); collection.len()];
    let terms: std::collections::BTreeSet<_> = collection.iter().flat_map(|d| d.keys()).collect();
    for term in terms {
        let trie_collection = trie_collection(term);
        let suffix = &term.as_bytes()[implied_prefix_len(trie_collection)..];
        for run in generation.runs() {
            let Some(list) = run.find(trie_collection, suffix).unwrap() else { continue };
            list.check(run.documents(), None, |docids, tfs| {
                for (docid, tf) in docids.iter().zip(tfs) {
                    let document = &mut found[(run.first_docid() + docid) as usize];
                    document.insert(term.clone(), *tf);
                }
            })
            .unwrap();
        }
    }
    assert!(found == collection);
    assert_eq!(&*generation.documents().name(399).unwrap(), b"doc-399");
}

#[test]
fn where_there_is_no_index_the_message_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for path in [folder.path(), &missing] {
        let error = Generation::open(path).unwrap_err();
        assert!(matches!(error, NoIndex { .. }), "{error}");
        assert!(error.to_string().starts_with(path.to_str().unwrap()));
    }
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = build(folder.path(), &collection(1, 10, 10), &[5]);
    let generation = folder.path().join("gen-000001");
    let read = manifest.files.iter().filter(|file| file.name != INPUTS);
    for name in read.map(|file| file.name.as_str()).chain([MANIFEST]) {
        let path = file_path(&generation, name);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let error = Generation::open(folder.path()).unwrap_err();
        assert!(matches!(&error, Storage { path: named, .. } if *named == path), "{error}");
        fs::write(&path, bytes).unwrap();
    }
    // Inputs are read when they are asked for.
    let path = generation.join(INPUTS);
    fs::remove_file(&path).unwrap();
    let error = Generation::open(folder.path()).unwrap().input_of(0).unwrap_err();
    assert!(matches!(&error, Storage { path: named, .. } if *named == path), "{error}");
    fs::write(folder.path().join("CURRENT"), "gen-000009\n").unwrap();
    let error = Generation::open(folder.path()).unwrap_err();
    assert!(matches!(&error, Damaged { path, offset: 4, .. } if path.ends_with("CURRENT")));
}

#[test]
fn files_of_another_generation_are_refused() {
    let a = tempfile::tempdir().unwrap();
    let b = tempfile::tempdir().unwrap();
    build(a.path(), &collection(1, 10, 10), &[]);
    build(b.path(), &collection(2, 10, 10), &[]);
    for name in ["runs/000000.lengths", "runs/000000.lexicon", "runs/000000.postings"] {
        let path = a.path().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::copy(b.path().join(name), &path).unwrap();
        Generation::open(a.path()).and_then(|generation| generation.verify()).unwrap_err();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    fs::rename(a.path().join("gen-000001"), a.path().join("gen-000002")).unwrap();
    fs::write(a.path().join("CURRENT"), "gen-000002\n").unwrap();
    let error = Generation::open(a.path()).unwrap_err();
    assert!(matches!(error, Damaged { .. }), "{error}");
}

#[test]
fn readers_move_over_to_what_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    build(index, &collection(0, 10, 10), &[3, 6]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for seed in 1..30 {
                build(index, &collection(seed, 10, 10), &[3, 6]);
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let generation = Generation::open(index).unwrap();
            generation.verify().unwrap();
            assert!(generation.manifest().generation >= last);
            last = generation.manifest().generation;
        }
        writer.join().unwrap();
    });
    assert_eq!(Generation::open(index).unwrap().manifest().generation, 30);
}

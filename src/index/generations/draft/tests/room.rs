//! Tests of the files that a run may have beside those of every run: static scores, and positions,
//! which this program neither writes nor uses (`docs/index-format.md`).

use super::tests::describe;
use super::*;
use crate::codec::vbyte;
use crate::index::files::storage::{Stop, StorageFile};
use crate::index::format::{FileHeader, MANIFEST};
use crate::index::generations::folder::current;
use crate::index::generations::generation::Generation;
use crate::index::generations::merged::{Recode, merge_index};
use crate::index::inspect::check::check;
use crate::index::lexicon::LexiconStream;
use crate::index::run::Run;
use crate::index::testing::{build, collection};
use std::fs;

/// Documents of a block of scores, and postings of a group of positions.
const BLOCK: usize = 64;

/// The score of document i is i / 2.
fn write_scores(folder: &Path, run: &RunEntry) -> FileEntry {
    let mut file = writer(folder, run, FileKind::Scores);
    let scores: Vec<f32> = (0..run.documents).map(|docid| docid as f32 / 2.0).collect();
    let greatest = scores.chunks(BLOCK).map(|block| block.iter().copied().fold(0.0, f32::max));
    for section in [scores.clone(), greatest.collect()] {
        for score in section {
            file.write(&score.to_le_bytes()).unwrap();
        }
        file.pad().unwrap();
    }
    let values = [run.documents.into(), BLOCK as u64, 1, 0, 0];
    file.finish(FileHeader { kind: FileKind::Scores, values, last: 0 }).unwrap()
}

/// Every posting has its term at positions 3, 5, 7 and so on.
fn write_positions(folder: &Path, run: &RunEntry, files: &[FileEntry]) -> FileEntry {
    let opened = Run::open(folder, run, files).unwrap();
    let mut positions = Vec::new();
    let mut groups = Vec::new();
    let mut ordinal = 0usize;
    let mut blocks = Vec::new();
    let mut terms = LexiconStream::open(opened.lexicon().path(), 1 << 16).unwrap();
    let mut collection = None;
    let mut of_collection = 0;
    while terms.advance().unwrap() {
        let term = terms.term();
        if collection != Some(term.collection) {
            collection = Some(term.collection);
            of_collection = 0;
        }
        if of_collection % 16 == 0 {
            blocks.push(ordinal as u64);
        }
        of_collection += 1;
        let list = opened.list(term.list).unwrap();
        list.check(run.documents, None, |_, tfs| {
            for &tf in tfs {
                if ordinal.is_multiple_of(BLOCK) {
                    groups.push(positions.len() as u64);
                }
                ordinal += 1;
                vbyte::put(3, &mut positions);
                (1..tf).for_each(|_| vbyte::put(1, &mut positions));
            }
        })
        .unwrap();
    }
    let mut file = writer(folder, run, FileKind::Positions);
    file.write(&positions).unwrap();
    file.pad().unwrap();
    for place in groups.iter().chain(&blocks) {
        file.write(&place.to_le_bytes()).unwrap();
    }
    let values = [run.terms, run.postings, positions.len() as u64, BLOCK as u64, 0];
    file.finish(FileHeader { kind: FileKind::Positions, values, last: 0 }).unwrap()
}

fn writer(folder: &Path, run: &RunEntry, kind: FileKind) -> StorageFile {
    StorageFile::create(folder, &run.file(kind)).unwrap()
}

/// An index of two runs, the second of which has both files.
fn with_room(index: &Path) -> Manifest {
    let mut manifest = build(index, &collection(7, 300, 60), &[130]);
    let folder = current(index).unwrap().unwrap();
    let run = manifest.runs[1].clone();
    let more = [write_scores(&folder, &run), write_positions(&folder, &run, &manifest.files)];
    manifest.files.extend(more);
    manifest.files.sort_by(|a, b| a.name.cmp(&b.name));
    fs::remove_file(folder.join(MANIFEST)).unwrap();
    manifest.write(&folder).unwrap();
    manifest
}

#[test]
fn scores_and_positions_are_kept_and_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let manifest = with_room(index);
    check(index).unwrap();
    let generation = Generation::open(index).unwrap();
    assert_eq!(generation.manifest().files, manifest.files);
    assert_eq!((generation.live_documents(), generation.runs().len()), (300, 2));
    drop(generation);

    let lock = IndexLock::acquire(index).unwrap();
    let from = current(index).unwrap().unwrap();
    let kinds = [FileKind::Scores, FileKind::Positions];
    let old = kinds.map(|kind| fs::read(manifest.runs[1].path(&from, kind)).unwrap());
    let mut draft = Draft::begin(&lock).unwrap();
    let first = draft.take_inputs(&from, &manifest).unwrap();
    draft.link(&from, &manifest, 1, first).unwrap();
    let next = draft.publish(&lock, describe(&manifest), 1 << 20).unwrap();
    drop(lock);
    check(index).unwrap();
    let to = current(index).unwrap().unwrap();
    for (kind, old) in kinds.into_iter().zip(old) {
        let linked = next.files.iter().find(|file| file.name.ends_with(kind.extension())).unwrap();
        assert!(fs::read(file_path(&to, &linked.name)).unwrap() == old, "{kind:?}");
    }
}

#[test]
fn a_merge_refuses_to_lose_scores_and_positions() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let manifest = with_room(index);
    let merge = || merge_index(index, 8 << 20, "merge", 1, Recode::default(), &Stop::default());
    let error = merge().map(drop).unwrap_err().to_string();
    assert!(error.contains("cannot merge the positions of runs"), "{error}");
    check(index).unwrap();
    assert_eq!(Generation::open(index).unwrap().manifest(), &manifest);
}

#[test]
fn a_check_finds_damage_in_scores_and_positions_and_queries_do_not_look() {
    for kind in [FileKind::Scores, FileKind::Positions] {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        let manifest = with_room(index);
        let path = manifest.runs[1].path(&current(index).unwrap().unwrap(), kind);
        let good = fs::read(&path).unwrap();
        for at in [0, 70, good.len() / 2, good.len() - 1] {
            let mut bytes = good.clone();
            bytes[at] ^= 16;
            fs::remove_file(&path).unwrap();
            fs::write(&path, &bytes).unwrap();
            let problems = check(index).map(drop).unwrap_err();
            assert!(
                problems.iter().any(|error| error.to_string().contains(kind.extension())),
                "byte {at}: {problems:?}"
            );
            Generation::open(index).unwrap();
        }
    }
}

//! Tests of the files that a run may have beside those of every run: static scores, and those that
//! are reserved, which this program does not know (`docs/index-format.md`).

use super::tests::describe;
use super::*;
use crate::index::files::storage::StorageFile;
use crate::index::format::{FileHeader, MANIFEST};
use crate::index::generations::folder::current;
use crate::index::generations::generation::Generation;
use crate::index::inspect::check::check;
use crate::index::testing::{build, collection};
use std::fs;

/// Documents of a block of scores.
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

fn writer(folder: &Path, run: &RunEntry, kind: FileKind) -> StorageFile {
    StorageFile::create(folder, &run.file(kind)).unwrap()
}

/// An index of two runs, the second of which has scores.
fn with_room(index: &Path) -> Manifest {
    let mut manifest = build(index, &collection(7, 300, 60), &[130]);
    let folder = current(index).unwrap().unwrap();
    let run = manifest.runs[1].clone();
    manifest.files.push(write_scores(&folder, &run));
    manifest.files.sort_by(|a, b| a.name.cmp(&b.name));
    fs::remove_file(folder.join(MANIFEST)).unwrap();
    manifest.write(&folder).unwrap();
    manifest
}

#[test]
fn scores_are_kept() {
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
    let old = fs::read(manifest.runs[1].path(&from, FileKind::Scores)).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    let first = draft.take_inputs(&from, &manifest).unwrap();
    draft.link(&from, &manifest, 1, first).unwrap();
    let next = draft.publish(&lock, describe(&manifest), 1 << 20).unwrap();
    drop(lock);
    check(index).unwrap();
    let to = current(index).unwrap().unwrap();
    let linked = next.files.iter().find(|file| file.name.ends_with("scores")).unwrap();
    assert!(fs::read(file_path(&to, &linked.name)).unwrap() == old);
}

#[test]
fn a_check_finds_damage_in_scores_and_queries_do_not_look() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let manifest = with_room(index);
    let path = manifest.runs[1].path(&current(index).unwrap().unwrap(), FileKind::Scores);
    let good = fs::read(&path).unwrap();
    for at in [0, 70, good.len() / 2, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 16;
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        let problems = check(index).map(drop).unwrap_err();
        let named = problems.iter().any(|error| error.to_string().contains("scores"));
        assert!(named, "byte {at}: {problems:?}");
        Generation::open(index).unwrap();
    }
}

use super::*;
use crate::index::format::MANIFEST;
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Manifest;
use crate::index::inspect::check::check;
use crate::index::testing::{build, collection};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

fn of(documents: u32, deleted: &[u32]) -> Deletions {
    let mut bits = vec![0; documents.div_ceil(64) as usize];
    deleted.iter().for_each(|&docid| bits[docid as usize / 64] |= 1 << (docid % 64));
    let count = bits.iter().map(|word: &u64| word.count_ones()).sum();
    let totals = Deleted { documents: count, ..Deleted::default() };
    Deletions::new(documents, totals, bits, Vec::new(), Vec::new())
}

proptest! {
    #[test]
    fn law_deleted_documents_are_found_and_counted(
        documents in 1..300u32,
        deleted in prop::collection::btree_set(0..300u32, 0..300),
    ) {
        let deleted: Vec<u32> = deleted.into_iter().filter(|docid| *docid < documents).collect();
        let deletions = of(documents, &deleted);
        prop_assert_eq!(deletions.docids().collect::<Vec<_>>(), deleted.clone());
        for docid in 0..documents + 100 {
            prop_assert_eq!(deletions.contains(docid), deleted.contains(&docid));
            let before = deleted.iter().filter(|other| **other < docid).count();
            prop_assert_eq!(deletions.before(docid) as usize, before);
        }
    }
}

/// An index of one run with some deleted documents, its folder, and that of its generation.
fn example() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let old = build(folder.path(), &collection(4, 70, 9), &[]);
    let lock = IndexLock::acquire(folder.path()).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&folder.path().join("gen-000001"), &old).unwrap();
    draft.delete(0, &[3, 64, 12, 3]).unwrap();
    let description = Description { settings: old.settings, ..Description::default() };
    draft.publish(&lock, description, 1 << 20).unwrap();
    drop(lock);
    let generation = current(folder.path()).unwrap().unwrap();
    (folder, generation)
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let (folder, generation) = example();
    let path = generation.join("000000.deletions");
    let good = fs::read(&path).unwrap();
    let mut manifest = Manifest::read(&generation).unwrap();
    let at = manifest.files.iter().position(|file| file.name == "000000.deletions").unwrap();
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        Generation::open(folder.path()).unwrap_err();
        // Under checksums that fit, as a faulty program might write it.
        if bit / 8 >= 60 && bit / 8 < 64 {
            continue;
        }
        let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&crc);
        fs::write(&path, &bytes).unwrap();
        manifest.files[at].crc32 = crc32fast::hash(&bytes);
        fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
        check(folder.path()).unwrap_err();
    }
    manifest.files[at].crc32 = crc32fast::hash(&good);
    fs::write(generation.join(MANIFEST), manifest.encode()).unwrap();
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        Generation::open(folder.path()).unwrap_err();
    }
    fs::write(&path, &good).unwrap();
    check(folder.path()).unwrap();
}

#[test]
fn a_manifest_must_fit_its_deletions() {
    let (folder, generation) = example();
    let good = Manifest::read(&generation).unwrap();
    let changes: [fn(&mut Deleted); 4] = [
        |deleted| deleted.documents += 1,
        |deleted| deleted.documents = 0,
        |deleted| deleted.tokens = u64::MAX,
        |deleted| deleted.postings -= 1,
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

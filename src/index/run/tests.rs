use super::*;
use crate::index::documents::DocumentsWriter;
use crate::index::list::{BLOCK, Columns, ListEncoder};
use crate::index::storage::{Durability, FileEntry};
use std::fs;

fn write(folder: &Path) -> (RunEntry, Vec<FileEntry>) {
    fs::create_dir(folder.join("runs")).unwrap();
    let mut writer = RunWriter::create(folder, 3).unwrap();
    let mut encoder = ListEncoder::new();
    for (collection, suffix, df) in [(0u16, "x", 300u32), (11, "", 1), (11, "b", 128)] {
        for docid in 0..df {
            encoder.push(docid, 1 + docid % 3, 5);
        }
        let (df, bytes) = encoder.finish();
        // In two parts, as a merge writes long lists.
        let payload = encoder.payload();
        let (head, tail) = payload.split_at(payload.len() / 2);
        writer.list_bytes(head).unwrap();
        writer.list_bytes(tail).unwrap();
        payload.clear();
        writer.end_list(collection, suffix.as_bytes(), df, bytes).unwrap();
    }
    writer.finish(40, 300).unwrap()
}

#[test]
fn lists_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (entry, files) = write(folder.path());
    assert_eq!((entry.name.as_str(), entry.terms, entry.postings), ("000003", 3, 429));
    let run = Run::open(folder.path(), &entry, &files, true).unwrap();
    assert_eq!((run.first_docid(), run.documents()), (40, 300));
    for (collection, suffix, expected) in [(0u16, "x", 300u32), (11, "", 1), (11, "b", 128)] {
        let list = run.find(collection, suffix.as_bytes()).unwrap().unwrap();
        let mut found = Vec::new();
        list.check(300, Some(&[5; 300]), |docids, tfs| {
            found.extend(docids.iter().copied().zip(tfs.iter().copied()));
        })
        .unwrap();
        let expected: Vec<_> = (0..expected).map(|docid| (docid, 1 + docid % 3)).collect();
        assert_eq!(found, expected);
    }
    assert!(run.find(12, b"").unwrap().is_none());
}

#[test]
fn lists_must_be_as_long_as_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let mut writer = RunWriter::create(folder.path(), 0).unwrap();
    writer.list_bytes(&[0]).unwrap();
    writer.end_list(0, b"a", 1, 2).unwrap_err();
    writer.finish(0, 1).unwrap_err();
}

#[test]
fn every_flipped_bit_is_found_with_verify_and_none_panics() {
    let folder = tempfile::tempdir().unwrap();
    let (entry, files) = write(folder.path());
    let path = folder.path().join("runs/000003.postings");
    let good = fs::read(&path).unwrap();
    let mut silent = 0;
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        Run::open(folder.path(), &entry, &files, true).unwrap_err();
        let Ok(run) = Run::open(folder.path(), &entry, &files, false) else { continue };
        for (collection, suffix) in [(0u16, "x"), (11, ""), (11, "b")] {
            let Ok(list) = run.find(collection, suffix.as_bytes()) else { continue };
            let (list, mut block) = (list.unwrap(), [0; BLOCK]);
            for i in 0..list.full_blocks() {
                let columns = &mut Columns::default();
                let _ = list.decode_block(i, run.documents(), columns, &mut block);
            }
            let _ = list.decode_tail(run.documents(), &mut block, &mut [0; BLOCK]);
            silent += 1;
        }
    }
    assert!(silent > 0, "only the headers were damaged");
    for length in 0..good.len() {
        fs::remove_file(&path).unwrap();
        fs::write(&path, &good[..length]).unwrap();
        Run::open(folder.path(), &entry, &files, false).unwrap_err();
    }
}

#[test]
fn a_run_of_nothing_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let scratch = Durability::Scratch;
    let writer = RunWriter::create_with(folder.path(), 0, scratch).unwrap();
    let (mut entry, mut files) = writer.finish(0, 0).unwrap();
    sync_run(folder.path(), &entry).unwrap_err();
    let documents = DocumentsWriter::create(folder.path(), 0, scratch, 7).unwrap();
    let documents = documents.finish().unwrap();
    documents.complete(folder.path(), &mut entry, &mut files).unwrap();
    sync_run(folder.path(), &entry).unwrap();
    let run = Run::open(folder.path(), &entry, &files, true).unwrap();
    assert!(run.find(0, b"a").unwrap().is_none());
}

//! Tests of CIFF: what is exported comes back, and damaged files are refused.

use super::*;
use crate::index::generations::folder::current;
use crate::index::inspect::check::check;
use crate::index::testing::{build, collection};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn varints_are_as_long_as_they_are_said_to_be() {
    for value in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
        let mut out = Vec::new();
        vbyte::put(value, &mut out);
        assert_eq!(vbyte::bytes(value), out.len(), "{value}");
    }
}

fn exported(index: &Path) -> Vec<u8> {
    let mut out = Vec::new();
    export(&Generation::open(index).unwrap(), "a test", &mut out, &Stop::default()).unwrap();
    out
}

fn imported(folder: &Path, bytes: &[u8]) -> (PathBuf, Result<(), IndexError>) {
    let file = folder.join("x.ciff");
    let index = folder.join("index");
    fs::write(&file, bytes).unwrap();
    let settings = crate::index::generations::manifest::Settings {
        stemmer: "none".into(),
        codec: "newpfd".into(),
        block_size: 64,
        format: "ciff".into(),
        ..Default::default()
    };
    let input = crate::index::inputs::InputEntry {
        path: file.clone(),
        bytes: bytes.len() as u64,
        hash: "xxh3-1m:0000000000000000".into(),
        format: "ciff".into(),
        compression: "none".into(),
        ..Default::default()
    };
    let command = "a test".to_string();
    let what = Import { command, settings, input, keep: 0, memory_bytes: 1 << 20 };
    let made =
        import(&file, fs::File::open(&file).unwrap(), &index, what, &Stop::default()).map(drop);
    (index, made)
}

#[test]
fn law_what_was_exported_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    for (documents, cuts) in [(0, &[][..]), (1, &[]), (900, &[250])] {
        let source = folder.path().join(format!("source-{documents}"));
        build(&source, &collection(7, documents, 60), cuts);
        let bytes = exported(&source);
        let (index, made) = imported(folder.path(), &bytes);
        made.unwrap();
        check(&index).unwrap();
        assert!(exported(&index) == bytes, "{documents} documents");
    }
}

fn message(term: &str, [df, cf]: [u64; 2], postings: &[(u64, u64)]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    bytes(&mut all, 1, term.as_bytes());
    number(&mut all, 2, df);
    number(&mut all, 3, cf);
    for &(gap, tf) in postings {
        let mut posting = Vec::new();
        // As protobuf does it, a 0 is left out.
        [(1, gap), (2, tf)]
            .iter()
            .filter(|field| field.1 > 0)
            .for_each(|&(f, n)| number(&mut posting, f, n));
        bytes(&mut all, 4, &posting);
    }
    put(&mut out, &all).unwrap();
    out
}

fn file(version: u64, lists: &[Vec<u8>], documents: &[(u64, &str, u64)]) -> Vec<u8> {
    let mut head = Vec::new();
    let mut out = Vec::new();
    number(&mut head, 1, version);
    number(&mut head, 2, lists.len() as u64);
    number(&mut head, 3, documents.len() as u64);
    put(&mut out, &head).unwrap();
    out.extend(lists.concat());
    for &(docid, name, length) in documents {
        let mut record = Vec::new();
        number(&mut record, 1, docid);
        bytes(&mut record, 2, name.as_bytes());
        number(&mut record, 3, length);
        put(&mut out, &record).unwrap();
    }
    out
}

#[test]
fn what_does_not_go_together_is_refused_with_its_place() {
    let documents = [(0, "a", 3), (1, "b", 2)];
    let mill = || message("mill", [2, 4], &[(0, 3), (1, 1)]);
    let folder = tempfile::tempdir().unwrap();
    let fails = |bytes: &[u8], said: &str| {
        let (index, made) = imported(folder.path(), bytes);
        let error = made.expect_err(said).to_string();
        assert!(error.contains("x.ciff: byte ") && error.contains(said), "{said}: {error}");
        assert_eq!(current(&index).unwrap(), None, "{said}");
        let left = fs::read_dir(&index).map_or(0, |entries| {
            entries.filter(|entry| entry.as_ref().unwrap().file_name() != "LOCK").count()
        });
        assert_eq!(left, 0, "{said}");
    };
    fails(b"", "expected the header of a CIFF file, found the end");
    fails(b"{\"id\": 1}", "a length of at most");
    fails(
        &file(2, &[mill()], &documents),
        "byte 0: expected a CIFF file of version 1, found version 2",
    );
    let list = |list: Vec<u8>| file(1, &[list], &documents);
    fails(&list(message("mill", [2, 4], &[(0, 3), (0, 1)])), "a document after the one before");
    fails(&list(message("mill", [2, 4], &[(0, 3), (2, 1)])), "a document before 2, found 2");
    fails(&list(message("mill", [2, 4], &[(0, 3), (1, 0)])), "a term frequency of 1 or more");
    fails(
        &list(message("mill", [3, 4], &[(0, 3), (1, 1)])),
        "3 postings of `mill` with 4 tokens, found 2 and 4",
    );
    fails(&list(message("mill", [2, 5], &[(0, 3), (1, 1)])), "with 5 tokens");
    fails(&list(message("mill", [0, 0], &[])), "0 postings");
    fails(&list(message("", [2, 4], &[(0, 3), (1, 1)])), "a term of 1 to 255 bytes, found 0");
    fails(&list(message(&"x".repeat(256), [1, 1], &[(0, 1)])), "found 256");
    fails(
        &file(1, &[mill(), mill()], &documents),
        "a list of another term, found `mill`, as at byte 7",
    );
    fails(
        &file(1, &[mill()], &[(0, "a", 3), (2, "b", 2)]),
        "expected document 1, found document 2",
    );
    let whole = list(mill());
    fails(&[&whole[..], b"x"].concat(), "the end of the file after 2 documents");
    let (index, made) = imported(folder.path(), &whole);
    made.unwrap();
    check(&index).unwrap();
}

/// Any changed byte, and a cut at any byte, is refused or makes another index that is whole.
#[test]
fn damage_is_an_error_or_another_index() {
    let lists = [message("mill", [2, 4], &[(0, 3), (1, 1)]), message("race", [1, 2], &[(1, 2)])];
    let good = file(1, &lists, &[(0, "a", 3), (1, "bb", 3)]);
    let folder = tempfile::tempdir().unwrap();
    let mut refused = 0;
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= [1, 0x80, 0xff, 8][at % 4];
        for bytes in [&changed, &good[..at]] {
            match imported(folder.path(), bytes) {
                (index, Ok(())) => _ = check(&index).unwrap(),
                (_, Err(error)) => {
                    assert!(error.to_string().contains("x.ciff: byte "), "{at}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > good.len() * 3 / 2, "{refused} of {}", good.len());
}

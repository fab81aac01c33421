use super::*;
use crate::index::format::before_sums;
use crate::index::generations::folder::current;
use crate::index::inspect::check::check;
use crate::index::testing::{build, collection};
use std::ffi::OsStr;
use std::fs;

fn entries() -> Vec<InputEntry> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_string()).collect();
    vec![
        InputEntry::default(),
        InputEntry {
            path: OsStr::from_bytes(b"/docs/\xff\n.jsonl").into(),
            bytes: u64::MAX,
            hash: "xxh3-1m:0123456789abcdef".into(),
            format: "jsonl".into(),
            compression: "gzip".into(),
            encoding: Some("utf-16le".into()),
            asked_encoding: Some("windows-1252".into()),
            id_fields: texts(&["number"]),
            text_fields: texts(&["title", ""]),
            taken_fields: texts(&["été"]),
        },
        InputEntry { path: "x".repeat(300).into(), bytes: 128, ..InputEntry::default() },
    ]
}

/// The file of the entries in a folder, and the manifest of its generation as far as that matters.
fn written(folder: &Path) -> Manifest {
    let mut writer = InputsWriter::create(folder).unwrap();
    writer.extend(&entries()[..1]).unwrap();
    assert_eq!(writer.next(), 1);
    writer.extend(&entries()[1..]).unwrap();
    let files = vec![writer.finish().unwrap()];
    Manifest { inputs: 3, files, ..Manifest::default() }
}

#[test]
fn what_is_written_is_read_together_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = written(folder.path());
    let inputs = InputsFile::open(folder.path(), &manifest).unwrap();
    assert_eq!(inputs.all().unwrap(), entries());
    assert_eq!(inputs.get(1).unwrap(), entries()[1]);
    inputs.get(3).unwrap_err();
    inputs.get(u64::MAX).unwrap_err();
    inputs.check().unwrap();
    let json = serde_json::to_value(&entries()[1]).unwrap();
    assert_eq!(json["path"], "/docs/\u{fffd}\n.jsonl");
    let other = Manifest { inputs: 4, ..manifest };
    let error = InputsFile::open(folder.path(), &other).unwrap_err().to_string();
    assert!(error.ends_with("inputs: byte 16: expected 4, found 3"), "{error}");
}

#[test]
fn no_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let files = vec![InputsWriter::create(folder.path()).unwrap().finish().unwrap()];
    let inputs = InputsFile::open(folder.path(), &Manifest { files, ..Manifest::default() });
    let inputs = inputs.unwrap();
    inputs.check().unwrap();
    assert!(inputs.all().unwrap().is_empty());
}

/// Every flipped bit is found by the checksum, and where that is forged there is an error or other
/// inputs, and no panic.
#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut manifest = written(folder.path());
    let path = folder.path().join(INPUTS);
    let good = fs::read(&path).unwrap();
    let put = |bytes: &[u8]| {
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    };
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        put(&bytes);
        InputsFile::open(folder.path(), &manifest).map(drop).unwrap_err();
        let opened = InputsFile::open_unverified(folder.path(), &manifest);
        if let Ok(opened) = opened.and_then(|opened| opened.check().map(|()| opened)) {
            let is_sum = (bit / 8) as u64 >= before_sums(good.len() as u64);
            assert_eq!(opened.all().unwrap() == entries(), is_sum, "bit {bit}");
        }
    }
    for length in 0..good.len() {
        put(&good[..length]);
        manifest.files[0].bytes = length as u64;
        manifest.files[0].crc32 = crc32fast::hash(&good[..length]);
        InputsFile::open(folder.path(), &manifest).map(drop).unwrap_err();
    }
}

#[test]
fn a_check_reads_every_record() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(3, 120, 20), &[]);
    let live = current(folder.path()).unwrap().unwrap();
    let path = live.join(INPUTS);
    let mut bytes = fs::read(&path).unwrap();
    // The first record says that its path is longer than the file.
    bytes[HEADER_BYTES] = 0x7f;
    fs::write(&path, &bytes).unwrap();
    let problems = check(folder.path()).unwrap_err();
    let all: Vec<String> = problems.iter().map(|error| error.to_string()).collect();
    assert!(all.iter().any(|one| one.contains("inputs: byte 64: expected input 0")), "{all:?}");
}

use super::*;
use crate::index::error::IndexError;
use crate::index::format::{ENDS, LENGTHS, LOCATIONS, NAMES};
use crate::index::storage::FileEntry;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

type Document = (String, u32, Location);

fn write(folder: &Path, documents: &[Document]) -> Vec<FileEntry> {
    let mut writer = DocumentsWriter::create(folder).unwrap();
    for (name, length, location) in documents {
        writer.push(name.as_bytes(), *length, *location).unwrap();
    }
    assert_eq!(writer.documents() as usize, documents.len());
    writer.finish().unwrap()
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let location = (any::<u64>(), any::<u32>(), any::<u32>())
        .prop_map(|(offset, bytes, input)| Location { offset, bytes, input });
    let tokens = prop_oneof![any::<u32>(), 0..9u32, 65_530..65_540u32];
    prop::collection::vec(("[a-zé-]{0,9}", tokens, location), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn law_what_was_pushed_is_read(documents in documents()) {
        let folder = tempfile::tempdir().unwrap();
        let entries = write(folder.path(), &documents);
        let table = Documents::open(folder.path(), &entries).unwrap();
        prop_assert_eq!(table.len() as usize, documents.len());
        prop_assert_eq!(table.tokens(), documents.iter().map(|d| u64::from(d.1)).sum::<u64>());
        let lengths: Vec<u32> = documents.iter().map(|d| d.1).collect();
        prop_assert_eq!(table.lengths(), lengths);
        for (docid, (name, length, location)) in (0..).zip(&documents) {
            prop_assert_eq!(table.name(docid), Some(name.as_bytes()));
            prop_assert_eq!(table.length(docid), Some(*length));
            prop_assert_eq!(table.location(docid), Some(*location));
            let first = documents.iter().position(|d| d.0 == *name).map(|i| i as u32);
            prop_assert_eq!(table.find_name(name.as_bytes()), first);
        }
        let behind = documents.len() as u32;
        for docid in [behind, u32::MAX] {
            prop_assert_eq!(table.name(docid), None);
            prop_assert_eq!(table.length(docid), None);
            prop_assert_eq!(table.location(docid), None);
        }
        prop_assert_eq!(table.find_name(b"not there"), None);
    }
}

#[test]
fn a_name_that_is_not_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = DocumentsWriter::create(folder.path()).unwrap();
    let error = writer.push(b"\xff", 1, Location::default()).unwrap_err();
    assert!(matches!(error, IndexError::Refused { .. }), "{error}");
    assert_eq!((writer.documents(), writer.tokens()), (0, 0));
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location { offset: 1, bytes: 2, input: 3 };
    let documents =
        [("a".into(), 1, location), ("".into(), 70_000, location), ("xyz".into(), 3, location)];
    let entries = write(folder.path(), &documents);
    for name in [LENGTHS, NAMES, ENDS, LOCATIONS] {
        let path = folder.path().join(name);
        let good = fs::read(&path).unwrap();
        let rewrite = |bytes: &[u8]| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        };
        for bit in 0..8 * good.len() {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            rewrite(&bytes);
            Documents::open(folder.path(), &entries).unwrap_err();
            // Without checksums there may be no error, but no panic either.
            if let Ok(table) = Documents::open_unverified(folder.path()) {
                let _ = table.check_ends();
                for docid in 0..4 {
                    let _ = (table.name(docid), table.length(docid), table.location(docid));
                }
                let _ = table.find_name(b"zzz");
            }
        }
        for length in 0..good.len() {
            rewrite(&good[..length]);
            Documents::open(folder.path(), &entries).unwrap_err();
            Documents::open_unverified(folder.path()).unwrap_err();
        }
        rewrite(&good);
    }
    Documents::open(folder.path(), &entries).unwrap();
}

#[test]
fn ends_that_fall_or_leave_the_names_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let documents: Vec<Document> =
        ["ab", "c", "d"].map(|name| (name.into(), 1, Location::default())).into();
    write(folder.path(), &documents);
    let path = folder.path().join(ENDS);
    let good = fs::read(&path).unwrap();
    for (entry, end) in [(0, 4u64), (0, u64::MAX), (1, 1), (2, 3), (2, 5)] {
        let mut bytes = good.clone();
        bytes[64 + 8 * entry..72 + 8 * entry].copy_from_slice(&end.to_le_bytes());
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let table = Documents::open_unverified(folder.path()).unwrap();
        table.check_ends().unwrap_err();
        for docid in 0..3 {
            let _ = table.name(docid);
        }
    }
}

use super::names::NamesWindow;
use super::ramps::RampWindow;
use super::*;
use crate::index::error::IndexError;
use crate::index::files::pages::seal;
use crate::index::files::storage::FileEntry;
use crate::index::files::window::FileWindow;
use crate::index::format::FileKind;
use crate::index::generations::manifest::{Manifest, RunEntry};
use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Name, length, location, and hash of the content.
type Document = (String, u32, Location, u64);

fn create(folder: &Path, number: u32, first_input: u32) -> DocumentsWriter {
    let _ = fs::create_dir(folder.join("runs"));
    DocumentsWriter::create(folder, number, first_input).unwrap()
}

/// Writes the documents of a run, whose first has docid `first_docid`.
fn write(
    folder: &Path,
    number: u32,
    first_docid: u32,
    documents: &[Document],
) -> (RunEntry, Vec<FileEntry>) {
    let first_input = documents.iter().map(|d| d.2.input).min().unwrap_or(0);
    let mut writer = create(folder, number, first_input);
    for (name, length, location, hash) in documents {
        writer.push(name, *length, *location, *hash).unwrap();
    }
    let mut files = Vec::new();
    let documents = documents.len() as u32;
    let name = crate::index::format::run_name(number);
    let mut run = RunEntry { name, first_docid, documents, ..RunEntry::default() };
    writer.finish().unwrap().complete(folder, &mut run, &mut files).unwrap();
    (run, files)
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let location = (any::<u64>(), any::<u32>(), 0..u32::MAX)
        .prop_map(|(offset, bytes, input)| Location { offset, bytes, input });
    let tokens = prop_oneof![any::<u32>(), 0..9u32, 65_530..65_540u32];
    prop::collection::vec(("[a-zé-]{0,9}", tokens, location, any::<u64>()), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn law_what_was_pushed_is_read(documents in documents(), cuts in (0..40usize, 0..40usize)) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut ends = [cuts.0, cuts.1, documents.len()].map(|end| end.min(documents.len()));
        ends.sort_unstable();
        let mut manifest = Manifest::default();
        let mut start = 0;
        for (number, end) in (0..).zip(ends) {
            let (run, files) = write(folder, number, start as u32, &documents[start..end]);
            manifest.runs.push(run);
            manifest.files.extend(files);
            start = end;
        }
        let open = |run| (run, RunDocuments::open(folder, run, &manifest.files).unwrap());
        let table = Documents::of(manifest.runs.iter().map(open));
        prop_assert_eq!(table.len() as usize, documents.len());
        let tokens: u64 = manifest.runs.iter().map(|run| run.tokens).sum();
        prop_assert_eq!(tokens, documents.iter().map(|d| u64::from(d.1)).sum::<u64>());
        for (docid, (name, length, location, hash)) in (0..).zip(&documents) {
            prop_assert_eq!(&*table.name(docid).unwrap(), name.as_bytes());
            prop_assert_eq!(table.length(docid), Some(*length));
            prop_assert_eq!(table.location(docid), Some(*location));
            prop_assert_eq!(table.hash(docid), Some(*hash));
        }
        let behind = documents.len() as u32;
        for docid in [behind, u32::MAX] {
            prop_assert_eq!(&*table.name(docid).unwrap(), b"");
            prop_assert_eq!(table.length(docid), None);
            prop_assert_eq!(table.location(docid), None);
            prop_assert_eq!(table.hash(docid), None);
        }
        for (run, entry) in table.runs().zip(&manifest.runs) {
            run.check_lookup().unwrap();
            let own = &documents[entry.first_docid as usize..][..entry.documents as usize];
            for name in own.iter().map(|document| &document.0) {
                let expected = (0..).zip(own).filter(|(_, d)| d.0 == *name).map(|(docid, _)| docid);
                prop_assert_eq!(run.of_name(name.as_bytes()).unwrap(), expected.collect::<Vec<u32>>());
            }
            prop_assert!(run.of_name(b"not there").unwrap().is_empty());
        }
    }
}

proptest! {
    /// Documents that are written in parts, in any order, are the same files.
    #[test]
    fn oracle_parts_in_any_order_are_their_documents(documents in documents(), cuts in (0..40usize, 0..40usize), order in 0..6usize) {
        let folder = tempfile::tempdir().unwrap();
        let (run, expected) = write(folder.path(), 0, 0, &documents);
        let mut ends = [cuts.0, cuts.1, documents.len()].map(|end| end.min(documents.len()));
        ends.sort_unstable();
        let mut parts = Vec::new();
        let mut start = 0;
        let mut docid = 0;
        for end in ends {
            let part = &documents[start..end];
            parts.push((docid, part));
            docid += part.len() as u32;
            start = end;
        }
        let placed = PlacedDocuments::create(folder.path(), 1, run.first_input).unwrap();
        for n in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][order] {
            let (docid, part) = parts[n];
            let mut names = String::new();
            let mut ends = Vec::new();
            for (name, ..) in part {
                names += name;
                ends.push(names.len() as u64);
            }
            let lengths: Vec<u32> = part.iter().map(|document| document.1).collect();
            let mut locations: Vec<Location> = part.iter().map(|document| document.2).collect();
            let hashes: Vec<u64> = part.iter().map(|document| document.3).collect();
            let ends = &ends[..];
            let locations = &mut locations[..];
            let names = &names[..];
            let lengths = &lengths[..];
            let hashes = &hashes[..];
            placed.write(docid, DocumentColumns { names, ends, lengths, locations, hashes }).unwrap();
        }
        let entry = placed.finish().unwrap();
        prop_assert_eq!((entry.documents, entry.tokens), (run.documents, run.tokens));
        prop_assert_eq!((entry.first_input, entry.inputs), (run.first_input, run.inputs));
        for (found, expected) in entry.files.iter().zip(&expected) {
            prop_assert_eq!((found.bytes, found.crc32), (expected.bytes, expected.crc32));
            let [found, expected] = [found, expected].map(|file| fs::read(folder.path().join(&file.name)).unwrap());
            prop_assert!(found == expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Whether inputs rise from document to document or not, and whether documents have moved.
    #[test]
    fn oracle_documents_of_inputs_are_found_by_all_places(
        mut inputs in prop::collection::vec(0u32..6, 1..50),
        in_order in any::<bool>(),
        wanted in 0u32..64,
        moved in prop::collection::btree_map(0u32..50, (0u32..6, 0u64..3), 0..20),
    ) {
        if in_order {
            inputs.sort_unstable();
        }
        let folder = tempfile::tempdir().unwrap();
        let document = |(at, input): (u64, &u32)| {
            let place = Location { offset: 10 * at, bytes: 9, input: *input };
            (format!("d{at}"), 1, place, at)
        };
        let documents: Vec<Document> = (0..).zip(&inputs).map(document).collect();
        let (mut run, _) = write(folder.path(), 0, 0, &documents);
        let first = run.first_input;
        let written = RunDocuments::open_mapped(folder.path(), &run).unwrap();
        prop_assert_eq!(written.inputs_rise(), inputs.is_sorted());
        let now = moved.iter().filter(|(docid, _)| **docid < run.documents);
        let now: Vec<_> = now
            .map(|(&docid, &(input, offset))| (docid, Location { offset, bytes: 9, input }))
            .collect();
        let moves = written.moved(now.iter().copied()).unwrap();
        run.moves = Some(1);
        moves::write_moves(folder.path(), &run, &moves).unwrap();
        let documents = RunDocuments::open_mapped(folder.path(), &run).unwrap();
        let is_wanted = |input: u32| wanted >> input & 1 == 1;
        // Two inputs are of one file.
        let file_of = |input: u32| is_wanted(input).then_some(input / 2);
        let mut expected = Vec::new();
        for (docid, input) in (0..).zip(&inputs) {
            let place = now.iter().find(|(moved, _)| *moved == docid);
            let place = place.map_or(input - first, |(_, place)| place.input);
            prop_assert_eq!(documents.location(docid).unwrap().input, place);
            expected.extend(file_of(place).map(|file| (docid, file)));
        }
        let found = documents.of_inputs(file_of).unwrap();
        let apart = |two: &[(Range<u32>, u32)]| {
            two[0].0.end < two[1].0.start || two[0].0.end == two[1].0.start && two[0].1 != two[1].1
        };
        prop_assert!(found.windows(2).all(apart), "{:?}", found);
        let found = found.into_iter().flat_map(|(docids, file)| docids.map(move |d| (d, file)));
        prop_assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Records that follow one another in files, with more or less between them.
    #[test]
    fn law_places_of_many_documents_are_read(
        records in prop::collection::vec((0..2000u32, 0..3u64, 0..150u32), 0..900),
        names in 0..30usize,
    ) {
        let mut next = Location::default();
        let document = |(at, &(bytes, gap, new)): (usize, &(u32, u64, u32))| {
            // Inputs are counted from that of the first document.
            if new == 0 && at > 0 {
                next = Location { input: next.input + 1, ..Location::default() };
            }
            let place = Location { offset: next.offset + gap / 2, bytes, ..next };
            next.offset = place.offset + u64::from(bytes);
            (format!("{at:0width$}{}", ["", "é"][names % 2], width = names + new as usize % 2), 1, place, at as u64)
        };
        let documents: Vec<Document> = records.iter().enumerate().map(document).collect();
        let folder = tempfile::tempdir().unwrap();
        let (run, _) = write(folder.path(), 0, 0, &documents);
        let read = RunDocuments::open_unverified(folder.path(), &run).unwrap();
        read.check_ends().unwrap();
        for open in [FileWindow::open, FileWindow::checked] {
            let mut places =
                RampWindow::open(folder.path(), &run, FileKind::Locations, 64, open).unwrap();
            let mut names = NamesWindow::open(folder.path(), &run, [64, 64], open).unwrap();
            for (docid, (name, _, place, _)) in (0..).zip(&documents) {
                assert_eq!(places.location(docid).unwrap(), *place);
                assert_eq!(names.name(docid).unwrap(), name.as_bytes());
            }
        }
        for (docid, (name, _, place, _)) in (0..).zip(&documents) {
            prop_assert_eq!(read.first_location(docid).unwrap(), *place);
            prop_assert_eq!(&*read.name(docid).unwrap(), name.as_bytes());
        }
    }
}

#[test]
fn a_document_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = Location::default();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let placed = PlacedDocuments::create(folder.path(), 1, 7).unwrap();
    let ends = &[1][..];
    let locations = &mut [Location { input: 6, ..place }][..];
    let columns = DocumentColumns { names: "n", ends, lengths: &[1], locations, hashes: &[0] };
    let error = placed.write(0, columns).unwrap_err();
    assert!(matches!(error, IndexError::Refused { .. }), "{error}");
}

#[test]
fn every_flipped_bit_and_every_cut_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location { offset: 1, bytes: 2, input: 3 };
    let document = |name: &str, length| (name.to_string(), length, location, 99);
    let documents = [document("a", 1), document("", 70_000), document("xyz", 3)];
    let (run, entries) = write(folder.path(), 0, 0, &documents);
    for kind in FileKind::OF_DOCUMENTS {
        let path = run.path(folder.path(), kind);
        let good = fs::read(&path).unwrap();
        let rewrite = |bytes: &[u8]| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        };
        for bit in 0..8 * good.len() {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            rewrite(&bytes);
            RunDocuments::open(folder.path(), &run, &entries).unwrap_err();
            // Without checksums there may be no error, but no panic either.
            if let Ok(table) = RunDocuments::open_unverified(folder.path(), &run) {
                let _ = table.check_ends();
                for docid in 0..4 {
                    let _ = table.name(docid);
                }
                let _ = table.of_name(b"xyz");
                let _ = table.check_lookup();
            }
        }
        for length in 0..good.len() {
            rewrite(&good[..length]);
            RunDocuments::open(folder.path(), &run, &entries).unwrap_err();
            RunDocuments::open_unverified(folder.path(), &run).unwrap_err();
        }
        rewrite(&good);
    }
    RunDocuments::open(folder.path(), &run, &entries).unwrap();
}

#[test]
fn ends_that_fall_or_leave_the_names_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let documents = ["ab", "c", "d"].map(|name| (name.into(), 1, Location::default(), 0));
    let (run, _) = write(folder.path(), 0, 0, &documents);
    let path = run.path(folder.path(), FileKind::Ends);
    let good = fs::read(&path).unwrap();
    // The names end at 2, 3 and 4: 1 a document from 2 on, without rests. Nothing is before them.
    let (base, slope, place) = (64, 72, 76);
    let (front, bytes) = (base + 16, slope + 16);
    let u64_max = [u64::MAX.to_le_bytes(); 2].concat();
    for (at, value) in [
        (base, &[3][..]),
        (base, &[1]),
        (base, &u64_max[..8]),
        (slope, &[0]),
        (slope, &[2]),
        (slope, &[255; 4]),
        (place, &[1]),
        (place, &[255; 4]),
        (place + 16, &[1]),
        (place + 16, &[65]),
        (front, &[1]),
        (front, &u64_max[..8]),
        (bytes, &[255; 4]),
    ] {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        seal(&path, &mut bytes);
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let table = RunDocuments::open_unverified(folder.path(), &run).unwrap();
        table.check_ends().unwrap_err();
        for docid in 0..3 {
            let _ = table.name(docid);
        }
    }
}

/// What is looked up of documents whose files were not verified when they were opened.
#[test]
fn a_damaged_block_is_found_when_it_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let document = |docid: u64| {
        let place = Location { offset: 10 * docid, bytes: 9, input: docid as u32 / 10_000 };
        (format!("d{docid:05}"), 3, place, docid)
    };
    let documents: Vec<Document> = (0..40_000).map(document).collect();
    let (run, _) = write(folder.path(), 0, 0, &documents);
    let open = || RunDocuments::open_mapped(folder.path(), &run).unwrap();
    // A byte of document 30,000, which is in the last blocks, and what finds it.
    let of_name = |documents: &RunDocuments, docid: u32| {
        documents.of_name(format!("d{docid:05}").as_bytes()).map(|found| assert_eq!(found, [docid]))
    };
    let length = |documents: &RunDocuments, docid| documents.length(docid).map(drop);
    let moved =
        |documents: &RunDocuments, docid| documents.moved([(docid, Location::default())]).map(drop);
    let inputs = |documents: &RunDocuments, _| documents.of_inputs(|_| Some(0)).map(drop);
    type Look<'a> = &'a dyn Fn(&RunDocuments, u32) -> Result<(), IndexError>;
    // A name has some three bytes beside the front of its block.
    let looks: [(FileKind, usize, Look<'_>); 2] =
        [(FileKind::Names, 3, &of_name), (FileKind::Lengths, 2, &length)];
    for (kind, size, look) in looks {
        let path = run.path(folder.path(), kind);
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        let at = 64 + size * 33_333;
        bytes[at] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        look(&open(), 0).unwrap();
        let docid = if kind == FileKind::Lengths { 33_333 } else { 33_334 };
        let error = look(&open(), docid).unwrap_err().to_string();
        let block = at / (64 << 10) * (64 << 10);
        let expected = format!("{}: byte {}: expected ", path.display(), block.max(64));
        assert!(error.starts_with(&expected), "{error}");
        fs::write(&path, &good).unwrap();
    }
    // Files of ramps have one block here.
    let looks: [(FileKind, Look<'_>); 3] =
        [(FileKind::Ends, &of_name), (FileKind::Locations, &moved), (FileKind::Locations, &inputs)];
    for (kind, look) in looks {
        let path = run.path(folder.path(), kind);
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        let at = bytes.len() - 100;
        bytes[at] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
        let error = look(&open(), 33_334).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: byte 64: expected ", path.display())), "{error}");
        fs::write(&path, &good).unwrap();
    }
    let path = run.path(folder.path(), FileKind::Lookup);
    let mut bytes = fs::read(&path).unwrap();
    // A third of all hashes lie in the damaged block.
    bytes[100_000] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let found = (0..1000).map(|docid| of_name(&open(), docid).is_ok());
    let found = found.filter(|is_ok| *is_ok).count();
    assert!((600..740).contains(&found), "{found}");
}

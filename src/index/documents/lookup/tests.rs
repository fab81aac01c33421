use super::column::AT_ONCE;
use super::*;
use crate::index::deletions::DocidSet;
use crate::index::deletions::{Deletions, LiveRun};
use crate::index::documents::duplicates::{Duplicates, SameName, find_duplicates};
use crate::index::documents::{DocumentsWriter, Location, RunDocuments};
use crate::index::files::pages::seal;
use crate::index::format::{RUNS, run_name};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// Writes a run of documents of these names in the folder of a generation.
fn write(folder: &Path, number: u32, first_docid: u32, names: &[String]) -> RunEntry {
    let mut writer = DocumentsWriter::create(folder, number, 0).unwrap();
    for name in names {
        writer.push(name, 1, Location::default(), 0).unwrap();
    }
    let name = run_name(number);
    let documents = names.len() as u32;
    let mut run = RunEntry { name, first_docid, documents, ..RunEntry::default() };
    writer.finish().unwrap().complete(folder, &mut run, &mut Vec::new()).unwrap();
    run
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(RUNS)).unwrap();
    folder
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Many names, or few, occur more than once: passes take many hashes, or one.
    #[test]
    fn oracle_look_ups_and_duplicates_are_those_of_a_map(
        names in prop::collection::vec(0u32..200, 0..900),
        spread in prop::sample::select(vec![1u32, 60, 1000]),
        cut in any::<prop::sample::Index>(),
        gone in prop::collection::btree_set(0u32..900, 0..20),
    ) {
        let name = |(docid, name): (u32, &u32)| format!("n{}", name / spread + docid % spread);
        let names: Vec<String> = (0..).zip(&names).map(name).collect();
        let cut = cut.index(names.len() + 1);
        let folder = folder();
        let folder = folder.path();
        let runs = [write(folder, 0, 0, &names[..cut]), write(folder, 1, cut as u32, &names[cut..])];
        let mut streams = Vec::new();
        for run in &runs {
            let documents = RunDocuments::open_unverified(folder, run).unwrap();
            documents.check_lookup().unwrap();
            let of_run = &names[run.first_docid as usize..][..run.documents as usize];
            for name in of_run {
                let expected = (0..).zip(of_run).filter(|(_, other)| *other == name);
                let found = documents.of_name(name.as_bytes()).unwrap();
                prop_assert_eq!(found, expected.map(|(docid, _)| docid).collect::<Vec<u32>>());
            }
            let deleted = gone.iter().filter_map(|docid| docid.checked_sub(run.first_docid));
            let deleted = deleted.filter(|docid| *docid < run.documents);
            let since = DocidSet::default().with(run.documents, deleted);
            let deletions = Arc::new(Deletions { since, ..Deletions::default() });
            streams.push((run, deletions));
        }
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut expected = Duplicates::default();
        for (docid, name) in (0..).zip(&names).filter(|(docid, _)| !gone.contains(docid)) {
            match seen.get(&**name) {
                Some(&earlier) => {
                    expected.count += 1;
                    expected.first.get_or_insert((docid, earlier));
                }
                None => _ = seen.insert(name, docid),
            }
        }
        let border = names.len() as u32 * 4_000_000;
        let mut found = Duplicates::default();
        for hashes in [0..=border, border + 1..=u32::MAX] {
            let open = |(run, deletions): &(&RunEntry, Arc<Deletions>)| {
                let live = LiveRun { run, deletions: deletions.clone() };
                LookupStream::open(folder, &live, hashes.clone()).unwrap()
            };
            let mut streams: Vec<_> = streams.iter().map(open).collect();
            found = found.unite(find_duplicates(&mut streams, SameName::All).unwrap());
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "no file is left");
    }
}

#[test]
fn one_name_of_all_documents_is_in_order_of_docids() {
    let folder = folder();
    let names = vec!["mill".to_string(); 3 * AT_ONCE + 7];
    let run = write(folder.path(), 0, 0, &names);
    let documents = RunDocuments::open_unverified(folder.path(), &run).unwrap();
    documents.check_lookup().unwrap();
    assert!(documents.of_name(b"mill").unwrap().into_iter().eq(0..run.documents));
    assert!(documents.of_name(b"race").unwrap().is_empty());
    let live = LiveRun { run: &run, deletions: Arc::default() };
    let stream = LookupStream::open(folder.path(), &live, 0..=u32::MAX).unwrap();
    let found = find_duplicates(&mut [stream], SameName::All).unwrap();
    assert_eq!((found.count, found.first), (u64::from(run.documents) - 1, Some((1, 0))));
}

#[test]
fn a_look_up_that_is_not_in_order_or_of_other_names_is_found() {
    let folder = folder();
    let names: Vec<String> = (0..50).map(|docid| format!("doc-{docid}")).collect();
    let run = write(folder.path(), 0, 0, &names);
    let path = run.path(folder.path(), FileKind::Lookup);
    let good = std::fs::read(&path).unwrap();
    let open = || RunDocuments::open_unverified(folder.path(), &run).unwrap();
    // One bucket, whose directory has two entries.
    let pairs = HEADER_BYTES + 8;
    let (first, second) = (pairs..pairs + 5, pairs + 5..pairs + 10);
    let mut swapped = good.clone();
    swapped[first.clone()].copy_from_slice(&good[second.clone()]);
    swapped[second.clone()].copy_from_slice(&good[first.clone()]);
    let mut twice = good.clone();
    twice[second].copy_from_slice(&good[first.clone()]);
    let mut behind = good.clone();
    behind[first.start] = 50;
    let starts = [(0, 1), (0, 51), (4, 49), (4, 51)].map(|(at, value)| {
        let mut bytes = good.clone();
        bytes[HEADER_BYTES + at] = value;
        bytes
    });
    for mut bytes in [swapped, twice, behind].into_iter().chain(starts) {
        seal(&path, &mut bytes);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let error = open().check_lookup().unwrap_err().to_string();
        assert!(error.contains("000000.lookup: byte "), "{error}");
        names.iter().for_each(|name| _ = open().of_name(name.as_bytes()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Of one bucket and of several, as a stream and by hash.
    #[test]
    fn oracle_those_of_a_hash_by_all_pairs(
        some in prop::collection::vec(prop_oneof![any::<u32>(), 0..9u32, Just(7 << 20)], 0..400),
        many in prop_oneof![Just(0), 0..3000u32],
        more in any::<u32>(),
        from in any::<u32>(),
    ) {
        let many = (0..many).map(|n| n.wrapping_mul(2_654_435_761));
        let hashes: Vec<u32> = some.iter().copied().chain(many).collect();
        let folder = folder();
        let column = NameColumn::create(folder.path(), 0).unwrap();
        column.put_hashes(0, &hashes).unwrap();
        let documents = hashes.len() as u32;
        column.write(documents).unwrap();
        let run = RunEntry { name: run_name(0), documents, ..RunEntry::default() };
        let lookup = NameLookup::open_unverified(folder.path(), &run).unwrap();
        for hash in some.iter().flat_map(|h| [*h, h.wrapping_add(1)]).chain([0, u32::MAX, more]) {
            let expected = (0..).zip(&hashes).filter(|(_, other)| **other == hash);
            let found: Vec<u32> = lookup.of_hash(hash).unwrap().collect();
            prop_assert_eq!(found, expected.map(|(docid, _)| docid).collect::<Vec<u32>>());
        }
        let mut pairs: Vec<[u32; 2]> = (0..).zip(&hashes).map(|(docid, h)| [*h, docid]).collect();
        pairs.sort_unstable();
        let hashes = u64::from(from.min(more))..u64::from(from.max(more));
        let expected: Vec<_> =
            pairs.into_iter().filter(|pair| hashes.contains(&pair[0].into())).collect();
        let mut found = Vec::new();
        let take = |_, pair| {
            found.push(pair);
            Ok(())
        };
        lookup.each(hashes, take).unwrap();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_layout_has_room_for_all_docids_and_hashes() {
    for documents in [0, 1, 255, 256, 257, 65_537, 1 << 24, u32::MAX] {
        let layout = LookupLayout::new(documents);
        for docid in [0, documents / 2, documents.saturating_sub(1)] {
            for hash in [0, 1, 0x8765_4321, u32::MAX] {
                let pair = [hash, docid];
                let bucket = layout.bucket(hash);
                assert!(bucket < layout.buckets());
                assert_eq!(layout.pair(bucket, &layout.packed(pair)), pair);
            }
        }
        assert!(layout.at(documents) <= layout.file_bytes());
    }
}

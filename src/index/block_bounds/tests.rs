use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::*;
use crate::index::files::storage::Stop;
use crate::index::format::before_sums;
use crate::index::format::{MANIFEST, VECTORS};
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Manifest;
use crate::index::inspect::check::{check, check_watched};
use crate::index::testing::{build, collection};
use crate::text::trie_collection::{implied_prefix_len, trie_collection};

/// A collection in which some terms are in most documents, some in clusters and some rare; great
/// impacts stand together, so that bounds pay.
fn documents(count: u32) -> Vec<BTreeMap<String, u32>> {
    let mut documents = collection(5, count, 12);
    for (docid, terms) in (0u32..).zip(&mut documents) {
        terms.insert("often".into(), 1 + docid % 7);
        for topic in 0..8 {
            let impact = if docid / 320 % 8 == topic { 1 << 20 } else { 1 };
            terms.insert(format!("topic {topic}"), impact);
        }
        if docid / 300 % 3 == 1 {
            terms.insert("clusters".into(), 1 + docid * 31 % 400);
        }
        if docid.is_multiple_of(64) {
            terms.insert("spread".into(), 1);
        }
    }
    documents
}

/// Gives the live generation bounds by this many threads; returns the bytes of the files.
fn add_bounds(index: &Path, threads: usize) -> Vec<Vec<u8>> {
    let folder = index.join("gen-000001");
    let mut manifest = Manifest::read(&folder).unwrap();
    let Manifest { runs, files, settings, .. } = &mut manifest;
    let before = files.len();
    write_missing_bounds(&folder, &*runs, files, settings, threads).unwrap();
    assert_eq!(files.len(), before, "texts have none");
    settings.format = VECTORS.into();
    write_missing_bounds(&folder, &*runs, files, settings, threads).unwrap();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    fs::remove_file(folder.join(MANIFEST)).unwrap();
    manifest.write(&folder).unwrap();
    let name = |run: &RunEntry| run.path(&folder, FileKind::Bounds);
    manifest.runs.iter().map(|run| fs::read(name(run)).unwrap()).collect()
}

#[test]
fn what_is_written_is_read_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let documents = documents(9000);
    build(folder.path(), &documents, &[5000]);
    add_bounds(folder.path(), 2);
    check(folder.path()).unwrap();
    let generation = Generation::open(folder.path()).unwrap();
    assert_eq!(generation.runs().len(), 2);
    for run in generation.runs() {
        let bounds = run.bounds().unwrap();
        let codes_of = |term: &str| {
            let collection = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
            let entry = run.lexicon().find(collection, suffix).unwrap().unwrap();
            bounds.number(&entry).map(|number| bounds.codes(number).unwrap())
        };
        // It has too few postings.
        assert!(codes_of("spread").is_none());
        let often = codes_of("often").unwrap();
        assert_eq!(often.codes.len(), run.documents().div_ceil(BLOCK_DOCUMENTS) as usize);
        let clusters = codes_of("clusters").unwrap();
        let of_run = &documents[run.first_docid() as usize..][..run.documents() as usize];
        let mut finder = clusters.finder();
        let mut found = 0;
        for (block, here) in (0..).zip(of_run.chunks(BLOCK_DOCUMENTS as usize)) {
            let most = here.iter().filter_map(|terms| terms.get("clusters")).max();
            assert_eq!(finder.has(block), most.is_some());
            if let Some(&most) = most {
                let code = usize::from(clusters.codes[found]);
                let impacts = bounds.impacts();
                assert!(impacts[code] >= most && impacts[code - 1] < most);
                found += 1;
            }
        }
        assert_eq!(found, clusters.codes.len());
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_threads() {
    let files = [1, 2, 7].map(|threads| {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &documents(6000), &[]);
        add_bounds(folder.path(), threads)
    });
    assert!(files[0] == files[1] && files[0] == files[2]);
    assert!(files[0][0].len() > DATA as usize);
}

#[test]
fn every_changed_byte_is_found_even_if_it_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &documents(3000), &[]);
    let good = add_bounds(folder.path(), 1).remove(0);
    let generation = folder.path().join("gen-000001");
    let manifest = Manifest::read(&generation).unwrap();
    let path = folder.path().join("runs/000000.bounds");
    for at in (16..56).step_by(3).chain((64..before_sums(good.len() as u64) as usize).step_by(5)) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        let crc = crc32fast::hash(&bytes[..60]).to_le_bytes();
        bytes[60..64].copy_from_slice(&crc);
        fs::write(&path, &bytes).unwrap();
        let problems = check_watched(folder.path(), 1, &Stop::default()).unwrap_err();
        let of_bounds = problems.iter().filter(|problem| problem.to_string().contains(".bounds"));
        // One is the checksum of the file, which a header with its own leaves as it was.
        assert!(of_bounds.count() > usize::from(at >= 64), "byte {at}: {problems:?}");
        // Whatever they say, they are read without a panic.
        let Ok(bounds) = RunBounds::open_unverified(&generation, &manifest.runs[0]) else {
            continue;
        };
        for number in 0..bounds.lists as usize {
            let Ok(codes) = bounds.codes(number) else { continue };
            let mut finder = codes.finder();
            (0..200).for_each(|block| _ = finder.has(block));
            codes.each_word(0, 9, |number, word, codes| {
                assert!(number < 9 && word.count_ones() as usize == codes.len());
            });
        }
    }
}

//! Tests of merging: many runs give the bytes of one.

use super::lengths::Lengths;
use super::source::{Base, Encoders, ListEncoding, ListSource};
use super::terms::TermMerge;
use super::*;
use crate::index::documents::{DocumentsWriter, Location, RunDocuments};
use crate::index::format::{run_file, run_name};
use crate::index::generations::folder::current;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::merged::{Merged, Recode, merge_index};
use crate::index::lexicon::LexiconStream;
use crate::index::lexicon::tests::write_terms;
use crate::index::list::{Form, ListEncoder};
use crate::index::run::{NewRun, delete};
use crate::index::testing::{
    Collection, Noise, build, collection, write_lists, write_run, write_runs,
};
use crate::score::bounds::code_below;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

fn merging(memory_bytes: u64, threads: usize) -> Merging {
    Merging {
        memory_bytes,
        threads,
        form: Form::default(),
        columns: Vec::new(),
        record_parts: 0,
        stop: Stop::default(),
    }
}

/// Runs of which nothing is deleted.
fn whole(runs: &[RunEntry]) -> Vec<LiveRun<'_>> {
    runs.iter().map(|run| LiveRun { run, deletions: Arc::default() }).collect()
}

fn generation() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    folder
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = PathBuf::from(path.file_name().unwrap());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(file, bytes)| (name.join(file), bytes)));
        } else {
            found.insert(name, fs::read(path).unwrap());
        }
    }
    found
}

fn sorted(cuts: Vec<prop::sample::Index>, documents: u32) -> Vec<usize> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(documents as usize + 1)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        ..ProptestConfig::with_failure_persistence(
            FileFailurePersistence::Direct("tests/proptest/merge.txt")
        )
    })]
#[test]
    fn law_any_cut_into_runs_merges_to_the_bytes_of_one_run(
        seed: u64,
        documents in prop_oneof![0..40u32, 300..900u32],
        vocabulary in 1..400u32,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
        memory_bytes in prop_oneof![Just(0u64), Just(WRITER_BYTES + 4 * LEAST_RUN_BYTES), Just(1 << 30)],
        threads in 1..5usize,
    ) {
        let collection = collection(seed, documents, vocabulary);
        let one = generation();
        let many = generation();
        let (expected, _) = write_run(one.path(), 0, 0, &collection);
        let (runs, _) = write_runs(many.path(), &collection, &sorted(cuts, documents));

        let distinct: BTreeSet<_> = collection.iter().flat_map(BTreeMap::keys).collect();
        let placed: Vec<_> = whole(&runs).into_iter().map(|run| (many.path(), run)).collect();
        let counted = count_distinct_terms(&placed, memory_bytes, |_| Ok(true)).unwrap();
        prop_assert_eq!(counted, distinct.len() as u64);

        // Into another generation, where the runs stay, and in place, where they go.
        let other = generation();
        let (merged, _) =
            merge_runs(many.path(), &whole(&runs), |_| true, other.path(), 0, &merging(memory_bytes, threads)).unwrap();
        prop_assert_eq!(&merged, &expected);
        prop_assert!(files(other.path()) == files(one.path()));
        let free = runs.len() as u32;
        let (merged, entries) =
            merge_runs(many.path(), &whole(&runs), |_| false, many.path(), free, &merging(memory_bytes, threads)).unwrap();
        prop_assert_eq!(&merged.name, &run_name(free));
        prop_assert_eq!(RunEntry { name: run_name(0), ..merged }, expected);
        let written = files(many.path());
        prop_assert!(written.values().eq(files(one.path()).values()));
        for entry in entries {
            let bytes = &written[Path::new(&entry.name)];
            prop_assert_eq!(entry.bytes, bytes.len() as u64);
            prop_assert_eq!(entry.crc32, crc32fast::hash(bytes));
        }
    }

    #[test]
    fn law_deleted_documents_leave_the_lists_of_one_run_of_the_others(
        seed: u64,
        documents in 300..900u32,
        vocabulary in 1..60u32,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        gone in prop::collection::btree_set(0..900u32, 0..40),
        memory_bytes in prop_oneof![Just(0u64), Just(1 << 30)],
        threads in 1..5usize,
    ) {
        let all = collection(seed, documents, vocabulary);
        let left = (0..).zip(&all).filter(|(docid, _)| !gone.contains(docid));
        let left: Collection = left.map(|(_, terms)| terms.clone()).collect();
        let [one, many, merged] = [generation(), generation(), generation()];
        write_run(one.path(), 0, 0, &left);
        let (mut runs, _) = write_runs(many.path(), &all, &sorted(cuts, documents));
        let mut deletions = vec![Arc::default(); runs.len()];
        for (run, deletions) in runs.iter_mut().zip(&mut deletions) {
            let of_run = gone.iter().filter_map(|docid| docid.checked_sub(run.first_docid));
            let of_run: Vec<u32> = of_run.filter(|docid| *docid < run.documents).collect();
            delete(many.path(), run, deletions, &of_run).unwrap();
        }
        let merging = merging(memory_bytes, threads);
        let live = runs.iter().zip(deletions);
        let live: Vec<_> = live.map(|(run, deletions)| LiveRun { run, deletions }).collect();
        let (run, _) = merge_runs(many.path(), &live, |_| true, merged.path(), 0, &merging).unwrap();
        let [documents, expected] =
            [(merged.path(), vec![run]), (many.path(), runs)].map(|(folder, runs)| {
                let table = |run: &RunEntry| RunDocuments::open_unverified(folder, run).unwrap();
                let mut documents = Vec::new();
                for (table, run) in runs.iter().map(|run| (table(run), run)) {
                    for docid in 0..table.len() {
                        let at = docid as usize;
                        let Location { offset, bytes, input } = table.location(at as u32).unwrap();
                        let location = (offset, bytes, run.first_input + input);
                        let name = table.name(docid).unwrap().to_vec();
                        documents.push((name, location, table.lengths()[at], table.hashes()[at]));
                    }
                }
                documents
            });
        let expected = (0..).zip(expected).filter(|(docid, _)| !gone.contains(docid));
        prop_assert_eq!(documents, Vec::from_iter(expected.map(|(_, document)| document)));
        for kind in [FileKind::Lexicon, FileKind::Postings, FileKind::Lengths] {
            let [found, expected] = [&merged, &one]
                .map(|folder| fs::read(folder.path().join(run_file("000000", kind))).unwrap());
            prop_assert!(found == expected, "{kind:?}");
        }
    }

    #[test]
    fn law_terms_of_any_bytes_are_merged_in_order(
        runs in prop::collection::vec(
            prop::collection::btree_set(
                (11..13u16, prop::collection::vec(prop::sample::select(vec![0u8, 1, 255]), 0..18)),
                0..12,
            ),
            1..6,
        ),
    ) {
        let folder = generation();
        let mut expected: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut streams = Vec::new();
        for (source, terms) in runs.iter().enumerate() {
            let name = format!("lexicon-{source}");
            let all: Vec<_> = terms.iter().map(|(c, suffix)| (*c, &suffix[..], (1, 1))).collect();
            write_terms(folder.path(), &name, &all, false);
            for (collection, suffix) in terms {
                expected.entry((*collection, suffix.clone())).or_default().push(source);
            }
            streams.push(LexiconStream::open(&folder.path().join(name), 0).unwrap());
        }
        let mut merge = TermMerge::new(streams).unwrap();
        let mut found = Vec::new();
        while merge.take_term() {
            let mut sources = Vec::new();
            while let Some((source, _)) = merge.source_of_term() {
                sources.push(source);
                merge.advance().unwrap();
            }
            let (collection, suffix) = merge.taken();
            found.push(((collection, suffix.to_vec()), sources));
        }
        prop_assert_eq!(found, Vec::from_iter(expected));
    }

    #[test]
    fn law_a_list_longer_than_the_window_is_copied_whole(
        seed: u64,
        df in prop_oneof![1..300u32, 3000..3100u32],
        gap_bits in 0..9u32,
        tf_bits in 0..32u32,
        base in 0..1000u32,
    ) {
        let mut noise = Noise::new(seed);
        let length = |docid: u32| docid.wrapping_mul(0x9e37_79b1) >> 18;
        let mut docid = 0;
        let mut postings = Vec::new();
        for _ in 0..df {
            docid += noise.below(1 << gap_bits);
            postings.push((docid, 1 + noise.below(1 << tf_bits)));
            docid += 1;
        }
        let folder = generation();
        let mut encoder = ListEncoder::new();
        let mut write = |base: u32| {
            for (docid, tf) in &postings {
                encoder.push(base + docid, *tf, code_below(length(*docid)));
            }
            let (df, bytes) = encoder.finish();
            (df, bytes, std::mem::take(encoder.payload()))
        };
        let (_, _, payload) = write(0);
        let (_, _, expected) = write(base);
        let new = NewRun::alone(folder.path(), 0, Form::BP128);
        let (run, _) = write_lists(new, docid, [((0, &b"x"[..]), df, payload)]);
        // Documents before those of the merged run, those of runs before, and those of this run.
        let mut table = DocumentsWriter::create(folder.path(), 0, 0).unwrap();
        for _ in 0..7 + base {
            table.push("", 1, Location::default(), 0).unwrap();
        }
        for docid in 0..docid {
            table.push("", length(docid), Location::default(), 0).unwrap();
        }
        table.finish().unwrap();
        let (lengths, _) = Lengths::of_run(folder.path(), 0, 0, 1 << 20, 1).unwrap();
        let lengths = &lengths[0];

        let path = run.path(folder.path(), FileKind::Lexicon);
        let mut lexicon = LexiconStream::open(&path, 0).unwrap();
        let mut source = ListSource::open(folder.path(), &run, &lexicon, Base::new(7, base, None), 0, false).unwrap();
        prop_assert!(lexicon.advance().unwrap());
        let mut found = Vec::new();
        let mut encoders = Encoders::new(Form::BP128);
        let mut encoding = ListEncoding { lengths, encoders: &mut encoders };
        source.append(lexicon.term().list, &mut encoding, |encoders| {
            found.append(encoders.lists.payload());
            Ok(())
        }).unwrap();
        encoders.lists.finish();
        found.append(encoders.lists.payload());
        prop_assert!(found == expected);
    }
}

#[test]
fn runs_must_follow_each_other() {
    let folder = generation();
    let collection = collection(1, 30, 50);
    let (mut runs, _) = write_runs(folder.path(), &collection, &[10, 20]);
    let before = files(folder.path());
    runs.swap(0, 1);
    let error =
        merge_runs(folder.path(), &whole(&runs), |_| false, folder.path(), 3, &merging(1 << 20, 1))
            .unwrap_err();
    assert!(error.to_string().contains("does not follow"), "{error}");
    runs.swap(0, 1);
    runs[2].documents = u32::MAX;
    let error =
        merge_runs(folder.path(), &whole(&runs), |_| false, folder.path(), 3, &merging(1 << 20, 1))
            .unwrap_err();
    assert!(files(folder.path()) == before, "nothing was written or removed");
    assert!(error.to_string().contains("2^32"), "{error}");
}

#[test]
fn damaged_runs_give_errors_and_no_panic() {
    let from = generation();
    let to = generation();
    let mut documents = collection(3, 700, 20);
    for terms in &mut documents {
        terms.insert("common".into(), 100_000);
    }
    let (runs, _) = write_runs(from.path(), &documents, &[300]);
    let mut errors = [0; 2];
    for name in ["runs/000000.lexicon", "runs/000001.postings"] {
        let path = from.path().join(name);
        let good = fs::read(&path).unwrap();
        let mut noise = Noise::new(9);
        for _ in 0..150 {
            let mut bytes = good.clone();
            let bit = noise.below(8 * bytes.len() as u32) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            // One thread, and three, which see the lexicon in parts.
            for (errors, (memory, threads)) in errors.iter_mut().zip([(0, 1), (64 << 20, 3)]) {
                let merged = merge_runs(
                    from.path(),
                    &whole(&runs),
                    |_| true,
                    to.path(),
                    0,
                    &merging(memory, threads),
                );
                *errors += usize::from(merged.is_err());
                for file in fs::read_dir(to.path().join("runs")).unwrap() {
                    fs::remove_file(file.unwrap().path()).unwrap();
                }
            }
        }
        fs::write(&path, &good[..good.len() / 2]).unwrap();
        merge_runs(from.path(), &whole(&runs), |_| true, to.path(), 5, &merging(64 << 20, 3))
            .unwrap_err();
        fs::write(&path, &good).unwrap();
    }
    // Every bit of lists has a checksum.
    assert!(errors[0] > 225 && errors[0] == errors[1], "{errors:?}");
    merge_runs(from.path(), &whole(&runs), |_| true, to.path(), 0, &merging(0, 1)).unwrap();
}

#[test]
fn an_index_is_merged_to_what_one_run_would_have_been() {
    let one = tempfile::tempdir().unwrap();
    let many = tempfile::tempdir().unwrap();
    let collection = collection(5, 500, 300);
    build(one.path(), &collection, &[]);
    build(many.path(), &collection, &[100, 100, 499]);
    let merged =
        merge_index(many.path(), 8 << 20, "merge it", 3, Recode::default(), &Stop::default())
            .unwrap();
    let Merged::Runs { runs: 4, manifest, .. } = merged else { panic!("{merged:?}") };
    assert_eq!((manifest.generation, manifest.workers), (2, 3));
    assert_eq!(manifest.command, "merge it");

    let generation = Generation::open(many.path()).unwrap();
    assert_eq!(generation.manifest(), &*manifest);
    let of_run = |index: &Path, manifest: &Manifest| {
        let live = current(index).unwrap().unwrap();
        FileKind::OF_RUN.map(|kind| fs::read(manifest.runs[0].path(&live, kind)).unwrap())
    };
    let expected = Manifest::read(&current(one.path()).unwrap().unwrap()).unwrap();
    assert!(of_run(many.path(), &manifest) == of_run(one.path(), &expected));
    let one = Generation::open(one.path()).unwrap();
    assert_eq!(manifest.statistics, one.manifest().statistics);
    assert_eq!(fs::read_dir(many.path()).unwrap().count(), 4, "CURRENT, LOCK, gen-000002 and runs");
    assert_eq!(fs::read_dir(many.path().join("runs")).unwrap().count(), FileKind::OF_RUN.len());

    fs::create_dir(many.path().join("gen-000001")).unwrap();
    assert_eq!(
        merge_index(many.path(), 8 << 20, "again", 1, Recode::default(), &Stop::default()).unwrap(),
        Merged::Nothing
    );
    assert!(!many.path().join("gen-000001").exists(), "debris goes, whatever there is to do");
    assert_eq!(current(many.path()).unwrap().unwrap(), generation.path());
}

#[test]
fn damage_is_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(6, 100, 50), &[50]);
    let live = current(folder.path()).unwrap().unwrap();
    for name in ["runs/000000.names", "runs/000000.lexicon", "runs/000001.postings"] {
        let path = folder.path().join(name);
        let good = fs::read(&path).unwrap();
        let mut bytes = good.clone();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = merge_index(folder.path(), 8 << 20, "", 1, Recode::default(), &Stop::default())
            .unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(current(folder.path()).unwrap().unwrap(), live);
        fs::write(&path, good).unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "no debris is left");
    Generation::open(folder.path()).unwrap();
}

#[test]
fn there_has_to_be_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for path in [folder.path(), &missing] {
        let error =
            merge_index(path, 1 << 20, "", 1, Recode::default(), &Stop::default()).unwrap_err();
        assert!(matches!(error, IndexError::NoIndex { .. }), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn a_merge_that_is_asked_to_end_does_so() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), &collection(7, 200, 60), &[50, 120]);
    let live = current(folder.path()).unwrap().unwrap();
    for threads in [1, 3] {
        let stop = Stop::default();
        stop.set();
        let recode = Recode::default();
        let error = merge_index(folder.path(), 64 << 20, "", threads, recode, &stop).unwrap_err();
        assert!(matches!(error, IndexError::Stopped), "{error}");
        assert_eq!(current(folder.path()).unwrap().unwrap(), live);
        let runs = fs::read_dir(folder.path().join("runs")).unwrap().count();
        assert_eq!(runs, 3 * FileKind::OF_RUN.len(), "what it wrote is removed");
    }
}

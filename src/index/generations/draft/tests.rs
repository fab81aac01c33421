use super::*;
use crate::index::documents::duplicates::SameName;
use crate::index::files::storage::Stop;
use crate::index::generations::folder::current;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::Statistics;
use crate::index::generations::merged::{Merged, Recode, merge_index};
use crate::index::inspect::check::check;
use crate::index::scores::ranks_of;
use crate::index::testing::{Collection, build, collection, write_run};
use proptest::prelude::*;
use std::fs;

pub(crate) fn describe(manifest: &Manifest) -> Description {
    let settings = manifest.settings.clone();
    Description { command: "rebuild".into(), workers: 1, settings, ..Description::default() }
}

/// Publishes a generation of all runs of the live one without some documents of all, by docid.
fn delete(index: &Path, manifest: &Manifest, deleted: &[u32]) -> Manifest {
    let lock = IndexLock::acquire(index).unwrap();
    let from = current(index).unwrap().unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&from, manifest).unwrap();
    for (number, run) in manifest.runs.iter().enumerate() {
        let of_run = deleted.iter().filter_map(|docid| docid.checked_sub(run.first_docid));
        let of_run: Vec<u32> = of_run.filter(|docid| *docid < run.documents).collect();
        // In two steps, for what is deleted already stays so.
        let (some, others) = of_run.split_at(of_run.len() / 2);
        draft.delete(number, some).unwrap();
        draft.delete(number, others).unwrap();
    }
    draft.publish(&lock, describe(manifest), 1 << 20).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn law_what_is_left_is_the_index_of_the_other_documents(
        seed: u64,
        documents in prop_oneof![1..40u32, 300..600u32],
        vocabulary in 1..300u32,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        deleted in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        threads in 1..3u32,
    ) {
        let collection = collection(seed, documents, vocabulary);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(documents as usize + 1)).collect();
        cuts.sort_unstable();
        let deleted: Vec<u32> = deleted.iter().map(|d| d.index(documents as usize) as u32).collect();
        let left: Collection = (0..).zip(&collection)
            .filter(|(docid, _)| !deleted.contains(docid))
            .map(|(_, terms)| terms.clone())
            .collect();
        let index = tempfile::tempdir().unwrap();
        let rest = tempfile::tempdir().unwrap();
        let index = index.path();
        let rest = rest.path();
        let first = build(index, &collection, &cuts);
        let expected = build(rest, &left, &[]);

        let drafted = delete(index, &first, &deleted);
        // Terms and postings are as of the documents that are counted.
        let Statistics { terms, postings, .. } = drafted.statistics;
        let exact = Statistics { terms, postings, ..expected.statistics.clone() };
        prop_assert_eq!(&drafted.statistics, &exact);
        check(index).unwrap();
        let generation = Generation::open(index).unwrap();
        prop_assert_eq!(generation.live_documents() as usize, left.len());
        for docid in 0..documents {
            prop_assert_eq!(generation.is_deleted(docid), deleted.contains(&docid));
            let found = generation.find_name(format!("doc-{docid}").as_bytes()).unwrap();
            prop_assert_eq!(found, (!deleted.contains(&docid)).then_some(docid));
        }
        drop(generation);

        // A merge drops the deleted documents.
        let stop = Stop::default();
        let merged = merge_index(index, 8 << 20, "merge", threads, Recode::default(), &stop);
        let merged = merged.unwrap();
        if let Merged::Runs { manifest, .. } = merged {
            prop_assert_eq!(&manifest.statistics, &expected.statistics);
        } else {
            prop_assert!(deleted.is_empty() && cuts.is_empty());
        }
        check(index).unwrap();
        let files = |index: &Path, kind| {
            let generation = current(index).unwrap().unwrap();
            let manifest = Manifest::read(&generation).unwrap();
            fs::read(manifest.runs[0].path(&generation, kind)).unwrap()
        };
        for kind in [FileKind::Lexicon, FileKind::Postings, FileKind::Lengths] {
            prop_assert!(files(index, kind) == files(rest, kind), "{:?}", kind);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn law_merged_neighbours_are_the_documents_that_they_were(
        seed: u64,
        cuts in prop::collection::vec(0..300usize, 1..5),
        deleted in prop::collection::vec(0..300u32, 0..100),
        ends in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
        ranked: bool,
    ) {
        let collection = collection(seed, 300, 100);
        let left: Vec<u32> = (0..300).filter(|docid| !deleted.contains(docid)).collect();
        let rest: Collection = left.iter().map(|&docid| collection[docid as usize].clone()).collect();
        let index = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let first = build(index.path(), &collection, &cuts);
        let expected = build(other.path(), &rest, &[]);
        let lock = IndexLock::acquire(index.path()).unwrap();
        let from = current(index.path()).unwrap().unwrap();
        let mut draft = Draft::begin(&lock).unwrap();
        draft.link_all(&from, &first).unwrap();
        for (number, run) in first.runs.iter().enumerate() {
            let end = run.first_docid + run.documents;
            let of_run = deleted.iter().filter(|docid| (run.first_docid..end).contains(docid));
            draft.delete(number, &of_run.map(|docid| docid - run.first_docid).collect::<Vec<_>>()).unwrap();
            if ranked {
                let ranks: Vec<f32> = (run.first_docid..end).map(|docid| docid as f32).collect();
                draft.rank(number, &ranks).unwrap();
            }
        }
        let runs = first.runs.len();
        let mut ends = ends.map(|end| end.index(runs));
        ends.sort_unstable();
        let [start, last] = ends;
        let stop = Stop::default();
        let form = first.settings.form().unwrap();
        let merging = Merging { memory_bytes: 8 << 20, threads: 2, form, columns: Vec::new(), record_parts: 0, stop };
        prop_assert!(!draft.merge(start..last + 1, &merging).unwrap());
        draft.merge(runs..runs + 1, &merging).unwrap_err();
        let manifest = draft.publish(&lock, describe(&first), 1 << 20).unwrap();
        drop(lock);
        prop_assert_eq!(manifest.runs.len(), runs - (last - start));
        prop_assert!(manifest.runs[start].deleted.is_none());
        let Statistics { terms, postings, .. } = manifest.statistics;
        let exact = Statistics { terms, postings, ..expected.statistics };
        prop_assert_eq!(&manifest.statistics, &exact);
        check(index.path()).unwrap();
        let generation = Generation::open(index.path()).unwrap();
        let docids = (0..generation.documents().len()).filter(|d| !generation.is_deleted(*d));
        let ranks = ranks_of(generation.path(), &manifest).unwrap();
        prop_assert_eq!(ranks.is_some(), ranked);
        for (docid, expected) in docids.zip(&left) {
            let name = generation.documents().name(docid).unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&name), format!("doc-{expected}"));
            prop_assert!(ranks.as_ref().is_none_or(|ranks| ranks[docid as usize] == *expected as f32));
        }
    }
}

#[test]
fn old_and_new_runs_become_one_generation() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let all = collection(9, 200, 80);
    let old = build(index, &all[..150].to_vec(), &[60]);
    let from = current(index).unwrap().unwrap();
    let lock = IndexLock::acquire(index).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    let first = draft.take_inputs(&from, &old).unwrap();
    assert_eq!(draft.link(&from, &old, 1, first).unwrap(), 0);
    assert_eq!(draft.link(&from, &old, 0, first).unwrap(), 1);
    let (mut run, files) = write_run(draft.folder(), draft.next_run(), 150, &all[150..]);
    run.first_input = draft.add_inputs([InputEntry::default(), InputEntry::default()]).unwrap();
    draft.add((run.clone(), files.clone())).unwrap();
    let error = draft.add((run, files)).unwrap_err();
    assert!(error.to_string().contains("comes where"), "{error}");
    draft.link(&from, &old, 2, first).unwrap_err();
    draft.delete(3, &[0]).unwrap_err();
    let error = draft.delete(0, &[90]).unwrap_err();
    assert!(error.to_string().contains("document 90 of a run of 90"), "{error}");
    draft.delete(0, &[89]).unwrap();
    let manifest = draft.publish(&lock, describe(&old), 1 << 20).unwrap();
    assert!(!from.exists(), "the files stay where they are");
    assert_eq!(manifest.runs.iter().map(|run| run.first_docid).collect::<Vec<_>>(), [0, 90, 150]);
    check(index).unwrap();
    let generation = Generation::open(index).unwrap();
    let name = |docid| String::from_utf8(generation.documents().name(docid).unwrap().to_vec());
    let names = [0, 89, 90, 149, 150, 199].map(|docid| name(docid).unwrap());
    assert_eq!(names, ["doc-60", "doc-149", "doc-0", "doc-59", "doc-150", "doc-199"]);
    assert!(generation.is_deleted(89) && generation.live_documents() == 199);
    assert_eq!(generation.find_name(b"doc-149").unwrap(), None);
}

#[test]
fn runs_of_another_form_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = build(folder.path(), &collection(1, 20, 20), &[]);
    let from = current(folder.path()).unwrap().unwrap();
    let lock = IndexLock::acquire(folder.path()).unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&from, &manifest).unwrap();
    let mut description = describe(&manifest);
    description.settings.codec = "rice".into();
    draft.publish(&lock, description, 1 << 20).unwrap_err();
    assert_eq!(current(folder.path()).unwrap().unwrap(), from);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever comes and goes, what is counted from the change is what counting all finds.
    #[test]
    fn law_a_recount_is_the_count_of_all(
        cut in 0..60usize,
        gone in [prop::collection::vec(0..60u32, 0..30), prop::collection::vec(0..60u32, 0..30)],
        new in [(0..70u32, 0..20usize), (0..70u32, 0..20usize)],
        left_out in [0..5usize, 0..5usize],
        most in 1..4usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut collection = collection(3, 60, 20);
        collection.iter_mut().step_by(7).for_each(|terms| terms.clear());
        let mut before = build(folder.path(), &collection, &[cut]);
        for ((gone, (first, count)), left_out) in gone.iter().zip(new).zip(left_out) {
            let lock = IndexLock::acquire(folder.path()).unwrap();
            let from = current(folder.path()).unwrap().unwrap();
            let mut draft = Draft::begin(&lock).unwrap();
            let inputs = draft.take_inputs(&from, &before).unwrap();
            let runs = before.runs.iter().enumerate();
            // One of them stays at least.
            let left_out = left_out % (before.runs.len() + 1);
            let stays = |number: usize| number != left_out || before.runs.len() == 1;
            for (number, run) in runs.filter(|(number, _)| stays(*number)) {
                let at = draft.link(&from, &before, number, inputs).unwrap();
                let of_run = gone.iter().filter_map(|docid| docid.checked_sub(run.first_docid));
                let of_run: Vec<u32> = of_run.filter(|docid| *docid < run.documents).collect();
                draft.delete(at, &of_run).unwrap();
            }
            // Documents have names by their numbers, of which some are there.
            let new = &collection[..count];
            let (mut run, files) = write_run(draft.folder(), draft.next_run(), first, new);
            run.first_input = draft.add_inputs(vec![InputEntry::default(); 3]).unwrap();
            draft.add((run, files)).unwrap();
            let none = draft.recount(&before, 0).unwrap();
            prop_assert!(count == 0 || none.is_none());
            let counted = draft.recount(&before, 1 << 20).unwrap();
            let all = (draft.empty_documents().unwrap(), draft.duplicates(0..draft.runs().len(), SameName::All).unwrap().count);
            prop_assert_eq!(counted, Some(all));
            let form = before.settings.form().unwrap();
            let merging =
                Merging { memory_bytes: 1 << 20, threads: 1, form, columns: Vec::new(), record_parts: 0, stop: Stop::default() };
            draft.merge_some(0, most, |documents| documents / 5, &merging).unwrap();
            draft.recount_terms(&before, 1 << 20).unwrap();
            prop_assert!(draft.terms.is_some());
            before = draft.publish(&lock, describe(&before), 1 << 20).unwrap();
            prop_assert_eq!((before.statistics.empty_documents, before.statistics.duplicate_names), all);
            // It compares the number of terms too.
            check(folder.path()).unwrap();
        }
    }
}

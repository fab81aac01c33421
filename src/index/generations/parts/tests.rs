use super::*;
use crate::index::files::plain;
use crate::index::generations::generation::Generation;
use crate::index::generations::manifest::held::WhichRuns;
use crate::index::inputs::{InputsFile, InputsWriter};
use crate::index::inspect::check::check;
use crate::index::testing::{collection, write_generation};
use std::fs;

const DOCUMENTS: [u32; 3] = [20, 0, 7];

/// Publishes generation 1 of three parts, of 20, 0 and 7 documents; the folders are those of the
/// index for each process.
fn three(indexes: [&Path; 3]) -> Manifest {
    let lock = IndexLock::acquire(indexes[0]).unwrap();
    let (number, folder) = lock.next_generation().unwrap();
    let begun = BegunGeneration { number, build: 7, keep: Vec::new() };
    begun.make_room(indexes[0]).unwrap();
    let places = [0, 1, 2].map(|process| {
        let place = PartPlace::begin(indexes[process], &begun, process).unwrap();
        let documents = collection(7, DOCUMENTS[process], 30);
        let part = write_generation(place.folder(), number, &documents, &[]);
        (place, part)
    });
    let mut inputs = InputsWriter::create(&folder).unwrap();
    let parts = places.iter().map(|(place, part)| {
        let first = inputs.next();
        inputs.extend(InputsFile::open(place.folder(), part).unwrap().all().unwrap()).unwrap();
        (part.clone(), first)
    });
    let parts: Vec<_> = parts.collect();
    let mut whole = whole_of(indexes[0], &parts, 5).unwrap();
    whole.inputs = inputs.next().into();
    whole.files.push(inputs.finish().unwrap());
    let terms = parts.iter().map(|(part, _)| part.statistics.terms);
    whole.statistics.terms = terms.max().unwrap();
    whole.write(&folder).unwrap();
    let inputs = plain::read(&folder.join(INPUTS)).unwrap();
    for (place, part) in &places {
        let copy = place.needs_copies().then_some(&*inputs);
        place.settle(part, &whole.encode(), copy).unwrap();
    }
    places[0].0.clear().unwrap();
    lock.publish(number, Vec::new()).unwrap();
    places.iter().for_each(|(place, _)| place.clean(&[number]));
    whole
}

fn opened(index: &Path, which: WhichRuns) -> Result<Generation, IndexError> {
    Generation::open_some(&index.join("gen-000001"), which)
}

#[test]
fn one_process_has_all_runs_and_each_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    let manifest = three([index; 3]);
    assert_eq!(manifest.processes(), 3);
    assert!([1, 3, 4].into_iter().all(|n| manifest.is_for(n)) && !manifest.is_for(2));
    let names: Vec<_> = manifest.runs.iter().map(|run| (&*run.name, run.first_docid)).collect();
    assert_eq!(names.first(), Some(&("000005", 0)));
    let all = Generation::open(index).unwrap();
    assert_eq!((all.documents().len(), all.docid_in_whole(26)), (27, 26));
    for (process, documents) in DOCUMENTS.into_iter().enumerate() {
        let own = opened(index, WhichRuns::Of(process)).unwrap();
        assert_eq!((own.documents().len(), own.live_documents()), (documents, documents));
        assert_eq!(own.whole_statistics(), &manifest.statistics);
        for docid in 0..documents {
            let whole = own.docid_in_whole(docid);
            assert_eq!(own.documents().length(docid), all.documents().length(whole));
            assert_eq!(own.own_docids(&(whole..whole + 1)), docid..docid + 1);
        }
    }
    let last = opened(index, WhichRuns::Of(2)).unwrap();
    assert_eq!((last.docid_in_whole(0), last.own_docids(&(0..22))), (20, 0..2));
    let error = Manifest::live_for(index, 2).unwrap_err();
    assert!(matches!(error, IndexError::Processes { holders: 3, processes: 2, .. }), "{error}");
    // Nothing is left of the parts.
    let inside = fs::read_dir(index.join("gen-000001")).unwrap();
    assert_eq!(inside.count(), 2);
}

#[test]
fn a_disk_of_its_own_has_copies_and_own_runs() {
    let folders = [0; 3].map(|_| tempfile::tempdir().unwrap());
    let [first, second, third] = [0, 1, 2].map(|process: usize| folders[process].path());
    // What an earlier build has left there.
    fs::create_dir_all(third.join("gen-000001/parts-1/2")).unwrap();
    fs::create_dir_all(third.join("runs")).unwrap();
    fs::write(third.join("runs/000003.lexicon"), "part").unwrap();
    let manifest = three([first, second, third]);
    for index in [first, second, third] {
        assert_eq!(Manifest::read(&index.join("gen-000001")).unwrap(), manifest);
        assert!(!index.join("runs/000003.lexicon").exists());
    }
    assert!(!third.join(CURRENT).exists());
    assert_eq!(opened(third, WhichRuns::Of(2)).unwrap().documents().len(), 7);
    // Names of runs on other disks are not given again.
    let begun = BegunGeneration { number: 2, build: 8, keep: vec![1] };
    let place = PartPlace::begin(third, &begun, 2).unwrap();
    assert_eq!(place.next_run().unwrap(), 8);
    place.abandon();
    let error = Generation::open(first).unwrap_err();
    assert!(matches!(error, IndexError::Elsewhere { process: 1, .. }), "{error}");
    let here = opened(first, WhichRuns::Here).unwrap();
    assert_eq!((here.documents().len(), here.whole_statistics().documents), (20, 27));
    assert_eq!(check(first).unwrap_err().len(), 2, "what is elsewhere is told once");
    assert!(matches!(opened(first, WhichRuns::Of(2)), Err(error) if error.is_not_found()));
}

#[test]
fn an_index_that_is_live_on_another_disk_stays() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path();
    crate::index::testing::build(index, &collection(1, 3, 3), &[]);
    let begun = BegunGeneration { number: 2, build: 7, keep: Vec::new() };
    let error = PartPlace::begin(index, &begun, 1).unwrap_err().to_string();
    assert!(error.contains("an index is live here"), "{error}");
    assert_eq!(Generation::open(index).unwrap().documents().len(), 3);
}

#[test]
fn there_are_not_more_documents_than_docids() {
    let folder = tempfile::tempdir().unwrap();
    let part = |documents| {
        let run = RunEntry { name: run_name(0), documents, ..RunEntry::default() };
        (Manifest { runs: vec![run], ..Manifest::default() }, 0)
    };
    let whole = |parts: &[u32]| {
        let parts: Vec<_> = parts.iter().map(|documents| part(*documents)).collect();
        whole_of(folder.path(), &parts, 0).map(|whole| whole.runs.len())
    };
    assert_eq!(whole(&[u32::MAX - 1, 0]).unwrap(), 2);
    whole(&[u32::MAX - 1, 1]).unwrap_err();
}

//! Indexes for the tests of this folder: small collections from a seed, written run by run with the
//! writers themselves.

use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location};
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileKind, MANIFEST};
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::manifest::{Manifest, RunEntry, Settings};
use crate::index::generations::run_files::next_run;
use crate::index::inputs::InputEntry;
use crate::index::list::{Form, ListEncoder};
use crate::index::run::{ListChunks, NewRun, RunWriter, WrittenRun};
use crate::index::scores::write_scores;
use crate::score::bounds::code_below;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use std::collections::BTreeMap;
use std::path::Path;

type Lists<'a> = BTreeMap<(u16, &'a [u8]), Vec<(u32, u32)>>;

/// Documents that lie in one input.
const DOCUMENTS_OF_INPUT: u32 = 50;

pub(crate) type Collection = Vec<BTreeMap<String, u32>>;

/// Xorshift.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (((self.0 >> 32) * u64::from(end)) >> 32) as u32
    }
}

/// A few terms are in most documents and most terms are in few.
pub(crate) fn collection(seed: u64, documents: u32, vocabulary: u32) -> Collection {
    let mut noise = Noise::new(seed);
    let mut document = || {
        let mut terms = BTreeMap::new();
        for _ in 0..noise.below(12) {
            let spread = noise.below(vocabulary) + 1;
            let number = noise.below(spread);
            let tf = if noise.below(50) == 0 { noise.below(100_000) } else { noise.below(4) };
            *terms.entry(term(number)).or_insert(0) += tf + 1;
        }
        terms
    };
    (0..documents).map(|_| document()).collect()
}

/// Term `number`; all kinds of trie collection take part.
pub(crate) fn term(number: u32) -> String {
    match number % 6 {
        0 => format!("{number}"),
        1 => format!("abc{number}"),
        2 => format!("é{number}"),
        3 => format!("q{number}"),
        4 => format!("{}{number}", "longer".repeat(1 + number as usize % 30)),
        _ => format!("abd{}", "z".repeat(number as usize % 40)),
    }
}

/// A list: its term, its postings and its bytes.
pub(crate) type TestList<'a> = ((u16, &'a [u8]), u32, Vec<u8>);

/// Writes the lists of a run of this many documents, one after the other.
pub(crate) fn write_lists<'a>(
    run: NewRun<'_>,
    documents: u32,
    lists: impl IntoIterator<Item = TestList<'a>>,
) -> WrittenRun {
    let NewRun { form, folder, .. } = run;
    let mut run = RunWriter::create(run, vec![0]).unwrap();
    let mut chunks = ListChunks::new(form, folder, 1 << 10, |chunk| run.put(chunk));
    let mut payload = Vec::new();
    for (term, df, list) in lists {
        payload.extend_from_slice(&list);
        chunks.end(term, df, list.len() as u64, &mut payload).unwrap();
    }
    chunks.finish(&mut payload).unwrap();
    run.finish(0, documents).unwrap()
}

/// Writes a run over `documents`, the first of which has docid `first_docid`, with its documents.
pub(crate) fn write_run(
    generation: &Path,
    number: u32,
    first_docid: u32,
    documents: &[BTreeMap<String, u32>],
) -> (RunEntry, Vec<FileEntry>) {
    let mut lists = Lists::new();
    for (docid, terms) in (0..).zip(documents) {
        for (term, tf) in terms {
            let collection = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
            lists.entry((collection, suffix)).or_default().push((docid, *tf));
        }
    }
    let mut encoder = ListEncoder::new();
    let lists = lists.into_iter().map(|(term, list)| {
        for (docid, tf) in list {
            let length = documents[docid as usize].values().sum();
            encoder.push(docid, tf, code_below(length));
        }
        let (df, _) = encoder.finish();
        (term, df, std::mem::take(encoder.payload()))
    });
    let run = NewRun::alone(generation, number, Form::BP128);
    let (mut run, mut files) = write_lists(run, documents.len() as u32, lists);
    run.first_docid = first_docid;
    let documents = write_documents(generation, number, first_docid, documents);
    documents.complete(generation, &mut run, &mut files).unwrap();
    (run, files)
}

/// Writes runs that end before the documents `cuts`, which rise, and behind the last document.
pub(crate) fn write_runs(
    generation: &Path,
    collection: &[BTreeMap<String, u32>],
    cuts: &[usize],
) -> (Vec<RunEntry>, Vec<FileEntry>) {
    let mut runs = Vec::new();
    let mut files = Vec::new();
    let mut start = 0;
    let first = next_run(generation).unwrap();
    for (number, end) in (first..).zip(cuts.iter().copied().chain([collection.len()])) {
        let (run, more) = write_run(generation, number, start as u32, &collection[start..end]);
        runs.push(run);
        files.extend(more);
        start = end;
    }
    (runs, files)
}

/// Publishes a generation of `collection` in runs as [`write_runs`] does.
pub(crate) fn build(index: &Path, collection: &Collection, cuts: &[usize]) -> Manifest {
    let lock = IndexLock::acquire(index).unwrap();
    lock.remove_debris().unwrap();
    let (number, generation) = lock.next_generation().unwrap();
    let manifest = write_generation(&generation, number, collection, cuts);
    lock.publish(number, Vec::new()).unwrap();
    manifest
}

/// Writes the documents of a run; an input has 50 of them.
pub(crate) fn write_documents(
    generation: &Path,
    number: u32,
    first_docid: u32,
    collection: &[BTreeMap<String, u32>],
) -> DocumentsEntry {
    let first_input = 1 + first_docid / DOCUMENTS_OF_INPUT;
    let mut documents = DocumentsWriter::create(generation, number, first_input).unwrap();
    for (docid, terms) in (first_docid..).zip(collection) {
        let input = 1 + docid / DOCUMENTS_OF_INPUT;
        let location = Location { offset: u64::from(docid) * 10, bytes: 10, input };
        let name = format!("doc-{docid}");
        let length = terms.values().sum();
        let hash = u64::from(docid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        documents.push(&name, length, location, hash).unwrap();
    }
    documents.finish().unwrap()
}

pub(crate) fn write_generation(
    generation: &Path,
    number: u32,
    collection: &Collection,
    cuts: &[usize],
) -> Manifest {
    let next_run = next_run(generation).unwrap();
    let mut draft = Draft::at(number, generation.to_path_buf(), next_run).unwrap();
    let input =
        |i: u32| InputEntry { path: format!("input-{i}.jsonl").into(), ..InputEntry::default() };
    let inputs = (0..2 + collection.len() as u32 / DOCUMENTS_OF_INPUT).map(input);
    draft.add_inputs(inputs).unwrap();
    let (runs, mut files) = write_runs(generation, collection, cuts);
    for run in runs {
        draft.add((run, std::mem::take(&mut files))).unwrap();
    }
    let settings = Settings {
        stemmer: "none".into(),
        codec: "bp128".into(),
        block_size: 128,
        ..Settings::default()
    };
    let empty = collection.iter().filter(|terms| terms.is_empty()).count();
    let statistics = draft.statistics(empty as u64, 0);
    let description = Description { settings, ..Description::default() };
    draft.finish(description, statistics, 1 << 20).unwrap().manifest
}

/// Gives the live generation PageRanks, by docid.
pub(crate) fn rank(index: &Path, ranks: &[f32]) -> Manifest {
    let folder = current(index).unwrap().unwrap();
    let mut manifest = Manifest::read(&folder).unwrap();
    for run in &manifest.runs {
        let of_run = &ranks[run.first_docid as usize..][..run.documents as usize];
        manifest
            .files
            .push(write_scores(&folder, &run.file(FileKind::Scores), of_run, None).unwrap());
    }
    manifest.files.sort_by(|a, b| a.name.cmp(&b.name));
    std::fs::remove_file(folder.join(MANIFEST)).unwrap();
    manifest.write(&folder).unwrap();
    manifest
}

/// Publishes a generation of `collection` without the documents `gone`, and with PageRanks if there
/// are any.
pub(crate) fn with_deletions(
    index: &Path,
    all: &Collection,
    cuts: &[usize],
    gone: &[u32],
    ranks: &[f32],
) {
    let mut manifest = build(index, all, cuts);
    if !ranks.is_empty() {
        manifest = rank(index, ranks);
    }
    let lock = IndexLock::acquire(index).unwrap();
    let from = current(index).unwrap().unwrap();
    let mut draft = Draft::begin(&lock).unwrap();
    draft.link_all(&from, &manifest).unwrap();
    for (number, run) in manifest.runs.iter().enumerate() {
        let of_run = gone.iter().filter_map(|docid| docid.checked_sub(run.first_docid));
        let of_run: Vec<u32> = of_run.filter(|docid| *docid < run.documents).collect();
        draft.delete(number, &of_run).unwrap();
    }
    let settings = manifest.settings.clone();
    let description = Description { settings, ..Description::default() };
    draft.publish(&lock, description, 1 << 20).unwrap();
}

//! The index that targets search and damage: a few hundred documents of common and rare words, in
//! two runs, written with the writers themselves.

use millrace::index::documents::{DocumentsWriter, Location};
use millrace::index::error::IndexError;
use millrace::index::files::storage::FileEntry;
use millrace::index::generations::draft::{Description, Draft};
use millrace::index::generations::folder::IndexLock;
use millrace::index::generations::manifest::{Manifest, RunEntry, Settings};
use millrace::index::inputs::InputEntry;
use millrace::index::list::{Form, ListEncoder};
use millrace::index::run::{ListChunks, NewRun, RunWriter};
use millrace::score::bounds::code_below;
use millrace::text::analysis::Analysis;
use millrace::text::trie_collection::{implied_prefix_len, trie_collection};
use std::collections::BTreeMap;
use std::path::Path;

/// The terms of each document, with their frequencies.
pub(crate) type Collection = Vec<BTreeMap<String, u32>>;

/// Words of most kinds of trie collection.
const WORDS: [&str; 24] = [
    "water", "mill", "race", "river", "stone", "stones", "wheel", "grinding", "a1b", "42", "007",
    "x", "zz", "abc", "abd", "abdicate", "éclair", "naïve", "北京", "qu", "wheat", "wheats",
    "grain", "flour",
];

/// How the terms of the sample were made.
pub(crate) fn analysis() -> Analysis {
    Analysis::default()
}

/// The text of document `docid`. Word i is in about one of i + 1 documents; every document has a
/// word that few others have; some have no word at all.
fn text(docid: u32) -> String {
    let mut text = String::new();
    if docid % 50 == 49 {
        return text;
    }
    for (i, word) in (0u32..).zip(WORDS) {
        let mixed = docid.wrapping_add(1).wrapping_mul(0x9e37_79b1).rotate_left(i + 5);
        if mixed.is_multiple_of(i + 1) {
            for _ in 0..=(mixed >> 8) % 3 {
                text.push_str(word);
                text.push(' ');
            }
        }
    }
    text + &format!("rare{}", docid / 3)
}

/// Makes the collection.
pub(crate) fn collection(documents: u32) -> Collection {
    let analysis = analysis();
    let document = |docid| {
        let mut terms = BTreeMap::new();
        analysis.terms(text(docid).as_bytes(), |term| {
            *terms.entry(term.to_owned()).or_insert(0) += 1;
        });
        terms
    };
    (0..documents).map(document).collect()
}

/// Docids and term frequencies.
type Postings = Vec<(u32, u32)>;

fn write_run(
    generation: &Path,
    number: u32,
    first_docid: usize,
    documents: &[BTreeMap<String, u32>],
) -> Result<(RunEntry, Vec<FileEntry>), IndexError> {
    let mut lists: BTreeMap<(u16, &[u8]), Postings> = BTreeMap::new();
    for (docid, terms) in (0..).zip(documents) {
        for (term, tf) in terms {
            let collection = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(collection)..];
            lists.entry((collection, suffix)).or_default().push((docid, *tf));
        }
    }
    let run = NewRun::alone(generation, number, Form::BP128);
    let mut writer = RunWriter::create(run, vec![0])?;
    let mut chunks = ListChunks::new(Form::BP128, generation, 1 << 10, |chunk| writer.put(chunk));
    let mut encoder = ListEncoder::new();
    for ((collection, suffix), list) in lists {
        for (docid, tf) in list {
            let length = documents[docid as usize].values().sum();
            encoder.push(docid, tf, code_below(length));
        }
        let (df, bytes) = encoder.finish();
        chunks.end((collection, suffix), df, bytes, encoder.payload())?;
    }
    chunks.finish(encoder.payload())?;
    let (mut run, mut files) = writer.finish(first_docid as u32, documents.len() as u32)?;
    let mut table = DocumentsWriter::create(generation, number, 0)?;
    for (docid, terms) in (first_docid..).zip(documents) {
        let location = Location { offset: docid as u64 * 100, bytes: 99, input: 0 };
        let name = format!("document-{docid}");
        table.push(&name, terms.values().sum(), location, docid as u64)?;
    }
    table.finish()?.complete(generation, &mut run, &mut files)?;
    Ok((run, files))
}

/// Writes and publishes `collection` in runs that end before the documents `cuts`, which rise, and
/// behind the last document.
pub(crate) fn build(
    index: &Path,
    collection: &Collection,
    cuts: &[usize],
) -> Result<Manifest, IndexError> {
    let lock = IndexLock::acquire(index)?;
    let (number, generation) = lock.next_generation()?;
    let mut draft = Draft::at(number, generation.clone(), 0)?;
    draft.add_inputs([InputEntry { path: "input.jsonl".into(), ..InputEntry::default() }])?;
    let mut start = 0;
    for (run, end) in (0..).zip(cuts.iter().copied().chain([collection.len()])) {
        draft.add(write_run(&generation, run, start, &collection[start..end])?)?;
        start = end;
    }
    let settings = Settings::of(&analysis(), Form::BP128);
    let empty = collection.iter().filter(|terms| terms.is_empty()).count();
    let statistics = draft.statistics(empty as u64, 0);
    let description = Description { settings, ..Description::default() };
    let manifest = draft.finish(description, statistics, 1 << 20)?.manifest;
    lock.publish(number, Vec::new())?;
    Ok(manifest)
}

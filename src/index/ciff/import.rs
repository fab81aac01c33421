//! Imports an index of another search engine. Its file is read twice: first terms, names and
//! lengths, which are sorted into our order; then list after list.
//!
//! Docids, lengths and term frequencies stay, and so do the scores of BM25 by the same formula.

use super::read::{CiffReader, CiffValue};
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location};
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::format::IMPORTED;
use crate::index::generations::draft::{Description, Draft};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::manifest::{Manifest, Settings};
use crate::index::inputs::InputEntry;
use crate::index::list::ListEncoder;
use crate::index::run::{CHUNK_BYTES, LaidChunk, ListChunks, NewRun, RunWriter, WrittenRun};
use crate::score::bounds::code_below;
use crate::text::analysis::MAX_TERM_BYTES;
use crate::text::trie_collection::{implied_prefix_len, trie_collection};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;
use twox_hash::XxHash3_64;

/// What the file does not say.
#[derive(Clone, Debug)]
pub struct Import {
    pub command: String,
    pub settings: Settings,
    /// The file, with its path, length and hash.
    pub input: InputEntry,
    /// Generations that stay beside the new one.
    pub keep: usize,
    /// About the memory for counting terms and names.
    pub memory_bytes: u64,
}

struct CiffTerm {
    collection: u16,
    term: Box<str>,
    at: u64,
}

/// Makes the index in a `file`, which came from `path`, the next generation of the index in the
/// folder `index`; `progress` counts lists.
///
/// Memory: the terms and some bytes for each, 4 bytes for each document, and what publishing takes.
///
/// # Errors
/// `Damaged`, with the place, if the file is not CIFF of version 1, or contradicts itself;
/// `Refused` if the settings have no form of lists; as [`IndexLock::acquire`] and
/// [`Draft::publish`]. The live generation stays then, and nothing else.
pub fn import(
    path: &Path,
    file: File,
    index: &Path,
    what: Import,
    progress: &Stop,
) -> Result<Manifest, IndexError> {
    let Import { command, settings, input, keep, memory_bytes } = what;
    let bytes = file.metadata().map_err(IndexError::storage("look at", path))?.len();
    let mut reader = CiffReader::new(path, BufReader::with_capacity(1 << 18, file), bytes);
    // What is no CIFF leaves no trace.
    let header = header(&mut reader)?;
    let lock = IndexLock::acquire(index)?.keeping(keep);
    lock.remove_debris()?;
    let make = || {
        let form = settings.form().ok_or_else(|| {
            IndexError::refused(lock.index(), "lists cannot be coded as the settings say")
        })?;
        let mut draft = Draft::begin(&lock)?;
        let run = NewRun::alone(draft.folder(), draft.next_run(), form);
        let ((mut entry, mut files), documents) = write(&mut reader, &header, run, progress)?;
        documents.complete(draft.folder(), &mut entry, &mut files)?;
        draft.add_inputs([input])?;
        draft.add((entry, files))?;
        let workers = 1;
        let skipped = Default::default();
        let settings = Settings { indexer: IMPORTED.into(), ..settings };
        let description = Description { command, workers, settings, skipped, is_commit: false };
        draft.publish(&lock, description, memory_bytes)
    };
    let made = make();
    if made.is_err() {
        _ = lock.remove_debris();
    }
    made
}

fn write<R: BufRead + Seek>(
    reader: &mut CiffReader<R>,
    header: &CiffHeader,
    run: NewRun<'_>,
    progress: &Stop,
) -> Result<(WrittenRun, DocumentsEntry), IndexError> {
    let NewRun { folder, number, form, .. } = run;
    let mut places = (0..header.lists).map(|_| place(reader)).collect::<Result<Vec<_>, _>>()?;
    let mut documents = DocumentsWriter::create(folder, number, 0)?;
    let mut lengths = Vec::new();
    for docid in 0..header.documents {
        lengths.push(document(reader, docid, &mut documents)?);
    }
    if !reader.is_at_end() {
        let expected = format!("the end of the file after {} documents", header.documents);
        return Err(reader.wrong(reader.at(), expected, "more bytes"));
    }
    places.sort_unstable_by(|a, b| (a.collection, &a.term).cmp(&(b.collection, &b.term)));
    if let Some([a, b, ..]) = places.windows(2).find(|pair| pair[0].term == pair[1].term) {
        let first = a.at.min(b.at);
        let second = a.at.max(b.at);
        let found = format!("`{}`, as at byte {first}", a.term);
        return Err(reader.wrong(second, "a list of another term", found));
    }
    let mut run = RunWriter::create(run, vec![0])?;
    let mut chunks = ListChunks::new(form, folder, CHUNK_BYTES, |chunk| run.put(chunk));
    let mut encoder = ListEncoder::of_form(form);
    progress.expect(places.len() as u64);
    for place in &places {
        list(reader, place, &lengths, &mut chunks, &mut encoder)?;
        progress.pass(1);
    }
    chunks.finish(encoder.payload())?;
    Ok((run.finish(0, header.documents)?, documents.finish()?))
}

struct CiffHeader {
    lists: u32,
    documents: u32,
}

fn header<R: BufRead + Seek>(reader: &mut CiffReader<R>) -> Result<CiffHeader, IndexError> {
    let end = reader.message("the header of a CIFF file")?;
    let mut version = 0;
    let mut lists = 0;
    let mut documents = 0;
    loop {
        let at = reader.at();
        let Some(field) = reader.field(end)? else { break };
        match field {
            (1, CiffValue::Number(number)) => version = number,
            (2, CiffValue::Number(number)) => lists = reader.count(at, "postings lists", number)?,
            (3, CiffValue::Number(number)) => documents = reader.count(at, "documents", number)?,
            (_, CiffValue::Bytes(bytes)) => reader.skip(bytes, end)?,
            _ => {}
        }
    }
    if version != 1 {
        return Err(reader.wrong(0, "a CIFF file of version 1", format!("version {version}")));
    }
    Ok(CiffHeader { lists, documents })
}

/// Skips a list except for its term.
fn place<R: BufRead + Seek>(reader: &mut CiffReader<R>) -> Result<CiffTerm, IndexError> {
    let at = reader.at();
    let end = reader.message("a postings list")?;
    let mut term = None;
    while let Some((number, value)) = reader.field(end)? {
        match value {
            CiffValue::Bytes(bytes) if number == 1 => {
                term = Some(reader.text(bytes)?);
                // All writers put the term first, and there are as many postings as documents.
                break;
            }
            CiffValue::Bytes(bytes) => reader.skip(bytes, end)?,
            _ => {}
        }
    }
    let term = term.unwrap_or_default();
    if !(1..=MAX_TERM_BYTES).contains(&term.len()) {
        let expected = format!("a list with a term of 1 to {MAX_TERM_BYTES} bytes");
        return Err(reader.wrong(at, expected, format!("{} bytes", term.len())));
    }
    reader.go_to(end)?;
    Ok(CiffTerm { collection: trie_collection(&term), term: term.into(), at })
}

/// Copies a document; returns its length.
fn document<R: BufRead + Seek>(
    reader: &mut CiffReader<R>,
    docid: u32,
    documents: &mut DocumentsWriter,
) -> Result<u32, IndexError> {
    let at = reader.at();
    let end = reader.message("a document")?;
    let mut found = 0;
    let mut name = String::new();
    let mut length = 0;
    loop {
        let at = reader.at();
        let Some(field) = reader.field(end)? else { break };
        match field {
            (1, CiffValue::Number(number)) => found = number,
            (2, CiffValue::Bytes(bytes)) => name = reader.text(bytes)?,
            (3, CiffValue::Number(number)) => length = reader.count(at, "tokens", number)?,
            (_, CiffValue::Bytes(bytes)) => reader.skip(bytes, end)?,
            _ => {}
        }
    }
    if found != u64::from(docid) {
        return Err(reader.wrong(at, format!("document {docid}"), format!("document {found}")));
    }
    let bytes = u32::try_from(end - at).unwrap_or(u32::MAX);
    let location = Location { offset: at, bytes, input: 0 };
    documents.push(&name, length, location, XxHash3_64::oneshot(name.as_bytes()))?;
    Ok(length)
}

fn list<R: BufRead + Seek, G: FnMut(LaidChunk) -> Result<(), IndexError>>(
    reader: &mut CiffReader<R>,
    place: &CiffTerm,
    lengths: &[u32],
    chunks: &mut ListChunks<'_, G>,
    encoder: &mut ListEncoder,
) -> Result<(), IndexError> {
    reader.go_to(place.at)?;
    let end = reader.message("a postings list")?;
    let mut df = 0;
    let mut cf = 0;
    let mut docid = 0u64;
    let mut tokens = 0u64;
    loop {
        let at = reader.at();
        let Some(field) = reader.field(end)? else { break };
        match field {
            (2, CiffValue::Number(number)) => df = number,
            (3, CiffValue::Number(number)) => cf = number,
            (4, CiffValue::Bytes(bytes)) => {
                let (gap, tf) = posting(reader, bytes)?;
                if gap == 0 && encoder.df() > 0 {
                    return Err(reader.wrong(
                        at,
                        "a document after the one before",
                        "the same again",
                    ));
                }
                docid = docid.saturating_add(gap);
                let length = usize::try_from(docid).ok().and_then(|docid| lengths.get(docid));
                let Some(&length) = length else {
                    let expected = format!("a document before {}", lengths.len());
                    return Err(reader.wrong(at, expected, docid));
                };
                let tf = reader.count(at, "a term frequency", tf)?;
                if tf == 0 {
                    return Err(reader.wrong(at, "a term frequency of 1 or more", tf));
                }
                tokens += u64::from(tf);
                encoder.push(docid as u32, tf, code_below(length));
                chunks.go_on(place.collection, encoder.payload())?;
            }
            (_, CiffValue::Bytes(bytes)) => reader.skip(bytes, end)?,
            _ => {}
        }
    }
    if (df, cf) != (u64::from(encoder.df()), tokens) || df == 0 {
        let found = format!("{} and {tokens}", encoder.df());
        let expected = format!("{df} postings of `{}` with {cf} tokens", place.term);
        return Err(reader.wrong(place.at, expected, found));
    }
    let (df, bytes) = encoder.finish();
    let suffix = &place.term.as_bytes()[implied_prefix_len(place.collection)..];
    chunks.end((place.collection, suffix), df, bytes, encoder.payload())
}

/// Reads a posting of this many bytes: the gap to the docid before, and the term frequency.
fn posting<R: BufRead + Seek>(
    reader: &mut CiffReader<R>,
    bytes: u64,
) -> Result<(u64, u64), IndexError> {
    let end = reader.at() + bytes;
    let mut gap = 0;
    let mut tf = 0;
    while let Some((number, value)) = reader.field(end)? {
        match (number, value) {
            (1, CiffValue::Number(number)) => gap = number,
            (2, CiffValue::Number(number)) => tf = number,
            (_, CiffValue::Bytes(bytes)) => reader.skip(bytes, end)?,
            _ => {}
        }
    }
    Ok((gap, tf))
}

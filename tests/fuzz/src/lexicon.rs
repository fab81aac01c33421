//! Any lexicon is either the one that the writer writes for its terms, or an error, and looking up
//! ends.

use crate::fuzzing::damage::{edit, edit_header};
use crate::fuzzing::take::Take;
use millrace::index::error::IndexError;
use millrace::index::files::pages::seal;
use millrace::index::format::{DIRECTORY_ENTRIES, HEADER_BYTES, list_start, padding};
use millrace::index::lexicon::{
    BlockStart, CodedTerms, Lexicon, LexiconStream, LexiconWriter, TermCoder, TermEntry,
};
use millrace::index::list::Form;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(crate::fuzzing::folder);

type Terms = Vec<(u16, Vec<u8>, TermEntry)>;

fn write(name: &str, terms: &Terms, positions: bool) -> Result<(), IndexError> {
    // Writers refuse to replace a file.
    let _ = std::fs::remove_file(FOLDER.join(name));
    let mut writer = LexiconWriter::create(&FOLDER, name, Form::BP128.with_positions(positions))?;
    let (mut coder, mut end) = (TermCoder::default(), 0);
    for (collection, suffix, entry) in terms {
        let TermEntry { df, offset, bytes, position_bytes, positions: at } = entry;
        let begins = [BlockStart { terms: 0, lists: 0, positions: 0 }];
        let blocks = if coder.begins_block(*collection) { &begins[..] } else { &[] };
        let mut coded = Vec::new();
        let own = positions.then_some(*position_bytes);
        let laid = coder.code(*collection, suffix, *df, *bytes, own, &mut coded);
        laid.map_err(|reason| IndexError::refused(&FOLDER, reason))?;
        let (collection, postings) = (*collection, u64::from(*df));
        let term = CodedTerms { collection, terms: 1, postings, bytes: &coded, blocks };
        writer.coded_terms(&term, end, offset + bytes, *at)?;
        end = offset + bytes;
    }
    writer.finish().map(drop)
}

/// Terms of a few collections, many of which share what they begin with.
fn terms(take: &mut Take<'_>, positions: bool) -> Terms {
    let mut terms = BTreeMap::new();
    let (mut collection, mut suffix) = (0u16, Vec::new());
    for _ in 0..take.u8() % 100 {
        let step = take.u8();
        if step & 3 == 0 {
            collection = (collection + u16::from(step) * 70) % (DIRECTORY_ENTRIES as u16 - 1);
        }
        suffix.truncate(usize::from(step >> 4));
        let count = usize::from(step & 7);
        suffix.extend_from_slice(take.bytes(count));
        let (df, bytes) = (u32::from(take.u8()) + 1, u64::from(take.u8()));
        terms.insert((collection, suffix.clone()), (df, bytes));
    }
    let (mut offset, mut at) = (0, 0);
    let with_offset = |((collection, suffix), (df, bytes))| {
        offset = list_start(offset, df, 128).expect("lists are short");
        let position_bytes = if positions { bytes / 2 } else { 0 };
        let entry = TermEntry { df, offset, bytes, positions: at, position_bytes };
        offset += bytes;
        at += position_bytes;
        (collection, suffix, entry)
    };
    terms.into_iter().map(with_offset).collect()
}

fn stream(path: &Path, window: usize) -> Result<Terms, IndexError> {
    let mut stream = LexiconStream::open(path, window)?;
    let mut terms = Terms::new();
    while stream.advance()? {
        let term = stream.term();
        terms.push((term.collection, term.suffix.to_vec(), term.list));
    }
    Ok(terms)
}

/// Edits one of the four parts of a lexicon: header, terms, block index, directory.
fn damage(bytes: &mut Vec<u8>, header: [usize; 2], take: &mut Take<'_>) {
    let which = take.u8();
    let [index, directory] = header.map(|at| at.min(bytes.len()));
    let (start, end) = match which & 3 {
        0 => {
            edit_header(bytes, take);
            (0, 0)
        }
        1 => (HEADER_BYTES.min(index), index),
        2 => (index, directory),
        _ => {
            // Most of a directory that has all collections is the same number.
            let entries = DIRECTORY_ENTRIES.min((bytes.len() - directory) / 4).max(1);
            let at = directory + 4 * (take.u16() as usize % entries);
            (at.min(bytes.len()), (at + 16).min(bytes.len()))
        }
    };
    let mut part = bytes[start..end].to_vec();
    if start < end {
        edit(&mut part, take);
    }
    if which & 4 == 0 {
        // Else every later part moves.
        part.resize(end - start, 0);
    }
    bytes.splice(start..end, part);
    if which & 0x80 == 0 {
        seal(Path::new("lexicon"), bytes);
    }
}

/// What is asked of an input.
pub fn lexicon(data: &[u8]) {
    let mut take = Take(data);
    let positions = take.u8() & 1 == 1;
    let written = terms(&mut take, positions);
    write("a.lexicon", &written, positions).expect("the terms rise");
    let path = FOLDER.join("a.lexicon");
    assert_eq!(stream(&path, 300).ok().as_ref(), Some(&written));
    let mut bytes = std::fs::read(&path).expect("it was written");
    let number = |at: usize| {
        bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk)) as usize
    };
    let (blocks, block_bytes) = (number(24), number(32));
    let index = HEADER_BYTES + block_bytes + padding(block_bytes as u64) as usize;
    let parts = [index, index + if positions { 24 } else { 16 } * blocks];
    while !take.is_empty() {
        damage(&mut bytes, parts, &mut take);
    }
    std::fs::write(&path, &bytes).expect("the folder can be written");

    let streamed = stream(&path, 300);
    let lexicon = match Lexicon::open_unverified(&path) {
        Ok(lexicon) => lexicon,
        Err(error) => {
            assert!(!error.to_string().is_empty() && streamed.is_err());
            return;
        }
    };
    for (collection, suffix, _) in &written {
        for collection in [*collection, collection.wrapping_add(1)] {
            if let Err(error) = lexicon.find(collection, suffix) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    if let Ok(terms) = streamed {
        for (collection, suffix, entry) in &terms {
            assert_eq!(lexicon.find(*collection, suffix).ok().flatten(), Some(*entry));
        }
        // The padding is left to `check`.
        let positions = lexicon.header().positions;
        write("b.lexicon", &terms, positions).expect("what is streamed can be written");
        let mut again = std::fs::read(FOLDER.join("b.lexicon")).expect("it was written");
        let zeros = index_of_padding(&again);
        again.splice(zeros.clone(), bytes[zeros].iter().copied());
        let end = again.len() - 4..again.len();
        again.splice(end.clone(), bytes[end].iter().copied());
        assert!(again == bytes, "one form alone is accepted");
    }
}

fn index_of_padding(bytes: &[u8]) -> std::ops::Range<usize> {
    let block_bytes = bytes[32..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk));
    let start = HEADER_BYTES + block_bytes as usize;
    start..start + padding(block_bytes) as usize
}

//! Exports an index to other search engines as CIFF, the Common Index File Format (Lin and others,
//! SIGIR 2020), version 1, which PISA, Terrier, OldDog and others read; `import` reads it.
//!
//! The file is a row of protobuf messages, each behind its length as a varint: a header, a postings
//! list for each term, and a record for each document.
//!
//! ```text
//! Header        1 version  2 postings lists  3 documents  4 lists of the whole
//!               5 documents of the whole  6 tokens of the whole
//!               7 mean document length (double)  8 description
//! PostingsList  1 term  2 df  3 cf  4 postings, each { 1 gap to the docid before, 2 tf }
//! DocRecord     1 docid  2 name  3 tokens
//! ```
//!
//! Lists are in the order of their terms' bytes, as Lucene's; the first gap is the docid itself.

pub(crate) mod import;
mod read;
#[cfg(test)]
mod tests;

pub use import::{Import, import};

use crate::codec::vbyte;
use crate::index::error::IndexError;
use crate::index::files::storage::Stop;
use crate::index::generations::generation::Generation;
use crate::index::inspect::browse::{TermLists, for_each_term};
use crate::text::fields::split;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, Write};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    pub terms: u64,
    pub documents: u32,
}

/// This program, and how texts became terms.
pub fn description(generation: &Generation) -> String {
    let settings = &generation.manifest().settings;
    format!(
        "millrace {}, tokenizer {}{}, stemmer {}, stop words {}",
        env!("CARGO_PKG_VERSION"),
        settings.tokenizer.as_deref().unwrap_or("words"),
        if settings.fold { ", folded" } else { "" },
        settings.stemmer,
        settings.stop_words.name
    )
}

/// Writes a generation as CIFF to a file that gets its name whole; it may end in `.gz` or `.zst`.
pub fn export_file(
    generation: &Generation,
    description: &str,
    path: &Path,
    progress: &Stop,
) -> io::Result<Exported> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".millrace-export-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let exported = match &*ending {
        "gz" => {
            let mut packed = GzEncoder::new(&mut out, Compression::default());
            let exported = export(generation, description, &mut packed, progress)?;
            packed.finish()?;
            exported
        }
        #[cfg(feature = "formats")]
        "zst" | "zstd" => {
            let mut packed = zstd::Encoder::new(&mut out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            let exported = export(generation, description, &mut packed, progress)?;
            packed.finish()?;
            exported
        }
        #[cfg(not(feature = "formats"))]
        "zst" | "zstd" => {
            return Err(IndexError::refused(path, "zstd needs the feature `formats`").into());
        }
        "bz2" | "xz" => {
            return Err(IndexError::refused(path, "CIFF is compressed as .gz or .zst").into());
        }
        _ => export(generation, description, &mut out, progress)?,
    };
    let file = out.into_inner().map_err(|error| error.into_error())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(exported)
}

/// Writes a generation as CIFF; `progress` counts lists. Every list is read twice, since its length
/// stands before it. Deleted documents are left out, and the others numbered as a merge does.
///
/// Memory: the terms of the index and some bytes for each, since they are sorted, and 4 bytes a
/// document.
pub fn export(
    generation: &Generation,
    description: &str,
    out: &mut impl Write,
    progress: &Stop,
) -> io::Result<Exported> {
    let documents = generation.documents();
    let tokens = generation.manifest().statistics.tokens;
    let mut all: Vec<TermLists> = Vec::new();
    let fields = generation.manifest().settings.fields.len();
    for_each_term::<io::Error>(generation, |lists| {
        // CIFF knows no fields.
        if split(fields, &lists.term).1.is_none() && lists.df(generation)? > 0 {
            all.push(lists.clone());
        }
        Ok(())
    })?;
    all.sort_unstable_by(|a, b| a.term.cmp(&b.term));
    let most = |what, found: u64| match i32::try_from(found) {
        Ok(_) => Ok(found),
        Err(_) => {
            // CIFF numbers documents and counts terms with 31 bits.
            let reason = format!("CIFF has room for {} {what}; the index has {found}", i32::MAX);
            Err(IndexError::refused(generation.path(), reason))
        }
    };
    let terms = most("terms", all.len() as u64)?;
    let count = most("documents", generation.live_documents().into())?;
    let mean = if count == 0 { 0.0 } else { tokens as f64 / count as f64 };
    let mut message = Vec::new();
    for (field, value) in [(1, 1), (2, terms), (3, count), (4, terms), (5, count), (6, tokens)] {
        number(&mut message, field, value);
    }
    message.push(7 << 3 | 1);
    message.extend_from_slice(&mean.to_le_bytes());
    bytes(&mut message, 8, description.as_bytes());
    put(out, &message)?;
    progress.expect(all.len() as u64);
    let mut numbers = vec![0; documents.len() as usize];
    (0..).zip(generation.live()).for_each(|(number, docid)| numbers[docid as usize] = number);
    for lists in &all {
        list(generation, &numbers, lists, &mut message, out)?;
        progress.pass(1);
    }
    for docid in generation.live() {
        message.clear();
        number(&mut message, 1, numbers[docid as usize].into());
        bytes(&mut message, 2, &documents.name(docid)?);
        number(&mut message, 3, documents.length(docid).unwrap_or_default().into());
        put(out, &message)?;
    }
    Ok(Exported { terms, documents: generation.live_documents() })
}

/// Documents have these numbers by docid.
fn list(
    generation: &Generation,
    numbers: &[u32],
    lists: &TermLists,
    message: &mut Vec<u8>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut df = 0;
    let mut cf = 0;
    let mut length = 0;
    let mut last = 0;
    lists.postings(generation, |docids, tfs| {
        for (&docid, &tf) in docids.iter().zip(tfs) {
            let docid = numbers[docid as usize];
            let posting = posting_bytes(docid - last, tf);
            length += 1 + vbyte::bytes(posting) as u64 + posting;
            df += 1;
            cf += u64::from(tf);
            last = docid;
        }
    })?;
    message.clear();
    bytes(message, 1, &lists.term);
    number(message, 2, df);
    number(message, 3, cf);
    let mut head = Vec::new();
    vbyte::put(message.len() as u64 + length, &mut head);
    out.write_all(&head)?;
    out.write_all(message)?;
    let mut written = Ok(());
    let mut last = 0;
    lists.postings(generation, |docids, tfs| {
        message.clear();
        for (&docid, &tf) in docids.iter().zip(tfs) {
            let docid = numbers[docid as usize];
            message.push(4 << 3 | 2);
            vbyte::put(posting_bytes(docid - last, tf), message);
            number(message, 1, (docid - last).into());
            number(message, 2, tf.into());
            last = docid;
        }
        if written.is_ok() {
            written = out.write_all(message);
        }
    })?;
    written
}

fn posting_bytes(gap: u32, tf: u32) -> u64 {
    2 + (vbyte::bytes(gap.into()) + vbyte::bytes(tf.into())) as u64
}

/// A numeric field. A 0 is written too, which readers take like a missing field.
fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(field << 3);
    vbyte::put(value, out);
}

fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push(field << 3 | 2);
    vbyte::put(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn put(out: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let mut head = Vec::new();
    vbyte::put(message.len() as u64, &mut head);
    out.write_all(&head)?;
    out.write_all(message)
}

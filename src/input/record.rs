//! Reads the record of a document again, from where the index says that it lies, and its text.

use super::document::{Document, DocumentSink, PieceView, Skip};
use super::turns::Turn;
use crate::index::files::plain;
use crate::input::formats::csv::first_record;
use crate::input::formats::json_values;
use crate::input::formats::parsers::Parsers;
use crate::input::list::InputReading;
use crate::input::streams::encoded::TextEncoding;
use crate::input::streams::unpacked::Unpacked;
use crate::input::{Compression, Format, MARK_BYTES};
use crate::text::fields::IndexFields;
use std::collections::HashMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Reads the `bytes` at `offset` of a file, both counted in what is in it uncompressed. Of a
/// compressed file all before them is inflated too, and decoded of one in an `encoding`.
///
/// # Errors
/// When the file cannot be read, or ends before: it has changed since it was indexed.
pub(crate) fn fetch(
    path: &Path,
    encoding: Option<TextEncoding>,
    offset: u64,
    bytes: u32,
) -> io::Result<Vec<u8>> {
    let mut file = plain::open_plain(path)?;
    let mut head = Vec::new();
    (&mut file).take(MARK_BYTES as u64).read_to_end(&mut head)?;
    let is_plain = Compression::by_content(&head) == Compression::None && encoding.is_none();
    let stream: &mut dyn Read = if is_plain {
        file.seek(SeekFrom::Start(offset))?;
        &mut file
    } else {
        let mut stream = open(path, encoding)?;
        io::copy(&mut stream.by_ref().take(offset), &mut io::sink())?;
        &mut { stream }
    };
    let mut record = Vec::new();
    stream.take(u64::from(bytes)).read_to_end(&mut record)?;
    if record.len() != bytes as usize {
        let found = record.len();
        let why = format!(
            "byte {offset}: expected a record of {bytes} bytes, found {found}: the file has changed since"
        );
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    Ok(record)
}

fn open(path: &Path, encoding: Option<TextEncoding>) -> io::Result<Unpacked> {
    plain::open_plain(path)?;
    match encoding {
        Some(_) => Unpacked::text(path, encoding),
        None => Unpacked::open(path),
    }
}

/// A file, and how it was read.
pub(crate) struct IndexedFile<'a> {
    pub path: &'a Path,
    pub format: Format,
    pub reading: InputReading,
    /// The encoding of its stream, if it is not UTF-8.
    pub encoding: Option<TextEncoding>,
}

/// Bytes of a file in which the head of its columns ends.
const HEAD_BYTES: u64 = 1 << 20;

/// Reads texts of documents again, as they were indexed.
pub(crate) struct DocumentTexts {
    parsers: Parsers,
    /// The first record of files where it names the columns.
    heads: HashMap<PathBuf, Vec<u8>>,
    has_values: bool,
}

impl DocumentTexts {
    /// Of an index with these fields; with values or stored fields, if it has any.
    pub(crate) fn new(max_document: u64, fields: &IndexFields, has_values: bool) -> Self {
        let mut parsers = Parsers::new(max_document, Turn::alone());
        parsers.find_fields(fields, false);
        Self { parsers, heads: HashMap::new(), has_values }
    }

    /// The text in a record that was [fetched](fetch) from `offset` of a file of this format, and
    /// the document's hash. What is no UTF-8 is left as it is, as it is for the tokenizer.
    ///
    /// # Errors
    /// `InvalidData` if there is no document any more; as [`fetch`] for the names of columns.
    pub(crate) fn of(
        &mut self,
        file: &IndexedFile<'_>,
        offset: u64,
        mut record: Vec<u8>,
    ) -> io::Result<(Vec<u8>, u64)> {
        let IndexedFile { path, format, ref reading, encoding } = *file;
        self.parsers.read_as(reading);
        if format == Format::Csv && !self.heads.contains_key(path) {
            let mut start = Vec::new();
            open(path, encoding)?.take(HEAD_BYTES).read_to_end(&mut start)?;
            self.heads.insert(path.to_path_buf(), first_record(&start).to_vec());
        }
        if format == Format::Json {
            json_values::to_lines(&mut record);
        }
        let records = self.has_values.then_some(&*record);
        let mut found = FirstDocument { records, text: None, why: None };
        if format.file_is_document() {
            let name = path.to_string_lossy();
            self.parsers.file(format, &name, &record, &mut found);
        } else {
            let piece = PieceView { bytes: &record, offset, line: 1 };
            let head = self.heads.get(path).map_or(&[][..], Vec::as_slice);
            self.parsers.records(format, piece, head, true, &mut found);
        }
        found.text.ok_or_else(|| {
            let why = found.why.map_or("no document".to_string(), |skip| skip.to_string());
            let why = format!("byte {offset}: {why}: the file has changed since");
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }
}

struct FirstDocument<'a> {
    /// If documents have values.
    records: Option<&'a [u8]>,
    text: Option<(Vec<u8>, u64)>,
    why: Option<Skip>,
}

impl DocumentSink for FirstDocument<'_> {
    fn document(&mut self, document: Document<'_>) {
        let text = || (document.content.bytes().to_vec(), document.hash(self.records));
        self.text.get_or_insert_with(text);
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, reason: Skip) {
        self.why.get_or_insert(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::strings::hash::hash;
    use std::io::Write;

    #[test]
    fn texts_are_those_of_their_format() {
        let mut texts = DocumentTexts::new(1 << 20, &IndexFields::default(), false);
        let page = "<page><title>Mills</title><revision><text>of old</text></revision></page>";
        let warc = "WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nmills\r\n\r\n";
        for (format, before, record, expected) in [
            (Format::Jsonl, "", "{\"id\":\"1\",\"text\":\"a \\u0062\"}", "a b"),
            (Format::Json, "[\n", "{\"id\":\n\"1\",\"text\":\"a\"}", "a"),
            (Format::Tsv, "0\tx\n", "1\ta b", "a b"),
            (Format::Plaintext, "0 x\n", "1 a b", "a b"),
            (Format::Csv, "id,n,text\n", "1,2,\"a, b\"", "a, b"),
            (Format::Mediawiki, "<mediawiki>", page, "Mills\n\nof old"),
            (Format::Trec, "\n", "<DOC><DOCNO>1</DOCNO><TEXT>a b</TEXT></DOC>", "a b"),
            (Format::Warc, "", warc, "mills"),
            (Format::Html, "", "<p>a <b>b</b>", "a b"),
            (Format::Text, "", "a b\n", "a b"),
        ] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            writeln!(file, "{before}{record}").unwrap();
            let offset = before.len() as u64;
            let record = fetch(file.path(), None, offset, record.len() as u32).unwrap();
            let reading = InputReading::default();
            let indexed = IndexedFile { path: file.path(), format, reading, encoding: None };
            let (text, hashed) = texts.of(&indexed, offset, record).unwrap();
            assert_eq!(hashed, hash(&text));
            assert_eq!(String::from_utf8_lossy(&text).trim(), expected, "{format}");
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "no object").unwrap();
        let reading = InputReading::default();
        let format = Format::Jsonl;
        let indexed = IndexedFile { path: file.path(), format, reading, encoding: None };
        let error = texts.of(&indexed, 0, b"no object".to_vec()).unwrap_err().to_string();
        assert!(error.starts_with("byte 0: ") && error.ends_with(" has changed since"), "{error}");
    }

    #[test]
    fn records_are_read_from_files_compressed_or_not() {
        let text = b"first\nsecond\nthird\n";
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packed.write_all(text).unwrap();
        for bytes in [text.to_vec(), packed.finish().unwrap()] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            assert_eq!(fetch(file.path(), None, 6, 6).unwrap(), b"second");
            assert_eq!(fetch(file.path(), None, 0, 19).unwrap(), text);
            let error = fetch(file.path(), None, 13, 7).unwrap_err();
            assert!(error.to_string().contains("of 7 bytes, found 6"), "{error}");
            fetch(file.path(), None, 90, 1).unwrap_err();
        }
    }
}

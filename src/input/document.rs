//! What parsers take and give: a [`PieceView`] of the uncompressed input, and [`Document`]s, or the
//! reason for which a record is none, for a [`DocumentSink`].
//!
//! A document borrows from the piece or from buffers of its parser, so it lives for one call only
//! and nothing is allocated for it.

use crate::dictionary::vector::Vector;
use crate::text::fields::FieldTexts;
use crate::text::html::Page;
use crate::text::readable::readable;
use std::fmt;
use twox_hash::XxHash3_64;

/// A part of a file's uncompressed stream that begins and ends at a border of records.
#[derive(Clone, Copy, Debug)]
pub struct PieceView<'a> {
    pub bytes: &'a [u8],
    /// Where they begin in the stream, in bytes. Only at 0 may a byte order mark stand.
    pub offset: u64,
    /// The number of their first line in the file, from 1.
    pub line: u64,
}

impl<'a> PieceView<'a> {
    pub fn whole(bytes: &'a [u8]) -> Self {
        PieceView { bytes, offset: 0, line: 1 }
    }

    /// Line feeds of a piece of lines whose reader ended with the number of a `line` and at a place
    /// behind the last line feed, or one further if the last line has none.
    pub(super) fn line_feeds(&self, line: u64, behind: usize) -> u64 {
        line - self.line - u64::from(behind > self.bytes.len())
    }

    /// Where the first record begins: behind the byte order mark, if the file begins here with one.
    pub(super) fn first_record(&self) -> usize {
        let marked = self.offset == 0 && self.bytes.starts_with(BYTE_ORDER_MARK);
        if marked { BYTE_ORDER_MARK.len() } else { 0 }
    }
}

pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// Never empty.
    Given(&'a str),
    /// The record has none; the caller makes `file:number` of its place.
    Missing,
}

impl<'a> Name<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        if name.is_empty() { Name::Missing } else { Name::Given(name) }
    }

    pub(super) fn or_empty(self) -> &'a str {
        match self {
            Name::Given(name) => name,
            Name::Missing => "",
        }
    }

    /// Makes a name of raw bytes, with U+FFFD for what is not UTF-8; `scratch` keeps it then.
    #[inline]
    pub(super) fn from_raw(raw: &'a [u8], scratch: &'a mut String) -> Self {
        Name::new(readable(raw, scratch))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub name: Name<'a>,
    pub content: Content<'a>,
    /// What of it, or beside it, is text of fields of the index.
    pub fields: &'a FieldTexts,
    /// Where its record begins, in bytes from the begin of the piece.
    pub offset: usize,
    /// Length of the record without its line end, in bytes.
    pub bytes: usize,
    /// The record's line in the file, from 1, or its number where records are not lines.
    pub line: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// In raw bytes; the tokenizer deals with what is not UTF-8.
    Text(&'a [u8]),
    /// Learned weights of terms, as impacts.
    Vector(Vector<'a>),
}

impl Document<'_> {
    /// A hash of what the index has of it (`docs/index-format.md`, hashes): its content, texts of
    /// fields, and, if there are values or stored fields, its record. `records` are the bytes in
    /// which that lies then.
    pub(crate) fn hash(&self, records: Option<&[u8]>) -> u64 {
        let content = XxHash3_64::oneshot(self.content.bytes());
        let content = match self.fields.is_empty() {
            true => content,
            false => self.fields.hashed_with(content),
        };
        let hashed_with = |records| XxHash3_64::oneshot_with_seed(content, self.record(records));
        records.map_or(content, hashed_with)
    }

    pub(crate) fn record<'r>(&self, records: &'r [u8]) -> &'r [u8] {
        records.get(self.offset..self.offset + self.bytes).unwrap_or_default()
    }
}

impl<'a> Content<'a> {
    /// What tells it from that of another document.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text,
            Self::Vector(vector) => vector.bytes(),
        }
    }
}

/// Why a record is not a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    BadJson {
        /// Where the first wrong byte is, in bytes from the begin of the piece.
        offset: usize,
        /// The same place in its line, in bytes from 1.
        column: usize,
        expected: &'static str,
        /// What stands there; nothing at the end of the input.
        found: Option<u8>,
    },
    BadVector {
        /// Where it is wrong in its line, in bytes from 1.
        column: usize,
        expected: &'static str,
        found: Option<u8>,
    },
    /// This ends a build.
    Fraction,
    NotAnObject,
    /// A field that holds text holds neither a string nor null.
    NotAString {
        field: &'static str,
    },
    NoTab,
    /// If its content can be told all the same, it may still be a document.
    BrokenWarc(WarcFault),
    HttpStatus {
        /// 0 if there is none that can be read.
        status: u16,
    },
    /// The content is neither HTML nor plain text.
    ContentType(MediaType),
    TooLong {
        most: u64,
    },
    /// The memory cannot hold what it is inflated to. This ends a build.
    TooLarge {
        bytes: u64,
    },
    BrokenBody {
        coding: &'static str,
    },
    /// A TREC document has no name: neither `<DOCNO>` nor an `id`.
    NoDocno,
    /// A TREC document does not end before the next begins, or the input ends.
    NoDocEnd,
    NoPageEnd,
    NoTitle,
    NoTextColumn,
    TooManyFields {
        expected: usize,
        found: usize,
    },
    /// There is text, but no TREC document.
    NoDoc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarcFault {
    NoVersion {
        bytes: usize,
    },
    /// The head has no Content-Length that is a number.
    NoLength {
        /// Bytes up to the next record.
        bytes: usize,
    },
    /// It is no document.
    NoContent,
    /// Where the record should end, no other begins.
    WrongLength {
        expected: u64,
        /// Bytes up to the next record.
        bytes: usize,
    },
    /// It is no document.
    CutShort {
        expected: u64,
        bytes: usize,
    },
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadJson { column, expected, found, .. } => {
                let found = FoundByte(*found);
                write!(f, "bad JSON at byte {column} of the line: expected {expected}, found {found}")
            }
            Self::BadVector { column, expected, found } => {
                let found = FoundByte(*found);
                write!(f, "bad vector at byte {column} of the line: expected {expected}, found {found}")
            }
            Self::Fraction => f.write_str(
                "a weight is no whole number, but those at the begin of the input are, so that they are multiplied by 1; if others are not, the factor has to be given, such as 100",
            ),
            Self::NotAString { field } => write!(f, "the field `{field}` is not a string"),
            Self::NoTab => f.write_str("no tab between name and text"),
            Self::BrokenWarc(fault) => write!(f, "broken WARC record: {fault}"),
            Self::HttpStatus { status } => write!(f, "HTTP status {status}"),
            Self::ContentType(found) => write!(f, "content type {found}"),
            Self::TooLong { most } => {
                write!(f, "a document of more than {most} bytes when decompressed")
            }
            Self::TooLarge { bytes } => {
                write!(f, "a document of {bytes} bytes when decompressed, which the memory cannot hold")
            }
            Self::BrokenBody { coding } => write!(f, "the body is {coding} that cannot be inflated"),
            Self::NoDocno => f.write_str("a <DOC> without <DOCNO>"),
            Self::NoDocEnd => f.write_str("a <DOC> without </DOC>"),
            Self::NoPageEnd => f.write_str("a <page> without </page>"),
            Self::NoTitle => f.write_str("a <page> without <title>"),
            Self::NoTextColumn => {
                f.write_str("no column is known as text; one has to be named")
            }
            Self::TooManyFields { expected, found } => {
                write!(f, "{found} fields, where the header has {expected}")
            }
            Self::NotAnObject | Self::NoDoc => f.write_str(self.reason()),
        }
    }
}

impl fmt::Display for WarcFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVersion { bytes } => {
                write!(f, "expected a line such as WARC/1.0; skipped {bytes} bytes")
            }
            Self::NoLength { bytes } => {
                write!(f, "no Content-Length; taken up to the next record, {bytes} bytes")
            }
            Self::NoContent => f.write_str("no Content-Length, and no content"),
            Self::WrongLength { expected, bytes } => {
                let taken = format_args!("taken up to the next record, {bytes} bytes");
                write!(f, "Content-Length is {expected}; {taken}")
            }
            Self::CutShort { expected, bytes } => {
                let ends = format_args!("the input ends after {bytes} bytes");
                write!(f, "cut short: Content-Length is {expected}, {ends}")
            }
        }
    }
}

/// The begin of a media type that was found, to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaType {
    bytes: [u8; MediaType::MOST_BYTES],
    len: u8,
}

impl MediaType {
    const MOST_BYTES: usize = 30;

    pub(super) fn new(name: &[u8]) -> Self {
        let len = name.len().min(Self::MOST_BYTES);
        let mut bytes = [0; Self::MOST_BYTES];
        bytes[..len].copy_from_slice(&name[..len]);
        MediaType { bytes, len: len as u8 }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bytes[..usize::from(self.len)] {
            [] => f.write_str("missing, and binary data"),
            name => write!(f, "{}", name.escape_ascii()),
        }
    }
}

impl Skip {
    /// A short text, the same for all records of one kind of failure, by which they are counted.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Skip::BadJson { .. } => "bad JSON",
            Skip::BadVector { .. } => "bad vector",
            Skip::Fraction => "fraction",
            Skip::NotAnObject => "not a JSON object",
            Skip::NotAString { .. } => "text is not a string",
            Skip::NoTab => "no tab",
            Skip::BrokenWarc(_) => "broken WARC record",
            Skip::HttpStatus { .. } => "HTTP status",
            Skip::ContentType(_) => "content type",
            Skip::TooLong { .. } | Skip::TooLarge { .. } => "document too long",
            Skip::BrokenBody { .. } => "broken body",
            Skip::NoDocno => "no <DOCNO>",
            Skip::NoDocEnd => "no </DOC>",
            Skip::NoDoc => "no <DOC>",
            Skip::NoPageEnd => "no </page>",
            Skip::NoTitle => "no <title>",
            Skip::NoTextColumn => "no text column",
            Skip::TooManyFields { .. } => "too many fields",
        }
    }
}

/// Not those that a format leaves out on purpose, nor files and links that are no records.
pub(crate) fn is_broken_record(reason: &str) -> bool {
    let left_out = [
        "HTTP status",
        "content type",
        "dangling link",
        "circle of links",
        "unreadable file",
        "unreadable folder",
        "archive",
        "file of another program",
        "bulk actions",
        "UTF-16 text",
        "lines without line feeds",
    ];
    !left_out.contains(&reason)
}

struct FoundByte(Option<u8>);

impl fmt::Display for FoundByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(b'\n') => f.write_str("the end of the line"),
            Some(byte @ b' '..=b'~') => write!(f, "`{}`", char::from(byte)),
            Some(byte) => write!(f, "byte 0x{byte:02x}"),
        }
    }
}

/// Takes what a parser finds, in the order of the input.
pub trait DocumentSink {
    /// Takes a page of HTML whose document comes next, if it is one.
    #[inline]
    fn page(&mut self, _page: &Page<'_>) {}

    /// Where parts of the text of the document that comes next begin, except for the first: those
    /// of its fields, and of the items of lists.
    #[inline]
    fn parts(&mut self, _starts: &[usize]) {}

    fn document(&mut self, document: Document<'_>);

    /// A document that begins at `offset` would have `bytes`, more than are held.
    fn large(&mut self, _offset: usize, _bytes: u64, _name: &str) {}

    /// A record that is no document begins at `offset` in the piece and has `bytes` without its
    /// line end; its `line` counts from 1, and is 0 where records are not lines.
    fn skipped(&mut self, offset: usize, line: u64, bytes: usize, reason: Skip);
}

pub(super) fn length_without_return(line: &[u8]) -> usize {
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

/// A document that a test keeps: name (none if missing), text, offset, bytes, line.
#[cfg(test)]
pub(super) type KeptDocument = (Option<String>, Vec<u8>, usize, usize, u64);

#[cfg(test)]
#[derive(Debug, Default, PartialEq)]
pub(super) struct KeptDocuments {
    pub(super) documents: Vec<KeptDocument>,
    /// Offset, line, bytes, reason.
    pub(super) skipped: Vec<(usize, u64, usize, Skip)>,
}

#[cfg(test)]
impl DocumentSink for KeptDocuments {
    fn document(&mut self, d: Document<'_>) {
        let name = match d.name {
            Name::Given(name) => Some(name.to_owned()),
            Name::Missing => None,
        };
        self.documents.push((name, d.content.bytes().to_vec(), d.offset, d.bytes, d.line));
    }

    fn skipped(&mut self, offset: usize, line: u64, bytes: usize, reason: Skip) {
        self.skipped.push((offset, line, bytes, reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_valid_utf8_and_never_empty() {
        let mut scratch = String::new();
        assert_eq!(Name::from_raw(b"", &mut scratch), Name::Missing);
        assert_eq!(Name::from_raw("ä1".as_bytes(), &mut scratch), Name::Given("ä1"));
        for raw in [&b"a\xffb"[..], b"\xe2\x82", b"\xff\xfe\x80x\xf0\x9f"] {
            let lossy = String::from_utf8_lossy(raw).into_owned();
            assert_eq!(Name::from_raw(raw, &mut scratch), Name::Given(&lossy));
        }
        for length in 1..50 {
            let ascii = vec![b'a'; length];
            let name = std::str::from_utf8(&ascii).unwrap();
            assert_eq!(Name::from_raw(&ascii, &mut scratch), Name::Given(name));
            for at in 0..length {
                let mut raw = ascii.clone();
                raw[at] = 0xff;
                let lossy = String::from_utf8_lossy(&raw).into_owned();
                assert_eq!(Name::from_raw(&raw, &mut scratch), Name::Given(&lossy));
            }
        }
    }

    #[test]
    fn messages_name_place_and_byte() {
        let skip = |found| Skip::BadJson { offset: 90, column: 7, expected: "`:`", found };
        let text = skip(Some(b';')).to_string();
        assert_eq!(text, "bad JSON at byte 7 of the line: expected `:`, found `;`");
        assert!(skip(Some(0)).to_string().ends_with("found byte 0x00"));
        assert!(skip(None).to_string().ends_with("found the end of the line"));
        assert_eq!(skip(None).reason(), "bad JSON");
    }

    #[test]
    fn only_the_first_piece_may_hold_a_byte_order_mark() {
        let piece = PieceView::whole(b"\xef\xbb\xbf{}");
        assert_eq!(piece.first_record(), 3);
        assert_eq!(PieceView { offset: 1, ..piece }.first_record(), 0);
        assert_eq!(PieceView::whole(b"\xef\xbb").first_record(), 0);
    }
}

//! Finds the documents of a file with one JSON object a line (JSON lines).
//!
//! - A line of white space alone is ignored; a line ends with LF or CRLF; the file may begin with
//!   the byte order mark of UTF-8.
//! - The name is the value of `id`, else of `_id`, `pid`, `docid` or `docno`: a string, or a number
//!   as it is written. Of one key given twice the first value counts. Values of another kind, and
//!   empty strings, are no names. A name that is not UTF-8 gets U+FFFD where it is not.
//! - The text is what the strings `title`, `url`, `headings`, `text`, `body`, `passage` and
//!   `contents` say, in order of appearance and with one newline between them. `null` is as if the
//!   member were not there; any other value makes the record no document. A record without text is
//!   an empty document.
//! - Everything else is stepped over, but has to be JSON, with values up to 128 deep. Two
//!   liberties: raw control characters in strings are accepted, save for the line feed, which ends
//!   the record, and a lone surrogate becomes U+FFFD.
//!
//! Text is copied into a buffer that is used again, while its end is looked for, so that nothing is
//! allocated for a document. `jobs/experiments/benches/input.rs` measures it.

mod values;

use super::fields::Fields;
use super::json::{Bad, JsonCursor, Span};
use super::scan::{Scan, Scanning};
use crate::dictionary::device::text_buffers::TextBuffer;
use crate::input::document::{
    Document, DocumentSink, Name, PieceView, Skip, length_without_return,
};

/// A buffer that grew beyond this many bytes for one long document is given back after the piece.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

/// The rank of a name that was not found; better ones are smaller.
const NO_NAME: usize = usize::MAX;

/// It keeps nothing from piece to piece but its buffers.
#[derive(Debug)]
pub struct JsonlParser {
    scan: Scan,
    buffers: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    text: TextBuffer,
    /// A key or a name without its escapes.
    short: TextBuffer,
    /// A name that was made valid.
    name: String,
    fields: Option<Fields>,
}

struct JsonRecord {
    /// The rank of the key that named it, or [`NO_NAME`].
    name_rank: usize,
    name: Span,
    /// Strings that are its text, put together in the buffer.
    texts: u32,
}

impl JsonRecord {
    #[inline(always)]
    fn new() -> Self {
        let name = Span { range: 0..0, escapes: false };
        JsonRecord { name_rank: NO_NAME, name, texts: 0 }
    }
}

impl Default for JsonlParser {
    fn default() -> Self {
        Self::new()
    }
}

impl JsonlParser {
    pub fn new() -> Self {
        Self::with(Scan::best())
    }

    pub(crate) fn with_fields(fields: Fields) -> Self {
        let mut parser = Self::new();
        parser.buffers.fields = (!fields.is_default()).then_some(fields);
        parser
    }

    /// Makes a parser for each way of scanning that this processor has, the fastest last, with the
    /// way's name. For benches and tests: all of them find the same.
    #[doc(hidden)]
    pub fn all() -> impl Iterator<Item = (String, Self)> {
        Scan::all().map(|scan| (format!("{scan:?}").to_lowercase(), Self::with(scan)))
    }

    fn with(scan: Scan) -> Self {
        JsonlParser { scan, buffers: Buffers::default() }
    }

    /// Gives all records of `piece` to `sink`, in their order, in time linear in its length and
    /// with memory for the longest text in it. Returns its line feeds.
    pub fn parse<S: DocumentSink>(&mut self, piece: PieceView<'_>, sink: &mut S) -> u64 {
        self.scan.run(JsonLines { parser: self, piece, sink })
    }

    /// Deals with one line and leaves the cursor at its line feed or at the end of the piece.
    #[inline(always)]
    fn line<S: DocumentSink>(&mut self, cursor: &mut JsonCursor<'_>, line: u64, sink: &mut S) {
        let offset = cursor.at;
        // Filled in place: moving it in a `Result` stalls, because it is read wider than written.
        let mut record = JsonRecord::new();
        cursor.space();
        if matches!(cursor.peek(), None | Some(b'\n')) {
            return;
        }
        let read = self.buffers.record(cursor, &mut record);
        if read.is_err() {
            let rest = &cursor.bytes[cursor.at..];
            cursor.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        }
        let bytes = length_without_return(&cursor.bytes[offset..cursor.at]);
        match read {
            Ok(()) => {
                let (name, text) = self.buffers.resolve(cursor, &record);
                sink.document(Document { name, text, offset, bytes, line });
            }
            Err(Failure::Bad(bad)) => {
                let Bad { offset: at, expected } = bad;
                let found = cursor.bytes.get(at).copied();
                let column = at - offset + 1;
                let skip = Skip::BadJson { offset: at, column, expected, found };
                sink.skipped(offset, line, bytes, skip);
            }
            Err(Failure::Skip(skip)) => sink.skipped(offset, line, bytes, skip),
        }
    }
}

struct JsonLines<'a, 'p, S> {
    parser: &'a mut JsonlParser,
    piece: PieceView<'p>,
    sink: &'a mut S,
}

impl<S: DocumentSink> Scanning for JsonLines<'_, '_, S> {
    type Outcome = u64;

    #[inline(always)]
    fn run(self, scan: Scan) -> u64 {
        let Self { parser, piece, sink } = self;
        let mut cursor = JsonCursor { bytes: piece.bytes, at: piece.first_record(), scan };
        let mut line = piece.line;
        while cursor.at < cursor.bytes.len() {
            parser.line(&mut cursor, line, sink);
            cursor.at += 1; // behind the line feed
            line += 1;
        }
        parser.buffers.text.shrink(KEPT_BUFFER_BYTES);
        parser.buffers.short.shrink(KEPT_BUFFER_BYTES);
        parser.buffers.name.shrink_to(KEPT_BUFFER_BYTES);
        piece.line_feeds(line, cursor.at)
    }
}

enum Failure {
    Bad(Bad),
    Skip(Skip),
}

impl From<Bad> for Failure {
    fn from(bad: Bad) -> Self {
        Failure::Bad(bad)
    }
}

enum KeyRole {
    /// A name, with the rank of its key; the best is 0.
    Name(usize),
    Text(&'static str),
    Other,
}

impl KeyRole {
    /// The role of the key that `rest` begins with, and the bytes that it and its closing quote
    /// take; none if it has no role, or has escapes. The processor guesses the outcome from earlier
    /// records, so that it does not wait for the end of a key to be found.
    #[inline(always)]
    fn at(rest: &[u8]) -> Option<(KeyRole, usize)> {
        Some(match rest {
            [b'i', b'd', b'"', ..] => (KeyRole::Name(0), 3),
            [b'_', b'i', b'd', b'"', ..] => (KeyRole::Name(1), 4),
            [b'p', b'i', b'd', b'"', ..] => (KeyRole::Name(2), 4),
            [b'd', b'o', b'c', b'i', b'd', b'"', ..] => (KeyRole::Name(3), 6),
            [b'd', b'o', b'c', b'n', b'o', b'"', ..] => (KeyRole::Name(4), 6),
            [b't', b'i', b't', b'l', b'e', b'"', ..] => (KeyRole::Text("title"), 6),
            [b'u', b'r', b'l', b'"', ..] => (KeyRole::Text("url"), 4),
            [b't', b'e', b'x', b't', b'"', ..] => (KeyRole::Text("text"), 5),
            [b'b', b'o', b'd', b'y', b'"', ..] => (KeyRole::Text("body"), 5),
            [b'c', b'o', b'n', b't', b'e', b'n', b't', b's', b'"', ..] => {
                (KeyRole::Text("contents"), 9)
            }
            [b'p', b'a', b's', b's', b'a', b'g', b'e', b'"', ..] => (KeyRole::Text("passage"), 8),
            [b'h', b'e', b'a', b'd', b'i', b'n', b'g', b's', b'"', ..] => {
                (KeyRole::Text("headings"), 9)
            }
            _ => return None,
        })
    }
}

impl Buffers {
    fn record(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        record: &mut JsonRecord,
    ) -> Result<(), Failure> {
        match cursor.peek() {
            Some(b'{') => cursor.at += 1,
            Some(b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(Failure::Skip(Skip::NotAnObject));
            }
            _ => return Err(cursor.bad("`{`").into()),
        }
        cursor.space();
        if !cursor.take(b'}') {
            loop {
                self.member(cursor, record)?;
                cursor.space();
                if cursor.take(b'}') {
                    break;
                }
                if !cursor.take(b',') {
                    return Err(cursor.bad("`,` or `}`").into());
                }
                cursor.space();
            }
        }
        cursor.space();
        match cursor.peek() {
            None | Some(b'\n') => Ok(()),
            _ => Err(cursor.bad("the end of the line").into()),
        }
    }

    #[inline(always)]
    fn key(&mut self, cursor: &mut JsonCursor<'_>) -> Result<KeyRole, Bad> {
        cursor.begin_key()?;
        if self.fields.is_some() {
            let key = cursor.string()?;
            let role = self.asked_role(cursor, &key);
            cursor.colon()?;
            return Ok(role);
        }
        let role = match KeyRole::at(&cursor.bytes[cursor.at..]) {
            Some((role, bytes)) => {
                cursor.at += bytes;
                role
            }
            None => {
                let key = cursor.string()?;
                if key.escapes { self.escaped_role(cursor, &key) } else { KeyRole::Other }
            }
        };
        cursor.colon()?;
        Ok(role)
    }

    #[cold]
    fn asked_role(&mut self, cursor: &JsonCursor<'_>, key: &Span) -> KeyRole {
        let key = unfolded(cursor, key, &mut self.short);
        let Some(fields) = &self.fields else { return KeyRole::Other };
        match fields.name_rank(key) {
            // A field is one or the other.
            Some(rank) if !fields.names.is_empty() || !fields.is_text(key) => KeyRole::Name(rank),
            _ if fields.is_text(key) => KeyRole::Text("text"),
            _ => KeyRole::Other,
        }
    }

    #[cold]
    fn escaped_role(&mut self, cursor: &JsonCursor<'_>, key: &Span) -> KeyRole {
        unfolded(cursor, key, &mut self.short);
        self.short.extend([b"\""]);
        match KeyRole::at(&self.short) {
            Some((role, bytes)) if bytes == self.short.len() => role,
            _ => KeyRole::Other,
        }
    }

    #[inline(always)]
    fn member(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        record: &mut JsonRecord,
    ) -> Result<(), Failure> {
        match self.key(cursor)? {
            KeyRole::Name(rank) if rank < record.name_rank => {
                let name = match cursor.peek() {
                    Some(b'"') => {
                        cursor.at += 1;
                        cursor.string()?
                    }
                    Some(b'-' | b'0'..=b'9') => Span { range: cursor.number()?, escapes: false },
                    _ => return Ok(cursor.skip_value()?),
                };
                if !name.range.is_empty() {
                    record.name_rank = rank;
                    record.name = name;
                }
            }
            KeyRole::Text(field) => match cursor.peek() {
                Some(b'"') => {
                    cursor.at += 1;
                    self.text(cursor, record)?;
                }
                Some(b'n') => cursor.word("null")?,
                Some(b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f') => {
                    return Err(Failure::Skip(Skip::NotAString { field }));
                }
                _ => return Err(cursor.bad("a value").into()),
            },
            KeyRole::Name(_) | KeyRole::Other => cursor.skip_value()?,
        }
        Ok(())
    }

    /// Adds the string here, from behind its opening quote, to the text.
    #[inline(always)]
    fn text(&mut self, cursor: &mut JsonCursor<'_>, record: &mut JsonRecord) -> Result<(), Bad> {
        match record.texts {
            0 => self.text.truncate(0),
            _ => self.text.extend([b"\n"]),
        }
        record.texts += 1;
        cursor.unescape(&mut self.text)?;
        Ok(())
    }

    #[inline(always)]
    fn resolve<'a>(
        &'a mut self,
        cursor: &JsonCursor<'a>,
        record: &JsonRecord,
    ) -> (Name<'a>, &'a [u8]) {
        let name = unfolded(cursor, &record.name, &mut self.short);
        let text = if record.texts == 0 { &[] } else { &*self.text };
        (Name::from_raw(name, &mut self.name), text)
    }
}

/// What a string stands for; `scratch` keeps it if it has escapes.
#[inline]
fn unfolded<'a>(cursor: &JsonCursor<'a>, string: &Span, scratch: &'a mut TextBuffer) -> &'a [u8] {
    if !string.escapes {
        return &cursor.bytes[string.range.clone()];
    }
    scratch.truncate(0);
    let mut again = JsonCursor { bytes: cursor.bytes, at: string.range.start, scan: cursor.scan };
    let unfolded = again.unescape(scratch);
    debug_assert!(unfolded.is_ok(), "the span of a string was checked when it was made");
    scratch
}

#[cfg(test)]
mod tests;

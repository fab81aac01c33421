//! Finds the documents of a file with one JSON object a line (JSON lines).
//!
//! - A line of white space alone is ignored; a line ends with LF or CRLF; the file may begin with
//!   the byte order mark of UTF-8.
//! - The name is the value of the best of [`NAMES`](super::fields::NAMES): a string, or a number as
//!   it is written. Of one key given twice the first value counts. Values of another kind, and
//!   empty strings, are no names. A name that is not UTF-8 gets U+FFFD where it is not.
//! - The text is what the strings `title`, `url`, `headings`, `text`, `body`, `passage` and
//!   `contents` say, in order of appearance and with one newline between them. `null` is as if the
//!   member were not there. Of a list the strings are taken; if there is no other text, it has to
//!   have one. Any other value makes the record no document. A record without text is an empty
//!   document.
//! - A record with none of the last four is read once more, and takes the other
//!   [`TEXTS`](super::fields::TEXTS) too, as far as they are strings or lists with some.
//! - So is a record with WikiExtractor's fields and no others, whose `url` is no text.
//! - Everything else is stepped over, but has to be JSON, with values up to 128 deep. Two
//!   liberties: raw control characters in strings are accepted, save for the line feed, which ends
//!   the record, and a lone surrogate becomes U+FFFD.
//!
//! Text is copied into a buffer that is used again, while its end is looked for, so that nothing is
//! allocated for a document. `jobs/experiments/benches/input.rs` measures it.

mod look;
mod roles;
mod strings;
pub(crate) mod vector;

use super::KEPT_BUFFER_BYTES;
use super::fields::{Fields, TEXTS, WHOLE};
use super::json::{Bad, JsonCursor, Span, unfolded};
use super::noticed::SeenFields;
use super::scan::{Scan, Scanning};
use crate::buffers::TextBuffer;
use crate::dictionary::vector::Vector;
use crate::input::document::{
    BYTE_ORDER_MARK, Content, Document, DocumentSink, Name, PieceView, Skip, length_without_return,
};
use crate::text::fields::{FieldTexts, IndexFields};
use roles::KeyRole;
use vector::{FIELD, ImpactFactor, VectorReader};

/// The rank of a name that was not found; better ones are smaller.
const NO_NAME: usize = usize::MAX;

/// It keeps nothing from piece to piece but its buffers.
pub struct JsonlParser {
    scan: Scan,
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    text: TextBuffer,
    /// Where the strings in it begin.
    parts: Vec<usize>,
    /// A key or a name without its escapes.
    short: TextBuffer,
    /// A name that was made valid.
    name: String,
    fields: Option<Fields>,
    /// The fields of the index, that of the last key, and the texts of a record.
    index_fields: IndexFields,
    field: Option<u8>,
    field_texts: FieldTexts,
    seen: SeenFields,
    /// Records have vectors in the place of texts.
    vectors: Option<VectorReader>,
}

#[derive(Default)]
struct JsonRecord {
    /// The rank of the key that named it, or [`NO_NAME`].
    name_rank: usize,
    name: Span,
    /// Strings that are its text, put together in the buffer.
    texts: u32,
    /// The fields that they are from, a bit each.
    taken: u64,
    /// It has a text that is taken where there is no other.
    has_spare: bool,
    /// There is no other.
    takes_spare: bool,
    /// A text that is a list without a string.
    odd: Option<&'static str>,
    members: u32,
    has_revision: bool,
    /// It is WikiExtractor's, and its `url`, text 1, is none.
    leaves_url: bool,
}

impl JsonRecord {
    #[inline(always)]
    fn new() -> Self {
        JsonRecord { name_rank: NO_NAME, ..JsonRecord::default() }
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

    /// What was seen since it was last asked.
    pub(super) fn take_seen(&mut self) -> SeenFields {
        let lost = self.buffers.vectors.as_mut().map(|vectors| std::mem::take(&mut vectors.lost));
        self.buffers.seen.lost_weights += lost.unwrap_or_default();
        std::mem::take(&mut self.buffers.seen)
    }

    pub(crate) fn take_fields(&mut self, fields: &Fields) {
        let asked = !fields.is_default() || self.buffers.vectors.is_some();
        self.buffers.fields = asked.then(|| fields.clone());
    }

    /// Values of members of these names are texts of fields of the index.
    pub(crate) fn find_fields(&mut self, fields: &IndexFields) {
        self.buffers.index_fields.clone_from(fields);
    }

    /// Of vectors, whose weights become impacts by this factor.
    pub(crate) fn of_vectors(factor: ImpactFactor) -> Self {
        let mut parser = Self::new();
        parser.buffers.vectors = Some(VectorReader::new(factor));
        parser.take_fields(&Fields::default());
        parser
    }

    pub(super) fn weigh_by(&mut self, factor: ImpactFactor) {
        self.buffers.vectors.iter_mut().for_each(|vectors| vectors.weigh_by(factor));
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
                self.buffers.seen.taken |= record.taken;
                if SeenFields::is_looked_at(line) && self.buffers.vectors.is_none() {
                    self.buffers.look(&JsonCursor { at: offset, ..*cursor }, &record);
                }
                sink.parts(self.buffers.parts.get(1..record.texts as usize).unwrap_or(&[]));
                let (name, content, fields) = self.buffers.resolve(cursor, &record);
                sink.document(Document { name, content, fields, offset, bytes, line });
            }
            Err(Failure::Bad(bad)) => {
                let Bad { offset: at, expected } = bad;
                let found = cursor.bytes.get(at).copied();
                let column = at - offset + 1;
                let skip = Skip::BadJson { offset: at, column, expected, found };
                sink.skipped(offset, line, bytes, skip);
            }
            Err(Failure::Vector(Bad { offset: at, expected })) => {
                let found = cursor.bytes.get(at).copied();
                let column = at - offset + 1;
                sink.skipped(offset, line, bytes, Skip::BadVector { column, expected, found });
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
        parser.buffers.field_texts.shrink(KEPT_BUFFER_BYTES);
        parser.buffers.name.shrink_to(KEPT_BUFFER_BYTES);
        parser.buffers.vectors.iter_mut().for_each(VectorReader::shrink);
        piece.line_feeds(line, cursor.at)
    }
}

enum Failure {
    Bad(Bad),
    /// JSON that is no vector.
    Vector(Bad),
    Skip(Skip),
}

impl From<Bad> for Failure {
    fn from(bad: Bad) -> Self {
        Failure::Bad(bad)
    }
}

/// The bit of a field; all behind the last one share it.
fn bit(number: usize) -> u64 {
    1 << number.min(63)
}

impl Buffers {
    /// Reads a record, and once more if it is one whose text is in other fields.
    fn record(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        record: &mut JsonRecord,
    ) -> Result<(), Failure> {
        let start = cursor.at;
        self.vectors.iter_mut().for_each(VectorReader::begin);
        self.members(cursor, record)?;
        if let Some(vectors) = &self.vectors {
            return vectors.end(cursor);
        }
        if record.has_spare && record.taken & WHOLE == 0 {
            *record = JsonRecord { takes_spare: true, ..JsonRecord::new() };
            cursor.at = start;
            self.members(cursor, record)?;
        }
        if record.is_of_wiki() {
            *record = JsonRecord { leaves_url: true, ..JsonRecord::new() };
            cursor.at = start;
            self.members(cursor, record)?;
        }
        match record.odd {
            Some(field) if record.texts == 0 => Err(Failure::Skip(Skip::NotAString { field })),
            _ => Ok(()),
        }
    }

    fn members(
        &mut self,
        cursor: &mut JsonCursor<'_>,
        record: &mut JsonRecord,
    ) -> Result<(), Failure> {
        self.field_texts.clear();
        match cursor.peek() {
            Some(b'{') => cursor.at += 1,
            Some(b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(Failure::Skip(Skip::NotAnObject));
            }
            // Files with a mark each were joined.
            _ if cursor.bytes[cursor.at..].starts_with(BYTE_ORDER_MARK) => {
                cursor.at += BYTE_ORDER_MARK.len();
                cursor.space();
                return match cursor.peek() {
                    None | Some(b'\n') => Err(cursor.bad("`{`").into()),
                    _ => self.members(cursor, record),
                };
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
        let start = cursor.at;
        if self.fields.is_some() {
            let key = cursor.string()?;
            let role = self.asked_role(cursor, &key);
            self.find_field(cursor, start);
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
        self.find_field(cursor, start);
        cursor.colon()?;
        Ok(role)
    }

    #[cold]
    fn asked_role(&mut self, cursor: &JsonCursor<'_>, key: &Span) -> KeyRole {
        let key = unfolded(cursor, key, &mut self.short);
        let Some(fields) = &self.fields else { return KeyRole::Other };
        if self.vectors.is_some() {
            let name = fields.name_rank(key).map_or(KeyRole::Other, KeyRole::Name);
            return if key == FIELD.as_bytes() { KeyRole::Vector } else { name };
        }
        match fields.name_rank(key) {
            // A field is one or the other.
            Some(rank) if !fields.names.is_empty() || fields.text_number(key).is_none() => {
                KeyRole::Name(rank)
            }
            _ => match fields.text_number(key) {
                Some(number) if fields.is_spare(number) => KeyRole::Spare(number),
                Some(number) => KeyRole::Text(number),
                None if key == b"revid" && fields.texts.is_empty() => KeyRole::Revision,
                None => KeyRole::Other,
            },
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
        record.members += 1;
        let role = self.key(cursor)?;
        if let Some(field) = self.field {
            self.take_field(cursor, field)?;
        }
        match role {
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
            KeyRole::Text(1) if record.leaves_url => cursor.skip_value()?,
            KeyRole::Text(number) => match cursor.peek() {
                Some(b'"') => {
                    cursor.at += 1;
                    record.taken |= bit(number);
                    self.text(cursor, record)?;
                }
                Some(b'n') => cursor.word("null")?,
                Some(b'[') => self.texts(cursor, record, number)?,
                Some(b'{' | b'-' | b'0'..=b'9' | b't' | b'f') => {
                    return Err(Failure::Skip(Skip::NotAString { field: self.shown(number) }));
                }
                _ => return Err(cursor.bad("a value").into()),
            },
            KeyRole::Spare(number) => match cursor.peek() {
                Some(b'"') if record.takes_spare => {
                    cursor.at += 1;
                    record.taken |= bit(number);
                    self.text(cursor, record)?;
                }
                Some(b'[') if record.takes_spare => self.texts(cursor, record, number)?,
                first => {
                    record.has_spare |= matches!(first, Some(b'"' | b'['));
                    cursor.skip_value()?;
                }
            },
            KeyRole::Vector => {
                if let Some(vectors) = &mut self.vectors {
                    vectors.read(cursor, &mut self.short)?;
                }
            }
            KeyRole::Revision => record.has_revision = cursor.skip_value().map(|()| true)?,
            KeyRole::Name(_) | KeyRole::Other => cursor.skip_value()?,
        }
        Ok(())
    }

    /// What a message calls a field that is text.
    fn shown(&self, number: usize) -> &'static str {
        if self.fields.as_ref().is_some_and(|fields| !fields.texts.is_empty()) {
            return "text";
        }
        TEXTS[number]
    }

    /// Adds the string here, from behind its opening quote, to the text.
    #[inline(always)]
    fn text(&mut self, cursor: &mut JsonCursor<'_>, record: &mut JsonRecord) -> Result<(), Bad> {
        match record.texts {
            0 => self.text.truncate(0),
            _ => self.text.extend([b"\n"]),
        }
        self.parts.truncate(record.texts as usize);
        self.parts.push(self.text.len());
        record.texts += 1;
        cursor.unescape(&mut self.text)?;
        Ok(())
    }

    #[inline(always)]
    fn resolve<'a>(
        &'a mut self,
        cursor: &JsonCursor<'a>,
        record: &JsonRecord,
    ) -> (Name<'a>, Content<'a>, &'a FieldTexts) {
        let name = unfolded(cursor, &record.name, &mut self.short);
        let content = match &self.vectors {
            Some(vectors) => Content::Vector(Vector::new(&vectors.pairs)),
            None if record.texts == 0 => Content::Text(&[]),
            None => Content::Text(&self.text),
        };
        (Name::from_raw(name, &mut self.name), content, &self.field_texts)
    }
}

#[cfg(test)]
mod tests;

//! Finds the documents of a WARC file (1.0, 1.1, and 0.18 as in ClueWeb09).
//!
//! - `conversion` records (WET files), and `response` records whose HTTP status is 200, if the
//!   content is HTML, XHTML, plain text, or of no type. Other responses are no documents, and are
//!   counted by the reason. A record with a `WARC-TREC-ID` is a document of its collection whatever
//!   its status (ClueWeb has pages of status 206, 301 and others, which its judgements name). All
//!   other records (`warcinfo`, `request`, `metadata`, `resource`, `revisit`, ...) are passed over.
//! - The name is `WARC-TREC-ID`, else `WARC-Target-URI`, else `WARC-Record-ID`, without `<` and
//!   `>`.
//! - The text is what [`HtmlText`] finds in the body, whose codings are undone; plain text and
//!   conversions as they are.
//! - A record that is not as it should be, most often because its length is wrong, is counted, and
//!   goes up to the next line that is a version line. It may be a document all the same; one that
//!   the end of the input cuts short is not.

use crate::input::document::{
    Content, Document, DocumentSink, MediaType, Name, PieceView, Skip, WarcFault,
};
use crate::input::turns::Turn;
use crate::text::fields::FieldTexts;
use crate::text::html::{HtmlText, Markup, Page, charset_parameter};
use body::{BodyDecoder, BodyError};
use borders::{After, after, search};
use head::{Seen, WarcHead, version_line};
use http::Response;

mod body;
pub(crate) mod borders;
mod head;
mod http;

/// It keeps nothing from piece to piece but its buffers.
pub struct WarcParser {
    body: BodyDecoder,
    pub(super) html: HtmlText,
    /// A name that was made valid.
    name: String,
}

struct WarcRecord<'a> {
    head: WarcHead<'a>,
    /// Its place in the piece, and its number from 1.
    offset: usize,
    number: u64,
    content: &'a [u8],
    /// Length with its content, in bytes.
    bytes: usize,
    fault: Option<WarcFault>,
}

enum WarcContent {
    Markup(Markup),
    Plain,
}

impl WarcParser {
    /// Bodies that are over `max_document` bytes when decompressed are skipped.
    pub fn new(max_document: u64) -> Self {
        Self::taking_turns(max_document, Turn::alone())
    }

    /// As [`new`](Self::new), for one of several that parse at once: long bodies take room of
    /// `turn`, which is given back by [`give_back`](Self::give_back).
    pub(crate) fn taking_turns(max_document: u64, turn: Turn) -> Self {
        let body = BodyDecoder::new(max_document, turn);
        Self { body, html: HtmlText::new(), name: String::new() }
    }

    pub(crate) fn give_back(&mut self) {
        self.body.turn.give_back();
    }

    /// Gives the documents of `piece`, and what should be one and is not, to `sink`, in their
    /// order, in time linear in all bytes when decompressed. `ends_input`: the input ends with the
    /// piece, maybe amid a record. Returns how many records there are; lines are their numbers.
    pub fn parse<S: DocumentSink>(
        &mut self,
        piece: PieceView<'_>,
        ends_input: bool,
        sink: &mut S,
    ) -> u64 {
        let mut records = 0;
        each_record(piece, ends_input, sink, |record, sink| {
            records += 1;
            self.record(&record, sink);
        });
        self.body.shrink();
        self.html.shrink();
        self.name.shrink_to(1 << 10);
        records
    }

    fn record<S: DocumentSink>(&mut self, record: &WarcRecord<'_>, sink: &mut S) {
        let head = &record.head;
        let kind = head.kind;
        let conversion = kind.eq_ignore_ascii_case(b"conversion");
        let wanted = conversion || kind.eq_ignore_ascii_case(b"response");
        let counted = record.fault.is_some();
        let lost = matches!(record.fault, Some(WarcFault::CutShort { .. } | WarcFault::NoContent));
        if !wanted || lost {
            return;
        }
        let page = |page: &Page<'_>| sink.page(page);
        let (text, fields) = match text(&mut self.body, &mut self.html, record, conversion, page) {
            Ok(text) => text,
            Err(Skip::TooLarge { bytes }) => {
                let name = Name::from_raw(head.name(), &mut self.name);
                return sink.large(record.offset, bytes, name.or_empty());
            }
            // One record is one entry among the skipped.
            Err(_) if counted => return,
            Err(skip) => return sink.skipped(record.offset, 0, record.bytes, skip),
        };
        let name = Name::from_raw(head.name(), &mut self.name);
        let WarcRecord { offset, bytes, number: line, .. } = *record;
        let content = Content::Text(text);
        sink.document(Document { name, content, fields, offset, bytes, line });
    }
}

/// The text of a response or a conversion; `take` gets the page that it is of, if it is of one.
fn text<'a>(
    decoder: &'a mut BodyDecoder,
    html: &'a mut HtmlText,
    record: &WarcRecord<'a>,
    conversion: bool,
    take: impl FnOnce(&Page<'_>),
) -> Result<(&'a [u8], &'a FieldTexts), Skip> {
    let (response, kind) = response_of(&record.head, record.content, conversion)?;
    let charset = charset_parameter(response.typed_charset);
    let most = decoder.most;
    let body = decoder.decode(&response).map_err(|error| match error {
        BodyError::TooLong => Skip::TooLong { most },
        BodyError::TooLarge { bytes } => Skip::TooLarge { bytes },
        BodyError::NotInflated { coding } => Skip::BrokenBody { coding },
    })?;
    Ok(match kind {
        WarcContent::Markup(markup) => {
            let name = record.head.name();
            let url = record.head.target_uri;
            take(&Page { name, url, bytes: body, markup, charset });
            html.page(body, markup, charset)
        }
        WarcContent::Plain => (html.plain(body, charset), FieldTexts::NONE),
    })
}

/// The response of a record, unless it is no document.
fn response_of<'a>(
    head: &WarcHead<'a>,
    content: &'a [u8],
    conversion: bool,
) -> Result<(Response<'a>, WarcContent), Skip> {
    let content_type = head.content_type;
    let bare = Response {
        status: 200,
        content_type,
        typed_charset: content_type,
        body: content,
        ..Response::default()
    };
    let response = if conversion { bare } else { http::read(content).unwrap_or(bare) };
    // A collection that names its documents has chosen them, whatever the server said.
    if response.status != 200 && head.trec_id.is_empty() {
        return Err(Skip::HttpStatus { status: response.status });
    }
    let kind = kind_of(&response)?;
    Ok((response, kind))
}

/// What a record is of which only the first bytes are known: a document of this name, or none for a
/// reason; nothing if it is one that is passed over.
pub(crate) fn long_record(bytes: &[u8]) -> Option<Result<String, Skip>> {
    if version_line(bytes, true) != Seen::Yes {
        return Some(Err(Skip::BrokenWarc(WarcFault::NoVersion { bytes: bytes.len() })));
    }
    let head = WarcHead::read(bytes, true)?;
    let conversion = head.kind.eq_ignore_ascii_case(b"conversion");
    if !conversion && !head.kind.eq_ignore_ascii_case(b"response") {
        return None;
    }
    let content = &bytes[head.bytes..];
    let name = |_| String::from_utf8_lossy(head.name()).into_owned();
    Some(response_of(&head, content, conversion).map(name))
}

fn kind_of(response: &Response<'_>) -> Result<WarcContent, Skip> {
    let name = http::media_type(response.content_type);
    for (known, kind) in [
        (&b"text/html"[..], WarcContent::Markup(Markup::Html)),
        (b"application/xhtml+xml", WarcContent::Markup(Markup::Xhtml)),
        (b"text/plain", WarcContent::Plain),
    ] {
        if name.eq_ignore_ascii_case(known) {
            return Ok(kind);
        }
    }
    /// Bytes in which a NUL makes a body binary.
    const HEAD_BYTES: usize = 1024;
    let head = &response.body[..response.body.len().min(HEAD_BYTES)];
    if name.is_empty() && !head.contains(&0) {
        return Ok(WarcContent::Markup(Markup::Html));
    }
    Err(Skip::ContentType(MediaType::new(name)))
}

/// Calls `take` with each record of the piece; `sink` is told what is wrong with them first.
fn each_record<S: DocumentSink>(
    piece: PieceView<'_>,
    ends_input: bool,
    sink: &mut S,
    mut take: impl FnMut(WarcRecord<'_>, &mut S),
) {
    let bytes = piece.bytes;
    let next_from = |from| search(bytes, from, true).unwrap_or(bytes.len());
    let mut offset = piece.first_record();
    let mut number = 0;
    while offset < bytes.len() {
        if version_line(&bytes[offset..], true) != Seen::Yes {
            let next = next_from(offset);
            if !bytes[offset..next].trim_ascii().is_empty() {
                let fault = WarcFault::NoVersion { bytes: next - offset };
                sink.skipped(offset, 0, next - offset, Skip::BrokenWarc(fault));
            }
            offset = next;
            continue;
        }
        let Some(head) = WarcHead::read(&bytes[offset..], true) else { return };
        let start = offset + head.bytes;
        let end = head.content_length.map(|length| start as u64 + length);
        let found = end.map_or(After::Other, |end| after(bytes, end, true));
        let (end, next, fault) = match (found, end) {
            (After::Record(next), Some(end)) => (end as usize, next, None),
            (After::End, Some(end)) => (end as usize, bytes.len(), None),
            _ => {
                let next = next_from(start);
                let end = next - line_ends(&bytes[start..next]);
                let fault = fault(&head, end - start, ends_input && next == bytes.len());
                (end, next, Some(fault))
            }
        };
        if let Some(fault) = fault {
            sink.skipped(offset, 0, end - offset, Skip::BrokenWarc(fault));
        }
        number += 1;
        let content = &bytes[start..end];
        let bytes = end - offset;
        take(WarcRecord { head, offset, number, content, bytes, fault }, sink);
        offset = next;
    }
}

/// Bytes of line ends at the end, which part a record from the next.
fn line_ends(content: &[u8]) -> usize {
    content.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// What is wrong with a record of `bytes` bytes that does not end where its head says.
fn fault(head: &WarcHead<'_>, bytes: usize, ends_input: bool) -> WarcFault {
    match head.content_length {
        None if bytes == 0 => WarcFault::NoContent,
        None => WarcFault::NoLength { bytes },
        Some(expected) if ends_input && expected > bytes as u64 => {
            WarcFault::CutShort { expected, bytes }
        }
        Some(expected) => WarcFault::WrongLength { expected, bytes },
    }
}

#[cfg(test)]
mod tests;

//! Finds the documents of a TREC file.
//!
//! - A document goes from `<DOC>` to `</DOC>`; tags may be in any case. What stands outside is
//!   nothing.
//! - Its name is what `<DOCNO>` holds, without white space around it, else the attribute `id` of
//!   `<DOC>`. A document without a name is skipped, and so is one that ends nowhere.
//! - With a `<DOCHDR>` it is a page from the web (GOV2, WT10g): its text is that of the HTML behind
//!   `</DOCHDR>`, in the character set that the header tells, else the page.
//! - Without, it is text with tags of any names, which are no text; references such as `&amp;` are
//!   decoded. What [`HIDDEN`] elements hold, names and numbers of a document, is no text.

use crate::input::borders::marks::Mark;
use crate::input::document::{Content, Document, DocumentSink, Name, PieceView, Skip};
use crate::text::html::{HtmlText, Markup, Page, attributes, charset_parameter};
use memchr::{memchr, memchr_iter, memrchr_iter};
use std::ops::Range;

/// Elements of documents that are not text.
pub(crate) const HIDDEN: &[&[u8]] =
    &[b"docno", b"docid", b"docoldno", b"dochdr", b"fileid", b"first", b"second"];

const END: &[u8] = b"</doc>";

pub(crate) const DOCUMENT_END: Mark = Mark {
    bytes: END.len(),
    end_bytes: 0,
    first: |bytes, from| {
        let mut places = memchr_iter(b'<', &bytes[from..]).map(|n| from + n);
        Some(places.find(|place| begins(&bytes[*place..], END))? + END.len())
    },
    last: |bytes| {
        let mut places = memrchr_iter(b'<', bytes);
        Some(places.find(|place| begins(&bytes[*place..], END))? + END.len())
    },
};

/// It keeps nothing from piece to piece but its buffers.
#[derive(Debug, Default)]
pub(crate) struct TrecParser {
    pub(super) html: HtmlText,
    /// A name that was made valid.
    name: String,
}

/// The parts of a document, as places in the piece.
struct TrecParts {
    attributes: usize,
    docno: Option<Range<usize>>,
    header: Option<Range<usize>>,
    /// Where the text begins, if there is no header.
    start: usize,
    end: usize,
    /// Where the document ends; nothing if it does not.
    next: Option<usize>,
}

impl TrecParser {
    /// Gives all documents of `piece` to `sink`, in their order, in linear time.
    pub(crate) fn parse<S: DocumentSink>(&mut self, piece: PieceView<'_>, sink: &mut S) {
        let bytes = piece.bytes;
        let mut at = 0;
        let mut any = false;
        while let Some(offset) = next_document(bytes, at) {
            any = true;
            let parts = parts(bytes, offset);
            let length = parts.next.unwrap_or(parts.end) - offset;
            at = offset + length;
            if parts.next.is_none() {
                sink.skipped(offset, 0, length, Skip::NoDocEnd);
                continue;
            }
            let name = name(bytes, &parts);
            if name.is_empty() {
                sink.skipped(offset, 0, length, Skip::NoDocno);
                continue;
            }
            let (text, fields) = match parts.header {
                Some(header) => {
                    let page = &bytes[header.end..parts.end];
                    let charset = charset_parameter(&bytes[header.clone()]);
                    let words = bytes[header].split(u8::is_ascii_whitespace);
                    // The first line of the header begins with the address.
                    let url = words.into_iter().find(|word| !word.is_empty()).unwrap_or_default();
                    let markup = Markup::Html;
                    sink.page(&Page { name, url, bytes: page, markup, charset });
                    self.html.page(page, markup, charset)
                }
                None => {
                    let text = &bytes[parts.start..parts.end];
                    // What was decoded with its file is UTF-8 by now.
                    let label = match std::str::from_utf8(text) {
                        Ok(_) => b"utf-8",
                        Err(_) => self.html.label(),
                    };
                    self.html.page(text, Markup::Sgml { hidden: HIDDEN }, Some(label))
                }
            };
            let name = Name::from_raw(name, &mut self.name);
            sink.document(Document {
                name,
                content: Content::Text(text),
                fields,
                offset,
                bytes: length,
                line: 0,
            });
        }
        // What is left behind the last document of a longer file means nothing.
        if !any && piece.offset == 0 && !bytes[piece.first_record()..].trim_ascii().is_empty() {
            sink.skipped(0, 0, bytes.len(), Skip::NoDoc);
        }
        self.html.shrink();
        self.name.shrink_to(1 << 10);
    }
}

/// Whether `bytes` begin with `tag`, which is in lower case, in any case.
fn begins(bytes: &[u8], tag: &[u8]) -> bool {
    bytes.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag))
}

/// Whether `bytes` begin with the start tag that `tag` begins, `<doc`.
fn is_tag(bytes: &[u8], tag: &[u8]) -> bool {
    begins(bytes, tag) && matches!(bytes.get(tag.len()), Some(b'>' | b' ' | b'\t' | b'\r' | b'\n'))
}

fn next_document(bytes: &[u8], from: usize) -> Option<usize> {
    memchr_iter(b'<', &bytes[from..]).map(|n| from + n).find(|at| is_tag(&bytes[*at..], b"<doc"))
}

/// Finds the parts of the document at `offset`, looking at each of its tags once.
fn parts(bytes: &[u8], offset: usize) -> TrecParts {
    let attributes = offset + b"<doc".len();
    let start = behind_tag(bytes, attributes);
    let mut parts =
        TrecParts { attributes, docno: None, header: None, start, end: bytes.len(), next: None };
    let mut at = start;
    while let Some(n) = memchr(b'<', &bytes[at..]) {
        at += n;
        let rest = &bytes[at..];
        if begins(rest, END) {
            parts.end = at;
            parts.next = Some(at + END.len());
            return parts;
        }
        if parts.docno.is_none() && is_tag(rest, b"<docno") {
            let start = behind_tag(bytes, at);
            let end = memchr(b'<', &bytes[start..]).map_or(bytes.len(), |n| start + n);
            parts.docno = Some(start..end);
            at = end;
        } else if parts.header.is_none() && is_tag(rest, b"<dochdr") {
            let start = behind_tag(bytes, at);
            at = start;
            parts.header = Some(start..start);
        } else {
            if let Some(header) = &mut parts.header
                && header.start == header.end
                && begins(rest, b"</dochdr>")
            {
                *header = header.start..at + b"</dochdr>".len();
            } else if is_tag(rest, b"<doc") && next_is_docno(bytes, at) {
                // Another document begins before this one ends.
                parts.end = at;
                return parts;
            }
            at += 1;
        }
    }
    parts
}

fn behind_tag(bytes: &[u8], at: usize) -> usize {
    memchr(b'>', &bytes[at..]).map_or(bytes.len(), |n| at + n + 1)
}

/// Whether `<DOCNO>` follows the tag `<DOC>` at `at`; in a page the tag may be anything.
fn next_is_docno(bytes: &[u8], at: usize) -> bool {
    /// A tag is not longer; so looking behind it takes no time that adds up.
    const TAG_BYTES: usize = 100;
    let head = &bytes[at..bytes.len().min(at + TAG_BYTES)];
    let behind = behind_tag(head, 0);
    is_tag(head[behind..].trim_ascii_start(), b"<docno")
}

fn name<'a>(bytes: &'a [u8], parts: &TrecParts) -> &'a [u8] {
    if let Some(docno) = &parts.docno {
        return bytes[docno.clone()].trim_ascii();
    }
    let mut id = &bytes[..0];
    let _ = attributes(&bytes[..parts.start], parts.attributes, |name, value| {
        if id.is_empty() && name.eq_ignore_ascii_case(b"id") {
            id = value.trim_ascii();
        }
    });
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;
    use proptest::prelude::*;

    fn parse(bytes: &str) -> KeptDocuments {
        let mut kept = KeptDocuments::default();
        TrecParser::default().parse(PieceView::whole(bytes.as_bytes()), &mut kept);
        kept
    }

    fn named(kept: &KeptDocuments) -> Vec<(&str, String)> {
        let words = |text: &[u8]| {
            String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        kept.documents.iter().map(|d| (d.0.as_deref().unwrap_or(""), words(&d.1))).collect()
    }

    #[test]
    fn text_has_tags_of_any_names() {
        let kept = parse(
            "junk <DOC>\n<DOCNO> A-1 </DOCNO><FILEID>no</FILEID>\n<HEAD>one&amp;two</HEAD><F P=1>three\
             &hyph;four</F>\n</DOC>\n<!-- --><doc id='B'>\n<text>x</text><first>y</doc>\n",
        );
        let expected = [("A-1", "one&two three four".to_owned()), ("B", "x y".to_owned())];
        assert_eq!(named(&kept), expected);
        assert!(kept.skipped.is_empty());
        assert_eq!((kept.documents[0].2, kept.documents[1].2), (5, 117));
    }

    #[test]
    fn pages_have_a_header() {
        let kept = parse(
            "<DOC>\n<DOCNO>G-1</DOCNO>\n<DOCOLDNO>no</DOCOLDNO><DOCHDR>\nhttp://x/\nContent-Type: text/html; \
             charset=latin1\n</DOCHDR>\n<html><b>w</b>ord<script></doc></script>\n</DOC>\
             <DOC><DOCNO>G-2</DOCNO><DOCHDR>open <p>x</DOC>",
        );
        let expected = [("G-1", "word".to_owned()), ("G-2", "open x".to_owned())];
        assert_eq!(named(&kept), expected);
    }

    #[test]
    fn what_has_no_name_or_no_end_is_skipped() {
        let kept = parse(
            "<DOC>1 </DOCNO>x</DOC><DOC><DOCNO>2</DOCNO>x <DOC id=3>\n<DOCNO>3</DOCNO>y <doc> z</DOC>\
             <DOC><DOCNO> </DOCNO></DOC><DOC><DOCNO>5</DOCNO>x",
        );
        assert_eq!(named(&kept), [("3", "y z".to_owned())]);
        let skipped: Vec<_> = kept.skipped.iter().map(|s| (s.0, s.2, s.3)).collect();
        let expected = [
            (0, 22, Skip::NoDocno),
            (22, 23, Skip::NoDocEnd),
            (87, 27, Skip::NoDocno),
            (114, 22, Skip::NoDocEnd),
        ];
        assert_eq!(skipped, expected);
        assert_eq!(parse("<top><num>1</top>").skipped[0].3, Skip::NoDoc);
        assert_eq!(parse(" \n"), KeptDocuments::default());
    }

    proptest! {
        #[test]
        fn law_any_bytes_are_parsed(parts in proptest::collection::vec(proptest::sample::select(vec![
            "<DOC>", "</DOC>", "<doc id=", "<DOCNO>", "</DOCNO>", "<DOCHDR>", "</DOCHDR>", "<", ">", "\n",
            "a", "<p>", "<DOC", "\0", "&", "\u{e9}", "<FIRST>",
        ]), 0..40)) {
            let text = parts.concat();
            let kept = parse(&text);
            let mut end = 0;
            for document in &kept.documents {
                prop_assert!(document.2 >= end);
                end = document.2 + document.3;
                prop_assert!(end <= text.len());
                prop_assert!(document.0.is_some());
            }
        }
    }
}

//! Finds the documents of a dump of MediaWiki (`pages-articles.xml`).
//!
//! A document is a `<page>` of the main namespace that is no redirect; other pages are passed over
//! and not counted. It is called by its title, and its text is the title and what its last revision
//! says without markup ([`wikitext`]). A page without a title, or without an end, is skipped.

use super::KEPT_BUFFER_BYTES;
use crate::input::borders::marks::Mark;
use crate::input::document::{Content, Document, DocumentSink, Name, PieceView, Skip};
use crate::text::fields::{FieldTexts, IndexFields};
use crate::text::html::{HtmlText, Markup};
use crate::text::wikitext;
use memchr::memmem::{find, rfind};

pub(crate) const PAGE: &[u8] = b"<page>";
const END: &[u8] = b"</page>";

pub(crate) const PAGE_END: Mark = Mark {
    bytes: END.len(),
    end_bytes: 0,
    first: |bytes, from| Some(from + find(&bytes[from..], END)? + END.len()),
    last: |bytes| Some(rfind(bytes, END)? + END.len()),
};

/// It keeps nothing from piece to piece but its buffers.
#[derive(Debug, Default)]
pub(crate) struct MediawikiParser {
    html: HtmlText,
    /// The source of a page, and its text without wiki markup.
    source: Vec<u8>,
    text: Vec<u8>,
    title: Vec<u8>,
    name: String,
    fields: IndexFields,
    field_texts: FieldTexts,
}

impl MediawikiParser {
    /// Of these fields `title`, and `text` or `body`, are found.
    pub(super) fn find_fields(&mut self, fields: &IndexFields) {
        self.fields.clone_from(fields);
    }

    /// Gives all articles of `piece` to `sink`, in their order, in time linear in the piece's
    /// length. Returns how many pages there are; they count in the place of lines.
    pub(crate) fn parse<S: DocumentSink>(&mut self, piece: PieceView<'_>, sink: &mut S) -> u64 {
        let bytes = piece.bytes;
        let mut at = 0;
        let mut pages = 0;
        while let Some(n) = find(&bytes[at..], PAGE) {
            let offset = at + n;
            pages += 1;
            let line = piece.line + pages - 1;
            let Some(length) = find(&bytes[offset..], END).map(|n| n + END.len()) else {
                sink.skipped(offset, line, bytes.len() - offset, Skip::NoPageEnd);
                break;
            };
            at = offset + length;
            let page = &bytes[offset..at];
            // What stands before the first revision tells what the page is.
            let head = &page[..find(page, b"<revision").unwrap_or(page.len())];
            if find(head, b"<redirect").is_some()
                || content(head, b"ns").is_some_and(|space| space.trim_ascii() != b"0")
            {
                continue;
            }
            self.title.clear();
            unescape(content(head, b"title").unwrap_or_default(), &mut self.title);
            if self.title.trim_ascii().is_empty() {
                sink.skipped(offset, line, length, Skip::NoTitle);
                continue;
            }
            self.page(page);
            let text = self.html.text(&self.text, Markup::Sgml { hidden: &[] }, Some(b"utf-8"));
            // A title is one line.
            let title = memchr::memchr(b'\n', text);
            sink.parts(title.as_slice());
            self.field_texts.clear();
            let (title, body) = text.split_at(title.unwrap_or(text.len()));
            for (name, text) in [("title", title), ("text", body), ("body", body)] {
                if let Some(field) = self.fields.number(name) {
                    self.field_texts.add(field, text);
                }
            }
            let name = Name::from_raw(self.title.trim_ascii(), &mut self.name);
            sink.document(Document {
                name,
                content: Content::Text(text),
                fields: &self.field_texts,
                offset,
                bytes: length,
                line,
            });
        }
        self.html.shrink();
        self.field_texts.shrink(KEPT_BUFFER_BYTES);
        for buffer in [&mut self.source, &mut self.text] {
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
        pages
    }

    /// Puts together what a page says; HTML tags and references are left in it.
    fn page(&mut self, page: &[u8]) {
        self.source.clear();
        self.text.clear();
        self.text.extend_from_slice(&self.title);
        self.text.extend_from_slice(b"\n\n");
        let last = rfind(page, b"<revision").unwrap_or(0);
        if let Some(source) = content(&page[last..], b"text") {
            unescape(source, &mut self.source);
            wikitext::strip(&self.source, &mut self.text);
        }
    }
}

/// What stands in the first element of a name, as it is written.
fn content<'a>(bytes: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let tag = [b"<", name].concat();
    let mut from = 0;
    loop {
        let at = from + find(&bytes[from..], &tag)?;
        from = at + tag.len();
        if matches!(bytes.get(from), Some(b'>' | b' ' | b'\t' | b'\n' | b'/')) {
            let start = from + memchr::memchr(b'>', &bytes[from..])? + 1;
            if bytes[..start].ends_with(b"/>") {
                return Some(&[]);
            }
            let end = find(&bytes[start..], &[b"</", name, b">"].concat())?;
            return Some(&bytes[start..start + end]);
        }
    }
}

/// Decodes the five references of XML; others stay as they are.
fn unescape(bytes: &[u8], out: &mut Vec<u8>) {
    const REFERENCES: [(&[u8], u8); 5] =
        [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    let mut at = 0;
    while let Some(n) = memchr::memchr(b'&', &bytes[at..]) {
        out.extend_from_slice(&bytes[at..at + n]);
        at += n;
        let known = REFERENCES.iter().find(|(reference, _)| bytes[at..].starts_with(reference));
        let (reference, byte) =
            known.map_or((&b"&"[..], b'&'), |&(reference, byte)| (reference, byte));
        out.push(byte);
        at += reference.len();
    }
    out.extend_from_slice(&bytes[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;

    #[test]
    fn articles_are_documents() {
        let dump = "<mediawiki xml:lang=\"en\">\n<siteinfo><title>no</title></siteinfo>\n\
            <page>\n<title>A &amp; B</title><ns>0</ns><id>1</id><revision><id>7</id>\n\
            <text bytes=\"9\" xml:space=\"preserve\">[[mill|Mills]] &amp;mdash; &lt;b&gt;grind&lt;/b&gt;&lt;ref&gt;no&lt;/ref&gt; {{no}}grain&amp;nbsp;well</text></revision></page>\n\
            <page><title>Talk:A</title><ns>1</ns><revision><text>no</text></revision></page>\n\
            <page><title>R</title><ns>0</ns><redirect title=\"A\" /><revision><text>no</text></revision></page>\n\
            <page><title> </title><ns>0</ns><revision><text>no</text></revision></page>\n\
            <page><title>Empty</title><ns>0</ns><revision><text /></revision></page>\n\
            <page><title>Cut</title>";
        let mut kept = KeptDocuments::default();
        let mut parser = MediawikiParser::default();
        assert_eq!(parser.parse(PieceView::whole(dump.as_bytes()), &mut kept), 6);
        let rows: Vec<(String, String)> = kept
            .documents
            .iter()
            .map(|d| {
                let text = String::from_utf8_lossy(&d.1).into_owned();
                (d.0.clone().unwrap(), text.split_whitespace().collect::<Vec<_>>().join(" "))
            })
            .collect();
        let row = |name: &str, text: &str| (name.to_string(), text.to_string());
        assert_eq!(rows, [row("A & B", "A & B Mills grind grain well"), row("Empty", "Empty")]);
        let skipped: Vec<_> = kept.skipped.iter().map(|s| s.3).collect();
        assert_eq!(skipped, [Skip::NoTitle, Skip::NoPageEnd]);
        assert!(dump[kept.documents[0].2..].starts_with("<page>\n<title>A"));
    }
}

//! Text of HTML pages: all that stands outside tags, comments and the elements that show nothing
//! (`script`, `style`, `iframe` and `template`). The title is text, and so is the content of
//! `noscript`, `noframes` and `noembed`, since nothing is run or framed here. Attributes are not.
//!
//! The page is read as by the tokenizer of the HTML standard (section 13.2.5), so broken markup
//! gives the same text as in a browser; no tree is built. Words end where a browser would end them:
//! tags that format a part of a line (`b`, `a`, `span`, ...) do not separate, all others do.
//!
//! The result is for the tokenizer, so words matter and layout does not: references such as
//! `&mdash;` that stand for no letter and no digit become blanks, and so does most white space.
//!
//! Measured in `jobs/experiments/benches/html.rs`.

use super::fields::{FieldTexts, IndexFields};
use encoding_rs::{CoderResult, Encoding, UTF_8};

pub(crate) use anchors::{Anchor, Page};
pub(crate) use charset::charset_parameter;
pub(crate) use markup::attributes;

mod anchors;
mod charset;
mod elements;
mod markup;
mod raw;
mod references;
pub(super) mod tags;

/// A buffer that one long page made larger is shrunk to this.
const KEPT_BUFFER_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    Html,
    /// HTML in the syntax of XML: `<script/>` is a whole element, and CDATA sections are text.
    Xhtml,
    /// SGML with any tags: all separate words, and a reference to an unknown entity is a blank.
    Sgml {
        /// Elements that are not text, in any case.
        hidden: &'static [&'static [u8]],
    },
}

#[derive(Debug, Default)]
pub struct HtmlText {
    decoded: String,
    text: Vec<u8>,
    /// The fields of the index, and what of the last page is text of them.
    fields: IndexFields,
    field_texts: FieldTexts,
    /// The encoding of what names none; UTF-8 if it is not given.
    otherwise: Option<&'static Encoding>,
}

impl HtmlText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what names no encoding to be in this one, from now on.
    pub(crate) fn expect(&mut self, encoding: Option<&'static Encoding>) {
        self.otherwise = encoding;
    }

    /// Pages have the texts of these fields from now on.
    pub(crate) fn find_fields(&mut self, fields: &IndexFields) {
        self.fields.clone_from(fields);
    }

    /// As [`text`](Self::text), with the texts of fields.
    pub(crate) fn page(
        &mut self,
        page: &[u8],
        markup: Markup,
        charset: Option<&[u8]>,
    ) -> (&[u8], &FieldTexts) {
        self.text(page, markup, charset);
        (&self.text, &self.field_texts)
    }

    pub(crate) fn label(&self) -> &'static [u8] {
        self.otherwise.unwrap_or(UTF_8).name().as_bytes()
    }

    /// The text of `page`. Its character set is that of its byte order mark, else of `charset`, a
    /// label from outside such as an HTTP header's, else of a `meta` tag among its first bytes;
    /// else it is UTF-8. Bytes that are not UTF-8 are passed on unchanged. Takes linear time,
    /// whatever the bytes.
    pub fn text(&mut self, page: &[u8], markup: Markup, charset: Option<&[u8]>) -> &[u8] {
        let otherwise = self.otherwise.unwrap_or(UTF_8);
        let (encoding, mark) = charset::of_page(page, charset).unwrap_or((otherwise, 0));
        self.text.clear();
        let page = in_utf8(&page[mark..], encoding, &mut self.decoded);
        markup::extract(page, markup, &mut self.text);
        self.field_texts.clear();
        if !self.fields.is_empty() {
            let (text, fields) = (&self.text, &self.fields);
            elements::find(page, markup, text, fields, &mut self.field_texts);
        }
        &self.text
    }

    /// Calls `take` with each link of `page`, in order. Takes linear time, whatever the bytes.
    pub(crate) fn anchors(&mut self, page: &Page<'_>, take: impl FnMut(Anchor<'_>)) {
        let found = charset::of_page(page.bytes, page.charset);
        let (encoding, mark) = found.unwrap_or((self.otherwise.unwrap_or(UTF_8), 0));
        let text = in_utf8(&page.bytes[mark..], encoding, &mut self.decoded);
        anchors::find(text, page.markup, take);
    }

    /// `text` without markup, in UTF-8; its character set is a page's, except for `meta` tags.
    pub(crate) fn plain<'a>(&'a mut self, text: &'a [u8], charset: Option<&[u8]>) -> &'a [u8] {
        let (encoding, mark) =
            charset::from_outside(text, charset).unwrap_or((self.otherwise.unwrap_or(UTF_8), 0));
        in_utf8(&text[mark..], encoding, &mut self.decoded)
    }

    pub(crate) fn shrink(&mut self) {
        self.decoded.clear();
        self.decoded.shrink_to(KEPT_BUFFER_BYTES);
        self.text.clear();
        self.text.shrink_to(KEPT_BUFFER_BYTES);
        self.field_texts.shrink(KEPT_BUFFER_BYTES);
    }
}

/// `bytes` in UTF-8; `decoded` holds them if they are in another character set.
fn in_utf8<'a>(bytes: &'a [u8], encoding: &'static Encoding, decoded: &'a mut String) -> &'a [u8] {
    if encoding == UTF_8 || encoding.is_ascii_compatible() && bytes.is_ascii() {
        return bytes;
    }
    decoded.clear();
    // The worst case is three times the bytes, which hardly any page needs.
    decoded.reserve(bytes.len() + bytes.len() / 2 + 16);
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut at = 0;
    loop {
        let (result, read, _) = decoder.decode_to_string(&bytes[at..], decoded, true);
        at += read;
        match result {
            CoderResult::InputEmpty => return decoded.as_bytes(),
            CoderResult::OutputFull => decoded.reserve((bytes.len() - at) * 2 + 64),
        }
    }
}

#[cfg(test)]
mod tests;

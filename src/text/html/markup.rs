//! Where do text, tags and comments begin and end?
//!
//! This is the tokenizer of the HTML standard (section 13.2.5) without its errors and without
//! attributes: text is copied in runs, tags are stepped over state by state, because only that tells
//! a `>` in an attribute's value from the tag's end. Every step moves on, so time is linear. Some
//! pages end inside a tag or a comment; what they begin with is dropped, as the standard has it.
//!
//! What it leaves to a parser is not done: CDATA sections within `svg` and `math` are comments, and
//! scripts and styles within them are raw text as elsewhere.

use super::{Markup, raw, references};
use memchr::{memchr, memchr2};

/// Appends the text of `page`, which is in UTF-8, to `out`.
pub(super) fn extract(page: &[u8], markup: Markup, out: &mut Vec<u8>) {
    // Nearly always enough; text is seldom longer than its page.
    out.reserve(page.len() + 64);
    let mut extractor =
        Extractor { page, markup, out, at: 0, templates: 0, hidden_from: 0, unclosed: false };
    extractor.run();
    if extractor.templates > 0 {
        let hidden_from = extractor.hidden_from;
        out.truncate(hidden_from);
    }
}

struct Extractor<'a> {
    page: &'a [u8],
    markup: Markup,
    out: &'a mut Vec<u8>,
    at: usize,
    /// Open `template` elements, and where in `out` the text of the outermost begins.
    templates: u32,
    hidden_from: usize,
    /// A hidden element of SGML was found that is not closed.
    unclosed: bool,
}

impl Extractor<'_> {
    fn run(&mut self) {
        let page = self.page;
        loop {
            let rest = &page[self.at..];
            let Some(length) = memchr2(b'<', b'&', rest) else {
                self.out.extend_from_slice(rest);
                return;
            };
            self.out.extend_from_slice(&rest[..length]);
            self.at += length;
            let rest = &rest[length..];
            match rest {
                [b'&', ..] => self.reference(),
                [b'<', first, ..] if first.is_ascii_alphabetic() => self.start_tag(),
                [b'<', b'/', first, ..] if first.is_ascii_alphabetic() => self.end_tag(),
                [b'<', b'/', b'>', ..] => self.at += 3,
                [b'<', b'/', _, ..] | [b'<', b'?', ..] => self.skip_past_angle(2),
                [b'<', b'!', ..] => self.declaration(),
                _ => {
                    self.out.push(b'<');
                    self.at += 1;
                }
            }
        }
    }

    /// Steps over the reference here, or over a `&` that begins none.
    fn reference(&mut self) {
        self.at += 1;
        let rest = &self.page[self.at..];
        let taken = references::append(rest, matches!(self.markup, Markup::Sgml { .. }), self.out);
        if taken == 0 {
            self.out.push(b'&');
        }
        self.at += taken;
    }

    /// Steps past the next `>`, `from` bytes from here on.
    fn skip_past_angle(&mut self, from: usize) {
        let start = (self.at + from).min(self.page.len());
        self.at = memchr(b'>', &self.page[start..]).map_or(self.page.len(), |n| start + n + 1);
    }

    /// Steps over a comment, a document type, or anything else that begins with `<!`.
    fn declaration(&mut self) {
        let rest = &self.page[self.at..];
        if rest.starts_with(b"<!--") {
            self.at = comment_end(self.page, self.at);
        } else if self.markup == Markup::Xhtml && rest.starts_with(CDATA) {
            let text = &rest[CDATA.len()..];
            let length = memchr::memmem::find(text, b"]]>").unwrap_or(text.len());
            self.out.extend_from_slice(&text[..length]);
            self.at = (self.at + CDATA.len() + length + 3).min(self.page.len());
        } else {
            self.skip_past_angle(2);
        }
    }

    /// Marks a place that parts words.
    fn separate(&mut self) {
        if self.out.last().is_some_and(|last| *last > b' ') {
            self.out.push(b'\n');
        }
    }

    fn start_tag(&mut self) {
        let start = self.at + 1;
        let (name, after) = name_at(self.page, start);
        let Some(end) = tag_end(self.page, after) else { return self.at = self.page.len() };
        self.at = end;
        if let Markup::Sgml { hidden } = self.markup {
            return self.start_sgml(start, after, hidden);
        }
        if is_inline(name) {
            return;
        }
        self.separate();
        if self.markup == Markup::Xhtml && self.page[end - 2] == b'/' {
            return;
        }
        match name {
            SCRIPT => self.at = raw::script_end(self.page, end),
            STYLE => self.at = raw::end_tag(self.page, end, b"style"),
            IFRAME => self.at = raw::end_tag(self.page, end, b"iframe"),
            TITLE => self.text_with_references(b"title"),
            TEXTAREA => self.text_with_references(b"textarea"),
            XMP => self.text_until(raw::end_tag(self.page, end, b"xmp")),
            TEMPLATE => {
                if self.templates == 0 {
                    self.hidden_from = self.out.len();
                }
                self.templates += 1;
            }
            0 if self.page[start..after].eq_ignore_ascii_case(b"plaintext") => {
                self.text_until(self.page.len());
            }
            _ => {}
        }
    }

    /// Is behind a start tag of SGML, whose name stands at `start..after`.
    fn start_sgml(&mut self, start: usize, after: usize, hidden: &[&[u8]]) {
        self.separate();
        let name = &self.page[start..after];
        if !self.unclosed && hidden.iter().any(|hidden| hidden.eq_ignore_ascii_case(name)) {
            let end = raw::end_tag(self.page, self.at, name);
            // An element that nothing closes hides nothing; to look once for that is enough.
            self.unclosed = end == self.page.len();
            if !self.unclosed {
                self.at = end;
            }
        }
    }

    fn end_tag(&mut self) {
        let (name, after) = name_at(self.page, self.at + 2);
        let Some(end) = tag_end(self.page, after) else { return self.at = self.page.len() };
        self.at = end;
        if is_inline(name) && !matches!(self.markup, Markup::Sgml { .. }) {
            return;
        }
        if name == TEMPLATE && self.templates > 0 {
            self.templates -= 1;
            if self.templates == 0 {
                self.out.truncate(self.hidden_from);
            }
        }
        self.separate();
    }

    /// Takes all up to `end` as it is.
    fn text_until(&mut self, end: usize) {
        self.out.extend_from_slice(&self.page[self.at..end]);
        self.at = end;
    }

    /// Takes all up to the end tag of `name` as text, in which only references mean something.
    fn text_with_references(&mut self, name: &[u8]) {
        let end = raw::end_tag(self.page, self.at, name);
        while let Some(length) = memchr(b'&', &self.page[self.at..end]) {
            self.text_until(self.at + length);
            self.reference();
        }
        self.text_until(end);
    }
}

pub(super) const CDATA: &[u8] = b"<![CDATA[";

/// What ends a name and parts attributes: white space as HTML has it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// Behind the comment that begins at `start` with `<!--`.
pub(super) fn comment_end(page: &[u8], start: usize) -> usize {
    let dashes = start + 2;
    let mut at = start + 4;
    while let Some(n) = memchr(b'>', &page[at..]) {
        at += n;
        // `<!-->` and `<!--->` are whole comments, `<!--!>` and `<!---!>` are not.
        let content = &page[dashes..at];
        if content.ends_with(b"--") || content.len() >= 5 && content.ends_with(b"--!") {
            return at + 1;
        }
        at += 1;
    }
    page.len()
}

/// A tag's name of up to eight bytes in one number, in lower case; 0 for a longer one.
pub(super) type TagName = u64;

pub(super) const fn tag(name: &[u8]) -> TagName {
    let (mut packed, mut i) = (0, 0);
    while i < name.len() {
        packed = packed << 8 | name[i] as TagName;
        i += 1;
    }
    packed
}

pub(super) const SCRIPT: TagName = tag(b"script");
pub(super) const STYLE: TagName = tag(b"style");
pub(super) const IFRAME: TagName = tag(b"iframe");
pub(super) const TITLE: TagName = tag(b"title");
pub(super) const TEXTAREA: TagName = tag(b"textarea");
pub(super) const XMP: TagName = tag(b"xmp");
pub(super) const TEMPLATE: TagName = tag(b"template");

macro_rules! any_tag {
    ($name:expr, $($tag:literal)*) => { $($name == const { tag($tag) })||* };
}

/// Whether the tag formats a part of a line, so that a word goes on behind it.
#[inline]
fn is_inline(name: TagName) -> bool {
    if name < 0x100 {
        return any_tag!(name, b"a" b"b" b"i" b"q" b"s" b"u");
    }
    any_tag!(
        name,
        b"span" b"em" b"code" b"font" b"strong" b"tt" b"abbr" b"acronym" b"bdi" b"bdo" b"big"
        b"blink" b"cite" b"data" b"del" b"dfn" b"ins" b"kbd" b"label" b"mark" b"nobr" b"samp"
        b"small" b"strike" b"sub" b"sup" b"time" b"var" b"wbr"
    )
}

/// What a byte does to a name: 0 ends it, all others go on as the byte in lower case.
const NAME_BYTE: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        // A NUL, which no name that matters has, must not look like an end.
        table[byte] = if b == 0 { 1 } else { b.to_ascii_lowercase() };
        byte += 1;
    }
    let ends = b"\t\n\x0c\r />";
    let mut i = 0;
    while i < ends.len() {
        table[ends[i] as usize] = 0;
        i += 1;
    }
    table
};

/// The name of the tag that begins at `start`, and where it ends.
#[inline]
pub(super) fn name_at(page: &[u8], start: usize) -> (TagName, usize) {
    let (mut name, mut at) = (0, start);
    while let Some(byte) = page.get(at).map(|byte| NAME_BYTE[usize::from(*byte)])
        && byte != 0
    {
        name = name << 8 | TagName::from(byte);
        at += 1;
    }
    (if at - start <= 8 { name } else { 0 }, at)
}

/// Behind the tag whose attributes may begin at `at`; nothing if the page ends before.
#[inline]
fn tag_end(page: &[u8], at: usize) -> Option<usize> {
    if page.get(at) == Some(&b'>') {
        return Some(at + 1);
    }
    attributes(page, at, |_, _| {})
}

/// Calls `take` with the name and the value of each attribute from `at` on, and returns where the tag
/// ends; nothing if the page ends before.
#[inline]
pub(crate) fn attributes<'a>(
    page: &'a [u8],
    mut at: usize,
    mut take: impl FnMut(&'a [u8], &'a [u8]),
) -> Option<usize> {
    loop {
        match *page.get(at)? {
            b'>' => return Some(at + 1),
            byte if is_space(byte) || byte == b'/' => {
                at += 1;
                continue;
            }
            _ => {}
        }
        // The first byte of a name may be anything, even `=`.
        let name = at;
        at += 1;
        while NAME_BYTE[usize::from(*page.get(at)?)] != 0 && page[at] != b'=' {
            at += 1;
        }
        let name = &page[name..at];
        while is_space(*page.get(at)?) {
            at += 1;
        }
        if page[at] != b'=' {
            take(name, b"");
            continue;
        }
        at += 1;
        while is_space(*page.get(at)?) {
            at += 1;
        }
        let value = at;
        match page[at] {
            quote @ (b'"' | b'\'') => {
                at += memchr(quote, &page[at + 1..])? + 2;
                take(name, &page[value + 1..at - 1]);
            }
            b'>' => {
                take(name, b"");
                return Some(at + 1);
            }
            _ => {
                while *page.get(at)? != b'>' && !is_space(page[at]) {
                    at += 1;
                }
                take(name, &page[value..at]);
            }
        }
    }
}

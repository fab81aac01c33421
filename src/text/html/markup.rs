//! The borders of text, tags and comments in a page.
//!
//! This is the tokenizer of the HTML standard (section 13.2.5) without its errors and attributes.
//! Regular markup is [swept](crate::text::sweep); else text is copied in runs and tags are stepped
//! over state by state, because only that tells a `>` in an attribute's value from the tag's end.
//! Every step advances, so time is linear. A tag or comment that the page's end cuts is dropped, as
//! in the standard.
//!
//! Left out is what the standard leaves to a parser: CDATA sections within `svg` and `math` are
//! comments, and scripts and styles within them are raw text as elsewhere.

use super::tags::{NAME_BYTE, TagRole, is_space, name_at, role_of};
use super::{Markup, raw, references};
use crate::text::marks::PageMarks;
use crate::text::sweep::{self, Sweep, SweepStop};
use memchr::memchr;

/// Appends the text of `page`, which is in UTF-8, to `out`.
pub(super) fn extract(page: &[u8], markup: Markup, out: &mut Vec<u8>) {
    extract_by(sweep::best(), page, markup, out);
}

pub(super) fn extract_by(sweep: Option<Sweep>, page: &[u8], markup: Markup, out: &mut Vec<u8>) {
    // Nearly always enough; text is seldom longer than its page.
    out.reserve(page.len() + 2 * SHORT_RUN);
    let mut extractor = Extractor {
        page,
        markup,
        out,
        marks: &mut None,
        at: 0,
        templates: 0,
        hidden_from: 0,
        unclosed: false,
        // Tags of SGML have no meaning.
        sweep: sweep.filter(|_| !matches!(markup, Markup::Sgml { .. })),
        stepped_until: 0,
    };
    extractor.run();
    if extractor.templates > 0 {
        let hidden_from = extractor.hidden_from;
        out.truncate(hidden_from);
    }
}

/// Text of at most this many bytes is copied without a loop.
const SHORT_RUN: usize = 32;

struct Extractor<'a> {
    page: &'a [u8],
    markup: Markup,
    out: &'a mut Vec<u8>,
    /// Made when something is stepped through.
    marks: &'a mut Option<PageMarks<'a>>,
    at: usize,
    /// Open `template` elements, and where the text of the outermost begins in `out`.
    templates: u32,
    hidden_from: usize,
    /// A hidden element of SGML was found that is not closed.
    unclosed: bool,
    sweep: Option<Sweep>,
    /// Up to here the page is not swept.
    stepped_until: usize,
}

impl Extractor<'_> {
    fn run(&mut self) {
        let page = self.page;
        loop {
            let end = if self.swept() {
                self.at
            } else {
                self.marks.get_or_insert_with(|| PageMarks::new(page)).text_end(self.at)
            };
            self.text_until(end);
            let rest = &page[end..];
            if let [b'<', first, second, ..] = *rest {
                let is_end = first == b'/';
                if (if is_end { second } else { first }).is_ascii_alphabetic() {
                    self.tag(end + 1 + usize::from(is_end), is_end);
                    continue;
                }
            }
            match rest {
                [] => return,
                [b'&', ..] => self.reference(),
                // Its second byte is the page's last.
                [b'<', first] if first.is_ascii_alphabetic() => self.at = page.len(),
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

    /// Sweeps as far as it can; returns whether a `<`, a `&` or the page's end follows.
    fn swept(&mut self) -> bool {
        let Some(sweep) = self.sweep.filter(|_| self.at >= self.stepped_until) else {
            return false;
        };
        loop {
            match sweep(self.page, &mut self.at, self.out) {
                SweepStop::Behind { name, after, is_end, role } => {
                    self.rare_tag(name, after, is_end, role);
                }
                SweepStop::Here => {
                    return matches!(self.page.get(self.at), None | Some(b'<' | b'&'));
                }
                SweepStop::Odd { until } => {
                    self.stepped_until = until;
                    return false;
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

    /// Steps past the next `>` from `from` bytes ahead on.
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

    fn separate(&mut self) {
        if self.out.last().is_some_and(|last| *last > b' ') {
            self.out.push(b'\n');
        }
    }

    /// The end of the tag whose attributes may begin at `at`; `None` if the page ends before. This
    /// is [`attributes`] without their names: it steps over quoted values after a name and `=`, and
    /// leaves other forms to that function.
    #[inline(always)]
    fn tag_end(&mut self, mut at: usize) -> Option<usize> {
        let page = self.page;
        let marks = self.marks.get_or_insert_with(|| PageMarks::new(page));
        loop {
            // No attribute is under way here, so the first of these marks is not part of a value.
            let mark = marks.in_tag(at);
            match page.get(mark)? {
                b'>' => return Some(mark + 1),
                b'=' if mark > at && NAME_BYTE[usize::from(page[mark - 1])] != 0 => {
                    let quote = *page.get(mark + 1)?;
                    if !matches!(quote, b'"' | b'\'') {
                        break;
                    }
                    let mut end = marks.in_tag(mark + 2);
                    while *page.get(end)? != quote {
                        end = marks.in_tag(end + 1);
                    }
                    at = end + 1;
                }
                _ => break,
            }
        }
        attributes(page, at, |_, _| {})
    }

    #[inline(always)]
    fn tag(&mut self, start: usize, is_end: bool) {
        let (name, after) = name_at(self.page, start);
        let Some(end) = self.tag_end(after) else { return self.at = self.page.len() };
        self.at = end;
        let role = role_of(name);
        if role > TagRole::Inline || name == 0 || matches!(self.markup, Markup::Sgml { .. }) {
            return self.rare_tag(start, after, is_end, role);
        }
        self.separate_if(role == TagRole::Block);
    }

    /// [`Self::separate`], if `parts`. Branch-free, since which tags separate cannot be predicted.
    #[inline(always)]
    fn separate_if(&mut self, parts: bool) {
        let length = self.out.len();
        let after_word = self.out.last().is_some_and(|last| *last > b' ');
        self.out.push(b'\n');
        self.out.truncate(length + usize::from(parts & after_word));
    }

    /// Handles a tag with a meaning, or one of SGML, whose name is at `start..after`.
    #[inline(never)]
    fn rare_tag(&mut self, start: usize, after: usize, is_end: bool, role: TagRole) {
        match self.markup {
            Markup::Sgml { .. } if is_end => self.separate(),
            Markup::Sgml { hidden } => self.start_sgml(start, after, hidden),
            _ if is_end => self.end_tag(role),
            _ => self.start_tag(start, after, role),
        }
    }

    fn start_tag(&mut self, start: usize, after: usize, role: TagRole) {
        let end = self.at;
        self.separate();
        if self.markup == Markup::Xhtml && self.page[end - 2] == b'/' {
            return;
        }
        match role {
            TagRole::Script => self.at = raw::script_end(self.page, end),
            TagRole::Style => self.at = raw::end_tag(self.page, end, b"style"),
            TagRole::Iframe => self.at = raw::end_tag(self.page, end, b"iframe"),
            TagRole::Title => self.text_with_references(b"title"),
            TagRole::Textarea => self.text_with_references(b"textarea"),
            TagRole::Xmp => self.text_until(raw::end_tag(self.page, end, b"xmp")),
            TagRole::Template => {
                if self.templates == 0 {
                    self.hidden_from = self.out.len();
                }
                self.templates += 1;
            }
            TagRole::Block if self.page[start..after].eq_ignore_ascii_case(b"plaintext") => {
                self.text_until(self.page.len());
            }
            _ => {}
        }
    }

    fn start_sgml(&mut self, start: usize, after: usize, hidden: &[&[u8]]) {
        self.separate();
        let name = &self.page[start..after];
        if !self.unclosed && hidden.iter().any(|hidden| hidden.eq_ignore_ascii_case(name)) {
            let end = raw::end_tag(self.page, self.at, name);
            // An element that nothing closes hides nothing; one search shows that.
            self.unclosed = end == self.page.len();
            if !self.unclosed {
                self.at = end;
            }
        }
    }

    fn end_tag(&mut self, role: TagRole) {
        if role == TagRole::Template && self.templates > 0 {
            self.templates -= 1;
            if self.templates == 0 {
                self.out.truncate(self.hidden_from);
            }
        }
        self.separate();
    }

    /// Appends all up to `end` unchanged.
    #[inline(always)]
    fn text_until(&mut self, end: usize) {
        let length = end - self.at;
        // Most text between tags is short, and a copy of fixed size is faster.
        if length <= SHORT_RUN
            && let Some(run) = self.page[self.at..].first_chunk::<SHORT_RUN>()
        {
            let before = self.out.len();
            self.out.extend_from_slice(run);
            self.out.truncate(before + length);
        } else {
            self.out.extend_from_slice(&self.page[self.at..end]);
        }
        self.at = end;
    }

    /// Appends all up to the end tag of `name` as text with references.
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

/// The end of the comment that begins at `start` with `<!--`.
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

/// Calls `take` with the name and value of each attribute from `at` on and returns the end of the
/// tag; `None` if the page ends before.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::html::tags::any_name_at;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn oracle_names_and_ends_of_tags(
            parts in proptest::collection::vec(prop_oneof![
                proptest::sample::select(vec![
                    "=", "\"", "'", ">", "<", "&", "/", " ", "\t", "a", "AB", "h1", "-", ":", "é", "\0", "=\"", "x='", "abcdefgh",
                ]).prop_map(|part| part.as_bytes().to_vec()),
                proptest::collection::vec(any::<u8>(), 1..3),
            ], 0..30),
        ) {
            let page = parts.concat();
            let (name, after) = any_name_at(&page, 0);
            let (found, end) = name_at(&page, 0);
            prop_assert_eq!(end, after);
            prop_assert!(role_of(found) == role_of(name) && (found == 0) == (name == 0));
            let mut out = Vec::new();
            let mut extractor = Extractor {
                page: &page,
                markup: Markup::Html,
                out: &mut out,
                marks: &mut None,
                at: 0,
                templates: 0,
                hidden_from: 0,
                unclosed: false,
                sweep: None,
                stepped_until: 0,
            };
            prop_assert_eq!(extractor.tag_end(after), attributes(&page, after, |_, _| {}));
        }
    }
}

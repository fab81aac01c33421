//! Where do text, tags and comments begin and end?
//!
//! This is the tokenizer of the HTML standard (section 13.2.5) without its errors and without
//! attributes. What is regular is [swept](crate::text::sweep); else text is copied in runs, tags are stepped over state by state, because only that tells
//! a `>` in an attribute's value from the tag's end. Every step moves on, so time is linear. Some
//! pages end inside a tag or a comment; what they begin with is dropped, as the standard has it.
//!
//! What it leaves to a parser is not done: CDATA sections within `svg` and `math` are comments, and
//! scripts and styles within them are raw text as elsewhere.

use super::{Markup, raw, references};
use crate::text::marks::Marks;
use crate::text::sweep::{self, Stop, Sweep};
use memchr::memchr;

/// Appends the text of `page`, which is in UTF-8, to `out`.
pub(super) fn extract(page: &[u8], markup: Markup, out: &mut Vec<u8>) {
    extract_by(sweep::best(), page, markup, out);
}

/// As [`extract`], swept in this way.
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

/// Text of so many bytes is copied without a loop.
const SHORT_RUN: usize = 32;

struct Extractor<'a> {
    page: &'a [u8],
    markup: Markup,
    out: &'a mut Vec<u8>,
    /// Made where something is stepped through.
    marks: &'a mut Option<Marks<'a>>,
    at: usize,
    /// Open `template` elements, and where in `out` the text of the outermost begins.
    templates: u32,
    hidden_from: usize,
    /// A hidden element of SGML was found that is not closed.
    unclosed: bool,
    /// How pages are swept, if they are.
    sweep: Option<Sweep>,
    /// Up to here no part of the page is.
    stepped_until: usize,
}

impl Extractor<'_> {
    fn run(&mut self) {
        let page = self.page;
        loop {
            let end = if self.swept() {
                self.at
            } else {
                self.marks.get_or_insert_with(|| Marks::new(page)).text_end(self.at)
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

    /// Takes what can be swept. Tells whether it stops at what has to be looked at.
    fn swept(&mut self) -> bool {
        let Some(sweep) = self.sweep.filter(|_| self.at >= self.stepped_until) else {
            return false;
        };
        loop {
            match sweep(self.page, &mut self.at, self.out) {
                Stop::Behind { name, after, is_end, role } => {
                    self.rare_tag(name, after, is_end, role);
                }
                Stop::Here => return matches!(self.page.get(self.at), None | Some(b'<' | b'&')),
                Stop::Odd { until } => {
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

    /// Behind the tag whose attributes may begin at `at`; nothing if the page ends before.
    ///
    /// [`attributes`] without their names: values in quotes, before which stands `=` right behind a name, are stepped over.
    /// What is written in another way is left to it.
    #[inline(always)]
    fn tag_end(&mut self, mut at: usize) -> Option<usize> {
        let page = self.page;
        let marks = self.marks.get_or_insert_with(|| Marks::new(page));
        loop {
            // Here no attribute is under way, so that the first of these marks is no part of a value.
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

    /// Steps over the tag whose name begins at `start`.
    #[inline(always)]
    fn tag(&mut self, start: usize, is_end: bool) {
        let (name, after) = name_at(self.page, start);
        let Some(end) = self.tag_end(after) else { return self.at = self.page.len() };
        self.at = end;
        let role = role_of(name);
        if role > Role::Inline || name == 0 || matches!(self.markup, Markup::Sgml { .. }) {
            return self.rare_tag(start, after, is_end, role);
        }
        self.separate_if(role == Role::Block);
    }

    /// Marks a place that parts words, if it does. Which tags do, and behind what, nobody can foretell, so there is no branch.
    #[inline(always)]
    fn separate_if(&mut self, parts: bool) {
        let length = self.out.len();
        let after_word = self.out.last().is_some_and(|last| *last > b' ');
        self.out.push(b'\n');
        self.out.truncate(length + usize::from(parts & after_word));
    }

    /// Is behind a tag that means something, or one of SGML, whose name stands at `start..after`.
    #[inline(never)]
    fn rare_tag(&mut self, start: usize, after: usize, is_end: bool, role: Role) {
        match self.markup {
            Markup::Sgml { .. } if is_end => self.separate(),
            Markup::Sgml { hidden } => self.start_sgml(start, after, hidden),
            _ if is_end => self.end_tag(role),
            _ => self.start_tag(start, after, role),
        }
    }

    fn start_tag(&mut self, start: usize, after: usize, role: Role) {
        let end = self.at;
        self.separate();
        if self.markup == Markup::Xhtml && self.page[end - 2] == b'/' {
            return;
        }
        match role {
            Role::Script => self.at = raw::script_end(self.page, end),
            Role::Style => self.at = raw::end_tag(self.page, end, b"style"),
            Role::Iframe => self.at = raw::end_tag(self.page, end, b"iframe"),
            Role::Title => self.text_with_references(b"title"),
            Role::Textarea => self.text_with_references(b"textarea"),
            Role::Xmp => self.text_until(raw::end_tag(self.page, end, b"xmp")),
            Role::Template => {
                if self.templates == 0 {
                    self.hidden_from = self.out.len();
                }
                self.templates += 1;
            }
            Role::Block if self.page[start..after].eq_ignore_ascii_case(b"plaintext") => {
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

    fn end_tag(&mut self, role: Role) {
        if role == Role::Template && self.templates > 0 {
            self.templates -= 1;
            if self.templates == 0 {
                self.out.truncate(self.hidden_from);
            }
        }
        self.separate();
    }

    /// Takes all up to `end` as it is.
    #[inline(always)]
    fn text_until(&mut self, end: usize) {
        let length = end - self.at;
        // Most text between tags is short: some bytes too many are copied sooner than so many as there are.
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
pub(in crate::text) type TagName = u64;

pub(in crate::text) const fn tag(name: &[u8]) -> TagName {
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

/// What a tag means.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(in crate::text) enum Role {
    /// It separates words.
    Block,
    /// It formats a part of a line, so that a word goes on behind it.
    Inline,
    Script,
    Style,
    Iframe,
    Title,
    Textarea,
    Xmp,
    Template,
}

pub(in crate::text) const ROLES: &[(TagName, Role)] = &[
    (SCRIPT, Role::Script),
    (STYLE, Role::Style),
    (IFRAME, Role::Iframe),
    (TITLE, Role::Title),
    (TEXTAREA, Role::Textarea),
    (XMP, Role::Xmp),
    (TEMPLATE, Role::Template),
];

pub(in crate::text) const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del",
    "dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
];

const SLOTS: usize = 128;

const fn slot(name: TagName, factor: u64) -> usize {
    (name.wrapping_mul(factor) >> (64 - SLOTS.ilog2())) as usize
}

/// Names with roles, each in a slot of its own.
const fn slots(factor: u64) -> Option<[(TagName, Role); SLOTS]> {
    let mut slots = [(0, Role::Block); SLOTS];
    let mut i = 0;
    while i < ROLES.len() + INLINE.len() {
        let entry = if i < ROLES.len() {
            ROLES[i]
        } else {
            (tag(INLINE[i - ROLES.len()].as_bytes()), Role::Inline)
        };
        let slot = slot(entry.0, factor);
        if slots[slot].0 != 0 {
            return None;
        }
        slots[slot] = entry;
        i += 1;
    }
    Some(slots)
}

/// A factor that gives each a slot of its own, found by trial.
const FACTOR: u64 = 0xab3920349eba8775;

static SLOT: [(TagName, Role); SLOTS] = slots(FACTOR).expect("the factor parts all names");

#[inline(always)]
pub(in crate::text) fn role_of(name: TagName) -> Role {
    let (known, role) = SLOT[slot(name, FACTOR)];
    if known == name { role } else { Role::Block }
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

/// Repeats a byte.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The name of the tag that begins at `start`, and where it ends.
#[inline(always)]
pub(in crate::text) fn name_at(page: &[u8], start: usize) -> (TagName, usize) {
    let Some(bytes) = page.get(start..).and_then(<[u8]>::first_chunk) else {
        return any_name_at(page, start);
    };
    let bytes = u64::from_le_bytes(*bytes);
    // A bit for each byte that is `>` or below `0`, of which the first is right.
    let ends = bytes.wrapping_sub(each(b'0')) & !bytes;
    let is_angle = bytes ^ each(b'>');
    let ends = (ends | is_angle.wrapping_sub(each(1)) & !is_angle) & each(0x80);
    let length = ends.trailing_zeros() as usize / 8;
    if length == 8 || NAME_BYTE[usize::from(page[start + length])] != 0 {
        return any_name_at(page, start);
    }
    // Only letters become letters so, for there are no control characters among them.
    let lower = (bytes | each(b' ')).swap_bytes();
    (lower.checked_shr(64 - 8 * length as u32).unwrap_or(0), start + length)
}

/// A name that is long, or has bytes as few names have.
fn any_name_at(page: &[u8], start: usize) -> (TagName, usize) {
    let (mut name, mut at) = (0, start);
    while let Some(byte) = page.get(at).map(|byte| NAME_BYTE[usize::from(*byte)])
        && byte != 0
    {
        name = name << 8 | TagName::from(byte);
        at += 1;
    }
    (if at - start <= 8 { name } else { 0 }, at)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_have_roles_in_any_case() {
        for (name, role) in ROLES {
            assert!(role_of(*name) == *role);
        }
        for name in INLINE {
            for name in [name.to_string(), name.to_uppercase()] {
                let page = format!("{name}>        ");
                let (found, end) = name_at(page.as_bytes(), 0);
                assert!(role_of(found) == Role::Inline && end == name.len(), "{name}");
            }
        }
        assert!(role_of(0) == Role::Block && role_of(tag(b"td")) == Role::Block);
    }

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

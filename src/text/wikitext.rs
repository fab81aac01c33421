//! Text of MediaWiki pages, without markup.
//!
//! Templates, comments, references (`<ref>`), formulas, switches such as `__NOTOC__`, and the
//! attributes of tables and their cells are dropped. A link leaves its label, or else its target; a
//! picture leaves its caption, in a gallery too; a category leaves nothing; a link to another site
//! leaves its label. Quotes for bold text are dropped; other
//! markup, such as that of headings and lists, has no letters and separates words as on the page.
//! What is never closed is text. HTML tags and references stay, for [`html`](super::html).
//!
//! One pass over the page, with a stack of what is open.

use memchr::memmem::find;
use std::collections::VecDeque;

/// The end tags of galleries, and of elements whose content is no text.
const ENDS: [&[u8]; 6] = [b"</gallery", b"</ref", b"</math", b"</timeline", b"</chem", b"</score"];
const GALLERY: usize = 0;

/// What options of a picture in a gallery begin with, beside its caption.
const OPTIONS: [&[u8]; 5] = [b"alt=", b"link=", b"page=", b"lang=", b"class="];

/// Names in capitals between two underlines each that are no switches, but words of C.
const MACROS: [&[u8]; 6] = [b"FILE", b"LINE", b"DATE", b"TIME", b"FUNCTION", b"VA_ARGS"];

/// Namespaces of pictures, whose links have a caption as their last part.
const PICTURES: [&[u8]; 3] = [b"file", b"image", b"media"];

enum OpenMarkup {
    /// `{{`, with the length of the output before it.
    Template(usize),
    /// `[[` likewise, with the end of its target and the begin of its last part, if it has parts.
    Link { start: usize, target: Option<usize>, last: usize },
}

/// A title has at most this many bytes, and the name of its namespace too.
const MOST_TITLE: usize = 255;

/// Of more that is open the first ones are taken to be never closed, so that time stays linear.
const MOST_OPEN: usize = 256;

/// Counts for a test how many bytes are looked at beyond the place of the pass.
fn look(_bytes: usize) {
    #[cfg(test)]
    tests::LOOKED.set(tests::LOOKED.get() + _bytes);
}

/// Searches that look ahead in a page, beside those for each of [`ENDS`].
const LINE: usize = ENDS.len();
const BAR: usize = LINE + 1;
const TAG: usize = LINE + 2;
/// And for the bracket behind each end tag.
const BRACKETS: usize = LINE + 3;

/// Finds what comes next, place after place: a search that found nothing, or something far ahead,
/// is not made again.
struct Ahead<'a> {
    page: &'a [u8],
    /// Where each search began, and the first place from there on.
    found: [(usize, Option<usize>); BRACKETS + ENDS.len()],
}

impl Ahead<'_> {
    fn find(&mut self, search: usize, needle: &[u8], at: usize) -> Option<usize> {
        let (from, found) = &mut self.found[search];
        if at < *from || found.is_some_and(|found| found < at) {
            *from = at;
            *found = find(&self.page[at..], needle).map(|n| at + n);
            look(found.unwrap_or(self.page.len()) - at);
        }
        *found
    }

    /// Bytes of the element that begins at `at`, if it has the name of this end tag: up to that, or
    /// to the end of its start tag if that closes itself.
    fn element(&mut self, at: usize, number: usize) -> Option<usize> {
        let page = self.page;
        let rest = &page[at..];
        let name = &ENDS[number][2..];
        let head = rest.get(1..1 + name.len())?;
        let ends = rest.get(1 + name.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if !ends || !head.eq_ignore_ascii_case(name) {
            return None;
        }
        let tag = self.find(TAG, b">", at)? + 1;
        if page[at..tag].ends_with(b"/>") {
            return Some(tag - at);
        }
        let behind = self.find(number, ENDS[number], tag)?;
        Some(self.find(BRACKETS + number, b">", behind)? + 1 - at)
    }

    /// Bytes up to the end of the line.
    fn line(&mut self, at: usize) -> usize {
        self.find(LINE, b"\n", at).unwrap_or(self.page.len()) - at
    }

    /// Bytes of a cell's sign, and of its attributes, which stand before a single bar; `heads` may
    /// be parted by two exclamation marks too.
    fn cell(&mut self, at: usize, heads: bool) -> usize {
        let end = at + self.line(at);
        let begin = at + 1;
        let bar = self.find(BAR, b"|", begin).filter(|bar| *bar < end);
        let Some(bar) = bar else { return 1 };
        let before = &self.page[begin..bar];
        // First, so that no more is looked at than up to the next head.
        if heads && find(before, b"!!").is_some() || self.page[bar..end].get(1) == Some(&b'|') {
            return 1;
        }
        look(before.len());
        let are_attributes = before.contains(&b'=') || before.trim_ascii() == b"nowrap";
        if are_attributes && find(before, b"[[").is_none() { 2 + bar - begin } else { 1 }
    }
}

/// Appends the text of a page to `out` in linear time.
pub(crate) fn strip(page: &[u8], out: &mut Vec<u8>) {
    let ahead = Ahead { page, found: [(usize::MAX, None); BRACKETS + ENDS.len()] };
    let mut pass =
        Pass { ahead, open: VecDeque::new(), tables: 0, heads: false, gallery: 0, pictures: 0 };
    let mut at = 0;
    while at < page.len() {
        let line_begins = at == 0 || page[at - 1] == b'\n';
        if (line_begins || at == pass.pictures) && at < pass.gallery {
            // The file of a picture; what follows is its caption, if anything does.
            let ends = |byte: &u8| matches!(byte, b'|' | b'<' | b'\n');
            at += page[at..].iter().position(ends).unwrap_or(0);
            if page[at] == b'\n' {
                at += 1;
                continue;
            }
        }
        let rest = &page[at..];
        at += match rest {
            [b'<', ..] => pass.element(rest, at, out),
            [b'{' | b'}' | b'[' | b']', ..] => pass.bracket(rest, at, line_begins, out),
            [b'|' | b'!', ..] => pass.bar(rest, at, line_begins, out),
            [b'\'', b'\'', ..] => rest.iter().take_while(|&&byte| byte == b'\'').count(),
            [b'_', b'_', ..] => {
                let bytes = switch(rest);
                out.extend_from_slice(if bytes == 0 { b"_" } else { b" " });
                bytes.max(1)
            }
            _ => kept(rest, out),
        };
    }
}

/// A byte that is text.
fn kept(rest: &[u8], out: &mut Vec<u8>) -> usize {
    out.push(rest[0]);
    1
}

/// What is known of a page up to a place. Its functions return how many bytes they have taken.
struct Pass<'a> {
    ahead: Ahead<'a>,
    open: VecDeque<OpenMarkup>,
    tables: u32,
    /// The line is one of heads of a table.
    heads: bool,
    /// Where a gallery ends, and where its first line begins.
    gallery: usize,
    pictures: usize,
}

impl Pass<'_> {
    /// A comment, a gallery, or an element whose content is no text.
    fn element(&mut self, rest: &[u8], at: usize, out: &mut Vec<u8>) -> usize {
        if rest.starts_with(b"<!--") {
            return find(rest, b"-->").map_or(rest.len(), |n| n + 3);
        }
        if self.gallery <= at
            && let Some(bytes) = self.ahead.element(at, GALLERY)
        {
            out.push(b' ');
            let head = memchr::memchr(b'>', rest).unwrap_or(0) + 1;
            (self.gallery, self.pictures) = (at + bytes, at + head);
            return head;
        }
        match (1..ENDS.len()).find_map(|number| self.ahead.element(at, number)) {
            Some(bytes) => {
                out.push(b' ');
                bytes
            }
            None => kept(rest, out),
        }
    }

    /// A template, a link, or where a table begins.
    fn bracket(&mut self, rest: &[u8], at: usize, line_begins: bool, out: &mut Vec<u8>) -> usize {
        match rest {
            [b'{', b'{', ..] => opened(&mut self.open, OpenMarkup::Template(out.len())),
            [b'}', b'}', ..] => {
                if let Some(OpenMarkup::Template(start)) = close(&mut self.open, true) {
                    out.truncate(start);
                }
            }
            [b'[', b'[', ..] => {
                let link = OpenMarkup::Link { start: out.len(), target: None, last: out.len() };
                opened(&mut self.open, link);
            }
            [b']', b']', ..] => {
                if let Some(OpenMarkup::Link { start, target, last }) = close(&mut self.open, false)
                {
                    link(out, start, target, last);
                }
            }
            [b'[', ..] => return 1 + address(&rest[1..]),
            [b'{', b'|', ..] if line_begins => {
                self.tables += 1;
                return self.ahead.line(at);
            }
            _ => return kept(rest, out),
        }
        2
    }

    /// What begins a row or a cell of a table, ends the table, or parts a link or a caption.
    fn bar(&mut self, rest: &[u8], at: usize, line_begins: bool, out: &mut Vec<u8>) -> usize {
        let is_text = self.open.is_empty();
        match rest {
            [b'|', b'}', ..] if line_begins && self.tables > 0 => {
                self.tables -= 1;
                2
            }
            [b'|', b'-', ..] if line_begins && self.tables > 0 => self.ahead.line(at),
            [sign, ..] if line_begins && self.tables > 0 => {
                self.heads = *sign == b'!';
                self.ahead.cell(at, self.heads)
            }
            [b'|', b'|', ..] | [b'!', b'!', ..]
                if self.tables > 0 && is_text && (rest[0] == b'|' || self.heads) =>
            {
                out.push(b' ');
                1 + self.ahead.cell(at + 1, self.heads)
            }
            [b'!', ..] => kept(rest, out),
            _ if at < self.gallery && is_text => {
                out.push(b' ');
                let part = &rest[1..];
                let begin = part.trim_ascii_start();
                let is_option = OPTIONS.iter().any(|option| begin.starts_with(option));
                let ends = |byte: &u8| matches!(byte, b'|' | b'\n' | b'<');
                let option = part.iter().position(ends).unwrap_or(part.len());
                1 + if is_option { option } else { 0 }
            }
            _ => {
                if let Some(OpenMarkup::Link { target, last, .. }) = self.open.back_mut() {
                    target.get_or_insert(out.len());
                    *last = out.len();
                } else {
                    out.push(b' ');
                }
                1
            }
        }
    }
}

fn opened(open: &mut VecDeque<OpenMarkup>, new: OpenMarkup) {
    if open.len() == MOST_OPEN {
        open.pop_front();
    }
    open.push_back(new);
}

/// Takes the last open one of this kind and drops those opened after it.
fn close(open: &mut VecDeque<OpenMarkup>, template: bool) -> Option<OpenMarkup> {
    /// So few are searched that time stays linear.
    const MOST: usize = 16;
    let kind = |open: &OpenMarkup| matches!(open, OpenMarkup::Template(_)) == template;
    let behind = open.iter().rev().take(MOST).position(kind)?;
    open.truncate(open.len() - behind);
    open.pop_back()
}

/// Reduces a link that was written from `start` on to its text.
fn link(out: &mut Vec<u8>, start: usize, target: Option<usize>, last: usize) {
    let end = target.unwrap_or(out.len());
    let title = &out[start..end.min(start + MOST_TITLE)];
    let space = title.iter().position(|&byte| byte == b':').unwrap_or(0);
    look(title.len() + out.len() - end);
    let space = out[start..start + space].trim_ascii().to_ascii_lowercase();
    if space == b"category" {
        out.truncate(start);
    } else if PICTURES.contains(&&space[..]) {
        // Without parts there is no caption.
        let last = if target.is_some() { last } else { out.len() };
        out.drain(start..last);
        out.push(b' ');
    } else if let Some(end) = target {
        out.drain(start..end);
    }
}

/// Bytes of the address of another site that begins here, if one does.
fn address(rest: &[u8]) -> usize {
    const SCHEMES: [&[u8]; 5] = [b"http://", b"https://", b"//", b"ftp://", b"mailto:"];
    if !SCHEMES.iter().any(|scheme| rest.starts_with(scheme)) {
        return 0;
    }
    rest.iter().position(|&byte| byte == b']' || byte.is_ascii_whitespace()).unwrap_or(rest.len())
}

/// Bytes of the switch that begins here, such as `__NOTOC__`: capitals of any script. 0 if it is
/// none.
fn switch(rest: &[u8]) -> usize {
    const LONGEST: usize = 80;
    let line = &rest[2..rest.len().min(LONGEST)];
    let Some(end) = find(line, b"__") else { return 0 };
    let Ok(name) = std::str::from_utf8(&line[..end]) else { return 0 };
    let is_switch = name.len() > 1
        && name.chars().all(|char| char.is_uppercase() || char == '_')
        && !MACROS.contains(&name.as_bytes());
    if is_switch { end + 4 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static LOOKED: Cell<usize> = const { Cell::new(0) };
    }

    fn words(page: &str) -> String {
        let mut out = Vec::new();
        strip(page.as_bytes(), &mut out);
        let text = String::from_utf8_lossy(&out).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn links_and_templates() {
        for (page, text) in [
            ("a {{t|x={{u}}|y [[z]]}} b", "a b"),
            ("[[mill]]s, [[water mill|the ''mill'']] and [[a:b]]", "mills, the mill and a:b"),
            ("x [[File:a.png|thumb|200px|A [[mill|wheel]] here]] y", "x A wheel here y"),
            ("[[Category:Mills]]z [[Image:only.png]] q", "z q"),
            ("[http://x.org/?a=b the site] [https://y.org] [1]", "the site] ] 1]"),
            ("'''B'''old ''it'' don't", "Bold it don't"),
            ("a<!-- {{ --> b<ref name=\"q\">no {{cite}}</ref>c<ref name=q/>d", "a b c d"),
            ("<b>x</b> <REF>no</ref> y", "<b>x</b> y"),
            ("never {{closed [[here", "never closed here"),
            ("}} ]] fine", "fine"),
            ("{{a [[b}} c", "c"),
            ("a | b", "a b"),
            ("__NOTOC__\na __KEIN_INHALTSVERZEICHNIS__ b__ОГЛАВЛЕНИЕ__c", "a b c"),
            ("__init__ of __FILE__, ___ and __ A__", "__init__ of __FILE__, ___ and __ A__"),
        ] {
            assert_eq!(words(page), text, "{page}");
        }
    }

    #[test]
    fn tables_keep_their_cells() {
        let page = "before\n{| class=\"wikitable\" style=\"x\"\n|+ Caption\n|-  bgcolor=red\n! Head !! Two\n|-\n| align=\"left\" | one || 2 = 3\n|}\nbehind";
        assert_eq!(words(page), "before + Caption Head Two one 2 = 3 behind");
        for (line, text) in [
            ("! scope=row | a !! rowspan=2 | b || style=\"x\" | c", "a b c"),
            ("| a || colspan=2 | b!! || nowrap | c || d = e", "a b!! c d = e"),
            ("| a = [[b|c]] || align=x | {{t|style=x|y}} z || [[d|e || f]]", "a = c z e f"),
            ("| x=1 | a | b || [[File:p.png|q=1|r]] || <b>s=t</b> || y=2 |", "a b r <b>s=t</b>"),
        ] {
            assert_eq!(words(&format!("{{|\n{line}\n|}}\nz")), format!("{text} z"), "{line}");
        }
        assert_eq!(words("a || b=c | d\n!! e"), "a b=c d !! e");
    }

    #[test]
    fn pictures_of_galleries_keep_their_captions() {
        let page = "a <gallery mode=packed heights=90>\nFile:b.png|A ''mill'' of [[Ulm|old]]\nImage:c.jpg\nd.jpg|alt=no | e | link=no|f\n|g\nh.png|class=x\n</gallery> i | j <GALLERY>k.png|l</gallery> m";
        assert_eq!(words(page), "a A mill of old e f g </gallery> i j l</gallery> m");
        assert_eq!(words("<gallery>never closed"), "<gallery>never closed");
    }

    /// What never ends, or ends far ahead, is looked for once: of twice the page at most 2.2 times
    /// as many bytes are looked at.
    #[test]
    fn law_time_is_linear() {
        let cases = [
            ("", "<ref>", ""),
            ("", "<math>x", ""),
            ("", "<gallery>", ""),
            ("", "<timeline>", ""),
            ("", "<chem>\n", ""),
            ("", "<score>", "</ref>"),
            ("", "<ref ", ""),
            ("", "<ref ", ">"),
            ("", "<ref>", "</ref"),
            ("", "<gallery ", "></gallery"),
            ("", "<ref><math><gallery><timeline>", ""),
            ("", "<!-- -", ""),
            ("", "[[", ""),
            ("", "[[a|", "]]"),
            ("", "[[", "]]"),
            ("", "{{", "}}"),
            ("", "[http://", ""),
            ("", "__A", "__"),
            ("{|\n", "||", ""),
            ("{|\n! ", "!!", ""),
            ("{|\n! ", "!!", "a = b | c"),
            ("{|\n", "| a", ""),
            ("<gallery>", "| ", "</gallery>"),
            ("<gallery>a|", "alt=", "</gallery>"),
        ];
        for (head, part, tail) in cases {
            // Ends come as often as what they end.
            let looked = |count: usize| {
                let page = head.to_string() + &part.repeat(count) + "text " + &tail.repeat(count);
                LOOKED.set(page.len());
                strip(page.as_bytes(), &mut Vec::new());
                LOOKED.get()
            };
            let once = looked(20_000);
            let twice = looked(40_000);
            assert!(twice as f64 <= 2.2 * once as f64, "{head}{part}{tail}: {once} and {twice}");
        }
    }

    proptest! {
        #[test]
        fn law_any_page_has_a_text(parts in proptest::collection::vec(proptest::sample::select(vec![
            "{{", "}}", "[[", "]]", "|", "\n", "{|", "|}", "<ref>", "</ref>", "<!--", "-->", "a", "'", "[http://", ":", "File",
        ]), 0..40)) {
            let mut out = Vec::new();
            strip(parts.concat().as_bytes(), &mut out);
            prop_assert!(out.len() <= parts.concat().len() + parts.len());
        }
    }
}

//! Text of MediaWiki pages, without markup.
//!
//! Templates, comments, references (`<ref>`), formulas and the attributes of tables are dropped. A
//! link leaves its label, or else its target; a picture leaves its caption; a category leaves
//! nothing; a link to another site leaves its label. Quotes for bold text are dropped; other
//! markup, such as that of headings and lists, has no letters and separates words as on the page.
//! What is never closed is text. HTML tags and references stay, for [`html`](super::html).
//!
//! One pass over the page, with a stack of what is open.

use memchr::memmem::find;

/// Elements whose content is no text.
const DROPPED: [&[u8]; 6] = [b"ref", b"math", b"gallery", b"timeline", b"chem", b"score"];

/// Namespaces of pictures, whose links have a caption as their last part.
const PICTURES: [&[u8]; 3] = [b"file", b"image", b"media"];

enum OpenMarkup {
    /// `{{`, with the length of the output before it.
    Template(usize),
    /// `[[` likewise, with the end of its target and the begin of its last part, if it has parts.
    Link { start: usize, target: Option<usize>, last: usize },
}

/// Appends the text of a page to `out` in linear time.
pub(crate) fn strip(page: &[u8], out: &mut Vec<u8>) {
    let mut open: Vec<OpenMarkup> = Vec::new();
    let mut at = 0;
    let mut tables = 0u32;
    while at < page.len() {
        let rest = &page[at..];
        let line_begins = at == 0 || page[at - 1] == b'\n';
        match rest {
            [b'<', b'!', b'-', b'-', ..] => {
                at += find(rest, b"-->").map_or(rest.len(), |n| n + 3);
            }
            [b'<', ..] => match dropped_element(rest) {
                Some(bytes) => {
                    out.push(b' ');
                    at += bytes;
                }
                None => (out.push(b'<'), at += 1).1,
            },
            [b'{', b'{', ..] => {
                open.push(OpenMarkup::Template(out.len()));
                at += 2;
            }
            [b'}', b'}', ..] => {
                if let Some(OpenMarkup::Template(start)) = close(&mut open, true) {
                    out.truncate(start);
                }
                at += 2;
            }
            [b'[', b'[', ..] => {
                open.push(OpenMarkup::Link { start: out.len(), target: None, last: out.len() });
                at += 2;
            }
            [b']', b']', ..] => {
                if let Some(OpenMarkup::Link { start, target, last }) = close(&mut open, false) {
                    link(out, start, target, last);
                }
                at += 2;
            }
            [b'[', ..] => at += 1 + address(&rest[1..]),
            [b'\'', b'\'', ..] => at += rest.iter().take_while(|&&byte| byte == b'\'').count(),
            [b'{', b'|', ..] if line_begins => {
                tables += 1;
                at += line(rest);
            }
            [b'|', b'}', ..] if line_begins && tables > 0 => {
                tables -= 1;
                at += 2;
            }
            [b'|', b'-', ..] if line_begins && tables > 0 => at += line(rest),
            [b'|' | b'!', ..] if line_begins && tables > 0 => at += cell(rest),
            [b'|', ..] => {
                if let Some(OpenMarkup::Link { target, last, .. }) = open.last_mut() {
                    target.get_or_insert(out.len());
                    *last = out.len();
                } else {
                    out.push(b' ');
                }
                at += 1;
            }
            [byte, ..] => {
                out.push(*byte);
                at += 1;
            }
            [] => break,
        }
    }
}

/// Takes the last open one of this kind and drops those opened after it.
fn close(open: &mut Vec<OpenMarkup>, template: bool) -> Option<OpenMarkup> {
    /// So few are searched that time stays linear.
    const MOST: usize = 16;
    let kind = |open: &OpenMarkup| matches!(open, OpenMarkup::Template(_)) == template;
    let behind = open.iter().rev().take(MOST).position(kind)?;
    open.truncate(open.len() - behind);
    open.pop()
}

/// Reduces a link that was written from `start` on to its text.
fn link(out: &mut Vec<u8>, start: usize, target: Option<usize>, last: usize) {
    let end = target.unwrap_or(out.len());
    let space = out[start..end].iter().position(|&byte| byte == b':').unwrap_or(0);
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

/// Bytes of the element that begins here, if its content is dropped: up to its end tag, or to the
/// end of its start tag if that closes itself.
fn dropped_element(rest: &[u8]) -> Option<usize> {
    let name = DROPPED.iter().find(|name| {
        let head = rest.get(1..1 + name.len());
        let ends = rest.get(1 + name.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        ends && head.is_some_and(|head| head.eq_ignore_ascii_case(name))
    })?;
    let tag = find(rest, b">")? + 1;
    if rest[..tag].ends_with(b"/>") {
        return Some(tag);
    }
    let mut end = vec![b'<', b'/'];
    end.extend_from_slice(name);
    let behind = find(&rest[tag..], &end)? + tag;
    Some(find(&rest[behind..], b">")? + behind + 1)
}

/// Bytes of the address of another site that begins here, if one does.
fn address(rest: &[u8]) -> usize {
    const SCHEMES: [&[u8]; 5] = [b"http://", b"https://", b"//", b"ftp://", b"mailto:"];
    if !SCHEMES.iter().any(|scheme| rest.starts_with(scheme)) {
        return 0;
    }
    rest.iter().position(|&byte| byte == b']' || byte.is_ascii_whitespace()).unwrap_or(rest.len())
}

fn line(rest: &[u8]) -> usize {
    memchr::memchr(b'\n', rest).unwrap_or(rest.len())
}

/// Bytes of a cell's sign, and of its attributes, which stand before a single bar.
fn cell(rest: &[u8]) -> usize {
    let line = &rest[1..line(rest)];
    match memchr::memchr(b'|', line) {
        Some(bar) if line.get(bar + 1) != Some(&b'|') && line[..bar].contains(&b'=') => 2 + bar,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        ] {
            assert_eq!(words(page), text, "{page}");
        }
    }

    #[test]
    fn tables_keep_their_cells() {
        let page = "before\n{| class=\"wikitable\" style=\"x\"\n|+ Caption\n|-  bgcolor=red\n! Head !! Two\n|-\n| align=\"left\" | one || 2 = 3\n|}\nbehind";
        assert_eq!(words(page), "before + Caption Head !! Two one 2 = 3 behind");
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

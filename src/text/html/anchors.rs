//! Links of a page: the references of its `a` and `area` elements as written, and their base.
//!
//! The page is stepped over as in `markup.rs`, but no text is made; comments, scripts, styles,
//! titles and templates have no links. An anchor with `rel="nofollow"` is skipped, as its author
//! vouches for nothing.

use super::markup::{CDATA, attributes, comment_end};
use super::tags::{IFRAME, SCRIPT, STYLE, TEMPLATE, TEXTAREA, TITLE, TagName, XMP, name_at, tag};
use super::{Markup, raw, references};
use memchr::{memchr, memmem};

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub name: &'a [u8],
    /// Its address; for a file that is a page, the file's name.
    pub url: &'a [u8],
    pub bytes: &'a [u8],
    pub markup: Markup,
    /// If known from outside.
    pub charset: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor<'a> {
    /// The base of the page's relative addresses, if not its own.
    Base(&'a [u8]),
    /// An address, which may be relative.
    To(&'a [u8]),
}

const A: TagName = tag(b"a");
const AREA: TagName = tag(b"area");
const BASE: TagName = tag(b"base");
const STYLES: [(TagName, &[u8]); 5] = [
    (STYLE, b"style"),
    (IFRAME, b"iframe"),
    (TITLE, b"title"),
    (TEXTAREA, b"textarea"),
    (XMP, b"xmp"),
];

/// `page` is in UTF-8. Pages of SGML have no links.
pub(super) fn find(page: &[u8], markup: Markup, mut take: impl FnMut(Anchor<'_>)) {
    if matches!(markup, Markup::Sgml { .. }) {
        return;
    }
    let mut at = 0;
    let mut templates = 0u32;
    let mut value = Vec::new();
    let mut has_base = false;
    while let Some(n) = memchr(b'<', &page[at..]) {
        at += n;
        let past_angle = |from: usize| {
            let start = (at + from).min(page.len());
            memchr(b'>', &page[start..]).map_or(page.len(), |n| start + n + 1)
        };
        let (ends, start) = match &page[at..] {
            [b'<', first, ..] if first.is_ascii_alphabetic() => (false, at + 1),
            [b'<', b'/', first, ..] if first.is_ascii_alphabetic() => (true, at + 2),
            [b'<', b'/', b'>', ..] => {
                at += 3;
                continue;
            }
            [b'<', b'/', _, ..] | [b'<', b'?', ..] => {
                at = past_angle(2);
                continue;
            }
            rest @ [b'<', b'!', ..] => {
                at = match markup {
                    _ if rest.starts_with(b"<!--") => comment_end(page, at),
                    Markup::Xhtml if rest.starts_with(CDATA) => {
                        memmem::find(rest, b"]]>").map_or(page.len(), |n| at + n + 3)
                    }
                    _ => past_angle(2),
                };
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let (name, after) = name_at(page, start);
        let mut href: Option<&[u8]> = None;
        let mut rel: &[u8] = b"";
        let end = attributes(page, after, |name, value| {
            // Of repeated attributes the first counts.
            if name.eq_ignore_ascii_case(b"href") {
                href.get_or_insert(value);
            } else if name.eq_ignore_ascii_case(b"rel") && rel.is_empty() {
                rel = value;
            }
        });
        let Some(end) = end else { return };
        at = end;
        if ends {
            templates = templates.saturating_sub(u32::from(name == TEMPLATE));
            continue;
        }
        if let (A | AREA | BASE, Some(href), 0) = (name, href, templates) {
            value.clear();
            references::of_attribute(href, &mut value);
            let mut words = rel.split(u8::is_ascii_whitespace);
            let is_followed = !words.any(|word| word.eq_ignore_ascii_case(b"nofollow"));
            if name == BASE {
                if !std::mem::replace(&mut has_base, true) {
                    take(Anchor::Base(&value));
                }
            } else if is_followed {
                take(Anchor::To(&value));
            }
        }
        // In XHTML an element may end where it begins.
        if markup == Markup::Xhtml && page[end - 2] == b'/' {
            continue;
        }
        if name == TEMPLATE {
            templates += 1;
        } else if name == SCRIPT {
            at = raw::script_end(page, end);
        } else if let Some((_, name)) = STYLES.iter().find(|(style, _)| *style == name) {
            at = raw::end_tag(page, end, name);
        } else if page[start..after].eq_ignore_ascii_case(b"plaintext") {
            return;
        }
    }
}

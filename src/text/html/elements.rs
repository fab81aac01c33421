//! Texts of a page's elements that are fields of the index: of HTML `title`, `headings` (of all
//! levels) and `body` (all but the title), of SGML those of any name, in any case.
//!
//! Comments, scripts, styles and templates have no elements, and neither have values of attributes.
//! Takes linear time for each field, since no element of a field begins within another of it.

use super::Markup;
use super::markup::{comment_end, extract};
use super::raw::{end_tag, script_end};
use super::tags::{TagName, TagRole, is_space, name_at, role_of, tag};
use crate::text::fields::{FieldTexts, IndexFields};
use memchr::memchr;
use std::ops::Range;

const HEADINGS: [TagName; 6] =
    [tag(b"h1"), tag(b"h2"), tag(b"h3"), tag(b"h4"), tag(b"h5"), tag(b"h6")];

/// Adds those of a page in UTF-8, whose whole text is `text`.
pub(super) fn find(
    page: &[u8],
    markup: Markup,
    text: &[u8],
    fields: &IndexFields,
    out: &mut FieldTexts,
) {
    if matches!(markup, Markup::Sgml { .. }) {
        return of_sgml(page, markup, fields, out);
    }
    let [title, headings, body] = ["title", "headings", "body"].map(|name| fields.number(name));
    let mut first_title = Vec::new();
    each_element(page, |is_title, element| {
        let element = &page[element];
        if is_title {
            extract(element, markup, &mut first_title);
        }
        if let Some(field) = if is_title { title } else { headings } {
            extract(element, markup, &mut out.text);
            out.end(field);
        }
    });
    if let Some(field) = body {
        let text = text.trim_ascii_start();
        out.add(field, text.strip_prefix(first_title.trim_ascii()).unwrap_or(text));
    }
}

/// Calls `take` with the first title and all headings, from their start tags to their end tags, and
/// whether it is the title.
fn each_element(page: &[u8], mut take: impl FnMut(bool, Range<usize>)) {
    let mut at = 0;
    let mut tag_before = 0;
    let (mut has_title, mut headings_end) = (false, true);
    while let Some(n) = memchr(b'<', &page[at..]) {
        let start = at + n;
        let rest = &page[start..];
        if rest.starts_with(b"<!--") {
            at = comment_end(page, start);
            continue;
        }
        at = start + 1;
        if !rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let (name, after) = name_at(page, at);
        let role = role_of(name);
        let is_title = role == TagRole::Title && !has_title;
        let is_heading = HEADINGS.contains(&name) && headings_end;
        let before = std::mem::replace(&mut tag_before, start);
        if is_title || is_heading {
            // The value of an attribute, whose tag does not end before.
            if before < start
                && page[before] == b'<'
                && memchr(b'>', &page[before..start]).is_none()
            {
                continue;
            }
            let end =
                if is_title { end_tag(page, after, b"title") } else { heading_end(page, after) };
            has_title |= is_title;
            headings_end &= is_title || end < page.len();
            if end < page.len() {
                at = memchr(b'>', &page[end..]).map_or(page.len(), |n| end + n + 1);
                take(is_title, start..at);
            }
            continue;
        }
        at = match role {
            TagRole::Script => script_end(page, after),
            TagRole::Style | TagRole::Iframe | TagRole::Textarea | TagRole::Xmp => {
                end_tag(page, after, &page[start + 1..after])
            }
            TagRole::Template => end_tag(page, after, b"template"),
            _ => after,
        };
    }
}

/// Where the next end tag of a heading begins, or the page's end.
fn heading_end(page: &[u8], mut at: usize) -> usize {
    while let Some(n) = memchr(b'<', &page[at..]) {
        at += n;
        if page.get(at + 1) == Some(&b'/') && HEADINGS.contains(&name_at(page, at + 2).0) {
            return at;
        }
        at += 1;
    }
    page.len()
}

fn of_sgml(page: &[u8], markup: Markup, fields: &IndexFields, out: &mut FieldTexts) {
    // Up to there the text of each field is known.
    let mut known = vec![0; fields.len() + 1];
    let mut at = 0;
    while let Some(n) = memchr(b'<', &page[at..]) {
        let start = at + n;
        if page[start..].starts_with(b"<!--") {
            at = comment_end(page, start);
            continue;
        }
        at = start + 1;
        let ends = |byte: &u8| is_space(*byte) || matches!(byte, b'<' | b'>' | b'/');
        let Some(length) = page[at..].iter().position(ends) else { return };
        let name = &page[at..at + length];
        at += length;
        let Some(field) = fields.number_of(name, false) else { continue };
        if start < known[usize::from(field)] {
            continue;
        }
        let Some(inner) = memchr(b'>', &page[at..]).map(|n| at + n + 1) else { return };
        let end = end_tag(page, inner, name);
        known[usize::from(field)] = end;
        if end < page.len() {
            extract(&page[inner..end], markup, &mut out.text);
            out.end(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::html::HtmlText;
    use proptest::prelude::*;

    fn found(names: &[&str], page: &[u8], markup: Markup) -> Vec<(u8, String)> {
        let mut html = HtmlText::new();
        html.find_fields(&IndexFields::new(names.to_vec()).unwrap());
        let (_, texts) = html.page(page, markup, None);
        let words = |text: &[u8]| {
            String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        texts.by_field().into_iter().map(|(field, text)| (field, words(text))).collect()
    }

    fn rows(rows: &[(u8, &str)]) -> Vec<(u8, String)> {
        rows.iter().map(|(field, text)| (*field, (*text).to_string())).collect()
    }

    #[test]
    fn pages_have_a_title_headings_and_a_body() {
        let page = b"<!doctype html><!-- <h1>no</h1> --><title>A &amp; <b> </title>\
            <script>'<h1>no</h1>'</script><p title='<h2>no</h2>'>x<H1 class=a>One <i>t</i>wo</h1>\
            <template><h3>no</h3></template><svg><title>no</title></svg><h6>three</h6>y<h2>open";
        let expected = [(1, "A & <b>"), (2, "One two"), (2, "three")];
        assert_eq!(found(&["title", "headings"], page, Markup::Html), rows(&expected));
        let body = found(&["body"], page, Markup::Html);
        assert_eq!(body, rows(&[(1, "x One two no three y open")]));
        assert_eq!(found(&["body"], b"<p>a", Markup::Html), rows(&[(1, "a")]));
        assert_eq!(found(&["title"], b"<title>a", Markup::Html), []);
    }

    #[test]
    fn elements_of_sgml_have_any_names() {
        let page =
            b"<DOCNO>1</DOCNO><Title>a&amp;b</title><TEXT>c <P>d</P> e<docno>7</docno></TEXT>\
            <!-- <title>no</title> --><title lang=x>f</title><p>g<p>h</p><text>open";
        let hidden: &[&[u8]] = &[b"docno"];
        let markup = Markup::Sgml { hidden };
        let expected = [(1, "c d e"), (2, "a&b"), (2, "f"), (3, "d"), (3, "g h")];
        assert_eq!(found(&["text", "title", "p"], page, markup), rows(&expected));
        assert_eq!(found(&["docno"], page, markup)[..1], rows(&[(1, "1")]));
    }

    proptest! {
        #[test]
        fn law_any_bytes_have_elements_within_them(parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "<title>", "</title>", "<h1>", "</h1>", "<h2", ">", "<!--", "-->", "<script>", "a ",
                "</script>", "<template>", "'", "=", "<", "/", "\u{e9}", "<P>", "</p>", "&amp;",
            ]), 0..60),
        ) {
            let page = parts.concat();
            for markup in [Markup::Html, Markup::Xhtml, Markup::Sgml { hidden: &[] }] {
                let texts = found(&["title", "headings", "p"], page.as_bytes(), markup);
                let all: usize = texts.iter().map(|(_, text)| text.len()).sum();
                prop_assert!(all <= 3 * page.len());
            }
        }
    }
}

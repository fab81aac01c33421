//! Writes documents as HTML pages. A page has a title, headings, paragraphs, links, lists, a style
//! and a script, comments and entities; some 3 KB of it are no text. All visible tokens come from
//! the model, except for the text of entities.

#![forbid(unsafe_code)]

use crate::text::{Style, Text};

static STYLE: Style = Style::new(
    "</p>\n<p>",
    [
        ("<a href=\"/archive/index.html\">", "</a>"),
        ("<a href=\"http://www.example.org/?a=1&amp;b=2\" rel=\"nofollow\">", "</a>"),
        ("<a href='#top'>", "</a>"),
        ("<em>", "</em>"),
        ("<b>", "</b>"),
        ("<span class=\"note\">", "</span>"),
        ("&quot;", "&quot;"),
        ("&#8220;", "&#8221;"),
    ],
    [" &amp; ", " &#8211; ", "&nbsp;&mdash; ", "; "],
);

const STYLE_SHEET: &[u8] = b"<style type=\"text/css\">
body { margin: 0 auto; max-width: 960px; font: 14px/1.5 Helvetica, Arial, sans-serif; color: #222; }
h1, h2 { font-weight: normal; color: #036; border-bottom: 1px solid #ddd; }
a { color: #06c; text-decoration: none; } a:hover { text-decoration: underline; }
#navigation ul { list-style: none; margin: 0; padding: 0; } #navigation li { float: left; margin: 0 1em; }
.note { background: #ffc; } #footer { clear: both; font-size: 11px; color: #999; }
</style>
";

const SCRIPT: &[u8] = b"<script type=\"text/javascript\">
//<![CDATA[
var page = page || {};
page.ready = function (f) { if (document.body && 1 < 2) { f(); } else { setTimeout(function () { page.ready(f); }, 50); } };
page.ready(function () {
  var links = document.getElementsByTagName(\"a\");
  for (var i = 0; i < links.length; i++) {
    if (links[i].href.indexOf(\"http://\") === 0) { links[i].title = \"<external> \" + links[i].href; }
  }
});
//]]>
</script>
";

/// Tokens for which a page has one more section.
const TOKENS_A_SECTION: u32 = 150;

/// What is left of a page's tokens.
struct Left(u32);

impl Left {
    /// Takes up to `count` of them.
    fn take(&mut self, count: u32) -> u32 {
        let taken = count.min(self.0);
        self.0 -= taken;
        taken
    }
}

pub(super) fn page(text: &mut Text<'_>, tokens: u32) {
    let mut left = Left(tokens);
    text.push(b"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
    let title = 3 + text.random.below(7);
    text.phrase(left.take(title));
    text.push(b"</title>\n");
    text.push(STYLE_SHEET);
    text.push(SCRIPT);
    text.push(b"</head>\n<body class=\"page\">\n<!-- begin navigation: <ul> of links -->\n");
    text.push(b"<div id=\"navigation\">\n");
    list(text, &mut left, 5, 2, true);
    text.push(b"</div>\n<!-- end navigation -->\n<div id=\"content\">\n<h1>");
    let heading = 2 + text.random.below(5);
    text.phrase(left.take(heading));
    text.push(b"</h1>\n");
    while left.0 > 0 {
        section(text, &mut left);
    }
    text.push(
        b"</div>\n<div id=\"footer\"><hr/>&copy; <img src=\"/images/logo.gif\" alt=\"\"> <br>",
    );
    text.push(b"<a href=\"/legal.html\">&raquo;</a></div>\n");
    text.push(b"<script type=\"text/javascript\">page.count(\"");
    hex(text);
    text.push(b"\");</script>\n</body>\n</html>\n");
}

/// Writes a section: its heading, paragraphs, and sometimes a list.
fn section(text: &mut Text<'_>, left: &mut Left) {
    if left.0 > TOKENS_A_SECTION {
        text.push(b"<h2>");
        let heading = 2 + text.random.below(4);
        text.phrase(left.take(heading));
        text.push(b"</h2>\n");
    }
    let paragraphs = TOKENS_A_SECTION / 2 + text.random.below(TOKENS_A_SECTION);
    text.push(b"<p>");
    text.prose(left.take(paragraphs), &STYLE);
    text.push(b"</p>\n");
    match text.random.below(4) {
        0 => list(text, left, 4, 6, false),
        1 => list(text, left, 3, 3, true),
        _ => {}
    }
}

/// Writes a list of up to `items` and as many more.
fn list(text: &mut Text<'_>, left: &mut Left, items: u32, tokens: u32, links: bool) {
    text.push(b"<ul>\n");
    for _ in 0..items + text.random.below(items) {
        let count = left.take(1 + text.random.below(tokens));
        if count == 0 {
            break;
        }
        text.push(b"<li>");
        if links {
            text.push(b"<a href=\"/pages/");
            hex(text);
            text.push(b".html\">");
        }
        text.phrase(count);
        text.push(if links { b"</a></li>\n" } else { b"</li>\n" });
    }
    text.push(b"</ul>\n");
}

/// Writes eight digits of a random number.
fn hex(text: &mut Text<'_>) {
    let bits = text.random.bits();
    text.push(format!("{:08x}", bits as u32).as_bytes());
}

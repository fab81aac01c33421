use super::*;
use crate::text::sweep;
use crate::text::tokenizer::for_each_token;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use proptest::prelude::*;
use std::cell::RefCell;

fn tokens_of(text: &[u8]) -> Vec<String> {
    let mut tokens = Vec::new();
    for_each_token(text, |token| tokens.push(token.to_owned()));
    tokens
}

fn text_in(markup: Markup, page: &str) -> String {
    let mut html = HtmlText::new();
    String::from_utf8(html.text(page.as_bytes(), markup, None).to_vec()).unwrap()
}

fn tokens(page: &[u8]) -> Vec<String> {
    tokens_of(HtmlText::new().text(page, Markup::Html, Some(b"utf-8")))
}

/// The oracle: the same text from the tokens of html5ever, naively.
#[derive(Default)]
struct Oracle {
    text: RefCell<String>,
    /// Open templates, and whether an element whose content is hidden is open.
    templates: RefCell<usize>,
    hidden: RefCell<bool>,
}

const INLINE: &str = " a abbr acronym b bdi bdo big blink cite code data del dfn em font i ins kbd \
    label mark nobr q s samp small span strike strong sub sup time tt u var wbr ";

impl Oracle {
    fn push(&self, text: &str) {
        if *self.templates.borrow() == 0 && !*self.hidden.borrow() {
            self.text.borrow_mut().push_str(text);
        }
    }

    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let name = &*tag.name;
        let start = tag.kind == TagKind::StartTag;
        *self.hidden.borrow_mut() = start && ["script", "style", "iframe"].contains(&name);
        if name == "template" {
            let mut templates = self.templates.borrow_mut();
            *templates = if start { *templates + 1 } else { templates.saturating_sub(1) };
        }
        if !INLINE.contains(&format!(" {name} ")) {
            self.push(" ");
        }
        match name {
            "script" if start => TokenSinkResult::RawData(ScriptData),
            "style" | "iframe" | "xmp" if start => TokenSinkResult::RawData(Rawtext),
            "title" | "textarea" if start => TokenSinkResult::RawData(Rcdata),
            "plaintext" if start => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

impl TokenSink for Oracle {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => return self.tag(&tag),
            Token::CharacterTokens(text) => self.push(&text),
            Token::NullCharacterToken => self.push("\0"),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn oracle(page: &[u8]) -> Vec<String> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(&*String::from_utf8_lossy(page)));
    let options = TokenizerOpts { discard_bom: false, ..Default::default() };
    let tokenizer = Tokenizer::new(Oracle::default(), options);
    while !input.is_empty() {
        let _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    let text = tokenizer.sink.text.take();
    tokens_of(text.as_bytes())
}

#[test]
fn words_end_where_a_browser_ends_them() {
    for (page, expected) in [
        ("<p>one<p>two", "one\ntwo"),
        ("<b>o</b>n<span class=x>e</span> t<sup>w</sup>o", "one two"),
        ("one<br>two<br/>three</br>four", "one\ntwo\nthree\nfour"),
        ("<td>1</td><td>2</td><li>3", "1\n2\n3"),
        ("one<!-- - -- > -->two<!doctype x>three<?x y?>four", "onetwothreefour"),
        ("H<sub>2</sub>O<wbr>x", "H2Ox"),
        ("<my-tag>a</my-tag>b", "a\nb"),
    ] {
        assert_eq!(text_in(Markup::Html, page).trim(), expected, "{page}");
    }
}

#[test]
fn what_shows_nothing_is_no_text() {
    for (page, expected) in [
        ("<title>a &amp; <b></title>c", "a & <b>\nc"),
        ("<script>var a = '<p>';</script>b", "b"),
        ("a<style>b</style><iframe>c<p></iframe>d", "a\nd"),
        ("a<template>b<template>c</template>d</template>e", "a\ne"),
        ("a<template>b<script></template></script>c", "a"),
        ("a</template>b", "a\nb"),
        ("<noscript>a</noscript><noframes>b</noframes>", "a\nb"),
        ("<img alt='no' title=no>yes<a href='>' title=\"<p>\">a</a>", "yesa"),
        ("<textarea>a<p>&lt;</textarea><xmp>b<p>&lt;</xmp>", "a<p><\nb<p>&lt;"),
        ("a<plaintext>b<p></plaintext>", "a\nb<p></plaintext>"),
        ("a<!-- b", "a"),
        ("a<p title='b", "a"),
        ("a<script>b", "a"),
        ("1 < 2 <3 </ x>4</>5<>6", "1 < 2 <3 45<>6"),
        ("AT&T &ampx &#x41;&#66 &Eacute;t&eacute &bogus; &", "AT&T &x AB Été &bogus; &"),
    ] {
        assert_eq!(text_in(Markup::Html, page).trim(), expected, "{page}");
    }
}

#[test]
fn xhtml_closes_elements_and_has_sections() {
    let page = "<script src='a'/>b<title/>c<![CDATA[<d>&amp;]]>e<p/>f<![CDATA[g";
    assert_eq!(text_in(Markup::Xhtml, page), "b\nc<d>&amp;e\nfg");
    assert_eq!(text_in(Markup::Html, "a<![CDATA[<d>e]]>f"), "ae]]>f");
}

#[test]
fn sgml_has_tags_without_meaning() {
    let markup = Markup::Sgml { hidden: &[b"docno", b"first"] };
    let page = "<DOCNO> 1 </DOCNO>a<F P=1>b</F><script>c&hyph;d&amp;<First>no</FIRST>e";
    assert_eq!(text_in(markup, page), "a\nb\nc d&\ne");
    assert_eq!(text_in(markup, "a<first>b<first>c"), "a\nb\nc");
}

#[test]
fn character_sets_are_decoded() {
    let mut html = HtmlText::new();
    let mut tokens = |page: &[u8], charset: Option<&str>| {
        tokens_of(html.text(page, Markup::Html, charset.map(str::as_bytes)))
    };
    assert_eq!(tokens(b"<p>\xe9t\xe9", Some("latin1")), ["été"]);
    assert_eq!(tokens(b"<meta charset=windows-1251><b>\xcc\xee\xf1\xea\xe2\xe0", None), ["москва"]);
    assert_eq!(tokens(b"\xff\xfe<\0p\0>\0a\0\xe9\0", None), ["aé"]);
    assert_eq!(tokens(b"\xef\xbb\xbf\xc3\xa9", Some("latin1")), ["é"]);
    assert_eq!(tokens(b"<p>\xc3\xa9\xff\xe9t", None), ["é", "t"]);
    // A long page that grows threefold.
    let page = b"\xb1".repeat(100_000);
    assert_eq!(tokens(&page, Some("iso-8859-5"))[0].chars().count(), 100_000);
    let mut html = HtmlText::new();
    assert_eq!(html.plain(b"<p>\xe9", Some(b"latin1")), "<p>é".as_bytes());
    assert_eq!(html.plain(b"\xef\xbb\xbf<p>", None), b"<p>");
    html.shrink();
}

#[test]
fn broken_pages_take_linear_time() {
    for part in
        ["<", "<!--", "&", "</", "<a b='", "<!-- >", "<script><!--<script>", "&#", "<template>"]
    {
        let page = part.repeat(2_000_000 / part.len());
        for markup in [Markup::Html, Markup::Xhtml, Markup::Sgml { hidden: &[b"a"] }] {
            text_in(markup, &page);
        }
    }
    let page = "<a>".repeat(700_000);
    text_in(Markup::Sgml { hidden: &[b"a"] }, &page);
}

/// Pieces of broken pages.
const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!",
    "<!--",
    "-->",
    "--!>",
    "-",
    "--",
    "!",
    "=",
    "\"",
    "'",
    "&",
    ";",
    "#",
    " ",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "a",
    "b",
    "Z",
    "é",
    "7",
    "x",
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<br/>",
    "<a href=",
    "<a href='",
    "<a href=\"x\"",
    "<a x>",
    "<A X = y/>",
    "script",
    "<script",
    "<script>",
    "</script",
    "</script>",
    "</SCRIPT >",
    "<style>",
    "</style>",
    "<title>",
    "</title>",
    "<textarea>",
    "</textarea x>",
    "<xmp>",
    "</xmp>",
    "<iframe>",
    "</iframe>",
    "<template>",
    "</template>",
    "<plaintext",
    "<span>",
    "</span>",
    "<td>",
    "<?",
    "?>",
    "<!doctype html>",
    "<!DOCTYPE x '>'",
    "<![CDATA[",
    "]]>",
    "&amp;",
    "&eacute;",
    "&eacute",
    "&copy",
    "&notit;",
    "&Zcaron;",
    "&#65;",
    "&#x",
    "&#x42",
    "&#150;",
    "&#0;",
    "&nbsp;",
    "&fjlig;",
    "<svg>",
    "<my-tag>",
    "<h1>",
    "<noscript>",
    "</",
];

fn page() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        9 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 1..4),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn oracle_broken_pages_have_the_same_tokens(page in page()) {
        // As html5ever sees bytes that are not UTF-8, so that tags have the same names.
        let page = String::from_utf8_lossy(&page).into_owned().into_bytes();
        let page = page.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&page);
        prop_assert_eq!(tokens(page), oracle(page), "{:?}", String::from_utf8_lossy(page));
    }

    #[test]
    fn law_any_bytes_are_a_page(page in page(), charset in "[a-z0-9-]{0,9}", label in 0usize..5) {
        let labels = ["utf-16", "shift_jis", "iso-2022-jp", "gb18030", &charset];
        let mut html = HtmlText::new();
        for markup in [Markup::Html, Markup::Xhtml, Markup::Sgml { hidden: &[b"a", b"td"] }] {
            html.text(&page, markup, Some(labels[label].as_bytes()));
        }
        let _ = html.plain(&page, Some(labels[label].as_bytes()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn oracle_long_pages_have_the_same_tokens(parts in proptest::collection::vec((page(), 0usize..2100), 1..6)) {
        // Marks are made part by part.
        let blank = |(page, blanks): &(Vec<u8>, usize)| [&page[..], &vec![b' '; *blanks]].concat();
        let page = parts.iter().map(blank).collect::<Vec<_>>().concat();
        let page = String::from_utf8_lossy(&page).into_owned().into_bytes();
        let page = page.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&page);
        prop_assert_eq!(tokens(page), oracle(page), "{:?}", String::from_utf8_lossy(page));
    }
}

/// Tags and text as most pages have them, and some that only look so.
const REGULAR: &[&str] = &[
    "<div class=\"x y\">",
    "</div>\n",
    "<a href=\"http://example.com/?a=b&amp;c='d'\" title=\"=\">",
    "</a>",
    "<td width=50 class=\"c\">",
    "<img src=/a/b=c alt=\"\"/>",
    "<input disabled value=\"a=b\" x>",
    "<p id = \"a>b\">",
    "<p id= \"a>b\">",
    "<p id=\"a>b\">",
    "<p a=b=\"c>\">",
    "<p =\"a>\">",
    "<p a=\"b\"=\"c>\">",
    "<p a=\"b\"c=\"d>e\">",
    "<p a=x\"y>",
    "<p a='\"' b='>'>",
    "<p it's>",
    "<a=\"x b=\"c=\"d e=\"f>",
    "<noscript=\"x b=\"c=\"d e=\"f>",
    "<h1>",
    "<noscript>",
    "</blockquote>",
    "<figcaption class=\"f\">",
    "<title>a &amp; b</title>",
    "<script type=\"text/javascript\">var a = \"<p>\";</script>",
    "<template id=\"t\">",
    "</template>",
    "word",
    " some words, and more of them ",
    "a > b < c",
    "\n    ",
    "&nbsp;",
    "&lt;&gt;&quot;&#160;",
    "&eacute;",
    "&amp",
    "<!-- a > b -->",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn law_pages_are_swept_as_they_are_stepped_through(
        parts in proptest::collection::vec(
            prop_oneof![
                9 => proptest::sample::select(REGULAR).prop_map(|part| part.as_bytes().to_vec()),
                1 => proptest::sample::select(PIECES).prop_map(|part| part.as_bytes().to_vec()),
                1 => (0usize..70).prop_map(|length| vec![b'x'; length]),
                1 => proptest::collection::vec(any::<u8>(), 1..4),
            ],
            0..60,
        ),
    ) {
        let page = parts.concat();
        for markup in [Markup::Html, Markup::Xhtml] {
            let text = |sweep| {
                let mut text = Vec::new();
                markup::extract_by(sweep, &page, markup, &mut text);
                text
            };
            let stepped = text(None);
            for sweep in [Some(sweep::portable as sweep::Sweep), sweep::best()] {
                prop_assert!(text(sweep) == stepped, "{:?}", String::from_utf8_lossy(&page));
            }
        }
let page = String::from_utf8_lossy(&page).into_owned().into_bytes();
        let page = page.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&page);
        prop_assert_eq!(tokens(page), oracle(page), "{:?}", String::from_utf8_lossy(page));
    }
}

/// Real pages are sampled; all were compared once.
const PAGES_STEP: usize = 10;

/// The bodies of the responses in a WARC file with correct lengths.
fn bodies(mut records: &[u8], mut take: impl FnMut(&[u8])) {
    let head_end = |bytes: &[u8]| memchr::memmem::find(bytes, b"\r\n\r\n").unwrap() + 4;
    while !records.is_empty() {
        let (head, rest) = records.split_at(head_end(records));
        let fields = String::from_utf8_lossy(head);
        let length = fields.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let (content, rest) = rest.split_at(length.parse().unwrap());
        if fields.contains("WARC-Type: response") {
            take(&content[head_end(content)..]);
        }
        records = &rest[4..];
    }
}

#[test]
fn oracle_real_pages_have_the_same_tokens() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/large");
    for file in ["html-0.warc.gz", "html-1.warc.gz"] {
        let Ok(file) = std::fs::File::open(folder.join(file)) else {
            eprintln!("skipped: {} has no {file}", folder.display());
            continue;
        };
        let mut records = Vec::new();
        let mut file = flate2::read::MultiGzDecoder::new(file);
        std::io::Read::read_to_end(&mut file, &mut records).unwrap();
        let mut number = 0;
        let mut words = 0;
        bodies(&records, |page| {
            number += 1;
            // A part of them, since it takes time.
            if number % PAGES_STEP == 0 {
                let found = tokens(page);
                assert!(found == oracle(page), "page {number}");
                words += found.len();
            }
        });
        assert!(words > number, "{number} pages have {words} words");
    }
}

//! Pages of a WARC file: the text that they show.
//!
//! `millrace` and `html5ever` give the same words. `lol_html` and `tl` give less than a build
//! needs, in their favour: neither resolves references (`&eacute;`), and words of neighbouring
//! blocks may join.

use crate::Found;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use millrace::inside::text::{HtmlText, Markup};
use std::cell::{Cell, RefCell};
use std::error::Error;

/// Bodies of the HTTP answers.
fn pages(mut rest: &[u8]) -> Vec<&[u8]> {
    let end_of_head = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let mut pages = Vec::new();
    while let Some(end) = end_of_head(rest) {
        let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length = field("content-length:").and_then(|text| text.trim().parse().ok());
        let Some(length) = length.filter(|&n: &usize| n <= rest.len() - end - 4) else { break };
        let body = &rest[end + 4..][..length];
        if field("warc-type:").is_some_and(|kind| kind.trim() == "response")
            && let Some(end) = end_of_head(body)
        {
            pages.push(&body[end + 4..]);
        }
        rest = &rest[end + 4 + length..];
        while let Some(behind) = rest.strip_prefix(b"\r\n") {
            rest = behind;
        }
    }
    pages
}

const INLINE: [&str; 36] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "blink", "cite", "code", "data", "del",
    "dfn", "em", "font", "i", "ins", "kbd", "label", "mark", "nobr", "q", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "basefont",
];

/// Keeps the text of a page that html5ever's tokenizer goes through.
#[derive(Default)]
struct Kept {
    text: RefCell<String>,
    hidden: Cell<bool>,
}

impl Kept {
    fn tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        let start = tag.kind == TagKind::StartTag;
        let name = &*tag.name;
        self.hidden.set(start && matches!(name, "script" | "style" | "iframe"));
        if !INLINE.contains(&name) {
            self.text.borrow_mut().push(' ');
        }
        match name {
            "script" if start => TokenSinkResult::RawData(ScriptData),
            "style" | "iframe" | "xmp" if start => TokenSinkResult::RawData(Rawtext),
            "title" | "textarea" if start => TokenSinkResult::RawData(Rcdata),
            _ => TokenSinkResult::Continue,
        }
    }
}

impl TokenSink for Kept {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) if !self.hidden.get() => {
                self.text.borrow_mut().push_str(&text);
                TokenSinkResult::Continue
            }
            Token::TagToken(tag) => self.tag(&tag),
            _ => TokenSinkResult::Continue,
        }
    }
}

fn html5ever(page: &[u8]) -> usize {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(&String::from_utf8_lossy(page)));
    let tokenizer = Tokenizer::new(Kept::default(), TokenizerOpts::default());
    // Scripts stop it, and are not run.
    while !input.is_empty() {
        _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    tokenizer.sink.text.borrow().len()
}

fn lol_html(page: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut text = String::new();
    let handlers = lol_html::RewriteStrSettings {
        document_content_handlers: vec![lol_html::doc_text!(|chunk| {
            use lol_html::html_content::TextType;
            if !matches!(chunk.text_type(), TextType::ScriptData | TextType::RawText) {
                text.push_str(chunk.as_str());
                text.push(' ');
            }
            Ok(())
        })],
        ..lol_html::RewriteStrSettings::default()
    };
    let mut rewriter = lol_html::HtmlRewriter::new(handlers.into(), |_: &[u8]| ());
    rewriter.write(page)?;
    rewriter.end()?;
    Ok(text.len())
}

fn tl(page: &[u8]) -> Result<usize, Box<dyn Error>> {
    let page = String::from_utf8_lossy(page);
    let dom = tl::parse(&page, tl::ParserOptions::default())?;
    let parser = dom.parser();
    let mut bytes = 0;
    for node in dom.nodes() {
        if let Some(raw) = node.as_raw() {
            bytes += raw.as_bytes().len() + 1;
        }
    }
    std::hint::black_box(parser);
    Ok(bytes)
}

/// Lets `who` find the texts of all pages.
pub(crate) fn run(who: &str, file: &[u8]) -> Result<Found, Box<dyn Error>> {
    let pages = pages(file);
    let (mut found, mut ours) = (Found::default(), HtmlText::new());
    for page in pages {
        let bytes = match who {
            "none" => page.len(),
            "millrace" => ours.text(page, Markup::Html, Some(b"utf-8")).len(),
            "html5ever" => html5ever(page),
            "lol_html" => lol_html(page)?,
            "tl" => tl(page)?,
            _ => return Err(format!("{who} reads no HTML here").into()),
        };
        found.records += 1;
        found.bytes += bytes as u64;
    }
    Ok(found)
}

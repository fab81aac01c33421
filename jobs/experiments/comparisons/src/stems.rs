//! English stems: of every distinct word once, as a build asks that remembers which form has which
//! stem.

use crate::Found;
use millrace::inside::input::{Document, PieceView, DocumentSink, Skip};
use millrace::inside::input::JsonlParser;
use millrace::inside::text::Stemmer;
use millrace::inside::text::for_each_token;
use std::collections::HashSet;
use std::error::Error;

#[derive(Default)]
struct Words {
    known: HashSet<String>,
    /// By first appearance.
    all: Vec<String>,
}

impl DocumentSink for Words {
    fn document(&mut self, document: Document<'_>) {
        for_each_token(document.text, |token| {
            if !self.known.contains(token) {
                self.known.insert(token.to_owned());
                self.all.push(token.to_owned());
            }
        });
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

/// Lets `who` stem the distinct words of all lines.
pub(crate) fn run(who: &str, file: &[u8]) -> Result<Found, Box<dyn Error>> {
    let mut words = Words::default();
    JsonlParser::new().parse(PieceView::whole(file), &mut words);
    let snowball = rust_stemmers::Stemmer::create(rust_stemmers::Algorithm::English);
    let mut found = Found::default();
    for word in &words.all {
        match who {
            "none" => found.add(word.as_bytes()),
            "millrace" => found.add(Stemmer::ENGLISH.stem(word).as_bytes()),
            "rust-stemmers" => found.add(snowball.stem(word).as_bytes()),
            _ => return Err(format!("{who} stems nothing here").into()),
        }
    }
    Ok(found)
}

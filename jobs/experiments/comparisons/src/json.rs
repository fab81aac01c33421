//! JSON lines: the texts of the documents.

use crate::Found;
use millrace::inside::input::{Document, PieceView, DocumentSink, Skip};
use millrace::inside::input::JsonlParser;
use serde::Deserialize;
use std::borrow::Cow;
use std::error::Error;

/// The fields that a build takes by default, as far as the file has them. What else there is, is
/// skipped.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, alias = "docno", alias = "_id", alias = "docid")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "contents", alias = "body")]
    text: Option<Cow<'a, str>>,
}

impl Line<'_> {
    fn count(&self, found: &mut Found) {
        std::hint::black_box(&self.id);
        found.add(self.text.as_deref().unwrap_or_default().as_bytes());
    }
}

struct Texts<'a>(&'a mut Found);

impl DocumentSink for Texts<'_> {
    fn document(&mut self, document: Document<'_>) {
        self.0.add(document.text);
    }

    fn skipped(&mut self, _: usize, _: u64, _: usize, _: Skip) {}
}

/// Lets `who` find the texts of all lines.
pub(crate) fn run(who: &str, file: &[u8]) -> Result<Found, Box<dyn Error>> {
    let mut found = Found::default();
    if who == "millrace" {
        // Pieces of the size that a build has.
        let mut parser = JsonlParser::new();
        let mut rest = file;
        while !rest.is_empty() {
            let from = rest.len().min(512 << 10) - 1;
            let end =
                rest[from..].iter().position(|&b| b == b'\n').map_or(rest.len(), |n| from + n + 1);
            let (piece, behind) = rest.split_at(end);
            parser.parse(PieceView::whole(piece), &mut Texts(&mut found));
            rest = behind;
        }
        return Ok(found);
    }
    let mut room = Vec::new();
    for line in file.split_inclusive(|&b| b == b'\n') {
        match who {
            "none" => found.add(line),
            "serde_json" => serde_json::from_slice::<Line<'_>>(line)?.count(&mut found),
            "sonic-rs" => sonic_rs::from_slice::<Line<'_>>(line)?.count(&mut found),
            // It writes into what it reads.
            "simd-json" => {
                room.clear();
                room.extend_from_slice(line);
                simd_json::from_slice::<Line<'_>>(&mut room)?.count(&mut found);
            }
            _ => return Err(format!("{who} reads no JSON here").into()),
        }
    }
    Ok(found)
}

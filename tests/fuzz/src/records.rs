//! WARC, TREC, HTML and CSV are read without harm, whatever the bytes: documents in order and
//! inside of the piece, and the same again from a parser that has seen other pieces.

use super::support::kept::Kept;
use millrace::input::document::PieceView;
use millrace::input::formats::csv::{CsvParser, first_record};
use millrace::input::formats::html;
use millrace::input::formats::trec::TrecParser;
use millrace::input::formats::warc::WarcParser;
use millrace::text::html::HtmlText;

/// Bodies may decompress to this many bytes.
const MOST_BYTES: u64 = 1 << 20;

impl Kept {
    /// All places are inside of `length` bytes, and rise.
    fn check(&self, length: usize) {
        let documents = self.documents.iter().map(|d| (d.2, d.3));
        let skipped = self.skipped.iter().map(|s| (s.0, s.2));
        for (offset, bytes) in documents.clone().chain(skipped) {
            assert!(offset <= length && bytes <= length - offset, "{offset} + {bytes} of {length}");
        }
        assert!(documents.is_sorted_by_key(|(offset, _)| offset));
        assert!(self.documents.iter().all(|d| d.0.as_ref().is_none_or(|name| !name.is_empty())));
    }
}

fn twice(data: &[u8], mut parse: impl FnMut(&[u8], &mut Kept)) {
    let (mut once, mut again) = (Kept::default(), Kept::default());
    parse(data, &mut once);
    once.check(data.len());
    parse(&data[data.len() / 2..], &mut Kept::default());
    parse(data, &mut again);
    assert_eq!(once, again);
}

/// What is asked of an input.
pub fn records(data: &[u8]) {
    for ends in [false, true] {
        let mut warc = WarcParser::new(MOST_BYTES);
        twice(data, |data, kept| {
            warc.parse(PieceView::whole(data), ends, kept);
        });
    }
    let mut trec = TrecParser::default();
    twice(data, |data, kept| trec.parse(PieceView::whole(data), kept));
    let head = first_record(data).to_vec();
    let mut csv = CsvParser::default();
    twice(data, |data, kept| {
        csv.parse(&head, PieceView::whole(data), kept);
    });
    let mut text = HtmlText::new();
    twice(data, |data, kept| html::parse(&mut text, "name", data, kept));
}

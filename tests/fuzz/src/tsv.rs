//! The documents of a TSV file and of a plain file are those of the plain rules, whatever the
//! bytes.

use super::support::kept::Kept;
use millrace::input::document::PieceView;
use millrace::input::formats::lines::{Between, LinesParser};
use millrace::input::formats::plain;
use millrace::input::{Compression, Format};

fn expected(bytes: &[u8]) -> Kept {
    let mut kept = Kept::default();
    let mut offset = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    for (line, record) in (1..).zip(bytes[offset..].split(|byte| *byte == b'\n')) {
        let start = offset;
        offset += record.len() + 1;
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        // A mark that stands where files were joined is of the record and not of its name.
        let mark = if record.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        match record.iter().position(|byte| *byte == b'\t') {
            Some(tab) => {
                let name = String::from_utf8_lossy(&record[mark.min(tab)..tab]).into_owned();
                let name = Some(name).filter(|name| !name.is_empty());
                let text = record[tab + 1..].to_vec();
                kept.documents.push((name, text, start, record.len(), line));
            }
            None if record.is_empty() => {}
            None => kept.skipped.push((start, line, record.len())),
        }
    }
    kept
}

/// What is asked of an input.
pub fn tsv(data: &[u8]) {
    let _ = Format::by_content(data);
    let _ = Compression::by_content(data);

    let mut kept = Kept::default();
    LinesParser::new(Between::Tab).parse(PieceView::whole(data), &mut kept);
    assert_eq!(kept, expected(data));

    let mut kept = Kept::default();
    plain::parse("name", data, &mut kept);
    assert_eq!(kept.documents.len() + kept.skipped.len(), 1);
}

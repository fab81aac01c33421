//! Turns a file of JSON objects over several lines, an array of them or one behind the other, into
//! JSON lines of the same length, of which [`jsonl`](super::jsonl) makes documents.
//!
//! Line feeds within an object become blanks, for in JSON they are that; the commas between objects
//! become line feeds, and the brackets around all of them blanks. So every byte stays in its place.
//! Records count in the place of lines.

use crate::input::borders::over_lines::Json;

/// A line feed is put between objects that only blanks part, where there is a byte for it.
pub(crate) fn to_lines(bytes: &mut [u8]) {
    let mut state = Json::default();
    let mut at = 0;
    while at < bytes.len() {
        if state.in_string() {
            let end = state.string(bytes, at);
            // Not allowed in a string, but the record is to stay whole.
            blank_line_feeds(&mut bytes[at..end]);
            at = end;
            continue;
        }
        let between = state.between();
        let ends = state.outside(bytes[at]);
        match bytes[at] {
            b'\n' if !between => bytes[at] = b' ',
            b',' if between => bytes[at] = b'\n',
            b'[' | b']' if between => bytes[at] = b' ',
            _ => {}
        }
        at += 1;
        if ends && matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r')) {
            bytes[at] = b'\n';
            at += 1;
        }
    }
}

fn blank_line_feeds(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::super::jsonl::JsonlParser;
    use super::*;
    use crate::input::document::{KeptDocuments, PieceView};

    fn documents(text: &str) -> (Vec<(String, String, usize)>, usize) {
        let mut bytes = text.as_bytes().to_vec();
        to_lines(&mut bytes);
        assert_eq!(bytes.len(), text.len());
        let mut kept = KeptDocuments::default();
        JsonlParser::new().parse(PieceView::whole(&bytes), &mut kept);
        let row = |d: &crate::input::document::KeptDocument| {
            let name = d.0.clone().unwrap_or_default();
            let text = String::from_utf8_lossy(&d.1);
            (name, text.into_owned(), d.2)
        };
        (kept.documents.iter().map(row).collect(), kept.skipped.len())
    }

    fn row(name: &str, text: &str, offset: usize) -> (String, String, usize) {
        (name.to_string(), text.to_string(), offset)
    }

    #[test]
    fn arrays_and_objects_over_lines_are_records() {
        let text = "[\n {\"id\": \"a\",\n  \"x\": [1,\n 2],\n \"text\": \"one [,] two\"\n },\n{\"id\":\"b\",\"text\":\"t\"} ]\n";
        let expected = vec![row("a", "one [,] two", 2), row("b", "t", 58)];
        assert_eq!(documents(text), (expected, 0));
        let text = "{\n\"id\": 1, \"text\": \"x\"}\n{\"id\": 2,\n\"text\": \"y\"} {\"id\":3}";
        let expected = vec![row("1", "x", 0), row("2", "y", 24), row("3", "", 47)];
        assert_eq!(documents(text), (expected, 0));
        assert_eq!(documents("[]\n"), (Vec::new(), 0));
        assert_eq!(documents("[{\"id\":1}, 7, \"x\", {\"id\":2}]").1, 2);
    }
}

//! What are the documents of a file with a name, white space, and text on each line (PISA's
//! `plaintext`)?
//!
//! A line ends with LF or CRLF; blank lines are ignored; a line that is a name alone is an empty
//! document. The byte order mark of UTF-8 at the file's begin is dropped.

use crate::input::document::{Document, DocumentSink, Name, PieceView, length_without_return};
use memchr::memchr;

/// Finds the documents of such lines. It keeps nothing from piece to piece but a buffer.
#[derive(Debug, Default)]
pub(crate) struct PlaintextParser {
    /// A name that was made valid.
    name: String,
}

impl PlaintextParser {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Gives all records of `piece` to `sink`, in their order, in time linear in the piece's
    /// length. Returns its line feeds.
    pub(crate) fn parse<S: DocumentSink>(&mut self, piece: PieceView<'_>, sink: &mut S) -> u64 {
        let mut offset = piece.first_record();
        let mut line = piece.line;
        while offset < piece.bytes.len() {
            let rest = &piece.bytes[offset..];
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let bytes = length_without_return(&rest[..end]);
            let record = rest[..bytes].trim_ascii_start();
            if !record.is_empty() {
                let space = record.iter().position(u8::is_ascii_whitespace);
                let (name, text) = record.split_at(space.unwrap_or(record.len()));
                let name = Name::from_raw(name, &mut self.name);
                sink.document(Document { name, text: text.trim_ascii(), offset, bytes, line });
            }
            offset += end + 1;
            line += 1;
        }
        piece.line_feeds(line, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::Kept;

    #[test]
    fn the_first_word_is_the_name() {
        let mut kept = Kept::default();
        let bytes = b"\xef\xbb\xbfd1 one\ttwo \r\n\n \nd2\nd3\t x";
        assert_eq!(PlaintextParser::new().parse(PieceView::whole(bytes), &mut kept), 4);
        let name = |name: &str| Some(name.to_owned());
        let documents = vec![
            (name("d1"), b"one\ttwo".to_vec(), 3, 11, 1),
            (name("d2"), Vec::new(), 19, 2, 4),
            (name("d3"), b"x".to_vec(), 22, 5, 5),
        ];
        assert_eq!(kept, Kept { documents, skipped: Vec::new() });
    }
}

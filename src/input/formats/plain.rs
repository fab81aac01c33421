//! The document of a file of plain text: the whole file, named by the caller.
//!
//! The byte order mark of UTF-8 is dropped; NUL bytes are text like others.

use crate::input::document::{BYTE_ORDER_MARK, Content, Document, DocumentSink, Name};
use crate::text::fields::FieldTexts;

pub(crate) fn parse<S: DocumentSink>(name: &str, file: &[u8], sink: &mut S) {
    let text = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    let name = Name::new(name);
    sink.document(Document {
        name,
        content: Content::Text(text),
        fields: FieldTexts::NONE,
        offset: 0,
        bytes: file.len(),
        line: 1,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::document::KeptDocuments;

    fn parsed(file: &[u8]) -> KeptDocuments {
        let mut kept = KeptDocuments::default();
        parse("notes/a.txt", file, &mut kept);
        kept
    }

    #[test]
    fn all_bytes_are_the_text() {
        let name = || Some("notes/a.txt".to_owned());
        for file in [&b""[..], b"one\ntwo\0\xff\r\n", b"\xef\xbb"] {
            let documents = vec![(name(), file.to_vec(), 0, file.len(), 1)];
            assert_eq!(parsed(file), KeptDocuments { documents, skipped: Vec::new() });
        }
        let marked = parsed(b"\xef\xbb\xbfx").documents;
        assert_eq!(marked, vec![(name(), b"x".to_vec(), 0, 4, 1)]);
    }
}

//! The document of a file of plain text: the whole file, named by the caller.
//!
//! The byte order mark of UTF-8 is dropped; NUL bytes are text like others. A file in UTF-16 would
//! give no sensible token, so it is refused.

use crate::input::document::{BYTE_ORDER_MARK, Document, DocumentSink, Name, Skip};

/// Whether `head` begins with a byte order mark of UTF-16 (or of UTF-32, which begins alike).
pub(crate) fn is_utf16(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe")
        || head.starts_with(b"\xfe\xff")
        || head.starts_with(b"\x00\x00\xfe\xff")
}

pub(crate) fn parse<S: DocumentSink>(name: &str, file: &[u8], sink: &mut S) {
    if is_utf16(file) {
        return sink.skipped(0, 1, file.len(), Skip::Utf16);
    }
    let text = file.strip_prefix(BYTE_ORDER_MARK).unwrap_or(file);
    let name = Name::new(name);
    sink.document(Document { name, text, offset: 0, bytes: file.len(), line: 1 });
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

    #[test]
    fn utf16_is_refused_and_counted() {
        for file in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"\0\0\xfe\xff\0\0\0a"] {
            let skipped = vec![(0, 1, file.len(), Skip::Utf16)];
            assert_eq!(parsed(file), KeptDocuments { documents: Vec::new(), skipped });
        }
    }
}

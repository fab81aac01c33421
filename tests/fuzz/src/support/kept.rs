//! Keeps what a parser hands over.

use millrace::input::document::{Document, DocumentSink, Name, Skip};

/// Name, text, offset, bytes and line.
type KeptDocument = (Option<String>, Vec<u8>, usize, usize, u64);

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Kept {
    pub(crate) documents: Vec<KeptDocument>,
    /// Offset, line and bytes of each.
    pub(crate) skipped: Vec<(usize, u64, usize)>,
}

impl DocumentSink for Kept {
    fn document(&mut self, document: Document<'_>) {
        let Document { name, content, offset, bytes, line, .. } = document;
        let name = match name {
            Name::Given(name) => Some(name.to_owned()),
            Name::Missing => None,
        };
        self.documents.push((name, content.bytes().to_vec(), offset, bytes, line));
    }

    fn skipped(&mut self, offset: usize, line: u64, bytes: usize, reason: Skip) {
        assert!(!reason.to_string().is_empty() && !reason.reason().is_empty());
        self.skipped.push((offset, line, bytes));
    }
}

//! The documents of one piece. The [table] of all has a file of its own, and so have records that
//! are [skipped](Skipped).

mod seen;
mod skipped;
pub(crate) mod table;

use super::Location;
use crate::index::columns::PieceColumns;
use crate::index::texts::PieceTexts;
use crate::order::PieceCounts;
pub(crate) use seen::{PieceSeen, SeenDocument};
pub(crate) use skipped::{LargeDocument, Skipped, SkippedRecords};
use std::sync::Arc;

pub(crate) struct PieceDocuments {
    /// The input of the piece, or of the last document while the batch grows.
    pub input: u32,
    pub skipped: SkippedRecords,
    pub lines: u64,
    pub counts: Arc<PieceCounts>,
    /// The values of the documents, if the index has columns.
    pub columns: Option<PieceColumns>,
    /// Their texts, if the index keeps them.
    pub texts: Option<PieceTexts>,
    /// All documents, where only some are indexed and all are noted.
    pub seen: PieceSeen,
    rows: Rows,
}

/// Documents as columns, as they lie in the files of a run, as far as that is known before earlier
/// pieces are.
#[derive(Default)]
struct Rows {
    names: String,
    /// The end of each name; an empty one is made from input and line.
    ends: Vec<u64>,
    is_nameless: bool,
    lines: Vec<u64>,
    lengths: Vec<u32>,
    /// Of each field of the index, document by document.
    field_lengths: Vec<u32>,
    locations: Vec<Location>,
    contents: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct DocumentsRoom {
    documents: usize,
    /// Documents whose lengths and hashes are known.
    counted: usize,
    name_bytes: usize,
    seen: usize,
}

impl Rows {
    fn push(&mut self, name: &str, line: u64, location: Location, counted: Option<(u32, u64)>) {
        self.is_nameless |= name.is_empty();
        self.names.push_str(name);
        self.ends.push(self.names.len() as u64);
        self.lines.push(line);
        self.locations.push(location);
        if let Some((length, content)) = counted {
            self.lengths.push(length);
            self.contents.push(content);
        }
    }

    fn reserve(&mut self, DocumentsRoom { documents, counted, name_bytes, .. }: DocumentsRoom) {
        self.names.reserve(name_bytes);
        self.ends.reserve(documents);
        self.lines.reserve(documents);
        self.lengths.reserve(counted);
        self.locations.reserve(documents);
        self.contents.reserve(counted);
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        const ROW: usize = 3 * size_of::<u64>() + size_of::<u32>() + size_of::<Location>();
        let fields = self.field_lengths.capacity() * size_of::<u32>();
        self.names.capacity() + self.ends.capacity() * ROW + fields
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let end = end as usize;
            &self.names[std::mem::replace(&mut start, end)..end]
        })
    }
}

impl PieceDocuments {
    pub(crate) fn new(input: u32, skipped: SkippedRecords) -> Self {
        let (lines, counts, columns, texts, seen, rows) = Default::default();
        Self { input, skipped, lines, counts, columns, texts, seen, rows }
    }

    pub(crate) fn reserve(&mut self, room: DocumentsRoom) {
        self.rows.reserve(room);
        self.seen.documents.reserve(room.seen);
    }

    /// Room for as much as is here and a sixteenth more.
    pub(crate) fn room(&self) -> DocumentsRoom {
        let ample = |len: usize| len + len / 16;
        DocumentsRoom {
            documents: ample(self.rows.len()),
            counted: ample(self.rows.lengths.len()),
            name_bytes: ample(self.rows.names.len()),
            seen: ample(self.seen.documents.len()),
        }
    }

    /// Adds a document with its length and the hash of its content, or all without them; an empty
    /// name is missing.
    pub(crate) fn push(
        &mut self,
        name: &str,
        line: u64,
        location: Location,
        counted: Option<(u32, u64)>,
    ) {
        self.rows.push(name, line, location, counted);
    }

    /// Adds the lengths of the fields of the document that was added last.
    pub(crate) fn push_fields(&mut self, lengths: &[u32]) {
        self.rows.field_lengths.extend_from_slice(lengths);
    }

    /// Adds the counts of the piece, and the lengths and content hashes of its documents where they
    /// were not known before.
    ///
    /// # Panics
    /// If there are not as many lengths and hashes as documents.
    pub(crate) fn count(
        &mut self,
        counts: Arc<PieceCounts>,
        lengths: Vec<u32>,
        contents: Vec<u64>,
    ) {
        assert_eq!(lengths.len(), self.documents() as usize, "each document has a length");
        assert_eq!(contents.len(), self.documents() as usize, "each document has a hash");
        self.rows.lengths = lengths;
        // A device that got other texts than were read knows the hashes of these.
        if self.rows.contents.len() < contents.len() {
            self.rows.contents = contents;
        }
        self.counts = counts;
    }

    pub(crate) fn bytes(&self) -> usize {
        let columns = self.columns.as_ref().map_or(0, PieceColumns::bytes);
        let texts = self.texts.as_ref().map_or(0, PieceTexts::bytes);
        self.rows.bytes() + self.seen.bytes() + columns + texts
    }

    pub(crate) fn documents(&self) -> u32 {
        self.rows.len() as u32
    }
}

//! Which documents did the pieces hold? The documents of one piece, and the [table] of all.

pub mod table;

use super::piece::Skipped;
use crate::dictionary::names::name_hash;
use crate::index::documents::Location;
use crate::order::PieceCounts;
use std::sync::Arc;

/// The documents of one piece.
pub struct PieceDocuments {
    /// Number of the input of the piece, or of the last document while the batch grows.
    pub input: u32,
    /// What was passed over.
    pub skipped: Vec<Skipped>,
    /// Lines of the piece, where lines count.
    pub lines: u64,
    /// What the piece counts.
    pub counts: Arc<PieceCounts>,
    rows: Rows,
    /// The hash of each name, which many workers take beside each other.
    name_hashes: Vec<u128>,
    /// All documents, where only some are indexed and all are looked at.
    seen: Option<Rows>,
}

/// Documents, as columns: what lies so in the files of a run, as far as it is known before the documents of earlier pieces are.
#[derive(Default)]
struct Rows {
    names: String,
    /// Where each name ends; an empty name is made from input and line.
    ends: Vec<u64>,
    is_nameless: bool,
    lines: Vec<u64>,
    lengths: Vec<u32>,
    locations: Vec<Location>,
    contents: Vec<u64>,
}

impl Rows {
    fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.is_nameless |= name.is_empty();
        self.names.push_str(name);
        self.ends.push(self.names.len() as u64);
        self.lines.push(line);
        self.lengths.push(length);
        self.locations.push(location);
        self.contents.push(content);
    }

    /// Makes room for documents and bytes of their names.
    fn reserve(&mut self, (documents, name_bytes): (usize, usize)) {
        self.names.reserve(name_bytes);
        self.ends.reserve(documents);
        self.lines.reserve(documents);
        self.lengths.reserve(documents);
        self.locations.reserve(documents);
        self.contents.reserve(documents);
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn bytes(&self) -> usize {
        const ROW: usize = 3 * size_of::<u64>() + size_of::<u32>() + size_of::<Location>();
        self.names.capacity() + self.ends.capacity() * ROW
    }

    /// The documents' names.
    fn names(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let end = end as usize;
            &self.names[std::mem::replace(&mut start, end)..end]
        })
    }
}

impl PieceDocuments {
    /// Makes a batch without documents.
    pub fn new(input: u32, skipped: Vec<Skipped>) -> Self {
        let (lines, counts, rows, name_hashes, seen) = Default::default();
        Self { input, skipped, lines, counts, rows, name_hashes, seen }
    }

    /// Makes room for documents and bytes of their names.
    pub(super) fn reserve(&mut self, room: (usize, usize)) {
        self.rows.reserve(room);
        self.name_hashes.reserve(room.0);
    }

    /// Room for as much as is here and a little more.
    pub(super) fn room(&self) -> (usize, usize) {
        let (documents, name_bytes) = (self.rows.len(), self.rows.names.len());
        (documents + documents / 16, name_bytes + name_bytes / 16)
    }

    /// Adds a document with the hash of its `content`; an empty name is missing.
    pub fn push(&mut self, name: &str, line: u64, length: u32, location: Location, content: u64) {
        self.rows.push(name, line, length, location, content);
        self.name_hashes.push(name_hash(name.as_bytes()));
    }

    /// Notes a document, whether it is indexed or not; all are noted, or none.
    pub fn see(&mut self, name: &str, line: u64, location: Location, content: u64) {
        self.seen.get_or_insert_default().push(name, line, 0, location, content);
    }

    /// Says what the piece counts, and the lengths of its documents, where these were not known as they were pushed.
    ///
    /// # Panics
    /// If there are not as many lengths as documents.
    pub fn count(&mut self, counts: Arc<PieceCounts>, lengths: Vec<u32>) {
        assert_eq!(lengths.len(), self.rows.len(), "each document has a length");
        self.rows.lengths = lengths;
        self.counts = counts;
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let hashes = self.name_hashes.capacity() * size_of::<u128>();
        hashes + self.rows.bytes() + self.seen.as_ref().map_or(0, Rows::bytes)
    }

    /// All documents, those among them that are not indexed: name, or none if it has to be made, line, place, and hash of
    /// the content.
    pub fn all(&self) -> impl Iterator<Item = (&str, u64, Location, u64)> {
        let rows = self.seen.as_ref().unwrap_or(&self.rows);
        let others = rows.lines.iter().zip(&rows.locations).zip(&rows.contents);
        rows.names()
            .zip(others)
            .map(|(name, ((&line, &location), &content))| (name, line, location, content))
    }

    /// Documents in the batch that are indexed.
    pub fn documents(&self) -> u32 {
        self.rows.len() as u32
    }
}

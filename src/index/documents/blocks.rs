//! The blocks of 128 documents of a run, as parts of it come from any threads in any order: names,
//! of which a block has once what all begin with, their ends, and places. Each thread makes the
//! blocks of its part. The block that a part shares with the one before, and where the bytes of all
//! blocks lie, follow in the order of the parts.

use super::Location;
use super::ramps::{RampList, RampPart, end_of};
use crate::codec::ramp::BLOCK;
use crate::index::error::IndexError;
use std::collections::BTreeMap;
use std::path::Path;

/// Neighbouring documents.
#[derive(Clone, Copy)]
pub(super) struct RowsView<'a> {
    /// End to end, from the byte `start` on.
    names: &'a [u8],
    start: u64,
    /// The end of each name in `names`.
    ends: &'a [u64],
    locations: &'a [Location],
}

impl<'a> RowsView<'a> {
    pub(super) fn new(names: &'a [u8], ends: &'a [u64], locations: &'a [Location]) -> Self {
        Self { names, start: 0, ends, locations }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn split_at(self, at: usize) -> (Self, Self) {
        let (ends, ends_behind) = self.ends.split_at(at);
        let (locations, locations_behind) = self.locations.split_at(at);
        let behind = ends.last().copied().unwrap_or(self.start);
        let behind = Self { start: behind, ends: ends_behind, locations: locations_behind, ..self };
        (Self { ends, locations, ..self }, behind)
    }

    fn names(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        let name = move |start: &mut u64, &end: &u64| {
            let name = &self.names[*start as usize..end as usize];
            *start = end;
            Some(name)
        };
        self.ends.iter().scan(self.start, name)
    }
}

/// Neighbouring documents whose block is not complete.
#[derive(Debug, Default)]
struct OpenBlock {
    names: Vec<u8>,
    ends: Vec<u64>,
    locations: Vec<Location>,
}

impl OpenBlock {
    fn of(rows: RowsView<'_>) -> Self {
        let mut open = Self::default();
        open.add(rows);
        open
    }

    fn add(&mut self, rows: RowsView<'_>) {
        for name in rows.names() {
            self.names.extend_from_slice(name);
            self.ends.push(self.names.len() as u64);
        }
        self.locations.extend_from_slice(rows.locations);
    }

    fn rows(&self) -> RowsView<'_> {
        RowsView::new(&self.names, &self.ends, &self.locations)
    }
}

/// Neighbouring blocks as they lie in the files, with names from the first of theirs.
#[derive(Debug, Default)]
struct Blocks {
    names: Vec<u8>,
    ends: RampPart,
    locations: RampPart,
}

impl Blocks {
    /// Adds a block of documents, of which the one before ends at `before`.
    fn put(&mut self, rows: RowsView<'_>, before: u64) {
        let first = rows.names().next().unwrap_or_default();
        let mut shared =
            rows.names().fold(first.len(), |shared, name| common(&first[..shared], name));
        // Both parts are text.
        while first.get(shared).is_some_and(|byte| byte & 0xc0 == 0x80) {
            shared -= 1;
        }
        let front = self.names.len() as u64;
        self.names.extend_from_slice(&first[..shared]);
        let mut ends = [0; BLOCK];
        for (name, end) in rows.names().zip(&mut ends) {
            self.names.extend_from_slice(&name[shared..]);
            *end = self.names.len() as u64;
        }
        self.ends.even(&ends[..rows.len()]);
        // A name that is as long as this comes from no record.
        self.ends.line(front, shared as u32);
        self.locations.locations(rows.locations, before);
    }
}

/// How many bytes two names begin with are the same.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A part of neighbouring documents, whose blocks are made but for the first, which needs what is
/// before it, and the last, which may be longer.
#[derive(Debug)]
pub(super) struct BlocksPart {
    documents: u32,
    first: OpenBlock,
    blocks: Blocks,
    /// Where the last document of these ends, if there are any.
    end: Option<u64>,
    last: OpenBlock,
}

impl BlocksPart {
    /// The documents from this docid on.
    pub(super) fn new(docid: u32, rows: RowsView<'_>) -> Self {
        let documents = rows.len() as u32;
        let (first, rest) = rows.split_at(rows.len().min(BLOCK - docid as usize % BLOCK));
        let (mut whole, last) = rest.split_at(rest.len() / BLOCK * BLOCK);
        let mut blocks = Blocks::default();
        let mut before = first.locations.last().map_or(0, end_of);
        let end = whole.locations.last().map(end_of);
        while whole.len() > 0 {
            let (block, behind) = whole.split_at(BLOCK);
            blocks.put(block, before);
            before = block.locations.last().map_or(0, end_of);
            whole = behind;
        }
        Self { documents, first: OpenBlock::of(first), blocks, end, last: OpenBlock::of(last) }
    }
}

/// What follows what was placed before in the three files of names, their ends and places: where,
/// and pieces that lie end to end.
#[derive(Debug, Default)]
pub(super) struct PlacedBlocks(pub [(u64, Vec<Vec<u8>>); 3]);

/// Puts the parts of a run in order.
///
/// Memory: 16 bytes for each block of each of five columns, and the parts that came before their
/// turn.
#[derive(Debug, Default)]
pub(super) struct BlockOrder {
    documents: u32,
    waiting: BTreeMap<u32, BlocksPart>,
    open: OpenBlock,
    /// Where the document before the open block ends.
    before: u64,
    name_bytes: u64,
    pub ends: RampList,
    pub locations: RampList,
}

impl BlockOrder {
    /// Takes a part that begins with this docid, and places what has its turn. `path` is for an
    /// error.
    ///
    /// # Errors
    /// `Refused` if a file gets too large.
    pub(super) fn take(
        &mut self,
        docid: u32,
        part: BlocksPart,
        path: &Path,
    ) -> Result<PlacedBlocks, IndexError> {
        if part.documents > 0 {
            self.waiting.insert(docid, part);
        }
        let mut placed = self.next();
        while let Some(part) = self.waiting.remove(&self.documents) {
            self.documents += part.documents;
            self.open.add(part.first.rows());
            if self.open.ends.len() == BLOCK {
                self.close(&mut placed, path)?;
            }
            if let Some(end) = part.end {
                self.place(part.blocks, &mut placed, path)?;
                self.before = end;
            }
            self.open.add(part.last.rows());
        }
        Ok(placed)
    }

    /// Places the last block, behind all parts.
    ///
    /// # Panics
    /// If a part is missing.
    pub(super) fn finish(&mut self, path: &Path) -> Result<PlacedBlocks, IndexError> {
        assert!(self.waiting.is_empty(), "documents of a run were written by nobody");
        let mut placed = self.next();
        if !self.open.ends.is_empty() {
            self.close(&mut placed, path)?;
        }
        Ok(placed)
    }

    /// Of all blocks that are placed.
    pub(super) fn name_bytes(&self) -> u64 {
        self.name_bytes
    }

    fn next(&self) -> PlacedBlocks {
        let places = [self.name_bytes, self.ends.bytes(), self.locations.bytes()];
        PlacedBlocks(places.map(|at| (at, Vec::new())))
    }

    fn close(&mut self, placed: &mut PlacedBlocks, path: &Path) -> Result<(), IndexError> {
        let open = std::mem::take(&mut self.open);
        let mut blocks = Blocks::default();
        blocks.put(open.rows(), self.before);
        self.before = open.locations.last().map_or(0, end_of);
        self.place(blocks, placed, path)
    }

    fn place(
        &mut self,
        blocks: Blocks,
        placed: &mut PlacedBlocks,
        path: &Path,
    ) -> Result<(), IndexError> {
        let Blocks { names, ends, locations } = blocks;
        let from = self.name_bytes;
        self.name_bytes += names.len() as u64;
        let ends = self.ends.put(ends, from, path)?;
        let locations = self.locations.put(locations, 0, path)?;
        let pieces = [names, ends, locations];
        placed.0.iter_mut().zip(pieces).for_each(|((_, all), piece)| all.push(piece));
        Ok(())
    }
}

//! The documents of a piece of which only some are indexed and all are noted, as a rebuild compares
//! them.

use crate::index::documents::{Location, name_hash};
use bytemuck::{AnyBitPattern, NoUninit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, AnyBitPattern, NoUninit)]
#[repr(C)]
pub(crate) struct SeenDocument {
    name: [u64; 2],
    pub content: u64,
    /// Its input is a number among the files that were read.
    pub place: Location,
}

impl SeenDocument {
    pub(crate) fn new(name: &[u8], content: u64, place: Location) -> Self {
        let name = name_hash(name);
        Self { name: [name as u64, (name >> 64) as u64], content, place }
    }

    pub(crate) fn name(&self) -> u128 {
        u128::from(self.name[1]) << 64 | u128::from(self.name[0])
    }
}

#[derive(Default)]
pub(crate) struct PieceSeen {
    pub documents: Vec<SeenDocument>,
    /// Of those without a name, which get one of their file and line: their places among all, and
    /// their lines in the piece.
    pub nameless: Vec<(u32, u64)>,
}

impl PieceSeen {
    /// Adds a document; an empty name is missing.
    pub(crate) fn push(&mut self, name: &str, line: u64, place: Location, content: u64) {
        if name.is_empty() {
            self.nameless.push((self.documents.len() as u32, line));
        }
        self.documents.push(SeenDocument::new(name.as_bytes(), content, place));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.documents.capacity() * size_of::<SeenDocument>()
            + self.nameless.capacity() * size_of::<(u32, u64)>()
    }
}

//! What a parser makes of a piece: a group for each owner, with what every owner must know of the
//! piece.

use super::group::{GroupTerm, TermGroup};
use super::vector::Vector;
use crate::order::PieceCounts;
use crate::text::fields::FieldTexts;
use crate::text::html::Page;
use std::sync::Arc;

pub trait Regroup {
    /// What one owner gets of a piece.
    type Group: PieceGroup;

    /// Whether a device has the texts as they were read, and so their hashes.
    fn hashes_later(&self) -> bool {
        false
    }

    /// Takes a page of HTML of an input; its document comes next, if it is one.
    #[inline]
    fn page(&mut self, _input: u32, _page: &Page<'_>) {}

    /// Where the parts of the text of the document that comes next begin, except for the first:
    /// bytes of it, rising. A text that nothing is said of is one part.
    #[inline]
    fn parts(&mut self, _starts: &[usize]) {}

    /// Takes the next document of the piece, a text; returns its indexed tokens.
    fn document(&mut self, text: &[u8]) -> u32;

    /// The same of an index with fields, with the texts of these.
    #[inline]
    fn document_in_fields(&mut self, text: &[u8], _fields: &FieldTexts) -> u32 {
        self.document(text)
    }

    /// Indexed tokens of each field in the last document.
    #[inline]
    fn field_lengths(&self) -> &[u32] {
        &[]
    }

    /// Takes the next document of the piece, a learned vector; returns the sum of its impacts.
    fn vector(&mut self, _: Vector<'_>) -> u32 {
        panic!("a build of vectors is one by `fast`")
    }

    /// Holds no more of a long document than takes `bytes`.
    fn hold(&mut self, _bytes: u64) {}

    /// The bytes that the last document would take, if these are more than it may.
    fn over(&self) -> Option<u64> {
        None
    }

    fn documents(&self) -> u32;

    /// Ends the piece: one group for each owner, all of them with the same counts.
    fn finish(&mut self) -> Vec<Self::Group>;
}

pub trait PieceGroup: Send + 'static {
    /// Without the counts and lengths, which all groups of a piece share.
    fn memory_bytes(&self) -> usize;

    /// Of the whole piece, as far as they are known.
    fn counts(&self) -> Arc<PieceCounts> {
        Arc::default()
    }
}

/// What one of several owners gets.
pub(crate) trait OwnedGroup: PieceGroup {
    fn owner(&self) -> u32;

    fn lengths(&self) -> &Arc<[u8]>;
}

impl PieceGroup for TermGroup {
    fn memory_bytes(&self) -> usize {
        self.terms.capacity() * size_of::<GroupTerm>()
            + self.suffixes.capacity()
            + self.lists.capacity()
            + self.positions.capacity()
            + self.position_bytes.capacity() * size_of::<u32>()
    }

    fn counts(&self) -> Arc<PieceCounts> {
        self.counts.clone()
    }
}

impl OwnedGroup for TermGroup {
    fn owner(&self) -> u32 {
        self.owner
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

//! What does a parser make of a piece, and what do all forms of it have in common? Postings for
//! `fast`, tokens for `wei11`: a group for each owner, with what every owner must know of the
//! piece.

use super::group::{Group, GroupTerm};
use super::stream::TokenGroup;
use crate::dictionary::device::lines::DeviceLines;
use crate::dictionary::device::text_buffers::TextBuffer;
use crate::order::PieceCounts;
use crate::text::html::Page;
use std::sync::Arc;

/// Turns the documents of a piece into groups by owner.
pub trait Regroup {
    /// What one owner gets of a piece.
    type Group: PieceGroup;

    /// Whether lengths and hashes of documents are told later, by a device: what is said of them
    /// here has no meaning.
    const COUNTED_LATER: bool = false;

    /// Takes a page of HTML of an input, by the number of that; its document comes next, if it is
    /// one.
    #[inline]
    fn page(&mut self, _input: u32, _page: &Page<'_>) {}

    /// An empty buffer, if it takes the lines of the next piece as they are.
    fn line_buffer(&self) -> Option<TextBuffer> {
        None
    }

    /// Takes all lines of a piece as they are, and no document of it, where it has given a
    /// [buffer](Self::line_buffer) for them: in that, or another one that is like it.
    fn lines(&mut self, _bytes: TextBuffer, _lines: DeviceLines) {}

    /// Takes the next document of the piece; returns its length: its indexed tokens.
    fn document(&mut self, text: &[u8]) -> u32;

    /// Documents of the piece so far.
    fn documents(&self) -> u32;

    /// Ends the piece: one group for each owner, all of them with the same counts. The next piece
    /// can begin.
    fn finish(&mut self) -> Vec<Self::Group>;
}

/// What one owner gets of a piece.
pub trait PieceGroup: Send + 'static {
    /// Bytes of memory, without the counts and lengths, which all groups of a piece share.
    fn memory_bytes(&self) -> usize;

    fn owner(&self) -> u32;

    fn counts(&self) -> &Arc<PieceCounts>;

    /// The codes of its documents' lengths.
    fn lengths(&self) -> &Arc<[u8]>;
}

impl PieceGroup for Group {
    fn counts(&self) -> &Arc<PieceCounts> {
        &self.counts
    }

    fn memory_bytes(&self) -> usize {
        self.terms.capacity() * size_of::<GroupTerm>()
            + self.suffixes.capacity()
            + self.lists.capacity()
    }

    fn owner(&self) -> u32 {
        self.owner
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

impl PieceGroup for TokenGroup {
    fn counts(&self) -> &Arc<PieceCounts> {
        &self.counts
    }

    fn memory_bytes(&self) -> usize {
        self.collections.capacity() * size_of::<(u16, u32)>() + self.bytes.capacity()
    }

    fn owner(&self) -> u32 {
        self.owner
    }

    fn lengths(&self) -> &Arc<[u8]> {
        &self.lengths
    }
}

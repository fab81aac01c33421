//! Full blocks that are copied from one list to another as they are.

use super::{ListView, PackedBlock};
use crate::score::bounds::Bound;

/// A full block of a list without segments, and what the arrays have of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeBlock<'a> {
    pub(crate) line: PackedBlock,
    /// From its first byte on; there may be more.
    pub(crate) bytes: &'a [u8],
    pub(crate) head: &'a [u8],
    pub(crate) bound: Bound,
}

impl<'a> ListView<'a> {
    /// The bound is not checked. Panics if there is no such block, or the list has segments.
    #[inline]
    pub(crate) fn whole_block(&self, block: usize, line: PackedBlock) -> WholeBlock<'a> {
        let pairs = self.form.head_pairs();
        let head = self.heads[pairs * (self.first + block)..][..pairs].as_flattened();
        WholeBlock { line, bytes: self.bytes_of(&line), head, bound: self.bounds[block] }
    }
}

//! A part of a list, some neighbouring blocks with the tail counted as one, is a [`ListView`] of
//! its own: searching it needs nothing beyond what searching the whole does.

use std::ops::Range;

use super::{ListView, PackedBlock};
use crate::codec::prefetch::prefetch_bytes;

/// Bytes of the arrays of a list that are fetched ahead, at most, and of a block in them.
const ARRAYS: usize = 2048;
const ARRAY_BYTES: usize = 7;

impl<'a> ListView<'a> {
    /// With the tail, if there is one.
    #[inline]
    pub fn blocks(&self) -> usize {
        self.form.blocks(self.df) as usize
    }

    /// Fetches ahead the arrays by which blocks are found, as far as they are not long.
    pub(crate) fn prefetch_arrays(&self) {
        let arrays = &self.data[self.arrays..];
        prefetch_bytes(arrays, ARRAYS.min(ARRAY_BYTES * self.full_blocks()));
    }

    /// The line of a full block, whose bytes are fetched ahead; none of the tail or if it is
    /// damaged.
    #[inline]
    pub(crate) fn line_ahead(&self, block: usize) -> Option<PackedBlock> {
        let line = (block < self.full_blocks()).then(|| self.block(block).ok()).flatten()?;
        prefetch_bytes(self.bytes_of(&line), line.bytes());
        Some(line)
    }

    /// The docids that are asked for: all, unless this is a part.
    #[inline]
    pub(crate) fn wanted(&self) -> Range<u32> {
        self.from..self.to
    }

    /// The first block from `from` on that may hold a docid of at least `docid`; `blocks` behind
    /// the last. Panics if `from` is above the number of full blocks.
    pub(crate) fn block_of(&self, from: usize, docid: u32) -> usize {
        let last_docids = self.last_docids();
        // Near ones are found soon: the search doubles its steps.
        let mut least = from;
        let mut step = 1;
        while let Some(&last) = last_docids.get(least + step - 1)
            && u32::from_le_bytes(last) < docid
        {
            least += step;
            step *= 2;
        }
        let end = (least + step - 1).min(last_docids.len());
        let before = |last: &[u8; 4]| u32::from_le_bytes(*last) < docid;
        least + last_docids[least..end].partition_point(before)
    }

    /// Some blocks of the list, `None` if it has none of them. Documents outside of `wanted` are
    /// not asked for: a search may leave them out or may meet them, and drops them then.
    pub(crate) fn part(&self, blocks: Range<usize>, wanted: Range<u32>) -> Option<Self> {
        let full = self.full_blocks();
        let blocks = blocks.start..blocks.end.min(self.blocks());
        if blocks.is_empty() {
            return None;
        }
        let with_tail = blocks.end > full;
        let kept = blocks.start.min(full)..blocks.end.min(full);
        let tail_len = if with_tail { self.tail_len() } else { 0 };
        let before = match kept.start {
            0 => self.before,
            start => self.last_docid(start - 1),
        };
        // A list that is a tail alone has no bounds.
        let bounds = self.bounds.get(blocks).unwrap_or_default();
        Some(ListView {
            last_docids: &self.last_docids[kept.clone()],
            bounds,
            df: (kept.len() * self.block_len() + tail_len) as u32,
            first: self.first + kept.start,
            before,
            tail: if with_tail { self.tail } else { self.arrays },
            from: wanted.start.max(self.from),
            to: wanted.end.min(self.to),
            ..*self
        })
    }

    /// The part of the list whose blocks may hold some docids. `None` if no block does.
    pub(crate) fn within(&self, docids: Range<u32>) -> Option<Self> {
        let start = self.block_of(0, docids.start);
        let end = self.block_of(start.min(self.full_blocks()), docids.end) + 1;
        self.part(start..end, docids)
    }
}

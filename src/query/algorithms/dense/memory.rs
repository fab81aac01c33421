//! The memory of searches by bitmaps.

use crate::index::list::{ListError, ListView, MAX_BLOCK};
use crate::query::cursor::Cursor;
use std::ops::Range;

/// The term frequencies of some blocks of a list, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct DecodedTfs {
    /// Room for the postings of a line, of the blocks that it begins and ends in, and a vector.
    tfs: [u32; 3 * MAX_BLOCK + 16],
    /// The number of the first posting, and of the one behind the last.
    postings: Range<usize>,
}

impl Default for DecodedTfs {
    fn default() -> Self {
        Self { tfs: [0; 3 * MAX_BLOCK + 16], postings: 0..0 }
    }
}

impl DecodedTfs {
    pub(super) fn clear(&mut self) {
        self.postings = 0..0;
    }

    /// Those of postings, which rise from call to call, and 16 arbitrary numbers at least.
    pub(super) fn of(
        &mut self,
        list: &ListView<'_>,
        wanted: Range<usize>,
        documents: u32,
        cursor: &mut Cursor,
    ) -> Result<&[u32], ListError> {
        let len = list.block_len();
        let first = wanted.start / len * len;
        let Range { start, end } = self.postings;
        if (start..end).contains(&first) {
            self.tfs.copy_within(first - start..end - start, 0);
        } else {
            self.postings.end = first;
        }
        self.postings.start = first;
        while self.postings.end < wanted.end {
            let block = self.postings.end / len;
            let room = &mut self.tfs[self.postings.end - first..];
            match cursor.tfs_of_block(list, block, documents, room)? {
                0 => break,
                count => self.postings.end += count,
            }
        }
        Ok(&self.tfs[wanted.start - first..])
    }
}

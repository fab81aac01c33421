//! Checks that a list is byte for byte what [`ListEncoder`](super::ListEncoder) writes; reading in
//! part leaves some of it alone.

use super::packed::ANCHOR_BLOCKS;
use super::segment::{self, RECORD_BYTES};
use super::{ListError, ListView, MAX_BLOCK, SegmentColumns, bounds_of};
use crate::score::bounds::{BOUND_BYTES, Bound, Front, code_below};

impl ListView<'_> {
    /// Reads the whole list and checks what reading in part does not: that the blocks lie end to
    /// end and are as their codec writes them, and, with the `lengths` of all documents, that the
    /// bounds are those of the postings. `each` gets docids and term frequencies of each part in
    /// turn. Panics if there are fewer lengths than `documents`.
    pub fn check(
        &self,
        documents: u32,
        lengths: Option<&[u32]>,
        mut each: impl FnMut(&[u32], &[u32]),
    ) -> Result<(), ListError> {
        let mut docids = [0; MAX_BLOCK];
        let mut tfs = [0; MAX_BLOCK];
        let mut bounds = Bounds { list: self, lengths, front: Front::new(), of_list: Front::new() };
        let mut blocks = Blocks {
            list: self,
            end: 0,
            columns: SegmentColumns::default(),
            segment: [const { Vec::new() }; 2],
        };
        let block_len = self.block_len();
        for block in 0..self.full_blocks() {
            let docids = &mut docids[..block_len];
            let tfs = &mut tfs[..block_len];
            blocks.check(block, documents, docids, tfs)?;
            bounds.check(block, docids, tfs)?;
            each(docids, tfs);
        }
        let count = self.decode_tail(documents, &mut docids, &mut tfs)?;
        if count > 0 {
            bounds.check(self.full_blocks(), &docids[..count], &tfs[..count])?;
            each(&docids[..count], &tfs[..count]);
        }
        Ok(())
    }
}

struct Blocks<'a> {
    list: &'a ListView<'a>,
    /// Where the next block or segment has to begin.
    end: u64,
    columns: SegmentColumns,
    /// The blocks of the segment so far, `gap_minus_one` and tf - 1.
    segment: [Vec<u32>; 2],
}

impl Blocks<'_> {
    fn check(
        &mut self,
        block: usize,
        documents: u32,
        docids: &mut [u32],
        tfs: &mut [u32],
    ) -> Result<(), ListError> {
        let list = self.list;
        let form = self.list.form;
        let line = list.block(block)?;
        if form.has_segments() {
            if block.is_multiple_of(form.segment_blocks()) {
                let number = block / form.segment_blocks();
                let segment = list.segment(number);
                self.check_place(segment.offset, RECORD_BYTES * number)?;
                self.end += segment.bytes(list.blocks_of_segment(number));
            }
        } else {
            // Between anchors, blocks begin where the one before ends.
            self.check_place(line.offset, 4 * (block / ANCHOR_BLOCKS))?;
            self.end += line.bytes() as u64;
        }
        let source = list.source(&line, &mut self.columns)?;
        line.docids(source, documents, docids)?;
        line.tfs(source, tfs)?;
        let mut gaps = [0; MAX_BLOCK];
        let mut less_one = [0; MAX_BLOCK];
        let gaps = &mut gaps[..docids.len()];
        let less_one = &mut less_one[..docids.len()];
        let mut before = line.previous;
        for (gap, &docid) in gaps.iter_mut().zip(&*docids) {
            *gap = docid.wrapping_sub(before).wrapping_sub(1);
            before = docid;
        }
        for (less_one, &tf) in less_one.iter_mut().zip(&*tfs) {
            *less_one = tf.wrapping_sub(1);
        }
        if !form.has_segments() {
            return line.check_packed(source.bytes, gaps, less_one);
        }
        self.segment[0].extend_from_slice(gaps);
        self.segment[1].extend_from_slice(less_one);
        let is_last = block + 1 == list.full_blocks();
        if is_last || (block + 1).is_multiple_of(form.segment_blocks()) {
            self.check_segment(block / form.segment_blocks())?;
        }
        Ok(())
    }

    /// Compares where something begins with the end of what is before it; `place` is the offset of
    /// that number behind the last docids.
    fn check_place(&self, offset: u64, place: usize) -> Result<(), ListError> {
        if offset == self.end {
            return Ok(());
        }
        let list = self.list;
        let unit = list.form.place_unit();
        let expected = self.end / unit;
        let found = offset / unit;
        let offset = (list.arrays + 4 * list.full_blocks() + place) as u64;
        Err(ListError::Place { offset, expected, found })
    }

    /// Compares a segment that was read with what the encoder writes for its postings.
    fn check_segment(&mut self, number: usize) -> Result<(), ListError> {
        let form = self.list.form;
        let segment = self.list.segment(number);
        let found = self.list.data.get(segment.offset as usize..self.list.arrays);
        let found = found.unwrap_or_default();
        let mut bytes = Vec::new();
        let encoder = &mut *form.codec().encoder(form.block_len());
        let columns = [&self.segment[0][..], &self.segment[1][..]];
        let expected = segment::write(form, segment.offset, encoder, columns, &mut bytes);
        if expected != segment || !found.starts_with(&bytes) {
            return Err(ListError::Unusual { offset: segment.offset });
        }
        self.segment.iter_mut().for_each(Vec::clear);
        Ok(())
    }
}

/// The bounds of a list as its postings go by.
struct Bounds<'a> {
    list: &'a ListView<'a>,
    lengths: Option<&'a [u32]>,
    /// Of the block, and of the list up to it.
    front: Front,
    of_list: Front,
}

impl Bounds<'_> {
    /// Compares the bound of a block with its postings, and behind the last block that of the list.
    fn check(&mut self, block: usize, docids: &[u32], tfs: &[u32]) -> Result<(), ListError> {
        let (blocks, has_own) = bounds_of(self.list.form, self.list.df);
        let (Some(lengths), true) = (self.lengths, blocks > 0) else { return Ok(()) };
        for (&docid, &tf) in docids.iter().zip(tfs) {
            self.front.add(tf, code_below(lengths[docid as usize]));
        }
        let bound = self.front.take();
        self.of_list.add_bound(bound);
        self.compare(block, bound)?;
        if has_own && block + 1 == blocks as usize {
            let bound = self.of_list.take();
            self.compare(block + 1, bound)?;
        }
        Ok(())
    }

    fn compare(&self, number: usize, expected: Bound) -> Result<(), ListError> {
        let list = self.list;
        let found = match number.checked_sub(list.bounds.len()) {
            None => list.bounds[number],
            Some(own) => list.list_bounds[own],
        };
        if found == expected {
            return Ok(());
        }
        let before = list.form.head_bytes() * list.full_blocks() + BOUND_BYTES * number;
        Err(ListError::Bound { offset: (list.heads_at + before) as u64, expected, found })
    }
}

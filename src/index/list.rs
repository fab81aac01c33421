//! The bytes of one postings list, and how any part of it is read. It has blocks of 128 postings
//! (or 64, or 512) and a tail of single ones. Arrays behind say of each block its last docid, its
//! place, how it is packed and an upper bound of its scores (`docs/index-format.md`, Postings).
//!
//! [`ListEncoder`] writes a list from postings in docid order and lets finished blocks go at once;
//! [`ListView`] reads a list in place; [`ListLayout`], [`PackedBlock`] and [`decode_tail`] read one
//! from bytes that come in pieces. No byte is believed: a part that is read without an error holds
//! docids that rise, lie behind the part before it and are below the bound that the reader gave,
//! and term frequencies of 1 or more.

mod apart;
mod check;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod form;
mod packed;
mod part;
mod segment;
#[cfg(test)]
mod tests;
mod whole;

pub(crate) use encode::ListEncoder;
pub(crate) use error::ListError;
pub(crate) use form::{Form, ListCodec};
pub(crate) use packed::{PackedBlock, decode_tail};
pub(crate) use segment::{BlockSource, MOST_SHARED_BYTES, RECORD_BYTES, Segment, SegmentColumns};
pub(crate) use whole::WholeBlock;

use crate::codec::bp128;
use crate::score::bounds::{BOUND_BYTES, Bound};
use form::HEAD_BYTES;
use packed::{ANCHOR_BLOCKS, BlockHead};

/// Postings in a block by default.
pub(crate) const BLOCK: usize = bp128::BLOCK;

pub(crate) const MAX_BLOCK: usize = 512;

/// The docid "before" the first posting of a list: -1, so that the first gap is the docid itself.
pub(crate) const BEFORE_FIRST: u32 = u32::MAX;

/// The places of the parts of a list, in bytes from its first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListLayout {
    pub full: u32,
    pub tail_len: u32,
    /// Last docid of each block, u32; also the end of the tail.
    pub last_docids: u64,
    /// Place of every 16th block, u32, in units of the codec; or records of the segments.
    pub places: u64,
    /// What the codec notes of each block.
    pub heads: u64,
    /// Bounds of the blocks, of the tail and of the list, as far as there are any.
    pub bounds: u64,
    pub bytes: u64,
}

impl ListLayout {
    /// Fails if `df` is 0 or the arrays alone take more than `bytes`.
    pub(crate) fn new(form: Form, df: u32, bytes: u64) -> Result<Self, ListError> {
        if df == 0 {
            return Err(ListError::Empty);
        }
        let (full, tail_len) = form.divide(df);
        let last_docids_bytes = 4 * u64::from(full);
        let places_bytes = if form.has_segments() {
            RECORD_BYTES as u64 * u64::from(full).div_ceil(form.segment_blocks() as u64)
        } else {
            4 * u64::from(full).div_ceil(ANCHOR_BLOCKS as u64)
        };
        let heads_bytes = form.head_bytes() as u64 * u64::from(full);
        let (blocks, list) = bounds_of(form, df);
        let bounds_bytes = BOUND_BYTES as u64 * (u64::from(blocks) + u64::from(list));
        let arrays = last_docids_bytes + places_bytes + heads_bytes + bounds_bytes;
        let Some(last_docids) = bytes.checked_sub(arrays) else {
            return Err(ListError::CutShort { offset: 0, expected: arrays, found: bytes });
        };
        let places = last_docids + last_docids_bytes;
        let heads = places + places_bytes;
        let bounds = heads + heads_bytes;
        Ok(ListLayout { full, tail_len, last_docids, places, heads, bounds, bytes })
    }
}

/// Lists of as many blocks have a bound of their own; that of fewer is soon found.
pub(crate) const BOUND_FROM: u32 = 8;

/// The number of bounds of a list: one of each block and of the tail. None if there is no full
/// block: a tail is decoded as soon as a bound is read. And whether the list has one of its own.
fn bounds_of(form: Form, df: u32) -> (u32, bool) {
    let blocks = if form.divide(df).0 == 0 { 0 } else { form.blocks(df) };
    (blocks, blocks >= BOUND_FROM)
}

#[derive(Clone, Copy, Debug)]
pub struct ListView<'a> {
    /// From the list's first byte; longer than the list if there was more.
    data: &'a [u8],
    last_docids: &'a [[u8; 4]],
    places: &'a [[u8; 4]],
    heads: &'a [BlockHead],
    bounds: &'a [Bound],
    list_bounds: &'a [Bound],
    form: Form,
    df: u32,
    /// Full blocks of the whole list, of which this may be a part.
    whole_blocks: u32,
    /// The number in the list of this part's first block, and the docid before it.
    first: usize,
    before: u32,
    /// Documents outside of these are not asked for.
    from: u32,
    to: u32,
    tail: usize,
    arrays: usize,
    heads_at: usize,
}

impl<'a> ListView<'a> {
    /// A list of `df` postings, coded with bp128 in blocks of 128, in the first `bytes` bytes of
    /// `data`; more data behind it makes reading faster. Takes constant time: each part is checked
    /// when it is read. Fails if the parts of such a list do not fit those bytes.
    pub fn new(df: u32, bytes: u64, data: &'a [u8]) -> Result<Self, ListError> {
        Self::of_form(Form::BP128, df, bytes, data)
    }

    /// As [`new`](Self::new) for a list of any form.
    pub(crate) fn of_form(
        form: Form,
        df: u32,
        bytes: u64,
        data: &'a [u8],
    ) -> Result<Self, ListError> {
        let layout = ListLayout::new(form, df, bytes)?;
        if bytes > data.len() as u64 {
            let found = data.len() as u64;
            return Err(ListError::CutShort { offset: 0, expected: bytes, found });
        }
        // The list fits memory, so its offsets fit `usize`.
        let part = |from: u64, to: u64| &data[from as usize..to as usize];
        let bounds: &[Bound] = part(layout.bounds, layout.bytes).as_chunks().0;
        let (blocks, has_own) = bounds_of(form, df);
        let list_bounds = if has_own { &bounds[blocks as usize..] } else { bounds };
        let mut view = ListView {
            data,
            last_docids: part(layout.last_docids, layout.places).as_chunks().0,
            places: part(layout.places, layout.heads).as_chunks().0,
            heads: part(layout.heads, layout.bounds).as_chunks().0,
            bounds: &bounds[..blocks as usize],
            list_bounds,
            form,
            df,
            whole_blocks: layout.full,
            first: 0,
            before: BEFORE_FIRST,
            from: 0,
            to: u32::MAX,
            tail: 0,
            arrays: layout.last_docids as usize,
            heads_at: layout.heads as usize,
        };
        if layout.full > 0 {
            let last = view.block(layout.full as usize - 1)?;
            let end = last.offset + last.bytes() as u64;
            view.tail = end.next_multiple_of(4).min(layout.last_docids) as usize;
        }
        Ok(view)
    }

    #[inline]
    pub(crate) fn df(&self) -> u32 {
        self.df
    }

    #[inline]
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    #[inline(always)]
    pub(crate) fn block_len(&self) -> usize {
        self.form.block_len()
    }

    /// The block and the place in it of a posting.
    #[inline]
    pub(crate) fn place_of(&self, posting: u32) -> (usize, usize) {
        let (block, at) = self.form.divide(posting);
        (block as usize, at as usize)
    }

    #[inline]
    pub(crate) fn full_blocks(&self) -> usize {
        self.form.divide(self.df).0 as usize
    }

    #[inline]
    pub(crate) fn tail_len(&self) -> usize {
        self.form.divide(self.df).1 as usize
    }

    /// The last docids of the blocks, little-endian, as the list has them.
    /// [`decode_block`](Self::decode_block) checks them.
    #[inline]
    pub(crate) fn last_docids(&self) -> &'a [[u8; 4]] {
        self.last_docids
    }

    /// Panics if there is no such block.
    #[inline]
    pub(crate) fn last_docid(&self, block: usize) -> u32 {
        u32::from_le_bytes(self.last_docids[block])
    }

    /// The bounds of the blocks and of the tail, if it has postings; nothing if the list is a tail
    /// alone. Only [`check`](Self::check) finds out whether they are right.
    #[inline]
    pub fn bounds(&self) -> &'a [Bound] {
        self.bounds
    }

    /// No posting of the list scores more than the greatest of these few bounds; none if the list
    /// is a tail alone.
    #[inline]
    pub fn list_bounds(&self) -> &'a [Bound] {
        self.list_bounds
    }

    /// The least docid of a block: it stands alone at the beginning of the block, behind the last
    /// docid of the block before. Panics if there is no such block.
    #[inline]
    pub(crate) fn first_docid(
        &self,
        block: usize,
        columns: &mut SegmentColumns,
    ) -> Result<u32, ListError> {
        let line = self.block(block)?;
        line.first_docid(self.source(&line, columns)?)
    }

    /// The line of a block in the arrays: its place and how it is packed. Fails if a width is above
    /// 32 bits or the block reaches into the arrays. Panics if there is no such block.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> Result<PackedBlock, ListError> {
        let number = self.first + block;
        let previous = match block {
            0 => self.before,
            _ => self.last_docid(block - 1),
        };
        let last = self.last_docid(block);
        let line = if self.form.is_bp128() {
            let anchor = number / ANCHOR_BLOCKS;
            let place = u32::from_le_bytes(self.places[anchor]);
            let first = anchor * ANCHOR_BLOCKS;
            let window = &self.data[self.heads_at + HEAD_BYTES * first..];
            let units = u64::from(place) + u64::from(packed::units(window, number - first));
            PackedBlock::packed(self.form, units, self.heads[number], previous, last)
        } else if self.form.has_segments() {
            self.line_of_segment(number, previous, last)
        } else {
            self.line_apart(number, previous, last)
        };
        // Only damage puts a block behind docid -1 that is not the first.
        if line.is_impossible()
            || line.offset + line.bytes() as u64 > self.arrays as u64
            || (number > 0 && line.previous == BEFORE_FIRST)
        {
            return Err(self.damaged(number, &line));
        }
        Ok(line)
    }

    /// Of `newpfd` or `vbyte`; `number` is that in the whole list.
    #[inline(never)]
    fn line_apart(&self, number: usize, previous: u32, last: u32) -> PackedBlock {
        let pairs = self.form.head_pairs();
        let anchor = number / ANCHOR_BLOCKS;
        let place = u64::from(u32::from_le_bytes(self.places[anchor]));
        let first = anchor * ANCHOR_BLOCKS;
        let units = packed::units_apart(self.form, &self.heads[pairs * first..pairs * number]);
        let offset = (place + units) * self.form.place_unit();
        let head = &self.heads[pairs * number..][..pairs];
        PackedBlock::of_form(self.form, offset, head, previous, last)
    }

    #[cold]
    fn damaged(&self, block: usize, line: &PackedBlock) -> ListError {
        if let Some(found) = line.wrong_width() {
            let offset = (self.heads_at + self.form.head_bytes() * block) as u64;
            return ListError::Width { offset, found };
        }
        let offset = line.offset;
        let expected = line.bytes() as u64;
        let found = (self.arrays as u64).saturating_sub(offset);
        if found < expected || offset > self.arrays as u64 {
            return ListError::CutShort { offset, expected, found };
        }
        ListError::Order { offset, expected: line.last, found: line.previous }
    }

    /// The bytes from a block's first to the end of the data. Panics if the block begins behind the
    /// list.
    #[inline]
    pub(crate) fn bytes_of(&self, line: &PackedBlock) -> &'a [u8] {
        // `block` has compared the offset with that of the arrays, which lie in memory.
        &self.data[line.offset as usize..]
    }

    /// As [`decode_block`](Self::decode_block), by the block's line.
    #[inline(always)]
    pub(crate) fn docids_of(
        &self,
        line: &PackedBlock,
        columns: &mut SegmentColumns,
        documents: u32,
        docids: &mut [u32],
    ) -> Result<(), ListError> {
        if self.form.is_bp128() {
            return line.docids_packed(self.bytes_of(line), documents, docids);
        }
        line.docids(self.source(line, columns)?, documents, docids)
    }

    /// As [`decode_tfs`](Self::decode_tfs), by the block's line.
    #[inline(always)]
    pub(crate) fn tfs_of(
        &self,
        line: &PackedBlock,
        columns: &mut SegmentColumns,
        tfs: &mut [u32],
    ) -> Result<(), ListError> {
        if self.form.is_bp128() {
            return line.tfs_packed(self.bytes_of(line), tfs);
        }
        line.tfs(self.source(line, columns)?, tfs)
    }

    /// Reads the docids of a block, which lie behind the last docid of the block before and below
    /// `documents`; `columns` are this list's or closed. Panics if there is no such block, or
    /// `docids` has not the length of a block.
    #[inline]
    pub(crate) fn decode_block(
        &self,
        block: usize,
        documents: u32,
        columns: &mut SegmentColumns,
        docids: &mut [u32],
    ) -> Result<(), ListError> {
        let line = self.block(block)?;
        self.docids_of(&line, columns, documents, docids)
    }

    /// Reads the term frequencies of a block, as [`decode_block`](Self::decode_block).
    #[inline]
    pub(crate) fn decode_tfs(
        &self,
        block: usize,
        columns: &mut SegmentColumns,
        tfs: &mut [u32],
    ) -> Result<(), ListError> {
        let line = self.block(block)?;
        self.tfs_of(&line, columns, tfs)
    }

    /// Reads a block or the tail behind the last of them, and returns its length. Panics if there
    /// is no room for it.
    pub(crate) fn decode_postings(
        &self,
        block: usize,
        documents: u32,
        columns: &mut SegmentColumns,
        docids: &mut [u32],
        tfs: &mut [u32],
    ) -> Result<usize, ListError> {
        if block >= self.full_blocks() {
            return self.decode_tail(documents, docids, tfs);
        }
        let line = self.block(block)?;
        let count = self.block_len();
        self.docids_of(&line, columns, documents, &mut docids[..count])?;
        self.tfs_of(&line, columns, &mut tfs[..count])?;
        Ok(count)
    }

    /// Reads the term frequency of posting `i` of a block alone. Panics if there is none.
    #[inline]
    #[cfg(any(test, fuzzing))]
    pub(crate) fn tf(
        &self,
        block: usize,
        i: usize,
        columns: &mut SegmentColumns,
    ) -> Result<u32, ListError> {
        let line = self.block(block)?;
        line.tf(self.source(&line, columns)?, i)
    }

    /// The bytes from the tail to the arrays: nothing else than the tail, if the list is sound.
    pub(crate) fn tail_bytes(&self) -> &'a [u8] {
        &self.data[self.tail..self.arrays]
    }

    /// Reads the tail, with docids behind the last block and below `documents`, and returns its
    /// length; the rest of the slices is left as it was. Panics if there is no room for it.
    #[inline]
    pub(crate) fn decode_tail(
        &self,
        documents: u32,
        docids: &mut [u32],
        tfs: &mut [u32],
    ) -> Result<usize, ListError> {
        let previous = match self.full_blocks() {
            0 => self.before,
            full => self.last_docid(full - 1),
        };
        let count = self.tail_len();
        decode_tail(self.tail_bytes(), self.tail as u64, count, previous, documents, docids, tfs)?;
        Ok(count)
    }
}

//! Writes lists from postings in docid order, without holding them whole.

use super::form::{Form, SEGMENT_POSTINGS};
use super::{BEFORE_FIRST, MAX_BLOCK, WholeBlock, bounds_of, packed, segment};
use crate::codec::{Encoder, bp128, folded};
use crate::dictionary::strings::short;
use crate::score::bounds::Front;
use packed::{ANCHOR_BLOCKS, PackedBlock};

/// Writes lists, one after another.
///
/// Between calls the caller may take any number of bytes from the front of [`payload`]. Until the
/// list ends 13 bytes for each block stay here (17 for `newpfd` and `vbyte`), and of a form with
/// segments the postings of one, 8 bytes each.
///
/// ```text
/// use millrace::inside::gpu::BLOCK;
/// use millrace::inside::index::ListEncoder;
/// use millrace::inside::index::ListView;
/// use millrace::inside::score::code_below;
///
/// let mut encoder = ListEncoder::new();
/// let length = code_below(100);
/// for docid in [2, 3, 10] {
///     encoder.push(docid, docid + 1, length);
/// }
/// let (df, bytes) = encoder.finish();
/// let list = ListView::new(df, bytes, encoder.payload())?;
/// let (mut docids, mut tfs) = ([0; BLOCK], [0; BLOCK]);
/// assert_eq!(list.decode_tail(11, &mut docids, &mut tfs)?, 3);
/// assert_eq!((&docids[..3], &tfs[..3]), (&[2, 3, 10][..], &[3, 4, 11][..]));
/// # Ok::<(), millrace::inside::index::ListError>(())
/// ```
///
/// [`payload`]: Self::payload
#[derive(Debug)]
pub struct ListEncoder {
    /// Postings of the block that is filling: `gap_minus_one`, tf - 1, and length code.
    gaps: [u32; MAX_BLOCK],
    tfs: [u32; MAX_BLOCK],
    lengths: [u8; MAX_BLOCK],
    filled: usize,
    block_len: usize,
    previous: u32,
    df: u32,
    /// Where the tail begins in the bytes of a folded list.
    tail_at: usize,
    form: Form,
    /// Of a form other than bp128.
    apart: Option<Box<dyn Encoder>>,
    /// The blocks of the segment that is filling, `gap_minus_one` and tf - 1.
    segment: [Vec<u32>; 2],
    /// Bytes of this list's payload so far, with those that were taken.
    written: u64,
    payload: Vec<u8>,
    last_docids: Vec<u8>,
    places: Vec<u8>,
    heads: Vec<u8>,
    bounds: Vec<u8>,
    /// Of the block, and of the list up to it.
    front: Front,
    list_front: Front,
}

impl Default for ListEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl ListEncoder {
    /// With bp128 in blocks of 128.
    pub fn new() -> Self {
        Self::of_form(Form::BP128)
    }

    pub(crate) fn of_form(form: Form) -> Self {
        ListEncoder {
            form,
            apart: (!form.is_bp128()).then(|| form.codec().encoder(form.block_len())),
            segment: [Vec::new(), Vec::new()],
            gaps: [0; MAX_BLOCK],
            tfs: [0; MAX_BLOCK],
            lengths: [0; MAX_BLOCK],
            filled: 0,
            block_len: form.block_len(),
            previous: BEFORE_FIRST,
            df: 0,
            tail_at: 0,
            written: 0,
            payload: Vec::new(),
            last_docids: Vec::new(),
            places: Vec::new(),
            heads: Vec::new(),
            bounds: Vec::new(),
            front: Front::new(),
            list_front: Front::new(),
        }
    }

    /// Adds a posting. Docids rise and are below `u32::MAX`; `tf` is at least 1; `length` is the
    /// [code](crate::score::bounds::code_below) of the document's length.
    #[inline]
    pub fn push(&mut self, docid: u32, tf: u32, length: u8) {
        debug_assert!(docid < u32::MAX && tf > 0, "docid {docid}, tf {tf}");
        debug_assert!(self.df == 0 || docid > self.previous, "{docid} after {}", self.previous);
        self.gaps[self.filled] = docid.wrapping_sub(self.previous).wrapping_sub(1);
        self.tfs[self.filled] = tf.wrapping_sub(1);
        self.lengths[self.filled] = length;
        self.previous = docid;
        self.df += 1;
        self.filled += 1;
        if self.filled == self.block_len {
            self.close_block();
        }
    }

    /// As [`push`](Self::push) for columns of equal length; `documents` is added to the docids.
    pub(crate) fn push_all(&mut self, documents: u32, docids: &[u32], tfs: &[u32], lengths: &[u8]) {
        debug_assert!(docids.len() == tfs.len() && docids.len() == lengths.len());
        let mut done = 0;
        while done < docids.len() {
            let here = done..docids.len().min(done + self.block_len - self.filled);
            let filled = self.filled + here.len();
            let place = self.filled..filled;
            for (gap, docid) in self.gaps[place.clone()].iter_mut().zip(&docids[here.clone()]) {
                let docid = documents + docid;
                *gap = docid.wrapping_sub(self.previous).wrapping_sub(1);
                self.previous = docid;
            }
            for (less_one, tf) in self.tfs[place.clone()].iter_mut().zip(&tfs[here.clone()]) {
                *less_one = tf.wrapping_sub(1);
            }
            self.lengths[place].copy_from_slice(&lengths[here.clone()]);
            self.df += here.len() as u32;
            self.filled = filled;
            done = here.end;
            if filled == self.block_len {
                self.close_block();
            }
        }
    }

    /// Adds the postings that [`folded`] has from `bytes[*at]` on, a block at a time, and moves
    /// `at` behind them, until they end or `enough` says so, which gets the term frequencies of
    /// each block less one and how many bytes are ready; `None` if the bytes are no postings, or
    /// `enough` says that. `lengths` are the codes of all documents. The list is of such postings
    /// alone, and [`finish_folded`](Self::finish_folded) ends it.
    ///
    /// Lengths are looked up a block at a time, for each may be out of the caches, and only where a
    /// bound is made of them: not of a list without a full block.
    pub(crate) fn push_folded(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        lengths: &[u8],
        mut enough: impl FnMut(&[u32], usize) -> Option<bool>,
    ) -> Option<()> {
        while *at < bytes.len() {
            let gaps = &mut self.gaps[..self.block_len];
            let tfs = &mut self.tfs;
            self.filled = folded::get_many(bytes, at, gaps, tfs)?;
            self.df += self.filled as u32;
            let is_whole = self.filled == self.block_len;
            if is_whole || !self.last_docids.is_empty() {
                let mut docids = [0; MAX_BLOCK];
                for (docid, gap) in docids.iter_mut().zip(&self.gaps[..self.filled]) {
                    self.previous = self.previous.wrapping_add(*gap).wrapping_add(1);
                    *docid = self.previous;
                }
                for (length, docid) in self.lengths.iter_mut().zip(&docids[..self.filled]) {
                    *length = lengths[*docid as usize];
                }
            }
            if is_whole {
                self.close_block();
                self.tail_at = *at;
            }
            let tfs = if is_whole { self.block_len } else { self.filled };
            if enough(&self.tfs[..tfs], self.payload.len())? {
                break;
            }
        }
        Some(())
    }

    /// As [`finish`](Self::finish) for a list whose `bytes` [`push_folded`](Self::push_folded) has
    /// read: its tail is what they end with.
    pub(crate) fn finish_folded(&mut self, bytes: &[u8]) -> (u32, u64) {
        let tail = std::mem::take(&mut self.tail_at);
        self.end(|_, payload| short::push(&bytes[tail..], payload))
    }

    /// Adds a block of another list as [`push_all`](Self::push_all) does, and returns true, if the
    /// block would come out as it is: where a block begins, behind the docid that the block is
    /// counted from, in the same form. The documents have the lengths that they had.
    #[inline]
    pub(crate) fn push_block(&mut self, documents: u32, block: &WholeBlock<'_>) -> bool {
        let PackedBlock { form, previous, last, .. } = block.line;
        let is_here = self.filled == 0 && self.previous == documents.wrapping_add(previous);
        // Only in the widest blocks a term frequency may overflow.
        let is_sound = !form.is_bp128() || block.line.widths()[1] < bp128::MAX_WIDTH;
        if !is_here || form != self.form || form.has_segments() || !is_sound {
            return false;
        }
        self.note_place();
        let bytes = &block.bytes[..block.line.bytes()];
        self.payload.extend_from_slice(bytes);
        self.written += bytes.len() as u64;
        self.heads.extend_from_slice(block.head);
        self.previous = documents + last;
        self.last_docids.extend_from_slice(&self.previous.to_le_bytes());
        self.list_front.add_bound(block.bound);
        self.bounds.extend_from_slice(&block.bound);
        self.df += self.block_len as u32;
        true
    }

    pub(crate) fn df(&self) -> u32 {
        self.df
    }

    /// The bytes that are ready, of this list and of lists that have ended. The caller may take
    /// bytes from the front.
    #[inline]
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.payload
    }

    /// Ends the list: adds its tail and its arrays to [`payload`](Self::payload). Returns the
    /// document frequency and the bytes of the whole list, with those that were taken.
    pub fn finish(&mut self) -> (u32, u64) {
        self.end(|[gaps, tfs], payload| {
            for (&gap, &tf) in gaps.iter().zip(tfs) {
                folded::put(gap, tf + 1, payload);
            }
        })
    }

    #[inline(always)]
    fn end(&mut self, put_tail: impl FnOnce([&[u32]; 2], &mut Vec<u8>)) -> (u32, u64) {
        self.close_segment();
        let before = self.payload.len();
        let tail = [&self.gaps[..self.filled], &self.tfs[..self.filled]];
        put_tail(tail, &mut self.payload);
        if !self.last_docids.is_empty() {
            if self.filled > 0 {
                self.bound();
            }
            let bound = self.list_front.take();
            if bounds_of(self.form, self.df).1 {
                self.bounds.extend_from_slice(&bound);
            }
        }
        let arrays = [&mut self.last_docids, &mut self.places, &mut self.heads, &mut self.bounds];
        for array in arrays {
            self.payload.append(array);
        }
        let ended = (self.df, self.written + (self.payload.len() - before) as u64);
        self.filled = 0;
        self.previous = BEFORE_FIRST;
        self.df = 0;
        self.written = 0;
        ended
    }

    fn close_block(&mut self) {
        self.last_docids.extend_from_slice(&self.previous.to_le_bytes());
        if self.form.has_segments() {
            self.segment[0].extend_from_slice(&self.gaps[..self.filled]);
            self.segment[1].extend_from_slice(&self.tfs[..self.filled]);
            if self.segment[0].len() == SEGMENT_POSTINGS {
                self.close_segment();
            }
        } else {
            self.write_block();
        }
        self.bound();
        self.filled = 0;
    }

    /// Notes the place of the next block, if it is an anchor.
    fn note_place(&mut self) {
        if self.heads.len().is_multiple_of(self.form.head_bytes() * ANCHOR_BLOCKS) {
            let place = self.form.place_of(self.written);
            self.places.extend_from_slice(&place.to_le_bytes());
        }
    }

    fn write_block(&mut self) {
        self.note_place();
        let before = self.payload.len();
        let gaps = &self.gaps[..self.filled];
        let tfs = &self.tfs[..self.filled];
        match &mut self.apart {
            None => {
                let head = packed::pack(gaps, tfs, &mut self.payload);
                self.heads.extend_from_slice(&head);
            }
            Some(encoder) => {
                let payload = &mut self.payload;
                let heads = &mut self.heads;
                packed::pack_apart(&mut **encoder, gaps, tfs, payload, heads);
            }
        }
        self.written += (self.payload.len() - before) as u64;
    }

    /// Writes the segment that is filling, if it has blocks.
    fn close_segment(&mut self) {
        if self.segment[0].is_empty() {
            return;
        }
        let Some(encoder) = &mut self.apart else { return };
        let before = self.payload.len();
        let columns = [&self.segment[0][..], &self.segment[1][..]];
        let encoder = &mut **encoder;
        let segment = segment::write(self.form, self.written, encoder, columns, &mut self.payload);
        self.places.extend_from_slice(segment.record(self.form).as_flattened());
        self.written += (self.payload.len() - before) as u64;
        self.segment.iter_mut().for_each(Vec::clear);
    }

    fn bound(&mut self) {
        self.front.add_block(&self.tfs[..self.filled], &self.lengths[..self.filled]);
        let bound = self.front.take();
        self.list_front.add_bound(bound);
        self.bounds.extend_from_slice(&bound);
    }
}

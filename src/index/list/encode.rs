//! How does a list come into being from postings in docid order, without being held whole?

use super::form::Form;
use super::{BEFORE_FIRST, BLOCK, bounds_of, packed};
use crate::codec::{Encoder, folded};
use crate::score::bounds::Front;
use packed::ANCHOR_BLOCKS;

/// Writes lists, one after another.
///
/// Between calls the caller may take any number of bytes from the front of [`payload`]; only 13
/// bytes for each block (17 if the codec is not bp128) stay here until the list ends.
///
/// ```
/// use millrace::index::list::{BLOCK, ListEncoder, ListView};
/// use millrace::score::bounds::code_below;
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
/// # Ok::<(), millrace::index::list::ListError>(())
/// ```
///
/// [`payload`]: Self::payload
#[derive(Debug)]
pub struct ListEncoder {
    /// Postings of the block that is filling: `gap_minus_one`, tf - 1, and length code.
    gaps: [u32; BLOCK],
    tfs: [u32; BLOCK],
    lengths: [u8; BLOCK],
    filled: usize,
    /// Docid of the last posting.
    previous: u32,
    df: u32,
    form: Form,
    /// Of a form other than bp128.
    apart: Option<Box<dyn Encoder>>,
    /// Bytes of this list's payload so far, taken ones included.
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
    /// An encoder at the beginning of a list, with bp128.
    pub fn new() -> Self {
        Self::of_form(Form::Bp128)
    }

    /// An encoder of any form at the beginning of a list.
    pub fn of_form(form: Form) -> Self {
        ListEncoder {
            form,
            apart: (form != Form::Bp128).then(|| form.codec().encoder(BLOCK)),
            gaps: [0; BLOCK],
            tfs: [0; BLOCK],
            lengths: [0; BLOCK],
            filled: 0,
            previous: BEFORE_FIRST,
            df: 0,
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
        if self.filled == BLOCK {
            self.close_block();
        }
    }

    /// Postings of the list so far.
    pub fn df(&self) -> u32 {
        self.df
    }

    /// The bytes that are ready, of this list and of lists that have ended. The caller may take
    /// bytes from the front.
    #[inline]
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.payload
    }

    /// Ends the list: adds its tail and its arrays to [`payload`](Self::payload) and begins the
    /// next list. Returns the document frequency and the bytes of the whole list, taken ones
    /// included.
    pub fn finish(&mut self) -> (u32, u64) {
        let before = self.payload.len();
        for (&gap, &tf) in self.gaps[..self.filled].iter().zip(&self.tfs) {
            folded::put(gap, tf + 1, &mut self.payload);
        }
        if !self.heads.is_empty() {
            if self.filled > 0 {
                self.bound();
            }
            let bound = self.list_front.take();
            if bounds_of(self.df).1 {
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
        if self.heads.len().is_multiple_of(self.form.head_bytes() * ANCHOR_BLOCKS) {
            let place = self.form.place_of(self.written);
            self.places.extend_from_slice(&place.to_le_bytes());
        }
        self.last_docids.extend_from_slice(&self.previous.to_le_bytes());
        let before = self.payload.len();
        let (gaps, tfs) = (&self.gaps, &self.tfs);
        match &mut self.apart {
            None => {
                let head = packed::pack(gaps, tfs, &mut self.payload);
                self.heads.extend_from_slice(&head);
            }
            Some(encoder) => {
                let (payload, heads) = (&mut self.payload, &mut self.heads);
                packed::pack_apart(&mut **encoder, gaps, tfs, payload, heads);
            }
        }
        self.written += (self.payload.len() - before) as u64;
        self.bound();
        self.filled = 0;
    }

    /// Adds the bound of the postings at hand.
    fn bound(&mut self) {
        for (&tf, &length) in self.tfs[..self.filled].iter().zip(&self.lengths) {
            self.front.add(tf.wrapping_add(1), length);
        }
        let bound = self.front.take();
        self.list_front.add_bound(bound);
        self.bounds.extend_from_slice(&bound);
    }
}

//! The interface of all codecs of postings: each writes the values of a *column* (the gaps of one
//! list, or its term frequencies) in blocks that can be read alone.
//!
//! A coded column has three parts, which the index puts where it likes:
//!
//! - of each block a *head*, one byte that stands in an array apart (a width, say, or 0),
//! - of each block a *body*, bytes that tell themselves where they end,
//! - what all blocks *share*: bytes that are written at the end of the column and
//!   [opened](Codec::open) once before its blocks are read.
//!
//! So bodies may leave memory as soon as they are written, whatever the length of the list. Codecs
//! with one parameter for a whole list ask for a [`Survey`] of it first: all values once before the
//! first block. What they hold until the column ends is in each codec's description.
//!
//! Reading any bytes, damaged or not, gives values or an error, and allocates no more than a few
//! bytes for each value of the column.
//!
//! ```
//! use millrace::inside::codec::List;
//! use millrace::inside::codec::ListCodec;
//! use millrace::inside::codec::CodedBlock;
//! use millrace::inside::codec::OpenedColumn;
//!
//! let values = [3, 0, 0, 1_000_000, 7];
//! for codec in ListCodec::ALL.map(ListCodec::codec) {
//!     let mut encoder = codec.encoder(64);
//!     encoder.survey(&values);
//!     let (mut body, mut shared) = (Vec::new(), Vec::new());
//!     let head = encoder.block(&values, &mut body);
//!     encoder.finish(&mut shared);
//!
//!     let mut opened = OpenedColumn::default();
//!     codec.open(&shared, values.len(), 64, &mut opened)?;
//!     let list = List { shared: &shared, opened: &opened };
//!     let mut back = [0; 5];
//!     codec.values(list, CodedBlock { index: 0, head, body: &body }, &mut back)?;
//!     assert_eq!(back, values);
//! }
//! # Ok::<(), millrace::inside::codec::CodecError>(())
//! ```

use std::fmt::Debug;

use super::{CodecError, bits, bp128};

/// Counts over all values of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Survey {
    pub count: u64,
    pub sum: u64,
    pub widths: Widths,
}

/// How many values have each width, 0 to 32 bits.
pub(crate) type Widths = [u64; 33];

pub(super) fn count_widths(values: &[u32], widths: &mut Widths) {
    for &value in values {
        widths[usize::from(bits::width_of(value))] += 1;
    }
}

impl Default for Survey {
    fn default() -> Self {
        Self { count: 0, sum: 0, widths: [0; 33] }
    }
}

impl Survey {
    pub(crate) fn add(&mut self, values: &[u32]) {
        self.count += values.len() as u64;
        self.sum += values.iter().map(|&value| u64::from(value)).sum::<u64>();
        count_widths(values, &mut self.widths);
    }
}

/// Writes columns, one after the other.
pub trait Encoder: Debug + Send {
    /// Adds values of the next column to its survey. All are added, in order, before its
    /// first block.
    fn survey(&mut self, _values: &[u32]) {}

    /// Appends the body of the next block to `out` and returns its head. All blocks but the last
    /// are full.
    ///
    /// # Panics
    /// If there are more values than a block has, or none.
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8;

    /// Ends the column: appends what its blocks share.
    fn finish(&mut self, _out: &mut Vec<u8>) {}
}

/// What the blocks of one column share, ready for reading; reused for other columns.
#[derive(Clone, Debug, Default)]
pub struct OpenedColumn {
    /// The width of all blocks.
    pub(super) width: u8,
    pub(super) blocks: usize,
    /// Where the bit vector of quotients begins in what is shared.
    pub(super) unary_at: usize,
    pub(super) block_len: usize,
    /// Places of exceptions in the column, rising, and their bits above `width`.
    pub(super) places: Vec<u32>,
    pub(super) highs: Vec<u32>,
    /// The first exception of each block, then the number of all.
    pub(super) firsts: Vec<u32>,
}

impl OpenedColumn {
    pub(crate) const NOTHING: Self = Self {
        width: 0,
        blocks: 0,
        unary_at: 0,
        block_len: 0,
        places: Vec::new(),
        highs: Vec::new(),
        firsts: Vec::new(),
    };
}

/// A column to read: what its blocks share, in bytes and opened by the same codec.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    pub shared: &'a [u8],
    pub opened: &'a OpenedColumn,
}

#[derive(Clone, Copy, Debug)]
pub struct CodedBlock<'a> {
    /// Its number, from 0.
    pub index: usize,
    pub head: u8,
    /// From the body's first byte on; may be longer than the body. Fastest if 64 bytes follow.
    pub body: &'a [u8],
}

pub trait Codec: Debug + Sync {
    /// The lengths of blocks that it has, powers of two, the default first.
    fn block_lens(&self) -> &'static [usize];

    /// # Panics
    /// If it has no blocks of `block_len`.
    fn encoder(&self, block_len: usize) -> Box<dyn Encoder>;

    /// Prepares what the blocks of a column of `count` values share; fails if `shared` is damaged.
    ///
    /// # Panics
    /// If it has no blocks of `block_len`.
    fn open(
        &self,
        shared: &[u8],
        count: usize,
        block_len: usize,
        opened: &mut OpenedColumn,
    ) -> Result<(), CodecError> {
        let _ = (count, block_len, opened);
        match shared.len() as u64 {
            0 => Ok(()),
            found => Err(CodecError::Rest { expected: 0, found }),
        }
    }

    /// Reads as many values of a block as `out` has; returns the bytes of its body.
    fn values(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError>;

    /// Reads a block of `gap_minus_one` values as docids, as [`bp128::unpack_docids`] does. Fails
    /// if the block is damaged; the caller checks the docids.
    fn docids(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        previous: u32,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let bytes = self.values(list, block, out)?;
        bp128::sum_docids(previous, out);
        Ok(bytes)
    }
}

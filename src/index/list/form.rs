//! The form of the lists of a run: the codec and the postings of a block, and what follows for the
//! layout.
//!
//! Blocks of `bp128` need no more than their two widths, from which their sizes follow. For blocks
//! of `newpfd` and `vbyte` the heads and sizes of both bodies are noted, and they begin at every
//! fourth byte. Those of `rice` and `pfor` share something with their neighbours and lie in
//! *segments* ([`Segment`](super::Segment)).

use super::{BLOCK, MAX_BLOCK};
pub(crate) use crate::codec::ListCodec;
use crate::codec::{Codec, OpenedColumn};
use std::fmt;

/// A multiple of every block.
pub(crate) const SEGMENT_POSTINGS: usize = 1 << 16;

/// The unit of the bytes that a codec notes of each block.
pub(super) const HEAD_BYTES: usize = 2;

/// For codecs without segments.
pub(super) static NOTHING: OpenedColumn = OpenedColumn::NOTHING;

/// A codec, and the postings of its blocks: 64, 128 or 512, as far as the codec has them; and
/// whether the run has the positions of its terms beside the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    codec: ListCodec,
    shift: u8,
    positions: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self::BP128
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, blocks of {}", self.name(), self.block_len())
    }
}

impl Form {
    /// [`bp128`](crate::codec::bp128) in blocks of 128, the default.
    pub(crate) const BP128: Self =
        Self { codec: ListCodec::Bp128, shift: BLOCK.ilog2() as u8, positions: false };

    /// None if the codec has no such blocks.
    pub fn new(codec: ListCodec, block_len: usize) -> Option<Self> {
        let has_them = codec.codec().block_lens().contains(&block_len) && block_len <= MAX_BLOCK;
        has_them.then(|| Self { codec, shift: block_len.ilog2() as u8, positions: false })
    }

    /// The same with positions, or without.
    pub fn with_positions(self, positions: bool) -> Self {
        Self { positions, ..self }
    }

    #[inline(always)]
    pub fn has_positions(self) -> bool {
        self.positions
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let of_codec = |codec: ListCodec| {
            codec.block_lens().into_iter().filter_map(move |len| Self::new(codec, len))
        };
        ListCodec::ALL.into_iter().flat_map(of_codec)
    }

    pub(crate) fn named(codec: &str, block_len: usize) -> Option<Self> {
        Self::new(ListCodec::named(codec)?, block_len)
    }

    pub(crate) fn of_numbers([codec, block_len]: [u64; 2]) -> Option<Self> {
        Self::all().find(|form| form.numbers() == [codec, block_len])
    }

    /// The numbers in the header of postings: of the codec, and of the postings of a block, 0 for
    /// 128.
    pub(crate) fn numbers(self) -> [u64; 2] {
        let block_len = if self.block_len() == BLOCK { 0 } else { self.block_len() as u64 };
        [self.codec as u64, block_len]
    }

    #[inline(always)]
    pub(crate) fn list_codec(self) -> ListCodec {
        self.codec
    }

    pub fn name(self) -> &'static str {
        self.codec.name()
    }

    pub(super) fn codec(self) -> &'static dyn Codec {
        self.codec.codec()
    }

    #[inline(always)]
    pub fn block_len(self) -> usize {
        1 << self.shift
    }

    #[inline(always)]
    pub(super) fn packed_bytes(self, bits: u8) -> usize {
        usize::from(bits) << (self.shift - 3)
    }

    /// Full blocks of a list, and the postings of its tail.
    #[inline(always)]
    pub(super) fn divide(self, df: u32) -> (u32, u32) {
        (df >> self.shift, df & ((1 << self.shift) - 1))
    }

    /// Blocks of a list, the tail counted as one.
    #[inline(always)]
    pub(super) fn blocks(self, df: u32) -> u32 {
        df.div_ceil(1 << self.shift)
    }

    /// Blocks are bit-packed, each with the least widths that hold its values.
    #[inline(always)]
    pub(crate) fn is_bp128(self) -> bool {
        self.codec == ListCodec::Bp128
    }

    #[inline(always)]
    pub(crate) fn has_segments(self) -> bool {
        matches!(self.codec, ListCodec::Rice | ListCodec::Pfor)
    }

    #[inline(always)]
    pub(crate) fn segment_blocks(self) -> usize {
        SEGMENT_POSTINGS >> self.shift
    }

    #[inline(always)]
    pub(super) fn head_pairs(self) -> usize {
        match self.codec {
            ListCodec::Bp128 => 1,
            ListCodec::NewPfd | ListCodec::VByte => 3,
            ListCodec::Rice | ListCodec::Pfor => 0,
        }
    }

    /// Bytes that are noted of each block.
    #[inline(always)]
    pub(crate) fn head_bytes(self) -> usize {
        HEAD_BYTES * self.head_pairs()
    }

    /// Bytes of the unit in which places count.
    #[inline(always)]
    pub(super) fn place_unit(self) -> u64 {
        match self.codec {
            ListCodec::Bp128 => 1 << (self.shift - 3),
            _ => 4,
        }
    }

    pub(super) fn place_of(self, offset: u64) -> u32 {
        // A block of bp128 has at most 64 units, and there are less than 2^26. Elsewhere gaps,
        // which sum up to less than 2^32, take less than two bytes on average, and tfs of two bytes
        // more than any text.
        u32::try_from(offset / self.place_unit()).expect("a list has less than 2^32 units")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_numbers_and_a_name_of_its_own() {
        let forms: Vec<Form> = Form::all().collect();
        assert_eq!(forms.len(), 14);
        for form in &forms {
            assert_eq!(Form::of_numbers(form.numbers()), Some(*form));
            assert_eq!(Form::named(form.name(), form.block_len()), Some(*form));
        }
        assert_eq!(Form::default().numbers(), [0, 0]);
        assert_eq!(Form::named("newpfd", 512), None);
        assert_eq!(Form::of_numbers([0, 128]), None, "128 is written as 0");
        assert_eq!(Form::of_numbers([1, 512]), None);
    }
}

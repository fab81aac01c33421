//! How are the lists of a run coded: with which codec, in blocks of how many postings, and what
//! follows for their layout?
//!
//! Blocks of `bp128` need no more than their two widths, from which their sizes follow. Blocks of
//! `newpfd` and `vbyte` tell of both bodies head and size, and begin at every fourth byte. Those of
//! `rice` and `pfor` share something with their neighbours and lie in *segments* ([`Segment`]).
//!
//! [`Segment`]: super::Segment

use super::{BLOCK, MAX_BLOCK};
pub(crate) use crate::codec::ListCodec;
use crate::codec::{Codec, Opened};
use std::fmt;

/// Postings of a segment: a multiple of every block.
pub(crate) const SEGMENT_POSTINGS: usize = 1 << 16;

/// What a codec notes of each block is so many bytes, or a multiple of them.
pub(super) const HEAD_BYTES: usize = 2;

/// Nothing is shared by the blocks of a codec without segments.
pub(super) static NOTHING: Opened = Opened::NOTHING;

/// A codec, and how many postings its blocks have: 64, 128 or 512, as far as the codec has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    codec: ListCodec,
    /// Binary logarithm of the postings of a block.
    shift: u8,
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
    pub(crate) const BP128: Self = Self { codec: ListCodec::Bp128, shift: BLOCK.ilog2() as u8 };

    /// The form with blocks of so many postings, if the codec has them.
    pub fn new(codec: ListCodec, block_len: usize) -> Option<Self> {
        let has_them = codec.codec().block_lens().contains(&block_len) && block_len <= MAX_BLOCK;
        has_them.then(|| Self { codec, shift: block_len.ilog2() as u8 })
    }

    pub fn all() -> impl Iterator<Item = Self> {
        let of_codec = |codec: ListCodec| {
            codec.block_lens().into_iter().filter_map(move |len| Self::new(codec, len))
        };
        ListCodec::ALL.into_iter().flat_map(of_codec)
    }

    /// The form that the manifest names.
    pub(crate) fn named(codec: &str, block_len: usize) -> Option<Self> {
        Self::new(ListCodec::named(codec)?, block_len)
    }

    /// The form with these numbers in the header of postings.
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

    /// Bytes of a block of values with so many bits.
    #[inline(always)]
    pub(super) fn packed_bytes(self, bits: u8) -> usize {
        usize::from(bits) << (self.shift - 3)
    }

    /// Blocks of a list of `df` postings, and those that are left: its tail.
    #[inline(always)]
    pub(super) fn divide(self, df: u32) -> (u32, u32) {
        (df >> self.shift, df & ((1 << self.shift) - 1))
    }

    /// Blocks of a list of `df` postings, the tail counted as one.
    #[inline(always)]
    pub(super) fn blocks(self, df: u32) -> u32 {
        df.div_ceil(1 << self.shift)
    }

    /// Whether blocks are bit-packed, each with the least widths that hold its values.
    #[inline(always)]
    pub(crate) fn is_bp128(self) -> bool {
        self.codec == ListCodec::Bp128
    }

    /// Whether blocks lie in [segments](super::Segment).
    #[inline(always)]
    pub(crate) fn has_segments(self) -> bool {
        matches!(self.codec, ListCodec::Rice | ListCodec::Pfor)
    }

    #[inline(always)]
    pub(crate) fn segment_blocks(self) -> usize {
        SEGMENT_POSTINGS >> self.shift
    }

    /// Twos of bytes that are noted of each block.
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

    /// Places count in units of so many bytes.
    #[inline(always)]
    pub(super) fn place_unit(self) -> u64 {
        match self.codec {
            ListCodec::Bp128 => 1 << (self.shift - 3),
            _ => 4,
        }
    }

    /// The place of what begins `offset` bytes behind the first of its list.
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

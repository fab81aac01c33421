//! Which codec are the blocks of a list coded with, and what follows for its layout?
//!
//! Blocks of `bp128` need no more than their two widths, from which their sizes follow. Blocks of
//! the other codecs tell of both bodies head and size, and begin at every fourth byte.

use crate::codec::bp128::Bp128;
use crate::codec::newpfd::NewPfd;
use crate::codec::vbyte::VByte;
use crate::codec::{Codec, Opened};

/// What a codec notes of each block is so many bytes, or a multiple of them.
pub(super) const HEAD_BYTES: usize = 2;

/// Nothing is shared by the blocks of these codecs.
pub(super) static NOTHING: Opened = Opened::NOTHING;

/// A codec that the lists of an index may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// [`bp128`](crate::codec::bp128).
    #[default]
    Bp128,
    /// [`newpfd`](crate::codec::newpfd).
    NewPfd,
    /// [`vbyte`](crate::codec::vbyte).
    VByte,
}

impl Form {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Bp128, Self::NewPfd, Self::VByte];

    /// The form with this number in the header of postings.
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.number() == number)
    }

    /// The form of the codec with this name.
    pub fn of_codec(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The number in the header of postings.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The name of the codec.
    pub fn name(self) -> &'static str {
        self.codec().name()
    }

    pub(super) fn codec(self) -> &'static dyn Codec {
        match self {
            Form::Bp128 => &Bp128,
            Form::NewPfd => &NewPfd,
            Form::VByte => &VByte,
        }
    }

    /// Twos of bytes that are noted of each block.
    #[inline(always)]
    pub(super) fn head_pairs(self) -> usize {
        match self {
            Form::Bp128 => 1,
            Form::NewPfd | Form::VByte => 3,
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
        match self {
            Form::Bp128 => 16,
            Form::NewPfd | Form::VByte => 4,
        }
    }

    /// The place of a block that begins `offset` bytes behind the first of its list.
    pub(super) fn place_of(self, offset: u64) -> u32 {
        // 2^32 postings of 8 bytes are 2^31 units of bp128. Elsewhere gaps, which sum up to less
        // than 2^32, take less than two bytes on average, and tfs of two bytes more than any text.
        u32::try_from(offset / self.place_unit()).expect("a list has less than 2^32 units")
    }
}

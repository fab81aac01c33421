//! Codecs of integers, one a file, its encoder beside its decoder.
//!
//! All bytes are little-endian and need no alignment. [`Codec`] is the interface for postings.
//!
//! | codec | parameter | blocks | where it is good |
//! | --- | --- | --- | --- |
//! | [`bp128`] | a width a block | 128 (64, 512) | fastest |
//! | [`newpfd`] | a width a block, exceptions apart | 128, 64 | smallest that is fast |
//! | [`pfor`] | a width a list, exceptions apart | 128, 512 (64) | one width for a GPU |
//! | [`rice`] | a width a list, quotients in a bit vector | 128, 64, 512 | small |
//! | [`vbyte`] | none | 128, 64, 512 | simple |
//!
//! [`bits`] and [`unary`] are their parts. [`positions`] codes what stands beside postings.
//! [`ramp`] is for places of documents.

pub(crate) mod bits;
pub mod bp128;
pub(crate) mod column;
pub(crate) mod error;
pub(crate) mod folded;
pub(crate) mod named;
pub(crate) mod newpfd;
pub(crate) mod pfor;
pub(crate) mod positions;
pub(crate) mod prefetch;
pub(crate) mod ramp;
pub(crate) mod rice;
#[cfg(test)]
mod tests;
pub(crate) mod unary;
pub(crate) mod vbyte;

pub(crate) use column::{Codec, CodedBlock, Encoder, List, OpenedColumn, Survey};
pub(crate) use error::CodecError;
pub(crate) use named::ListCodec;

fn checked_block_len(codec: &dyn Codec, block_len: usize) -> usize {
    assert!(codec.block_lens().contains(&block_len), "{codec:?}: blocks of {block_len}");
    block_len
}

fn check_values(values: &[u32], block_len: usize) {
    let len = values.len();
    assert!((1..=block_len).contains(&len), "{len} values for a block of {block_len}");
}

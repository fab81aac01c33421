//! `bp128` as a codec of postings: the head is the width, the body the bits.

use crate::codec::{
    Codec, CodecError, CodedBlock, Encoder, List, bits, check_values, checked_block_len,
};

use super::{BLOCK, MAX_WIDTH, sum_docids};

/// Blocks of one width each. A block shorter than 128 has as many bits a value and ends with a
/// whole byte; blocks of 64 or 512 have one width for all their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bp128;

#[derive(Debug)]
struct Packer {
    block_len: usize,
}

impl Encoder for Packer {
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let width = bits::width(values);
        bits::pack(values, width, out);
        width
    }
}

/// The bytes of the body, which are all there.
#[inline]
fn checked(block: CodedBlock<'_>, len: usize) -> Result<usize, CodecError> {
    CodecError::at_most("a width", MAX_WIDTH.into(), block.head.into())?;
    let bytes = bits::bytes(len, block.head);
    CodecError::need(bytes, block.body.len())?;
    Ok(bytes)
}

impl Codec for Bp128 {
    fn block_lens(&self) -> &'static [usize] {
        &[BLOCK, 64, 512]
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        Box::new(Packer { block_len: checked_block_len(self, block_len) })
    }

    #[inline]
    fn values(
        &self,
        _: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let bytes = checked(block, out.len())?;
        bits::unpack(block.body, block.head, out);
        Ok(bytes)
    }

    #[inline]
    fn docids(
        &self,
        _: List<'_>,
        block: CodedBlock<'_>,
        previous: u32,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let len = out.len();
        let bytes = checked(block, len)?;
        match out.first_chunk_mut::<BLOCK>() {
            Some(whole) if len == BLOCK => {
                super::unpack_docids(block.body, block.head, previous, whole);
            }
            _ => {
                bits::unpack(block.body, block.head, out);
                sum_docids(previous, out);
            }
        }
        Ok(bytes)
    }
}

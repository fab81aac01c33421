//! `vbyte` as a codec of postings: the head is 0, the body the values in order.

use crate::codec::{Codec, CodecError, CodedBlock, Encoder, List, check_values, checked_block_len};

use super::{get, put};

#[derive(Clone, Copy, Debug)]
pub(crate) struct VByte;

#[derive(Debug)]
struct VbyteBlockWriter {
    block_len: usize,
}

impl Encoder for VbyteBlockWriter {
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        values.iter().for_each(|&value| put(value.into(), out));
        0
    }
}

#[inline]
fn next(bytes: &[u8], at: &mut usize) -> Result<u32, CodecError> {
    let begin = *at;
    get(bytes, at)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or(CodecError::Integer { at: begin as u64 })
}

impl Codec for VByte {
    fn block_lens(&self) -> &'static [usize] {
        &[128, 64, 512]
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        Box::new(VbyteBlockWriter { block_len: checked_block_len(self, block_len) })
    }

    fn values(
        &self,
        _: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let mut at = 0;
        for value in out {
            *value = next(block.body, &mut at)?;
        }
        Ok(at)
    }
}

//! PForDelta with a width for each block, whose exceptions follow it.
//!
//! - Head: b, 0 to 32, plus 64 if there are exceptions.
//! - Body: the low b bits of each value, as [`bits`] writes them; and if there are exceptions,
//!   their number as a [`vbyte`] and [`nested`](super::nested) exceptions at the codec's levels.

use super::nested::{
    Exceptions, MAX_LEVELS, choose_width, each_exception, read_exceptions, write_exceptions,
};
use crate::codec::column::count_widths;
use crate::codec::{
    Codec, CodecError, CodedBlock, Encoder, List, bits, bp128, check_values, checked_block_len,
    vbyte,
};

/// The bit of a head that marks exceptions.
const EXCEPTIONS: u8 = 64;

#[derive(Clone, Copy, Debug)]
pub struct PforBlocks {
    levels: u8,
}

impl PforBlocks {
    /// # Panics
    /// If `levels` is above [`MAX_LEVELS`].
    pub const fn new(levels: u8) -> Self {
        assert!(levels <= MAX_LEVELS);
        Self { levels }
    }
}

#[derive(Debug)]
struct PforBlockWriter {
    levels: u8,
    block_len: usize,
}

impl Encoder for PforBlockWriter {
    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let mut widths = [0; 33];
        count_widths(values, &mut widths);
        let width = choose_width(&widths, self.levels);
        let mut highs = Vec::new();
        let mut gaps = Vec::new();
        let mut next = 0;
        each_exception(values, width, |place, high| {
            highs.push(high);
            gaps.push((place - next) as u32);
            next = place + 1;
        });
        bits::pack(values, width, out);
        if highs.is_empty() {
            return width;
        }
        vbyte::put(highs.len() as u64, out);
        write_exceptions(&highs, &gaps, self.levels, out);
        width | EXCEPTIONS
    }
}

impl Codec for PforBlocks {
    fn name(&self) -> &'static str {
        "pfor-blocks"
    }

    fn block_lens(&self) -> &'static [usize] {
        super::BLOCK_LENS
    }

    fn has_heads(&self) -> bool {
        true
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        Box::new(PforBlockWriter {
            levels: self.levels,
            block_len: checked_block_len(self, block_len),
        })
    }

    fn values(
        &self,
        _: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let width = block.head & !EXCEPTIONS;
        CodecError::at_most("a width", bp128::MAX_WIDTH.into(), width.into())?;
        let mut at = bits::bytes(out.len(), width);
        CodecError::need(at, block.body.len())?;
        bits::unpack(block.body, width, out);
        if block.head & EXCEPTIONS != 0 {
            let begin = at as u64;
            let count = vbyte::get(block.body, &mut at).and_then(|n| usize::try_from(n).ok());
            let count = count.ok_or(CodecError::Integer { at: begin })?;
            let of = Exceptions { count, values: out.len(), width };
            let mut places = Vec::new();
            let mut highs = Vec::new();
            read_exceptions(block.body, &mut at, &of, self.levels, &mut places, &mut highs)?;
            for (&place, &high) in places.iter().zip(&highs) {
                out[place as usize] |= high << width;
            }
        }
        Ok(at)
    }

    fn value(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        len: usize,
        i: usize,
    ) -> Result<u32, CodecError> {
        let mut values = vec![0; len];
        self.values(list, block, &mut values)?;
        Ok(values[i])
    }

    fn body_bytes(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        len: usize,
    ) -> Result<usize, CodecError> {
        self.values(list, block, &mut vec![0; len])
    }
}

//! Rice codes, laid out so that any block can be read alone, on any number of threads.
//!
//! The coding is that of ding09, section 6.1: value v is v >> b in unary (that many ones and a
//! zero) and the low b bits in binary, in two bit vectors; b is one for the whole column, such that
//! 2^b is close to the mean. Added is where each block begins in the unary vector. Left out are the
//! sums before each 128 binary codes, since the index has the last docid of each block, and the
//! ones before each 128 bits of the unary vector, since nothing begins to read in a block's middle.
//!
//! - Head: 0.
//! - Body: the low b bits of each value, as [`bits`] writes them.
//! - Shared, for n values in k blocks and a unary vector of u bits:
//!
//! | at | bytes | what |
//! | --- | --- | --- |
//! | 0 | 1 | 64 + b; b is 0 to 32 |
//! | 1 | 4 | u, a u32 |
//! | 5 | 4 x k | u32: the bit where each block begins in the unary vector |
//! | then | u / 8, rounded up | the unary vector; the bits that the last byte has left are ones |
//!
//! An encoder holds the unary vector, at most 4 bits a value on average, until the column ends.

use super::unary::{self, UnaryWriter};
use super::{
    Codec, CodecError, CodedBlock, Encoder, List, OpenedColumn, Survey, bits, bp128, check_values,
    checked_block_len,
};

pub(crate) const HEAD_BYTES: usize = 5;

/// What is added to b.
const ADDED: u8 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rice;

/// The b whose 2^b is the greatest power of two that is at most ln 2 (about 11/16) of the mean,
/// which makes the codes of geometrically distributed values shortest. The vector stays below 2^32
/// bits.
fn choose_width(survey: &Survey) -> u8 {
    let sum = u128::from(survey.sum);
    let scaled = sum * 11 / (16 * u128::from(survey.count.max(1)));
    let width = scaled.checked_ilog2().unwrap_or(0) as u8;
    // Rounding down each quotient makes their sum no greater.
    let fits = |width: &u8| u128::from(survey.count) + (sum >> width) <= u128::from(u32::MAX);
    (width..bp128::MAX_WIDTH).find(fits).unwrap_or(bp128::MAX_WIDTH)
}

#[derive(Debug, Default)]
struct RiceWriter {
    block_len: usize,
    survey: Survey,
    width: Option<u8>,
    begins: Vec<u8>,
    unary: UnaryWriter,
}

impl Encoder for RiceWriter {
    fn survey(&mut self, values: &[u32]) {
        self.survey.add(values);
    }

    fn block(&mut self, values: &[u32], out: &mut Vec<u8>) -> u8 {
        check_values(values, self.block_len);
        let width = *self.width.get_or_insert_with(|| choose_width(&self.survey));
        // `choose_width` keeps the vector below 2^32 bits.
        let begin = self.unary.bits() as u32;
        self.begins.extend_from_slice(&begin.to_le_bytes());
        for &value in values {
            self.unary.put(value.checked_shr(width.into()).unwrap_or(0));
        }
        bits::pack(values, width, out);
        0
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let unary_bits = self.unary.bits();
        out.push(ADDED + self.width.take().unwrap_or(0));
        out.extend_from_slice(&(unary_bits as u32).to_le_bytes());
        out.append(&mut self.begins);
        self.unary.finish(out);
        self.survey = Survey::default();
    }
}

/// What stands before all else that a column shares.
pub(crate) struct RiceHead {
    pub width: u8,
    pub unary_bits: u64,
}

impl RiceHead {
    pub(crate) fn read(shared: &[u8]) -> Result<Self, CodecError> {
        CodecError::need(HEAD_BYTES, shared.len())?;
        // Below it no width comes of it.
        let width = shared[0].wrapping_sub(ADDED);
        let unary_bits = u32::from_le_bytes([shared[1], shared[2], shared[3], shared[4]]).into();
        Ok(Self { width, unary_bits })
    }

    /// Where the unary vector begins, which is the last of what is shared.
    pub(crate) fn unary_at(&self, shared: &[u8]) -> usize {
        shared.len() - self.unary_bits.div_ceil(8) as usize
    }
}

/// The unary vector of a column, and the bit where a block begins in it.
#[inline]
fn unary_of<'a>(list: List<'a>, block: usize) -> Result<(&'a [u8], u64), CodecError> {
    let OpenedColumn { blocks, unary_at, .. } = *list.opened;
    let begins = &list.shared[HEAD_BYTES.min(list.shared.len())..];
    match (begins.as_chunks::<4>().0.get(block), list.shared.get(unary_at..)) {
        (Some(begin), Some(vector)) if block < blocks => {
            Ok((vector, u32::from_le_bytes(*begin).into()))
        }
        _ => Err(CodecError::Number { what: "a block", most: blocks as u64, found: block as u64 }),
    }
}

#[inline]
fn join_all(lows: &mut [u32], highs: &[u32], width: u8) -> Result<(), CodecError> {
    // A quotient of 0 fits whatever the width.
    let most = u32::MAX.checked_shr(width.into()).unwrap_or(0);
    let mut greatest = 0;
    for (low, &high) in lows.iter_mut().zip(highs) {
        *low |= high.checked_shl(width.into()).unwrap_or(0);
        greatest = greatest.max(high);
    }
    CodecError::at_most("a quotient", most as usize, greatest as usize)
}

impl Codec for Rice {
    fn block_lens(&self) -> &'static [usize] {
        &[128, 64, 512]
    }

    fn encoder(&self, block_len: usize) -> Box<dyn Encoder> {
        let block_len = checked_block_len(self, block_len);
        Box::new(RiceWriter { block_len, ..RiceWriter::default() })
    }

    fn open(
        &self,
        shared: &[u8],
        count: usize,
        block_len: usize,
        opened: &mut OpenedColumn,
    ) -> Result<(), CodecError> {
        let head = RiceHead::read(shared)?;
        CodecError::at_most("a width", bp128::MAX_WIDTH.into(), head.width.into())?;
        let blocks = count.div_ceil(checked_block_len(self, block_len));
        let unary_at = HEAD_BYTES as u64 + 4 * blocks as u64;
        let expected = unary_at + head.unary_bits.div_ceil(8);
        match shared.len() as u64 {
            found if found < expected => Err(CodecError::CutShort { expected, found }),
            found if found > expected => Err(CodecError::Rest { expected, found }),
            _ => {
                opened.width = head.width;
                opened.blocks = blocks;
                opened.unary_at = unary_at as usize;
                Ok(())
            }
        }
    }

    fn values(
        &self,
        list: List<'_>,
        block: CodedBlock<'_>,
        out: &mut [u32],
    ) -> Result<usize, CodecError> {
        let width = list.opened.width;
        let bytes = bits::bytes(out.len(), width);
        CodecError::need(bytes, block.body.len())?;
        let (vector, from) = unary_of(list, block.index)?;
        let values = out.len() as u64;
        let mut from = from;
        let mut at = 0;
        for part in out.chunks_mut(bp128::BLOCK) {
            let mut highs = [0; bp128::BLOCK];
            let highs = &mut highs[..part.len()];
            let end = unary::read(vector, from, highs);
            from = end.ok_or(CodecError::Unary { from, values })?;
            bits::unpack(&block.body[at..], width, part);
            at += bp128::bytes(width);
            join_all(part, highs, width)?;
        }
        Ok(bytes)
    }
}

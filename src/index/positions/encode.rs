//! Writes the positions of lists from postings in docid order, without holding them whole.

use super::START_BYTES;
use crate::codec::positions;
use crate::codec::unary::UnaryWriter;
use crate::codec::vbyte;
use crate::index::list::MAX_BLOCK;

/// Reads a vbyte of one or two bytes, as nearly all are, without a branch on how many.
#[inline(always)]
fn short_value(bytes: &[u8], at: &mut usize) -> Option<u32> {
    if let Some(&[first, second]) = bytes.get(*at..).and_then(|rest| rest.first_chunk())
        && first & second < 128
    {
        let is_long = u32::from(first >> 7);
        *at += 1 + is_long as usize;
        return Some(u32::from(first & 127) | ((u32::from(second) << 7) * is_long));
    }
    u32::try_from(vbyte::get(bytes, at)?).ok()
}

/// Writes positions, list after list. Between calls the caller may take any number of bytes from
/// the front of [`payload`](Self::payload). Until a list ends 4 bytes for each block stay here, and
/// the positions of one block.
#[derive(Debug)]
pub(crate) struct PositionsEncoder {
    block_len: usize,
    /// Postings of the block that is filling, and their values.
    filled: usize,
    values: Vec<u32>,
    starts: Vec<[u8; START_BYTES]>,
    /// Bytes of the blocks of the list so far, with those that were taken.
    written: u64,
    unary: UnaryWriter,
    pub(crate) payload: Vec<u8>,
}

impl PositionsEncoder {
    pub(crate) fn new(block_len: usize) -> Self {
        let (filled, values, starts, written, unary, payload) = Default::default();
        Self { block_len, filled, values, starts, written, unary, payload }
    }

    /// Adds postings with these term frequencies. `values` has of each posting the first position
    /// and the gaps between the others.
    pub(crate) fn push(&mut self, tfs: &[u32], mut values: &[u32]) {
        let mut tfs = tfs;
        while !tfs.is_empty() {
            let here = tfs.split_off(..tfs.len().min(self.block_len - self.filled));
            let here = here.expect("there are as many");
            let count: usize = here.iter().map(|&tf| tf as usize).sum();
            let own = values.split_off(..count).expect("each posting has its positions");
            self.values.extend_from_slice(own);
            self.filled += here.len();
            if self.filled == self.block_len {
                self.close();
            }
        }
    }

    /// Adds at most a block of postings with these term frequencies less one, whose values are
    /// vbytes from `bytes[*at]` on; `None` if there are not so many.
    pub(crate) fn push_folded(
        &mut self,
        less_one: &[u32],
        bytes: &[u8],
        at: &mut usize,
    ) -> Option<()> {
        let count: usize = less_one.iter().map(|&less| less as usize + 1).sum();
        let before = self.values.len();
        self.values.resize(before + count, 0);
        for value in &mut self.values[before..] {
            *value = short_value(bytes, at)?;
        }
        self.filled += less_one.len();
        debug_assert!(self.filled <= self.block_len && self.block_len <= MAX_BLOCK);
        if self.filled == self.block_len {
            self.close();
        }
        Some(())
    }

    fn close(&mut self) {
        if self.written > 0 {
            // A run has less than 2^32 bytes of positions of one term: see `finish`.
            self.starts.push((self.written as u32).to_le_bytes());
        }
        let before = self.payload.len();
        positions::encode(&self.values, &mut self.unary, &mut self.payload);
        self.written += (self.payload.len() - before) as u64;
        self.values.clear();
        self.filled = 0;
    }

    /// Ends the list.
    ///
    /// # Errors
    /// If its positions take 4 GiB or more.
    pub(crate) fn finish(&mut self) -> Result<(), &'static str> {
        if self.filled > 0 {
            self.close();
        }
        self.payload.extend_from_slice(self.starts.as_flattened());
        self.starts.clear();
        let written = std::mem::take(&mut self.written);
        match u32::try_from(written) {
            Ok(_) => Ok(()),
            Err(_) => Err("the positions of one term take less than 4 GiB in a run"),
        }
    }
}

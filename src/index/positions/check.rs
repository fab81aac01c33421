//! Checks that the positions of a list are byte for byte what [`PositionsEncoder`] writes, and that
//! those of a posting rise.

use super::{ListPositions, PositionsEncoder};
use crate::index::list::ListError;

pub(crate) struct PositionsCheck<'a> {
    list: ListPositions<'a>,
    encoder: PositionsEncoder,
    values: Vec<u32>,
    block: usize,
}

impl<'a> PositionsCheck<'a> {
    pub(crate) fn new(list: ListPositions<'a>, block_len: usize) -> Self {
        Self { list, encoder: PositionsEncoder::new(block_len), values: Vec::new(), block: 0 }
    }

    /// Reads the next block, of postings with these term frequencies; its values are as
    /// [`ListPositions::decode`] gives them.
    pub(crate) fn block(&mut self, tfs: &[u32]) -> Result<&[u32], ListError> {
        let count = tfs.iter().map(|&tf| u64::from(tf)).sum();
        self.list.expect_count(self.block, count, tfs.len())?;
        self.values.clear();
        self.values.resize(count as usize, 0);
        self.list.decode(self.block, &mut self.values)?;
        let mut rest = &self.values[..];
        for &tf in tfs {
            let own = rest.split_off(..tf as usize).unwrap_or(&[]);
            let end = own.iter().try_fold(0u32, |sum, &value| sum.checked_add(value));
            if end.is_none() || own.iter().skip(1).any(|&gap| gap == 0) {
                return Err(ListError::Positions { offset: self.list.start(self.block) as u64 });
            }
        }
        self.encoder.push(tfs, &self.values);
        self.block += 1;
        Ok(&self.values)
    }

    /// Compares what was read with how it is written.
    pub(crate) fn end(mut self) -> Result<(), ListError> {
        let expected = self.encoder.finish().map(|()| &self.encoder.payload[..]);
        let found = self.list.bytes();
        if expected == Ok(found) {
            return Ok(());
        }
        let expected = expected.unwrap_or(&[]);
        let same = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
        Err(ListError::Positions { offset: same as u64 })
    }
}

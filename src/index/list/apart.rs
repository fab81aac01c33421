//! Reads blocks of codecs other than bp128, by the codec's trait; the sizes that the list notes of
//! a block's two bodies give their places.

use super::{BlockSource, ListError, MAX_BLOCK, PackedBlock, packed};
use crate::codec::{CodecError, CodedBlock};

impl PackedBlock {
    /// The body of the gaps (0) or of the term frequencies (1) of a block whose extent has been
    /// checked.
    fn body<'a>(&self, column: usize, block: &'a [u8]) -> CodedBlock<'a> {
        let (head, from) = match column {
            0 => (self.gap_bits, 0),
            _ => (self.tf_bits, usize::from(self.sizes[0])),
        };
        // Without segments the number is 0, and of no meaning.
        let index = self.number as usize % self.form.segment_blocks();
        CodedBlock { index, head, body: &block[from..] }
    }

    #[cold]
    fn damaged_body(&self, column: usize, source: CodecError) -> ListError {
        let before = if column == 0 { 0 } else { self.sizes[0] };
        ListError::Body { offset: self.offset + u64::from(before), source }
    }

    #[inline]
    fn check_size(&self, column: usize, found: usize) -> Result<(), ListError> {
        let expected = usize::from(self.sizes[column]);
        if found != expected {
            let expected = expected as u64;
            let found = found as u64;
            return Err(self.damaged_body(column, CodecError::Rest { expected, found }));
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn docids_apart(
        &self,
        source: BlockSource<'_>,
        documents: u32,
        docids: &mut [u32],
    ) -> Result<(), ListError> {
        let codec = self.form.codec();
        let body = self.body(0, source.bytes);
        let read = codec.docids(source.columns[0], body, self.previous, docids);
        self.check_size(0, read.map_err(|source| self.damaged_body(0, source))?)?;
        let found = docids[docids.len() - 1];
        let falls = docids.windows(2).fold(false, |falls, pair| falls | (pair[0] >= pair[1]));
        let rises = !falls && docids[0] >= self.previous.wrapping_add(1);
        if found != self.last || !rises || self.last >= documents {
            return Err(self.wrong_docids(found, rises, documents));
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn tfs_apart(
        &self,
        source: BlockSource<'_>,
        tfs: &mut [u32],
    ) -> Result<(), ListError> {
        let body = self.body(1, source.bytes);
        let read = self.form.codec().values(source.columns[1], body, tfs);
        self.check_size(1, read.map_err(|source| self.damaged_body(1, source))?)?;
        // Only the greatest of 32 bits has no successor.
        let mut overflows = false;
        for tf in tfs {
            overflows |= *tf == u32::MAX;
            *tf = tf.wrapping_add(1);
        }
        if overflows { Err(self.tf_overflow()) } else { Ok(()) }
    }

    #[inline(never)]
    pub(super) fn value_apart(
        &self,
        column: usize,
        source: BlockSource<'_>,
        i: usize,
    ) -> Result<u32, ListError> {
        let mut values = [0; MAX_BLOCK];
        let values = &mut values[..self.form.block_len()];
        let body = self.body(column, source.bytes);
        let read = self.form.codec().values(source.columns[column], body, values);
        read.map_err(|source| self.damaged_body(column, source))?;
        Ok(values[i])
    }

    /// As `check_packed`, for `gap_minus_one` and tf - 1.
    pub(super) fn check_apart(
        &self,
        block: &[u8],
        gaps: &[u32],
        tfs: &[u32],
    ) -> Result<(), ListError> {
        let mut bytes = Vec::new();
        let mut heads = Vec::new();
        let encoder = &mut *self.form.codec().encoder(self.form.block_len());
        packed::pack_apart(encoder, gaps, tfs, &mut bytes, &mut heads);
        let [gap_bytes, tf_bytes] = self.sizes.map(u16::to_le_bytes);
        let noted = [[self.gap_bits, self.tf_bits], gap_bytes, tf_bytes];
        if heads != *noted.as_flattened() || !block.starts_with(&bytes) {
            return Err(ListError::Unusual { offset: self.offset });
        }
        Ok(())
    }
}

//! How is one part of a list read, a block or the tail, wherever its bytes are?

#[cfg(doc)]
use super::BEFORE_FIRST;
use super::{BLOCK, ListError};
use crate::codec::{bp128, vbyte};

/// Widest gaps that cannot overflow a docid more than once: 128 x 2^24 is below 2^32.
const SAFE_GAP_BITS: u8 = 24;

/// What is needed to read one block: its line of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedBlock {
    /// Where the block begins, in bytes from the list's first.
    pub offset: u64,
    /// Bits of a gap, 0 to 32.
    pub gap_bits: u8,
    /// Bits of a term frequency, 0 to 32.
    pub tf_bits: u8,
    /// Last docid of the block before, or [`BEFORE_FIRST`].
    pub previous: u32,
    /// Last docid of this block.
    pub last: u32,
}

impl PackedBlock {
    /// Bytes of the block.
    #[inline]
    pub fn bytes(&self) -> usize {
        bp128::bytes(self.gap_bits) + bp128::bytes(self.tf_bits)
    }

    /// Reads the docids from `block`, which begins with the block's first byte and may be longer;
    /// it is read fastest if 64 bytes follow. They are behind `previous` and below `documents`.
    ///
    /// # Errors
    ///
    /// If the block is cut short or the docids are not as said.
    #[inline]
    pub fn docids(
        &self,
        block: &[u8],
        documents: u32,
        docids: &mut [u32; BLOCK],
    ) -> Result<(), ListError> {
        self.check_extent(block)?;
        bp128::unpack_docids(block, self.gap_bits, self.previous, docids);
        let least = self.previous.wrapping_add(1);
        let found = docids[BLOCK - 1];
        // A sum that overflows, which it can once at most, ends below where it began; with wider
        // gaps each step is looked at.
        let rises =
            self.last >= least && (self.gap_bits <= SAFE_GAP_BITS || rise_from(least, docids));
        if found != self.last || !rises || self.last >= documents {
            return Err(self.wrong_docids(found, rises, documents));
        }
        Ok(())
    }

    /// Reads the term frequencies from `block`, as [`docids`](Self::docids) does the docids.
    ///
    /// # Errors
    ///
    /// If the block is cut short or a term frequency does not fit 32 bits.
    #[inline]
    pub fn tfs(&self, block: &[u8], tfs: &mut [u32; BLOCK]) -> Result<(), ListError> {
        self.check_extent(block)?;
        bp128::unpack_plus(&block[bp128::bytes(self.gap_bits)..], self.tf_bits, 1, tfs);
        // Only the greatest of 32 bits has no successor.
        if self.tf_bits == bp128::MAX_WIDTH && tfs.contains(&0) {
            return Err(self.tf_overflow());
        }
        Ok(())
    }

    /// Reads the term frequency of posting `i` alone.
    ///
    /// # Errors
    ///
    /// As [`tfs`](Self::tfs).
    ///
    /// # Panics
    ///
    /// If `i` is not below 128.
    #[inline]
    pub fn tf(&self, block: &[u8], i: usize) -> Result<u32, ListError> {
        self.check_extent(block)?;
        bp128::get(&block[bp128::bytes(self.gap_bits)..], self.tf_bits, i)
            .checked_add(1)
            .ok_or_else(|| self.tf_overflow())
    }

    /// Whether the widths are the least for these docids and term frequencies of the block.
    ///
    /// # Errors
    ///
    /// If one of them could be less.
    pub fn check_widths(&self, docids: &[u32; BLOCK], tfs: &[u32; BLOCK]) -> Result<(), ListError> {
        let mut before = self.previous;
        let gaps = docids.map(|docid| {
            let gap = docid.wrapping_sub(before).wrapping_sub(1);
            before = docid;
            gap
        });
        let least = (bp128::width(&gaps), bp128::width(&tfs.map(|tf| tf.wrapping_sub(1))));
        for (expected, found) in [(least.0, self.gap_bits), (least.1, self.tf_bits)] {
            if expected != found {
                return Err(ListError::Wasteful { offset: self.offset, expected, found });
            }
        }
        Ok(())
    }

    #[inline]
    fn check_extent(&self, block: &[u8]) -> Result<(), ListError> {
        if self.gap_bits.max(self.tf_bits) > bp128::MAX_WIDTH || block.len() < self.bytes() {
            return Err(self.wrong_extent(block));
        }
        Ok(())
    }

    #[cold]
    fn wrong_extent(&self, block: &[u8]) -> ListError {
        let (offset, found) = (self.offset, self.gap_bits.max(self.tf_bits));
        if found > bp128::MAX_WIDTH {
            return ListError::Width { offset, found };
        }
        ListError::CutShort { offset, expected: self.bytes() as u64, found: block.len() as u64 }
    }

    #[cold]
    fn wrong_docids(&self, found: u32, rises: bool, documents: u32) -> ListError {
        let offset = self.offset;
        if found != self.last || !rises {
            return ListError::Order { offset, expected: self.last, found };
        }
        ListError::Docid { offset, expected: documents, found: u64::from(self.last) }
    }

    #[cold]
    fn tf_overflow(&self) -> ListError {
        let offset = self.offset + bp128::bytes(self.gap_bits) as u64;
        ListError::TermFrequency { offset, found: 1 << 32 }
    }
}

/// Whether each docid is above the one before it, and the first is at least `least`.
#[inline(never)]
fn rise_from(least: u32, docids: &[u32; BLOCK]) -> bool {
    docids[0] >= least && docids.windows(2).all(|pair| pair[0] < pair[1])
}

/// Reads a tail of `count` postings, which takes the whole of `tail` and begins at byte `offset` of
/// its list. The docids are behind `previous` ([`BEFORE_FIRST`] if there is no block) and below
/// `documents`. What the arrays hold beyond `count` is left as it was.
///
/// # Errors
///
/// If the bytes are no such tail.
///
/// # Panics
///
/// If `count` is above 128.
pub fn decode_tail(
    tail: &[u8],
    offset: u64,
    count: usize,
    previous: u32,
    documents: u32,
    docids: &mut [u32; BLOCK],
    tfs: &mut [u32; BLOCK],
) -> Result<(), ListError> {
    let mut at = 0;
    let integer = |at: &mut usize| {
        let offset = offset + *at as u64;
        vbyte::get(tail, at).ok_or(ListError::Integer { offset })
    };
    let mut least = u64::from(previous.wrapping_add(1));
    for (docid, tf) in docids[..count].iter_mut().zip(&mut tfs[..count]) {
        let start = at;
        let gap_and_flag = integer(&mut at)?;
        // Halved, the gap leaves room for the sum.
        let next = least + gap_and_flag / 2;
        if next >= u64::from(documents) {
            let offset = offset + start as u64;
            return Err(ListError::Docid { offset, expected: documents, found: next });
        }
        *docid = next as u32;
        least = next + 1;
        *tf = 1;
        if gap_and_flag % 2 == 1 {
            let start = at;
            let more = integer(&mut at)?;
            *tf = more.checked_add(2).and_then(|tf| u32::try_from(tf).ok()).ok_or_else(|| {
                let found = more.saturating_add(2);
                ListError::TermFrequency { offset: offset + start as u64, found }
            })?;
        }
    }
    if at < tail.len() {
        let found = (tail.len() - at) as u64;
        return Err(ListError::Rest { offset: offset + at as u64, found });
    }
    Ok(())
}

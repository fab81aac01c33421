//! Reads one part of a list, a block or the tail, wherever its bytes are.

#[cfg(doc)]
use super::BEFORE_FIRST;
use super::form::{Form, HEAD_BYTES};
use super::{BlockSource, ListError, Segment};
use crate::codec::{Encoder, bits, bp128, vbyte};

/// The widest gaps that overflow a docid at most once: 128 x 2^24 is below 2^32.
#[inline(always)]
fn safe_gap_bits(block_len: usize) -> u8 {
    31 - block_len.ilog2() as u8
}

/// What a codec notes of each block, beside its place, is one or three of these: the heads of the
/// gaps and of the term frequencies (for bp128 their bits); then the bytes of the gaps, and of the
/// term frequencies.
pub(super) type BlockHead = [u8; HEAD_BYTES];

/// The places of every this many blocks are kept; those between follow from the heads.
pub(super) const ANCHOR_BLOCKS: usize = 16;

/// The units of the first `count` blocks, below 16, whose heads `heads` begins with. A unit of
/// bp128 holds a bit of each value of a block, so this is the sum of all widths.
#[inline(always)]
pub(super) fn units(heads: &[u8], count: usize) -> u32 {
    let Some(words) = heads.first_chunk::<{ HEAD_BYTES * ANCHOR_BLOCKS }>() else {
        return heads[..HEAD_BYTES * count].iter().map(|&bits| u32::from(bits)).sum();
    };
    // Sums of pairs of bytes, so that none overflows.
    let low = 0x00ff_00ff_00ff_00ff;
    let mut sums = 0;
    let mut bits = 8 * (HEAD_BYTES * count) as u32;
    for &word in words.as_chunks().0 {
        let kept = 1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1);
        let word = u64::from_le_bytes(word) & kept;
        sums += (word & low) + (word >> 8 & low);
        bits = bits.saturating_sub(64);
    }
    (sums.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

/// As [`units`] for a form other than bp128.
pub(super) fn units_apart(form: Form, heads: &[BlockHead]) -> u64 {
    let blocks = heads.chunks_exact(form.head_pairs());
    blocks.map(|head| bytes_apart(head) as u64 / form.place_unit()).sum()
}

/// Of a form other than bp128, up to where the next block begins.
fn bytes_apart(head: &[BlockHead]) -> usize {
    let [_, gaps, tfs] = *head else { return 0 };
    let bytes = usize::from(u16::from_le_bytes(gaps)) + usize::from(u16::from_le_bytes(tfs));
    bytes.next_multiple_of(4)
}

/// Appends a block of a form other than bp128 to `out`, and its head to `heads`.
pub(super) fn pack_apart(
    encoder: &mut dyn Encoder,
    gaps: &[u32],
    tfs: &[u32],
    out: &mut Vec<u8>,
    heads: &mut Vec<u8>,
) {
    let begin = out.len();
    let gap_head = encoder.block(gaps, out);
    let middle = out.len();
    let tf_head = encoder.block(tfs, out);
    // 128 values take no more than 5 bytes each.
    let gap_bytes = (middle - begin) as u16;
    let tf_bytes = (out.len() - middle) as u16;
    out.resize(begin + (out.len() - begin).next_multiple_of(4), 0);
    heads.extend_from_slice(&[gap_head, tf_head]);
    heads.extend_from_slice(&gap_bytes.to_le_bytes());
    heads.extend_from_slice(&tf_bytes.to_le_bytes());
}

/// Appends a block of `gap_minus_one` and tf - 1 to `out`, and returns its head.
pub(super) fn pack(gaps: &[u32], tfs: &[u32], out: &mut Vec<u8>) -> BlockHead {
    let gap_bits = bits::width(gaps);
    let tf_bits = bits::width(tfs);
    bits::pack(gaps, gap_bits, out);
    bits::pack(tfs, tf_bits, out);
    [gap_bits, tf_bits]
}

/// Reads a block of bp128 as docids: 64 of them, or a multiple of 128.
#[inline(always)]
fn unpack_docids(mut block: &[u8], bits: u8, mut previous: u32, docids: &mut [u32]) {
    if docids.len() == bp128::BLOCK
        && let Some(whole) = docids.first_chunk_mut()
    {
        return bp128::unpack_docids::<{ bp128::BLOCK }>(block, bits, previous, whole);
    }
    let (whole, rest) = docids.as_chunks_mut::<{ bp128::BLOCK }>();
    for part in whole {
        bp128::unpack_docids(block, bits, previous, part);
        block = &block[bp128::bytes(bits)..];
        previous = part[bp128::BLOCK - 1];
    }
    if let Some(half) = rest.first_chunk_mut::<64>() {
        bp128::unpack_docids(block, bits, previous, half);
    }
}

#[inline(always)]
fn unpack_tfs(mut block: &[u8], bits: u8, tfs: &mut [u32]) {
    if tfs.len() == bp128::BLOCK
        && let Some(whole) = tfs.first_chunk_mut()
    {
        return bp128::unpack_plus::<{ bp128::BLOCK }>(block, bits, 1, whole);
    }
    let (whole, rest) = tfs.as_chunks_mut::<{ bp128::BLOCK }>();
    for part in whole {
        bp128::unpack_plus(block, bits, 1, part);
        block = &block[bp128::bytes(bits)..];
    }
    if let Some(half) = rest.first_chunk_mut::<64>() {
        bp128::unpack_plus(block, bits, 1, half);
    }
}

/// A block's line of the arrays: all that is needed to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedBlock {
    /// Bytes from the list's first.
    pub offset: u64,
    /// Bits of a gap, 0 to 32; or the head of the gaps in a form other than bp128.
    pub(super) gap_bits: u8,
    /// The same of term frequencies.
    pub(super) tf_bits: u8,
    /// Last docid of the block before, or [`BEFORE_FIRST`].
    pub previous: u32,
    pub last: u32,
    /// If it is not bp128, `sizes` are the bytes of the gaps and of the term frequencies.
    pub(super) form: Form,
    pub(super) sizes: [u16; 2],
    /// Its number in the list, if that has segments.
    pub(super) number: u32,
}

impl PackedBlock {
    #[inline(always)]
    pub(crate) fn new(
        offset: u64,
        [gap_bits, tf_bits]: [u8; HEAD_BYTES],
        previous: u32,
        last: u32,
    ) -> Self {
        let form = Form::BP128;
        let sizes = [0; 2];
        let number = 0;
        PackedBlock { offset, gap_bits, tf_bits, previous, last, form, sizes, number }
    }

    /// Of a form with bp128.
    #[inline(always)]
    pub(super) fn packed(
        form: Form,
        place: u64,
        [gap_bits, tf_bits]: BlockHead,
        previous: u32,
        last: u32,
    ) -> Self {
        let offset = place * form.place_unit();
        let sizes = [0; 2];
        let number = 0;
        PackedBlock { offset, gap_bits, tf_bits, previous, last, form, sizes, number }
    }

    /// Of any form without segments. Panics if `head` has another length than in that form.
    #[inline(always)]
    pub(crate) fn of_form(
        form: Form,
        offset: u64,
        head: &[[u8; HEAD_BYTES]],
        previous: u32,
        last: u32,
    ) -> Self {
        let plain = PackedBlock { form, ..Self::new(offset, head[0], previous, last) };
        if form.is_bp128() {
            return plain;
        }
        let sizes = [u16::from_le_bytes(head[1]), u16::from_le_bytes(head[2])];
        PackedBlock { sizes, ..plain }
    }

    /// Block `number` of a list.
    pub(crate) fn of_segment(
        form: Form,
        segment: &Segment,
        number: usize,
        previous: u32,
        last: u32,
    ) -> Self {
        let before = (number % form.segment_blocks()) as u64 * segment.block_bytes();
        let offset = segment.offset + segment.shared_bytes() + before;
        let sizes = segment.bodies;
        let number = number as u32;
        PackedBlock { form, sizes, number, ..Self::new(offset, [0; 2], previous, last) }
    }

    #[inline(always)]
    fn block_len(&self) -> usize {
        self.form.block_len()
    }

    /// Bits of a gap, and of a term frequency less one, of a block of bp128; or the heads of both
    /// of another form.
    #[inline]
    pub(crate) fn widths(&self) -> [u8; 2] {
        [self.gap_bits, self.tf_bits]
    }

    /// Whether no block can have this head.
    #[inline(always)]
    pub(super) fn is_impossible(&self) -> bool {
        self.gap_bits.max(self.tf_bits) > bp128::MAX_WIDTH && self.form.is_bp128()
    }

    pub(super) fn wrong_width(&self) -> Option<u8> {
        self.is_impossible().then_some(self.gap_bits.max(self.tf_bits))
    }

    /// The least docid of the block, read alone, if the block is sound. Fails if it is cut short.
    #[inline]
    pub(crate) fn first_docid(&self, source: BlockSource<'_>) -> Result<u32, ListError> {
        self.check_extent(source.bytes)?;
        let gap = if self.form.is_bp128() {
            bits::get(source.bytes, self.gap_bits, 0)
        } else {
            self.value_apart(0, source, 0)?
        };
        Ok(self.previous.wrapping_add(1).wrapping_add(gap))
    }

    /// Bytes of the gaps, behind which the term frequencies begin.
    #[inline(always)]
    pub(crate) fn gap_bytes(&self) -> usize {
        if self.form.is_bp128() {
            self.form.packed_bytes(self.gap_bits)
        } else {
            self.sizes[0].into()
        }
    }

    /// Up to where the next block begins.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        if self.form.is_bp128() {
            return self.form.packed_bytes(self.gap_bits) + self.form.packed_bytes(self.tf_bits);
        }
        let bytes = usize::from(self.sizes[0]) + usize::from(self.sizes[1]);
        // Only a whole segment is padded.
        if self.form.has_segments() { bytes } else { bytes.next_multiple_of(4) }
    }

    /// Reads the docids of the block; it is read fastest if 64 bytes follow. Fails if the block is
    /// cut short or the docids do not lie behind `previous` and below `documents`. Panics if
    /// `docids` has not the length of a block.
    #[inline]
    pub(crate) fn docids(
        &self,
        source: BlockSource<'_>,
        documents: u32,
        docids: &mut [u32],
    ) -> Result<(), ListError> {
        if !self.form.is_bp128() {
            assert_eq!(docids.len(), self.block_len());
            self.check_extent(source.bytes)?;
            return self.docids_apart(source, documents, docids);
        }
        self.docids_packed(source.bytes, documents, docids)
    }

    #[inline]
    pub(super) fn docids_packed(
        &self,
        block: &[u8],
        documents: u32,
        docids: &mut [u32],
    ) -> Result<(), ListError> {
        assert_eq!(docids.len(), self.block_len());
        self.check_extent(block)?;
        unpack_docids(block, self.gap_bits, self.previous, docids);
        let least = self.previous.wrapping_add(1);
        let found = docids[docids.len() - 1];
        // A sum that overflows, which it can once at most, ends below where it began; with wider
        // gaps each step is looked at.
        let is_safe = self.gap_bits <= safe_gap_bits(docids.len());
        let rises = self.last >= least && (is_safe || rise_from(least, docids));
        if found != self.last || !rises || self.last >= documents {
            return Err(self.wrong_docids(found, rises, documents));
        }
        Ok(())
    }

    /// Reads the term frequencies of the block. Fails if it is cut short or a term frequency does
    /// not fit 32 bits. Panics if `tfs` has not the length of a block.
    #[inline]
    pub(crate) fn tfs(&self, source: BlockSource<'_>, tfs: &mut [u32]) -> Result<(), ListError> {
        if !self.form.is_bp128() {
            assert_eq!(tfs.len(), self.block_len());
            self.check_extent(source.bytes)?;
            return self.tfs_apart(source, tfs);
        }
        self.tfs_packed(source.bytes, tfs)
    }

    #[inline]
    pub(super) fn tfs_packed(&self, block: &[u8], tfs: &mut [u32]) -> Result<(), ListError> {
        assert_eq!(tfs.len(), self.block_len());
        self.check_extent(block)?;
        unpack_tfs(&block[self.gap_bytes()..], self.tf_bits, tfs);
        // Only the greatest of 32 bits has no successor.
        if self.tf_bits == bp128::MAX_WIDTH && tfs.contains(&0) {
            return Err(self.tf_overflow());
        }
        Ok(())
    }

    /// Whether [`tf`](Self::tf) leaves the others of the block alone.
    #[inline]
    pub(crate) fn has_single_tfs(&self) -> bool {
        self.form.is_bp128()
    }

    /// Reads the term frequency of posting `i` alone. Panics if there is none.
    #[inline]
    pub(crate) fn tf(&self, source: BlockSource<'_>, i: usize) -> Result<u32, ListError> {
        assert!(i < self.block_len(), "posting {i} of a block of {}", self.block_len());
        self.check_extent(source.bytes)?;
        let less_one = if self.form.is_bp128() {
            bits::get(&source.bytes[self.gap_bytes()..], self.tf_bits, i)
        } else {
            self.value_apart(1, source, i)?
        };
        less_one.checked_add(1).ok_or_else(|| self.tf_overflow())
    }

    /// Fails if the block, at the beginning of `block`, is not what its codec writes for these
    /// `gap_minus_one` and tf - 1. A block of a segment is checked with all of that.
    pub(super) fn check_packed(
        &self,
        block: &[u8],
        gaps: &[u32],
        tfs: &[u32],
    ) -> Result<(), ListError> {
        if !self.form.is_bp128() {
            return self.check_apart(block, gaps, tfs);
        }
        let least = (bits::width(gaps), bits::width(tfs));
        for (expected, found) in [(least.0, self.gap_bits), (least.1, self.tf_bits)] {
            if expected != found {
                return Err(ListError::Wasteful { offset: self.offset, expected, found });
            }
        }
        Ok(())
    }

    #[inline]
    fn check_extent(&self, block: &[u8]) -> Result<(), ListError> {
        if self.is_impossible() || block.len() < self.bytes() {
            return Err(self.wrong_extent(block));
        }
        Ok(())
    }

    #[cold]
    fn wrong_extent(&self, block: &[u8]) -> ListError {
        let offset = self.offset;
        if let Some(found) = self.wrong_width() {
            return ListError::Width { offset, found };
        }
        ListError::CutShort { offset, expected: self.bytes() as u64, found: block.len() as u64 }
    }

    #[cold]
    pub(super) fn wrong_docids(&self, found: u32, rises: bool, documents: u32) -> ListError {
        let offset = self.offset;
        if found != self.last || !rises {
            return ListError::Order { offset, expected: self.last, found };
        }
        ListError::Docid { offset, expected: documents, found: u64::from(self.last) }
    }

    #[cold]
    pub(super) fn tf_overflow(&self) -> ListError {
        let offset = self.offset + self.gap_bytes() as u64;
        ListError::TermFrequency { offset, found: 1 << 32 }
    }
}

/// Whether docids rise from at least `least`.
#[inline(never)]
fn rise_from(least: u32, docids: &[u32]) -> bool {
    docids[0] >= least && docids.windows(2).all(|pair| pair[0] < pair[1])
}

/// Reads a tail of `count` postings, which is the whole of `tail` and begins at byte `offset` of
/// its list. The docids are behind `previous` ([`BEFORE_FIRST`] if there is no block) and below
/// `documents`. What the slices hold beyond `count` is left as it was. Panics if they are shorter.
pub(crate) fn decode_tail(
    tail: &[u8],
    offset: u64,
    count: usize,
    previous: u32,
    documents: u32,
    docids: &mut [u32],
    tfs: &mut [u32],
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

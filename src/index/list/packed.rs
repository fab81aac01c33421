//! How is one part of a list read, a block or the tail, wherever its bytes are?

#[cfg(doc)]
use super::BEFORE_FIRST;
use super::form::{Form, HEAD_BYTES};
use super::{BLOCK, ListError};
use crate::codec::{Encoder, bp128, vbyte};

/// Widest gaps that cannot overflow a docid more than once: 128 x 2^24 is below 2^32.
const SAFE_GAP_BITS: u8 = 24;

/// What a codec notes of each block, beside its place, as one or several of these. The first is the
/// heads of the gaps and of the term frequencies: for bp128 their bits. Others have two more: the
/// bytes of the gaps and of the term frequencies.
pub(super) type Head = [u8; HEAD_BYTES];

/// The place of every so many blocks is kept; that of others follows from the heads between.
pub(super) const ANCHOR_BLOCKS: usize = 16;

/// How many units the first `count` blocks take, of which `heads` begins with the heads and may be
/// longer; `count` is below 16. A unit of bp128 holds 128 values of a bit, so this is the sum of all
/// widths.
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

/// [`units`] of a form other than bp128.
pub(super) fn units_apart(form: Form, heads: &[Head]) -> u64 {
    let blocks = heads.chunks_exact(form.head_pairs());
    blocks.map(|head| bytes_apart(head) as u64 / form.place_unit()).sum()
}

/// Bytes of a block of a form other than bp128, up to where the next begins.
fn bytes_apart(head: &[Head]) -> usize {
    let [_, gaps, tfs] = *head else { return 0 };
    let bytes = usize::from(u16::from_le_bytes(gaps)) + usize::from(u16::from_le_bytes(tfs));
    bytes.next_multiple_of(4)
}

/// Appends a block of a form other than bp128 to `out`, and what is noted of it to `heads`.
pub(super) fn pack_apart(
    encoder: &mut dyn Encoder,
    gaps: &[u32; BLOCK],
    tfs: &[u32; BLOCK],
    out: &mut Vec<u8>,
    heads: &mut Vec<u8>,
) {
    let begin = out.len();
    let gap_head = encoder.block(gaps, out);
    let middle = out.len();
    let tf_head = encoder.block(tfs, out);
    // 128 values take no more than 5 bytes each.
    let (gap_bytes, tf_bytes) = ((middle - begin) as u16, (out.len() - middle) as u16);
    out.resize(begin + (out.len() - begin).next_multiple_of(4), 0);
    heads.extend_from_slice(&[gap_head, tf_head]);
    heads.extend_from_slice(&gap_bytes.to_le_bytes());
    heads.extend_from_slice(&tf_bytes.to_le_bytes());
}

/// Appends a block of `gap_minus_one` and tf - 1 to `out`, and returns its head.
pub(super) fn pack(gaps: &[u32; BLOCK], tfs: &[u32; BLOCK], out: &mut Vec<u8>) -> Head {
    let (gap_bits, tf_bits) = (bp128::width(gaps), bp128::width(tfs));
    bp128::pack(gaps, gap_bits, out);
    bp128::pack(tfs, tf_bits, out);
    [gap_bits, tf_bits]
}

/// What is needed to read one block: its line of the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedBlock {
    /// Where the block begins, in bytes from the list's first.
    pub offset: u64,
    /// Bits of a gap, 0 to 32; or the heads of a form other than bp128.
    pub(super) gap_bits: u8,
    /// Bits of a term frequency, 0 to 32.
    pub(super) tf_bits: u8,
    /// Last docid of the block before, or [`BEFORE_FIRST`].
    pub previous: u32,
    /// Last docid of this block.
    pub last: u32,
    /// How it is coded, and if that is not bp128, the bytes of the gaps and the term frequencies.
    pub(super) form: Form,
    pub(super) sizes: [u16; 2],
}

impl PackedBlock {
    /// The block that begins `offset` bytes behind the first of its list.
    #[inline(always)]
    pub fn new(
        offset: u64,
        [gap_bits, tf_bits]: [u8; HEAD_BYTES],
        previous: u32,
        last: u32,
    ) -> Self {
        PackedBlock { offset, gap_bits, tf_bits, previous, last, form: Form::Bp128, sizes: [0; 2] }
    }

    /// The block of any form of which `head` is noted.
    ///
    /// # Panics
    ///
    /// If that is not as long as the form has it.
    pub fn of_form(
        form: Form,
        offset: u64,
        head: &[[u8; HEAD_BYTES]],
        previous: u32,
        last: u32,
    ) -> Self {
        let plain = Self::new(offset, head[0], previous, last);
        match form {
            Form::Bp128 => plain,
            Form::NewPfd | Form::VByte => {
                let sizes = [u16::from_le_bytes(head[1]), u16::from_le_bytes(head[2])];
                PackedBlock { form, sizes, ..plain }
            }
        }
    }

    /// Whether no block can have this head.
    #[inline(always)]
    pub(super) fn is_impossible(&self) -> bool {
        self.gap_bits.max(self.tf_bits) > bp128::MAX_WIDTH && self.form == Form::Bp128
    }

    /// The wrong width of an impossible head.
    pub(super) fn wrong_width(&self) -> Option<u8> {
        self.is_impossible().then_some(self.gap_bits.max(self.tf_bits))
    }

    /// The first docid of the block, read alone from its bytes: the least that it holds. It has
    /// meaning only if the block is sound.
    ///
    /// # Errors
    ///
    /// If the block is cut short.
    #[inline]
    pub fn first_docid(&self, block: &[u8]) -> Result<u32, ListError> {
        self.check_extent(block)?;
        let gap = match self.form {
            Form::Bp128 => bp128::get(block, self.gap_bits, 0),
            _ => self.value_apart(0, block, 0)?,
        };
        Ok(self.previous.wrapping_add(1).wrapping_add(gap))
    }

    /// Bytes of the block, up to where the next begins.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self.form {
            Form::Bp128 => bp128::bytes(self.gap_bits) + bp128::bytes(self.tf_bits),
            _ => {
                let [gaps, tfs] = self.sizes;
                (usize::from(gaps) + usize::from(tfs)).next_multiple_of(4)
            }
        }
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
        if self.form != Form::Bp128 {
            return self.docids_apart(block, documents, docids);
        }
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
        if self.form != Form::Bp128 {
            return self.tfs_apart(block, tfs);
        }
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
        let less_one = match self.form {
            Form::Bp128 => bp128::get(&block[bp128::bytes(self.gap_bits)..], self.tf_bits, i),
            _ => self.value_apart(1, block, i)?,
        };
        less_one.checked_add(1).ok_or_else(|| self.tf_overflow())
    }

    /// Whether the block, which begins `block`, is what its codec writes for these docids and term
    /// frequencies.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub(super) fn check_packed(
        &self,
        block: &[u8],
        docids: &[u32; BLOCK],
        tfs: &[u32; BLOCK],
    ) -> Result<(), ListError> {
        let mut before = self.previous;
        let gaps = docids.map(|docid| {
            let gap = docid.wrapping_sub(before).wrapping_sub(1);
            before = docid;
            gap
        });
        if self.form != Form::Bp128 {
            return self.check_apart(block, &gaps, &tfs.map(|tf| tf.wrapping_sub(1)));
        }
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
        let gap_bytes = match self.form {
            Form::Bp128 => bp128::bytes(self.gap_bits),
            _ => self.sizes[0].into(),
        };
        let offset = self.offset + gap_bytes as u64;
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

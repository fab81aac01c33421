//! Segments: 65,536 postings whose blocks, of the codecs `rice` and `pfor`, share a parameter. The
//! papers choose one for a whole list; with one for each segment a list of any length, though few
//! are longer, is written in one pass and read with bounded memory: an encoder holds the postings
//! of a segment, 8 bytes each, and a reader what one segment shares, opened.
//!
//! A segment is what is shared of the gaps, what is shared of the term frequencies, then for each
//! block the body of the gaps and that of the term frequencies, which have the same sizes in all
//! blocks of the segment, and zeros up to a multiple of 4.

use super::form::{Form, NOTHING, SEGMENT_POSTINGS};
use super::{ListError, ListView, PackedBlock};
use crate::codec::{Encoder, List, OpenedColumn};

/// Bytes that a list notes of each segment.
pub(crate) const RECORD_BYTES: usize = 16;

/// No segment shares more bytes: 24 for each posting, as if everything were an exception of an
/// exception.
pub(crate) const MOST_SHARED_BYTES: u64 = 24 * SEGMENT_POSTINGS as u64 + 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// In bytes from the list's first.
    pub offset: u64,
    /// Bytes that the blocks share of the gaps and of the term frequencies.
    pub shared: [u32; 2],
    /// Bytes of the bodies of each block.
    pub bodies: [u16; 2],
}

impl Segment {
    pub(crate) fn parse(form: Form, record: &[[u8; 4]; 4]) -> Self {
        let [place, gaps, tfs, [a, b, c, d]] = *record;
        Self {
            offset: u64::from(u32::from_le_bytes(place)) * form.place_unit(),
            shared: [u32::from_le_bytes(gaps), u32::from_le_bytes(tfs)],
            bodies: [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])],
        }
    }

    pub(super) fn record(&self, form: Form) -> [[u8; 4]; 4] {
        let [gaps, tfs] = self.bodies.map(u16::to_le_bytes);
        [
            form.place_of(self.offset).to_le_bytes(),
            self.shared[0].to_le_bytes(),
            self.shared[1].to_le_bytes(),
            [gaps[0], gaps[1], tfs[0], tfs[1]],
        ]
    }

    pub(crate) fn shared_bytes(&self) -> u64 {
        u64::from(self.shared[0]) + u64::from(self.shared[1])
    }

    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(self.bodies[0]) + u64::from(self.bodies[1])
    }

    pub(crate) fn bytes(&self, blocks: usize) -> u64 {
        (self.shared_bytes() + blocks as u64 * self.block_bytes()).next_multiple_of(4)
    }
}

/// Appends a segment of `gap_minus_one` and tf - 1, whole blocks, to `out`. It begins `offset`
/// bytes behind the first of its list.
pub(super) fn write(
    form: Form,
    offset: u64,
    encoder: &mut dyn Encoder,
    columns: [&[u32]; 2],
    out: &mut Vec<u8>,
) -> Segment {
    let begin = out.len();
    let block_len = form.block_len();
    let mut segment = Segment { offset, ..Segment::default() };
    let mut bodies = [Vec::new(), Vec::new()];
    for (number, values) in columns.into_iter().enumerate() {
        encoder.survey(values);
        for block in values.chunks(block_len) {
            // One width for all blocks: the heads are 0.
            encoder.block(block, &mut bodies[number]);
        }
        let before = out.len();
        encoder.finish(out);
        // `MOST_SHARED_BYTES` and 512 values of 4 bytes.
        segment.shared[number] = (out.len() - before) as u32;
        segment.bodies[number] = (bodies[number].len() / (values.len() / block_len)) as u16;
    }
    let [gap_bytes, tf_bytes] = segment.bodies.map(usize::from);
    for block in 0..columns[0].len() / block_len {
        out.extend_from_slice(&bodies[0][block * gap_bytes..][..gap_bytes]);
        out.extend_from_slice(&bodies[1][block * tf_bytes..][..tf_bytes]);
    }
    out.resize(begin + (out.len() - begin).next_multiple_of(4), 0);
    segment
}

/// What the blocks of one segment of a list share, opened for reading. It is used again for other
/// segments and lists, so that nothing is allocated once it has grown.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentColumns {
    opened: [OpenedColumn; 2],
    segment: Option<usize>,
}

impl SegmentColumns {
    /// Must be called before another list is read.
    pub(crate) fn close(&mut self) {
        self.segment = None;
    }

    /// Opens what the `blocks` blocks of segment `number` share.
    pub(crate) fn open(
        &mut self,
        form: Form,
        number: usize,
        blocks: usize,
        segment: &Segment,
        shared: [&[u8]; 2],
    ) -> Result<(), ListError> {
        self.segment = None;
        let count = blocks * form.block_len();
        let mut offset = segment.offset;
        for (opened, shared) in self.opened.iter_mut().zip(shared) {
            form.codec()
                .open(shared, count, form.block_len(), opened)
                .map_err(|source| ListError::Body { offset, source })?;
            offset += shared.len() as u64;
        }
        self.segment = Some(number);
        Ok(())
    }

    /// The codec's view of both columns; `shared` is what was opened.
    pub(crate) fn lists<'a>(&'a self, shared: [&'a [u8]; 2]) -> [List<'a>; 2] {
        let [gaps, tfs] = &self.opened;
        [List { shared: shared[0], opened: gaps }, List { shared: shared[1], opened: tfs }]
    }
}

/// Where a block is read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSource<'a> {
    /// From its first byte on; longer than the block if there was more.
    pub bytes: &'a [u8],
    /// What it shares with its neighbours.
    pub columns: [List<'a>; 2],
}

impl<'a> BlockSource<'a> {
    /// For a block that shares nothing.
    #[inline(always)]
    pub(crate) fn alone(bytes: &'a [u8]) -> Self {
        const NONE: List<'static> = List { shared: &[], opened: &NOTHING };
        BlockSource { bytes, columns: [NONE; 2] }
    }
}

impl<'a> ListView<'a> {
    /// With the blocks of each.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (Segment, usize)> {
        let blocks = self.form.segment_blocks();
        let count = (self.whole_blocks as usize).div_ceil(blocks);
        (0..count).map(move |number| (self.segment(number), self.blocks_of_segment(number)))
    }

    /// Fails if the segment, of this many blocks, reaches into the arrays.
    pub(crate) fn bytes_of_segment(
        &self,
        segment: &Segment,
        blocks: usize,
    ) -> Result<&'a [u8], ListError> {
        let offset = segment.offset;
        let expected = segment.bytes(blocks);
        let found = (self.arrays as u64).saturating_sub(offset);
        if expected > found {
            return Err(ListError::CutShort { offset, expected, found });
        }
        Ok(&self.data[offset as usize..][..expected as usize])
    }

    pub(super) fn segment(&self, number: usize) -> Segment {
        let record = &self.places[4 * number..][..4];
        Segment::parse(self.form, record.first_chunk().expect("a record has four words"))
    }

    pub(super) fn blocks_of_segment(&self, number: usize) -> usize {
        let most = self.form.segment_blocks();
        (self.whole_blocks as usize - number * most).min(most)
    }

    /// `number` is that in the whole list.
    #[inline(never)]
    pub(super) fn line_of_segment(&self, number: usize, previous: u32, last: u32) -> PackedBlock {
        let blocks = self.form.segment_blocks();
        let segment = self.segment(number / blocks);
        PackedBlock::of_segment(self.form, &segment, number, previous, last)
    }

    /// Where the block of a line of this list is read from. `columns`, which is that of this list
    /// or closed, is opened if it has to be.
    #[inline(always)]
    pub(crate) fn source<'c>(
        &'c self,
        line: &PackedBlock,
        columns: &'c mut SegmentColumns,
    ) -> Result<BlockSource<'c>, ListError> {
        let bytes = self.bytes_of(line);
        if !self.form.has_segments() {
            return Ok(BlockSource::alone(bytes));
        }
        let columns = self.open(line.number as usize / self.form.segment_blocks(), columns)?;
        Ok(BlockSource { bytes, columns })
    }

    #[inline(never)]
    fn open<'c>(
        &'c self,
        number: usize,
        columns: &'c mut SegmentColumns,
    ) -> Result<[List<'c>; 2], ListError> {
        let segment = self.segment(number);
        let offset = segment.offset;
        let expected = segment.shared_bytes();
        let found = (self.arrays as u64).saturating_sub(offset);
        if expected > found {
            return Err(ListError::CutShort { offset, expected, found });
        }
        // The end has been compared with that of the payload, which lies in memory.
        let (gaps, rest) = self.data[offset as usize..].split_at(segment.shared[0] as usize);
        let shared = [gaps, &rest[..segment.shared[1] as usize]];
        if columns.segment != Some(number) {
            columns.open(self.form, number, self.blocks_of_segment(number), &segment, shared)?;
        }
        Ok(columns.lists(shared))
    }
}

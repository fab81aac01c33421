//! A list of `rice` or `pfor` in the memory of a device: its segments byte for byte as on disk,
//! behind a directory (`kernels/ding09/list.cuh`). A tail that fills no block stands as plain
//! docids and term frequencies: the papers have no such tails.
//!
//! A device checks no byte, so all blocks are decoded here first, which finds what is damaged.

use crate::codec::rice::{HEAD_BYTES, RiceHead};
use crate::codec::{CodecError, bits, vbyte};
use crate::gpu::floor::arrays::{ALIGNMENT, put};
use crate::index::list::{
    BEFORE_FIRST, Form, ListCodec, ListError, ListView, MAX_BLOCK, Segment, SegmentColumns,
};
use bytemuck::{Pod, Zeroable};

/// As in a segment's record.
const RICE: u32 = 0;
const PFOR: u32 = 1;
const PLAIN: u32 = 2;

/// How far a warp reads behind the end of what it decodes, at most.
const SLACK_BYTES: usize = 32 * 4 + 8;

/// As in the kernels; places are in bytes from the list's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ColumnRecord {
    bodies: u64,
    begins: u64,
    unary: u64,
    rest: [u64; 2],
    width: u32,
    opened: u32,
    exceptions: u32,
    widths: [u32; 2],
    counts: [u32; 2],
    spare: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct SegmentRecord {
    first: u32,
    blocks: u32,
    before: u32,
    stride: u32,
    codec: u32,
    spare: u32,
    columns: [ColumnRecord; 2],
}

/// What a query's term record says of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DingLaid {
    /// Of all runs, a tail counting as one.
    pub blocks: u32,
    pub segments: u32,
    pub postings: u32,
    pub block_len: u32,
    /// Words of the decoded exceptions of all segments; 0 without `pfor`.
    pub opened_words: u64,
}

/// Lays out lists one after the other, in buffers that are used again.
#[derive(Debug, Default)]
pub struct DingLayer {
    last: Vec<u32>,
    starts: Vec<u32>,
    segment_of: Vec<u32>,
    records: Vec<SegmentRecord>,
    bytes: Vec<u8>,
    columns: SegmentColumns,
    opened_words: u64,
    block_len: u32,
}

impl DingLayer {
    pub(crate) fn begin(&mut self) {
        self.last.clear();
        self.starts.clear();
        self.starts.push(0);
        self.segment_of.clear();
        self.records.clear();
        self.bytes.clear();
        self.opened_words = 0;
        self.block_len = 0;
    }

    /// Adds the list of a run, whose docids count from `first_docid` and are below `documents`.
    ///
    /// # Panics
    /// If its codec has no segments, or other blocks than those before.
    pub(crate) fn add(
        &mut self,
        list: &ListView<'_>,
        first_docid: u32,
        documents: u32,
    ) -> Result<(), ListError> {
        let form = list.form();
        let block_len = form.block_len() as u32;
        assert!(form.has_segments(), "{form} has no segments");
        assert!([0, block_len].contains(&self.block_len), "blocks of {block_len}");
        self.block_len = block_len;
        self.columns.close();
        let mut docids = [0; MAX_BLOCK];
        let mut tfs = [0; MAX_BLOCK];
        let mut before = first_docid.wrapping_add(BEFORE_FIRST);
        let base = self.bytes.len();
        let mut number = 0;
        for (segment, blocks) in list.segments() {
            let here = SegmentRecord {
                first: self.last.len() as u32,
                blocks: blocks as u32,
                before,
                stride: u32::from(segment.bodies[0]) + u32::from(segment.bodies[1]),
                ..SegmentRecord::zeroed()
            };
            for _ in 0..blocks {
                let len = block_len as usize;
                list.decode_block(number, documents, &mut self.columns, &mut docids[..len])?;
                list.decode_tfs(number, &mut self.columns, &mut tfs[..len])?;
                before = first_docid + list.last_docid(number);
                self.block(before, block_len);
                number += 1;
            }
            let bytes = list.bytes_of_segment(&segment, blocks)?;
            self.segment(form, here, &segment, bytes)?;
        }
        self.bytes.resize(base + (self.bytes.len() - base).next_multiple_of(ALIGNMENT), 0);
        let tail = list.decode_tail(documents, &mut docids, &mut tfs)?;
        if tail > 0 {
            docids[..tail].iter_mut().for_each(|docid| *docid += first_docid);
            self.tail(before, &docids[..tail], &tfs[..tail]);
        }
        Ok(())
    }

    fn block(&mut self, last: u32, postings: u32) {
        let before = self.starts.last().copied().unwrap_or(0);
        self.starts.push(before + postings);
        self.last.push(last);
        self.segment_of.push(self.records.len() as u32);
    }

    fn tail(&mut self, before: u32, docids: &[u32], tfs: &[u32]) {
        let first = self.last.len() as u32;
        let mut record =
            SegmentRecord { first, blocks: 1, before, codec: PLAIN, ..Zeroable::zeroed() };
        self.block(docids.last().copied().unwrap_or(before), docids.len() as u32);
        for (column, values) in record.columns.iter_mut().zip([docids, tfs]) {
            column.bodies = self.bytes.len() as u64;
            self.bytes.extend_from_slice(bytemuck::cast_slice(values));
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        self.records.push(record);
    }

    fn segment(
        &mut self,
        form: Form,
        mut record: SegmentRecord,
        segment: &Segment,
        bytes: &[u8],
    ) -> Result<(), ListError> {
        let at = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        let is_rice = form.list_codec() == ListCodec::Rice;
        record.codec = if is_rice { RICE } else { PFOR };
        let mut shared_at = 0;
        let mut body = segment.shared_bytes();
        for number in 0..2 {
            let column = &mut record.columns[number];
            let shared = &bytes[shared_at..][..segment.shared[number] as usize];
            let place = at + shared_at as u64;
            let wrong = |source| {
                let offset = segment.offset + shared_at as u64;
                ListError::Body { offset, source }
            };
            if is_rice {
                // Blocks of it were decoded, so its head and the vector are there.
                let head = RiceHead::read(shared).map_err(wrong)?;
                column.width = head.width.into();
                column.begins = place + HEAD_BYTES as u64;
                column.unary = place + head.unary_at(shared) as u64;
            } else {
                read_pfor(shared, place, column).map_err(wrong)?;
                column.opened = self.opened_words as u32;
                self.opened_words +=
                    u64::from(record.blocks) + 1 + 2 * u64::from(column.exceptions);
            }
            column.bodies = at + body;
            shared_at += shared.len();
            body += u64::from(segment.bodies[number]);
        }
        self.records.push(record);
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> DingLaid {
        put(out, bytemuck::cast_slice(&self.last));
        put(out, bytemuck::cast_slice(&self.starts));
        put(out, bytemuck::cast_slice(&self.segment_of));
        let records = size_of_val(&self.records[..]).next_multiple_of(ALIGNMENT);
        let bytes_at = (out.len() + records) as u64;
        for column in self.records.iter_mut().flat_map(|record| &mut record.columns) {
            let ColumnRecord { bodies, begins, unary, rest: [a, b], .. } = column;
            [bodies, begins, unary, a, b].into_iter().for_each(|place| *place += bytes_at);
        }
        put(out, bytemuck::cast_slice(&self.records));
        put(out, &self.bytes);
        put(out, &[0; SLACK_BYTES]);
        DingLaid {
            blocks: self.last.len() as u32,
            segments: self.records.len() as u32,
            postings: self.starts.last().copied().unwrap_or(0),
            block_len: self.block_len,
            opened_words: self.opened_words,
        }
    }
}

fn read_pfor(shared: &[u8], place: u64, column: &mut ColumnRecord) -> Result<(), CodecError> {
    let mut at = 0;
    let byte = |at: &mut usize| {
        let byte = u32::from(shared[*at]);
        *at += 1;
        byte
    };
    let integer = |at: &mut usize| {
        let begin = *at as u64;
        let read = vbyte::get(shared, at).and_then(|n| u32::try_from(n).ok());
        read.ok_or(CodecError::Integer { at: begin })
    };
    let levels = byte(&mut at);
    if levels != 1 {
        let what = "levels of exceptions for a device";
        let found = levels.into();
        return Err(CodecError::Number { what, most: 1, found });
    }
    column.width = byte(&mut at);
    column.exceptions = integer(&mut at)?;
    if column.exceptions == 0 {
        return Ok(());
    }
    let mut slots = [0; 2];
    for (array, slots) in slots.iter_mut().enumerate() {
        column.widths[array] = byte(&mut at);
        column.counts[array] = integer(&mut at)?;
        *slots = place + at as u64;
        at += bits::bytes(column.exceptions as usize, column.widths[array] as u8);
        column.rest[array] = place + at as u64;
        at += 8 * column.counts[array] as usize;
    }
    [column.begins, column.unary] = slots;
    Ok(())
}

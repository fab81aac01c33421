//! A list of `newpfd` in the memory of a device: its blocks and its tail byte for byte as on disk,
//! behind a directory of places and bounds (`kernels/huang/list.cuh`). The bound of a block is one
//! number, for the parameters of the collection: as in the paper, its greatest impact.
//!
//! A device checks no byte, so all blocks are decoded here first, which finds what is damaged.

use crate::codec::CodecError;
use crate::gpu::floor::arrays::put;
use crate::index::list::{BEFORE_FIRST, ListCodec, ListError, ListView, SegmentColumns};
use crate::score::bm25::score;
use crate::score::bounds::BoundNorms;
use crate::score::weight::ROUNDING;

pub const BLOCK: usize = 64;

const TAIL: u32 = 255;

/// How far a thread reads behind the end of what it decodes, at most.
const SLACK_BYTES: usize = 16;

/// The gaps of a block have fewer bytes, so that numbers of their bits fit 16 bits.
const MOST_GAP_BYTES: usize = 1 << 13;

/// A list has fewer bytes, so that places fit 32 bits.
const MOST_BYTES: usize = u32::MAX as usize;

/// What a query's term record says of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HuangLaid {
    /// Of all runs, a tail counting as one.
    pub blocks: u32,
    pub postings: u32,
    /// The greatest bound of a block: no posting has a greater tf / (tf + norm), except for
    /// rounding.
    pub most: f32,
}

/// The statistics of a collection for impacts and bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worth<'a> {
    /// By docid.
    pub norms: &'a [f32],
    pub bounds: &'a BoundNorms,
}

/// Lays out lists one after the other, in buffers that are used again.
#[derive(Debug, Default)]
pub struct HuangLayer {
    last: Vec<u32>,
    records: Vec<[u32; 4]>,
    bytes: Vec<u8>,
    columns: SegmentColumns,
    postings: u32,
    most: f32,
}

impl HuangLayer {
    pub(crate) fn begin(&mut self) {
        self.last.clear();
        self.records.clear();
        self.bytes.clear();
        self.postings = 0;
        self.most = 0.0;
    }

    /// Adds the list of a run, whose docids count from `first_docid` and are below `documents`.
    ///
    /// # Panics
    /// If it has another form.
    pub(crate) fn add(
        &mut self,
        list: &ListView<'_>,
        first_docid: u32,
        documents: u32,
        worth: Worth<'_>,
    ) -> Result<(), ListError> {
        assert_eq!((list.form().list_codec(), list.block_len()), (ListCodec::NewPfd, BLOCK));
        self.columns.close();
        let mut docids = [0; BLOCK];
        let mut tfs = [0; BLOCK];
        let mut before = first_docid.wrapping_add(BEFORE_FIRST);
        for (block, bound) in list.bounds().iter().enumerate().take(list.full_blocks()) {
            let line = list.block(block)?;
            list.docids_of(&line, &mut self.columns, documents, &mut docids)?;
            list.tfs_of(&line, &mut self.columns, &mut tfs)?;
            let wrong = |source| ListError::Body { offset: line.offset, source };
            let place = self.bytes.len();
            let most = |what, most: usize, found: usize| {
                let most = most as u64;
                let found = found as u64;
                if found < most { Ok(()) } else { Err(CodecError::Number { what, most, found }) }
            };
            most("bytes of gaps for a device", MOST_GAP_BYTES, line.gap_bytes()).map_err(wrong)?;
            most("bytes of a list for a device", MOST_BYTES, place).map_err(wrong)?;
            let [gaps, tfs] = line.widths();
            let head = u32::from(gaps) | u32::from(tfs) << 8 | (line.gap_bytes() as u32) << 16;
            let last = first_docid + list.last_docid(block);
            let worth = worth.bounds.most(1.0.into(), bound);
            self.block(last, [before, place as u32 / 4, head], worth, BLOCK as u32);
            self.bytes.extend_from_slice(&list.bytes_of(&line)[..line.bytes()]);
            before = last;
        }
        let tail = list.decode_tail(documents, &mut docids, &mut tfs)?;
        if tail > 0 {
            let of_posting = |(&docid, &tf): (&u32, &u32)| {
                score(1.0, tf, worth.norms[(first_docid + docid) as usize])
            };
            let most = docids[..tail].iter().zip(&tfs[..tail]).map(of_posting);
            let most = most.fold(0.0, f32::max) * ROUNDING;
            let place = self.bytes.len() as u32 / 4;
            let last = first_docid + docids[tail - 1];
            self.block(last, [before, place, TAIL | (tail as u32) << 16], most, tail as u32);
            self.bytes.extend_from_slice(list.tail_bytes());
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        }
        Ok(())
    }

    fn block(&mut self, last: u32, [before, place, head]: [u32; 3], most: f32, postings: u32) {
        self.last.push(last);
        self.records.push([before, place, head, most.to_bits()]);
        self.postings += postings;
        self.most = self.most.max(most);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> HuangLaid {
        put(out, bytemuck::cast_slice(&self.last));
        out.extend_from_slice(bytemuck::cast_slice(&self.records));
        out.extend_from_slice(&self.bytes);
        put(out, &[0; SLACK_BYTES]);
        let blocks = self.last.len() as u32;
        let postings = self.postings;
        let most = self.most;
        HuangLaid { blocks, postings, most }
    }
}

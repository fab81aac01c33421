//! A list in the memory of a device: its first blocks, or all, each with docids and term
//! frequencies at widths of their own, and a table that says with which posting each bucket of
//! docids begins (hash segmentation; Ao and others 2011): `kernels/wang/list.cuh`. It is made of
//! lists of any codec, which are decoded here, and so found damaged.

use crate::codec::bits;
use crate::gpu::floor::arrays::put;
use crate::index::list::{ListError, ListView, MAX_BLOCK, SegmentColumns};

/// About this many, and twice as many at most where docids are spread evenly.
const BUCKET_POSTINGS: u32 = 8;

/// How far a thread reads behind the end of what it decodes, at most.
const SLACK_BYTES: usize = 8;

/// What a query's term record says of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WangLaid {
    pub postings: u32,
    /// Of the whole list.
    pub df: u32,
    pub buckets: u32,
    /// Their width, as a power of two.
    pub shift: u32,
    /// Postings of a block, as a power of two.
    pub block_bits: u32,
    /// The first docid that the list may lack, since later blocks are not there; none if all are.
    pub end: Option<u32>,
}

/// Lays out lists one after the other, in buffers that are used again.
#[derive(Debug, Default)]
pub struct WangLayer {
    records: Vec<[u32; 4]>,
    table: Vec<u32>,
    bytes: Vec<u8>,
    columns: SegmentColumns,
}

impl WangLayer {
    /// Lays out the first `blocks` blocks, or all, of a list whose docids are below `documents`
    /// into `out`, which must begin at a multiple of 16 bytes on the device.
    ///
    /// # Panics
    /// If `blocks` is 0.
    pub(crate) fn lay_list(
        &mut self,
        list: &ListView<'_>,
        documents: u32,
        blocks: Option<usize>,
        out: &mut Vec<u8>,
    ) -> Result<WangLaid, ListError> {
        let df = list.df();
        let blocks = blocks.filter(|&blocks| blocks < list.blocks());
        let end = blocks.map(|blocks| list.last_docid(blocks - 1).saturating_add(1));
        let part = blocks.and_then(|blocks| list.part(0..blocks, list.wanted()));
        let list = part.unwrap_or(*list);
        let greatest = end.unwrap_or(documents).saturating_sub(1);
        let most = (list.df() / BUCKET_POSTINGS).max(1);
        let shift = (0..32).find(|&shift| greatest >> shift < most).unwrap_or(31);
        let block_bits = list.block_len().trailing_zeros();
        self.begin();
        let mut docids = [0; MAX_BLOCK];
        let mut tfs = [0; MAX_BLOCK];
        let mut postings = 0;
        for block in 0..list.blocks() {
            let columns = &mut self.columns;
            let count = list.decode_postings(block, documents, columns, &mut docids, &mut tfs)?;
            self.add(&mut docids[..count], &mut tfs[..count], postings, shift);
            postings += count as u32;
        }
        let buckets = (greatest >> shift) + 1;
        self.table.resize(buckets as usize + 1, postings);
        self.write(out);
        Ok(WangLaid { postings, df, buckets, shift, block_bits, end })
    }

    fn begin(&mut self) {
        self.records.clear();
        self.table.clear();
        self.bytes.clear();
        self.columns.close();
    }

    /// Adds a block, with `before` postings before it; overwrites both with differences.
    fn add(&mut self, docids: &mut [u32], tfs: &mut [u32], before: u32, shift: u32) {
        let Some(&first) = docids.first() else { return };
        for (posting, docid) in (before..).zip(&mut *docids) {
            // The first of its bucket, and of all between this and that of the posting before.
            let buckets = (*docid >> shift) as usize + 1;
            if buckets > self.table.len() {
                self.table.resize(buckets, posting);
            }
            *docid -= first;
        }
        tfs.iter_mut().for_each(|tf| *tf -= 1);
        let (of_docids, docid_width) = self.pack(docids);
        let (of_tfs, tf_width) = self.pack(tfs);
        let widths = u32::from(docid_width) | u32::from(tf_width) << 8;
        self.records.push([first, of_docids, widths, of_tfs]);
    }

    /// Returns where, in words, and the width.
    fn pack(&mut self, values: &[u32]) -> (u32, u8) {
        let place = self.bytes.len() as u32 / 4;
        let width = bits::width(values);
        bits::pack(values, width, &mut self.bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        (place, width)
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(bytemuck::cast_slice(&self.records));
        put(out, bytemuck::cast_slice(&self.table));
        out.extend_from_slice(&self.bytes);
        put(out, &[0; SLACK_BYTES]);
    }
}

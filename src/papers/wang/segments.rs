//! Hash segmentation: which block of a list has a docid.

use crate::index::list::ListView;

#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    shift: u32,
    /// The first block that may have docids of each bucket, then the number of full blocks.
    starts: Vec<u32>,
}

impl Segments {
    pub(crate) fn fill(&mut self, list: &ListView<'_>, documents: u32) {
        let blocks = list.full_blocks();
        let greatest = documents.saturating_sub(1);
        let most = blocks.max(1) as u32;
        self.shift = (0..32).find(|&shift| greatest >> shift < most).unwrap_or(31);
        self.starts.clear();
        let mut block = 0;
        for bucket in 0..=greatest >> self.shift {
            let first = bucket << self.shift;
            while block < blocks && list.last_docid(block) < first {
                block += 1;
            }
            self.starts.push(block as u32);
        }
        self.starts.push(blocks as u32);
    }

    pub(crate) fn block_of(&self, list: &ListView<'_>, docid: u32) -> usize {
        let bucket = (docid >> self.shift) as usize;
        let start = self.starts[bucket] as usize;
        let end = self.starts[bucket + 1] as usize;
        let before = |last: &[u8; 4]| u32::from_le_bytes(*last) < docid;
        start + list.last_docids()[start..end].partition_point(before)
    }
}

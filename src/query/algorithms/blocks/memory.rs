//! Memory of searches by blocks of documents, and the sums of their bounds.

use super::BATCH;
use crate::cpu::Level;
use crate::index::block_bounds::BLOCK_DOCUMENTS;
use crate::index::list::PackedBlock;
use crate::query::kernels::{CodeSums, UNMATCHED, collect_sums, greatest_sums};
use std::ops::Range;

/// Memory that queries reuse.
#[derive(Debug, Default)]
pub(crate) struct BlockMemory {
    pub(super) sums: BoundSums,
    pub(super) of_codes: CodeSums,
    /// Blocks that are to be searched, rising, by their numbers among the sums.
    pub(super) left: Vec<u32>,
    pub(super) visits: Vec<BlockVisit>,
    /// Of the lists without bounds one after the other, the docids and scores of all postings, and
    /// for each term where its own end.
    pub(super) docids: Vec<u32>,
    pub(super) scores: Vec<f32>,
    pub(super) scaled: Vec<u16>,
    pub(super) ends: Vec<usize>,
    /// Sums of the documents of a batch, all unmatched between batches.
    pub(super) accumulators: Vec<[f32; 64]>,
}

/// A block of a list in which documents of a block of the batch are looked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockVisit {
    pub(super) block: u32,
    /// The number of the block of documents in the batch.
    pub(super) slot: u32,
    /// None of the tail, or if it is damaged.
    pub(super) line: Option<PackedBlock>,
}

impl BlockMemory {
    /// Makes room for the accumulators of a batch.
    pub(super) fn begin(&mut self) {
        self.accumulators.resize(BATCH, [UNMATCHED; 64]);
        self.docids.clear();
        self.scores.clear();
        self.ends.clear();
    }
}

/// For each block of the documents that are wanted, the sum of its bounds, times a scale.
#[derive(Debug, Default)]
pub(super) struct BoundSums {
    /// By words of blocks, from one on.
    pub(super) sums: Vec<[u16; 64]>,
    pub(super) from: usize,
    greatest: Vec<u16>,
}

impl BoundSums {
    pub(super) fn begin(&mut self, words: Range<usize>) {
        self.from = words.start;
        self.sums.clear();
        self.sums.resize(words.len(), [0; 64]);
    }

    pub(super) fn first_block(&self) -> u32 {
        64 * self.from as u32
    }

    /// Adds what a posting adds to a document.
    #[inline(always)]
    pub(super) fn add(&mut self, docid: u32, more: u16) {
        let block = (docid / BLOCK_DOCUMENTS).wrapping_sub(self.first_block());
        if let Some(sum) = self.sums.as_flattened_mut().get_mut(block as usize) {
            *sum = sum.saturating_add(more);
        }
    }

    /// A number that at least `count` sums reach, if there are as many that are not zero; it is as
    /// great as the greatest sums of words tell.
    pub(super) fn reached_by(&mut self, level: Level, count: usize) -> u16 {
        greatest_sums(level, &self.sums, &mut self.greatest);
        if self.greatest.len() < count {
            return 1;
        }
        let by_falling = |a: &u16, b: &u16| b.cmp(a);
        let (_, &mut reached, _) = self.greatest.select_nth_unstable_by(count - 1, by_falling);
        reached.max(1)
    }

    /// Replaces `blocks` by the blocks with sums of at least `bar`, which is not 0.
    pub(super) fn collect(&self, level: Level, bar: u16, blocks: &mut Vec<u32>) {
        blocks.clear();
        collect_sums(level, &self.sums, bar, blocks);
    }

    /// Drops all but the `count` blocks with the greatest sums; they still rise.
    pub(super) fn keep_best(&self, count: usize, blocks: &mut Vec<u32>) {
        if blocks.len() > count {
            let sums = self.sums.as_flattened();
            let sum = |block: &u32| sums[*block as usize];
            blocks.select_nth_unstable_by(count, |a, b| sum(b).cmp(&sum(a)));
            blocks.truncate(count);
            blocks.sort_unstable();
        }
    }

    /// Drops blocks, given by their numbers among the sums.
    pub(super) fn remove(&mut self, blocks: &[u32]) {
        let sums = self.sums.as_flattened_mut();
        blocks.iter().for_each(|&block| sums[block as usize] = 0);
    }
}

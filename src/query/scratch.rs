//! Memory that queries reuse. What one algorithm alone needs is defined beside it; algorithms that
//! are handed in have their own.

use super::cursor::{Cursor, Norms, RunSearch, RunTerm};
use super::kernels::{BlockRoom, NO_DOCID, ScoredDocuments};
use super::top_k::TopK;
use crate::cpu::{Level, level};
use crate::index::list::MAX_BLOCK;
use crate::query::algorithms::blocks::memory::BlockMemory;
use crate::query::algorithms::dense::memory::DecodedTfs;
use crate::query::algorithms::max_score::asking::Asking;
use crate::query::algorithms::ranges::DocidRanges;
use crate::query::algorithms::trees::memory::TreeMemory;
use std::ops::Range;

/// The memory of a worker's queries. It grows to the largest query's need, so that in the long run
/// no query allocates.
#[derive(Debug)]
pub struct Scratch {
    pub(super) level: Level,
    /// At least one for each term.
    pub(crate) cursors: Vec<Cursor>,
    /// Numbers of the terms, shortest list first.
    pub(crate) order: Vec<usize>,
    pub(super) windows: WindowMemory,
    pub(crate) candidates: Candidates,
    /// By the number of the term.
    pub(super) decoded: Vec<DecodedTfs>,
    /// Bounds of a list's blocks.
    pub(super) of_blocks: Vec<f32>,
    /// Documents of needed lists, by the number of the other lists.
    pub(super) found: Vec<ScoredDocuments>,
    pub(super) asking: Box<Asking>,
    pub(super) ranges: DocidRanges,
    pub(super) best: Vec<u32>,
    /// The best documents of one list.
    pub(super) ahead: TopK,
    /// Of each document of a run, the sum of its scores and its number of terms.
    pub(super) sums: Vec<(f32, u32)>,
    pub(super) blocks: BlockMemory,
    pub(super) trees: TreeMemory,
}

#[derive(Debug, Default)]
pub(crate) struct WindowMemory {
    /// Sums of the documents, all [`UNMATCHED`](super::kernels::UNMATCHED) between windows.
    pub(super) accumulators: Vec<f32>,
    /// For each [`LINE`](super::kernels::LINE) of these, whether it has matched documents; all zero
    /// between windows.
    pub(super) lines: Vec<u8>,
    /// Slots of the matched documents.
    pub(super) touched: Vec<u32>,
}

impl WindowMemory {
    /// Drops the sums of a window in which a search failed.
    pub(super) fn clear(&mut self) {
        self.accumulators.clear();
        self.lines.clear();
    }
}

/// What a block of the shortest list has in common with others. The arrays lie apart as those of a
/// [`Cursor`] do.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Candidates {
    /// Docids before and after a list was searched, alternately.
    pub(crate) docids: [BlockRoom; 2],
    apart: [u8; 576],
    /// Numbers of those found last.
    pub(crate) kept: BlockRoom,
    pub(super) norms: [f32; MAX_BLOCK],
    apart_too: [u8; 576],
    /// Of full matches in one list.
    pub(super) tfs: BlockRoom,
    apart_as_well: [u8; 576 + 4 * MAX_BLOCK],
    pub(super) sums: [f32; MAX_BLOCK],
}

impl Candidates {
    /// Where the docids of full matches of this many terms are.
    pub(super) fn matches(&mut self, terms: usize) -> &mut BlockRoom {
        // Each of the terms but the first has changed the room.
        &mut self.docids[(terms - 1) % 2]
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// A search for terms in a run of the documents `docids`, whose norms are given.
    ///
    /// # Panics
    /// If there are fewer norms than documents.
    pub fn run<'a>(
        &self,
        terms: &'a [RunTerm<'a>],
        docids: Range<u32>,
        norms: Norms<'a>,
    ) -> RunSearch<'a> {
        let first_docid = docids.start;
        let documents = docids.len();
        let statics = norms.statics.len();
        assert!(statics == 0 || statics >= documents, "{statics} of {documents} documents");
        let known = norms.documents.len();
        assert!(known >= documents, "{known} norms of {documents} documents");
        let documents = documents as u32;
        let level = self.level;
        let (fields, blocks, dense, phrases, positions) = Default::default();
        RunSearch {
            terms,
            first_docid,
            documents,
            norms,
            fields,
            level,
            blocks,
            dense,
            phrases,
            positions,
        }
    }

    /// Little memory yet.
    pub fn new() -> Self {
        let candidates = Candidates {
            docids: [[NO_DOCID; MAX_BLOCK + 16]; 2],
            apart: [0; 576],
            kept: [0; MAX_BLOCK + 16],
            norms: [0.0; MAX_BLOCK],
            apart_too: [0; 576],
            tfs: [1; MAX_BLOCK + 16],
            apart_as_well: [0; 576 + 4 * MAX_BLOCK],
            sums: [0.0; MAX_BLOCK],
        };
        Scratch {
            level: level(),
            cursors: Vec::new(),
            order: Vec::new(),
            decoded: Vec::new(),
            windows: WindowMemory::default(),
            candidates,
            of_blocks: Vec::new(),
            found: Vec::new(),
            asking: Box::default(),
            ranges: DocidRanges::default(),
            best: Vec::new(),
            ahead: TopK::new(),
            sums: Vec::new(),
            blocks: BlockMemory::default(),
            trees: TreeMemory::default(),
        }
    }

    pub(crate) fn reset_cursors(&mut self, count: usize) {
        if self.cursors.len() < count {
            self.cursors.resize_with(count, Cursor::default);
        }
        for cursor in &mut self.cursors[..count] {
            cursor.reset();
        }
    }
}

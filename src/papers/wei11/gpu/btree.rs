//! The dictionary of a run on a device: [`Trees`](trees::Trees), a B-tree for each trie collection,
//! to which blocks of tokens are added and whose terms and postings come back in the order of the
//! lexicon (Wei and JaJa, *A fast algorithm for constructing inverted files on heterogeneous
//! platforms*, IPDPS 2011, sections III.B and III.D.2).
//!
//! `kernels/wei11/btree.cu` has the steps, the arrays and their sizes. The twin is
//! [`wei11::btree`](crate::papers::wei11::btree): the same tokens in a
//! [`BTreeRun`](crate::papers::wei11::btree::run::BTreeRun) give the same terms with the same
//! bytes.

pub(crate) mod block;
pub(crate) mod room;
pub(crate) mod terms;
pub(crate) mod trees;

use crate::gpu::floor::device::Device;
use crate::gpu::floor::error::{Geometry, GpuError};
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::nvrtc::KernelSource;
use crate::gpu::floor::steps::{Argument, Kernels, Step, launch};
use crate::text::trie_collection::TRIE_COLLECTIONS;
use block::{Most, PADDING, TokenBlock};
use room::{COUNTERS, TreeRoom};
use std::ops::Range;
use terms::TermSums;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeTuning {
    /// Warps of a thread block, each with a collection of its own: 1 in the paper.
    pub warps: u32,
    /// Nodes in shared memory, for each warp.
    pub slots: u32,
    /// Thread blocks that fit a multiprocessor, which bounds their registers.
    pub blocks_per_sm: u32,
    /// Thread blocks: 480 in the paper.
    pub blocks: u32,
    /// For tests: the inserting kernel faults at this item of its work list.
    pub trap_at: Option<u32>,
}

impl Default for TreeTuning {
    fn default() -> Self {
        Self { warps: 1, slots: 9, blocks_per_sm: 16, blocks: 480, trap_at: None }
    }
}

impl TreeTuning {
    /// As many thread blocks as the multiprocessors hold at once.
    pub(crate) fn of_device(multiprocessors: u32) -> Self {
        let tuning = Self::default();
        Self { blocks: tuning.blocks_per_sm * multiprocessors, ..tuning }
    }

    pub(crate) fn source(&self) -> KernelSource {
        let mut sizes = vec![
            ("WARPS", self.warps),
            ("SLOTS", self.slots),
            ("BLOCKS_PER_SM", self.blocks_per_sm),
            ("INSERT_SHARED_BYTES", self.insert_shared_bytes()),
            ("WALK_SHARED_BYTES", self.walk_shared_bytes()),
        ];
        sizes.extend(self.trap_at.map(|item| ("TRAP_AT", item)));
        let text = concat!(
            include_str!("../../../../kernels/common.cuh"),
            include_str!("../../../../kernels/wei11/btree_memory.cuh"),
            include_str!("../../../../kernels/wei11/btree_search.cuh"),
            include_str!("../../../../kernels/wei11/btree.cu"),
        );
        KernelSource { name: "btree", text, sizes }
    }

    pub(crate) fn load(&self, toolchain: &Toolchain, device: &Device) -> Result<Kernels, GpuError> {
        let walks = self.walk_shared_bytes();
        let shared = [0, self.insert_shared_bytes(), walks, walks];
        Kernels::load(toolchain, device, &self.source(), KERNELS.into_iter().zip(shared))
    }

    /// Dynamic shared memory of an inserting block: of each warp four pieces of the stream, its
    /// nodes, and four chunks, totals and limits.
    pub(crate) fn insert_shared_bytes(&self) -> u32 {
        self.warps * (4 * 512 + 512 * self.slots + 4 * 8 + 2 * 4 * 4)
    }

    /// Dynamic shared memory of a block that walks trees: a path for each warp.
    pub(crate) fn walk_shared_bytes(&self) -> u32 {
        self.warps * 12 * 8
    }

    pub(crate) fn all_warps(&self) -> u32 {
        self.warps * self.blocks
    }
}

pub(crate) const KERNELS: [&str; 4] =
    ["btree_regroup", "btree_insert", "btree_measure", "btree_collect"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TreeArray {
    /// u8: the pieces of a block, end to end.
    Input,
    /// Its [segments](TokenBlock::segments) and its [work](TokenBlock::work).
    Segments,
    Work,
    /// u8: the streams of its collections.
    Streams,
    /// u32: the root of each collection.
    Roots,
    Nodes,
    Strings,
    Records,
    Slices,
    /// u64, as [`TreeUsage`](room::TreeUsage) reads them.
    Counters,
    /// What each warp has left of its chunks of the arenas.
    Spares,
    /// [`TermSums`] of each collection.
    Sums,
    /// [`TermSums`] again: where each collection begins in the columns.
    Starts,
    /// Columns of terms, in the order of the lexicon; those of u32 come first, so that each is
    /// aligned where they lie end to end. u32: postings of each term.
    Dfs,
    /// u32: docid of its last posting.
    Lasts,
    /// u32: bytes of its postings.
    ListBytes,
    /// u8: bytes of its suffix.
    Lengths,
    /// u8: suffixes, end to end.
    Suffixes,
    /// u8: postings, end to end.
    Lists,
}

impl TreeArray {
    pub(crate) const COLUMNS: [Self; 6] =
        [Self::Dfs, Self::Lasts, Self::ListBytes, Self::Lengths, Self::Suffixes, Self::Lists];

    pub(crate) fn of_sums(self, [terms, suffix_bytes, list_bytes]: TermSums) -> u64 {
        match self {
            Self::Lengths => terms,
            Self::Suffixes => suffix_bytes,
            Self::Lists => list_bytes,
            _ => 4 * terms,
        }
    }

    /// Each array, and its bytes. Columns hold all that is in the arenas: a term has four bytes of
    /// its suffix in its node, and its last posting, of ten bytes at most, in its record.
    pub(crate) fn all(tuning: &TreeTuning, room: &TreeRoom, most: &Most) -> [(Self, u64); 19] {
        let collections = TRIE_COLLECTIONS as u64;
        let nodes = room.nodes * 512;
        let strings = room.string_words * 8;
        let records = room.records;
        let slices = room.slice_units * 8;
        [
            (Self::Input, most.bytes as u64),
            (Self::Segments, 16 * (most.segments + PADDING) as u64),
            (Self::Work, 16 * collections),
            // Lanes read the sixteen bytes around the end of a stream.
            (Self::Streams, most.bytes as u64 + 16 * collections),
            (Self::Roots, 4 * collections),
            (Self::Nodes, nodes),
            (Self::Strings, strings),
            (Self::Records, 32 * records),
            (Self::Slices, slices),
            (Self::Counters, 8 * COUNTERS as u64),
            (Self::Spares, 32 * u64::from(tuning.all_warps())),
            (Self::Sums, 24 * collections),
            (Self::Starts, 24 * collections),
            (Self::Dfs, 4 * records),
            (Self::Lasts, 4 * records),
            (Self::ListBytes, 4 * records),
            (Self::Lengths, records),
            (Self::Suffixes, 4 * records + strings),
            (Self::Lists, 10 * records + slices),
        ]
    }
}

impl From<TreeArray> for Argument<TreeArray> {
    fn from(array: TreeArray) -> Self {
        Argument::Array(array, 0)
    }
}

fn step(
    kernel: &'static str,
    geometry: Geometry,
    arguments: Vec<Argument<TreeArray>>,
) -> Step<TreeArray> {
    Step { kernel, geometry, arguments }
}

/// Arguments are in the order of `btree.cu`.
impl TreeTuning {
    fn geometry(&self, blocks: u32, shared_bytes: u32) -> Geometry {
        Geometry { blocks, threads: 32 * self.warps, shared_bytes }
    }

    pub(crate) fn regroup(&self, block: &TokenBlock) -> Step<TreeArray> {
        use TreeArray::*;
        let geometry = Geometry { blocks: self.blocks.div_ceil(2), threads: 256, shared_bytes: 0 };
        launch!("btree_regroup", geometry;
            Input, Segments, block.segments_len(), Streams, Counters)
    }

    /// Inserts a block. A full arena is no error: the counters tell.
    pub(crate) fn insert(&self, block: &TokenBlock, room: &TreeRoom) -> Step<TreeArray> {
        use TreeArray::*;
        let [nodes, strings, records, slices] = room.units();
        launch!("btree_insert", self.geometry(self.blocks, self.insert_shared_bytes());
            Streams, Work, block.work.len() as u32, Segments, Roots, Nodes, Strings, Records,
            Slices, Counters, Spares, nodes, strings, records, slices)
    }

    pub(crate) fn measure(&self, collections: Range<u32>) -> Step<TreeArray> {
        use TreeArray::*;
        let Range { start, end } = collections;
        launch!("btree_measure", self.walk(end - start);
            Roots, Nodes, Strings, Records, start, end - start, Sums)
    }

    /// Starts are [`terms::starts`] of what [`measure`](Self::measure) counted.
    pub(crate) fn collect(&self, collections: Range<u32>) -> Step<TreeArray> {
        use TreeArray::*;
        let Range { start, end } = collections;
        launch!("btree_collect", self.walk(end - start);
            Roots, Nodes, Strings, Records, Slices, start, end - start, Starts, Lengths, Dfs, Lasts,
            ListBytes, Suffixes, Lists)
    }

    fn walk(&self, collections: u32) -> Geometry {
        self.geometry(collections.div_ceil(self.warps).max(1), self.walk_shared_bytes())
    }
}

//! How does a device index a run? Its dictionary is [`Trees`], a B-tree for each trie collection;
//! [`Kernels::insert`] adds the tokens of a parsed block, [`Kernels::measure`] and
//! [`Kernels::collect`] give terms and postings back in the order of the lexicon (Wei and JaJa, *A
//! fast algorithm for constructing inverted files on heterogeneous platforms*, IPDPS 2011, sections
//! III.B and III.D.2).
//!
//! `kernels/btree.cu` has the steps, the arrays and their sizes. The twin is
//! [`dictionary::btree`](crate::dictionary::btree): the same tokens in a
//! [`BTreeRun`](crate::dictionary::btree::run::BTreeRun) give the same terms with the same bytes.
//! Everything is enqueued on the streams of the [`Device`]; nothing waits. The paper's order of
//! work for a block: [`Staged::fill`], [`Staged::upload`], [`Kernels::insert`].

pub(crate) mod block;
pub(crate) mod room;
pub(crate) mod staged;
pub(crate) mod terms;

use crate::gpu::floor::cache::Origin;
use crate::gpu::floor::device::{Device, Kernel};
use crate::gpu::floor::error::{Geometry, GpuError, GpuWork, Launched};
use crate::gpu::floor::memory::DeviceBuffer;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::nvrtc::Source;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use cudarc::driver::PushKernelArg;
use room::{COUNTERS, TreeRoom};
use staged::Staged;
use std::ops::Range;
use terms::Sums;

/// How many threads search, and what they keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeTuning {
    /// Warps of a thread block, each with a collection of its own: 1 in the paper.
    pub warps: u32,
    /// Nodes that a warp keeps in shared memory.
    pub slots: u32,
    /// Thread blocks that are to fit a multiprocessor, which bounds their registers.
    pub blocks_per_sm: u32,
    /// Thread blocks: 480 in the paper.
    pub blocks: u32,
    /// Postings are kept. Without them there are terms alone, to measure what postings cost.
    pub postings: bool,
    /// The kernel that inserts ends with a fault at this collection of its work list: for tests.
    pub trap_at: Option<u32>,
}

impl Default for TreeTuning {
    fn default() -> Self {
        Self { warps: 1, slots: 9, blocks_per_sm: 16, blocks: 480, postings: true, trap_at: None }
    }
}

impl TreeTuning {
    /// As many thread blocks as a device with so many multiprocessors holds at once.
    pub fn of_device(multiprocessors: u32) -> Self {
        let tuning = Self::default();
        Self { blocks: tuning.blocks_per_sm * multiprocessors, ..tuning }
    }

    pub(crate) fn source(&self) -> Source {
        let mut sizes = vec![
            ("WARPS", self.warps),
            ("SLOTS", self.slots),
            ("BLOCKS_PER_SM", self.blocks_per_sm),
            ("POSTINGS", u32::from(self.postings)),
            ("INSERT_SHARED_BYTES", self.insert_shared_bytes()),
            ("WALK_SHARED_BYTES", self.walk_shared_bytes()),
        ];
        sizes.extend(self.trap_at.map(|item| ("TRAP_AT", item)));
        let text = concat!(
            include_str!("../../kernels/common.cuh"),
            include_str!("../../kernels/btree_memory.cuh"),
            include_str!("../../kernels/btree_search.cuh"),
            include_str!("../../kernels/btree.cu"),
        );
        Source { name: "btree", text, sizes }
    }

    /// Dynamic shared memory of a block that inserts: of each warp four pieces of the stream, its
    /// nodes, and four chunks, totals and limits.
    pub(crate) fn insert_shared_bytes(&self) -> u32 {
        self.warps * (4 * 512 + 512 * self.slots + 4 * 8 + 2 * 4 * 4)
    }

    /// Dynamic shared memory of a block that goes through trees: a path of each warp.
    pub(crate) fn walk_shared_bytes(&self) -> u32 {
        self.warps * 12 * 8
    }

    pub(crate) fn all_warps(&self) -> u32 {
        self.warps * self.blocks
    }
}

/// The arenas of one run on a device, and what stands beside them.
#[derive(Debug)]
pub struct Trees {
    roots: DeviceBuffer<u32>,
    nodes: DeviceBuffer<u32>,
    strings: DeviceBuffer<u64>,
    records: DeviceBuffer<u32>,
    slices: DeviceBuffer<u8>,
    counters: DeviceBuffer<u64>,
    spares: DeviceBuffer<u32>,
    room: TreeRoom,
}

impl Trees {
    /// Empty trees with this room, for launches with this tuning.
    ///
    /// # Errors
    /// The device has not so much memory.
    pub fn new(device: &Device, room: TreeRoom, tuning: &TreeTuning) -> Result<Self, GpuError> {
        let mut trees = Self {
            roots: device.alloc_unset("roots of trees", TRIE_COLLECTIONS)?,
            nodes: device.alloc_unset("nodes of trees", room.nodes as usize * 128)?,
            strings: device.alloc_unset("strings of terms", room.string_words as usize)?,
            records: device.alloc_unset("records of terms", room.records as usize * 8)?,
            slices: device.alloc_unset("slices of postings", room.slice_units as usize * 8)?,
            counters: device.alloc_unset("counters", COUNTERS)?,
            spares: device.alloc_unset("chunks of arenas", tuning.all_warps() as usize * 8)?,
            room,
        };
        trees.clear(device)?;
        Ok(trees)
    }

    pub(crate) fn room(&self) -> TreeRoom {
        self.room
    }

    /// The run's counters: what [`Usage`](room::Usage) is made from.
    pub fn counters(&self) -> &DeviceBuffer<u64> {
        &self.counters
    }

    /// The counters, to be written: what they count of the arenas is taken.
    #[cfg(test)]
    pub(crate) fn counters_mut(&mut self) -> &mut DeviceBuffer<u64> {
        &mut self.counters
    }

    /// Enqueues the end of the run: all trees are empty then.
    pub(crate) fn clear(&mut self, device: &Device) -> Result<(), GpuError> {
        let stream = device.compute();
        // A tree without a root has the number of none.
        device.fill(stream, &mut self.roots, 0xff)?;
        device.fill(stream, &mut self.counters, 0)?;
        device.fill(stream, &mut self.spares, 0)
    }
}

/// Where terms are written on the device before they are copied back.
#[derive(Debug)]
pub(crate) struct Output {
    /// Bytes of each suffix.
    pub lengths: DeviceBuffer<u8>,
    /// Postings of each term.
    pub dfs: DeviceBuffer<u32>,
    /// Docid of its last posting.
    pub lasts: DeviceBuffer<u32>,
    pub list_bytes: DeviceBuffer<u32>,
    pub suffixes: DeviceBuffer<u8>,
    pub lists: DeviceBuffer<u8>,
}

impl Output {
    /// Makes room for so many terms, bytes of suffixes and bytes of lists.
    pub(crate) fn new(
        device: &Device,
        [terms, suffix_bytes, list_bytes]: Sums,
    ) -> Result<Self, GpuError> {
        Ok(Self {
            lengths: device.alloc_unset("lengths of suffixes", terms as usize)?,
            dfs: device.alloc_unset("document frequencies", terms as usize)?,
            lasts: device.alloc_unset("last docids", terms as usize)?,
            list_bytes: device.alloc_unset("lengths of lists", terms as usize)?,
            suffixes: device.alloc_unset("suffixes", suffix_bytes as usize)?,
            lists: device.alloc_unset("lists", list_bytes as usize)?,
        })
    }
}

/// The kernels of `btree.cu`.
#[derive(Clone, Debug)]
pub struct Kernels {
    regroup: Kernel,
    insert: Kernel,
    measure: Kernel,
    collect: Kernel,
    tuning: TreeTuning,
    origin: Origin,
}

impl Kernels {
    /// Loads them.
    ///
    /// # Errors
    /// They do not compile, or the driver refuses them.
    pub fn load(
        toolchain: &Toolchain,
        device: &Device,
        tuning: TreeTuning,
    ) -> Result<Self, GpuError> {
        let module = toolchain.load(device, &tuning.source())?;
        let kernel = |name| module.kernel(device, name);
        Ok(Self {
            regroup: kernel("btree_regroup")?,
            insert: kernel("btree_insert")?,
            measure: kernel("btree_measure")?,
            collect: kernel("btree_collect")?,
            tuning,
            origin: module.origin.clone(),
        })
    }

    /// Where their code comes from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What they were compiled with.
    pub fn tuning(&self) -> &TreeTuning {
        &self.tuning
    }

    fn geometry(&self, blocks: u32, shared_bytes: u32) -> Geometry {
        Geometry { blocks, threads: 32 * self.tuning.warps, shared_bytes }
    }

    /// Enqueues steps 1 of a block: its streams are laid end to end.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn regroup(
        &self,
        device: &Device,
        trees: &mut Trees,
        staged: &mut Staged,
    ) -> Result<Launched, GpuError> {
        let blocks = device.info().multiprocessors * 8;
        let geometry = Geometry { blocks, threads: 256, shared_bytes: 0 };
        let (segments, _) = staged.rows;
        if let Some(uploaded) = &staged.uploaded {
            uploaded.holds_back(device.compute())?;
        }
        // SAFETY: the segments are those of a block that fits the buffers, which `upload` checked;
        // their tables come from `TokenBlock::of`, so that each lies in the pieces and in the
        // streams.
        unsafe {
            self.regroup.launch(device.compute(), geometry, |arguments| {
                arguments
                    .arg(staged.input.slice())
                    .arg(staged.segments.slice())
                    .arg(&segments)
                    .arg(staged.streams.slice_mut())
                    .arg(trees.counters.slice_mut());
            })
        }
    }

    /// Enqueues the insertion of a block that was uploaded, behind all blocks before it.
    ///
    /// # Errors
    /// The driver refuses. A full arena is no error here: the counters tell.
    pub fn insert(
        &self,
        device: &Device,
        trees: &mut Trees,
        staged: &mut Staged,
    ) -> Result<Launched, GpuError> {
        self.regroup(device, trees, staged)?;
        let (_, collections) = staged.rows;
        let [nodes, strings, records, slices] = trees.room.units();
        assert!(
            self.tuning.all_warps() as usize * 8 <= trees.spares.len(),
            "trees for fewer warps"
        );
        let geometry = self.geometry(self.tuning.blocks, self.tuning.insert_shared_bytes());
        // SAFETY: streams and tables as above. The arenas have the units that are passed, beyond
        // which the kernel takes nothing; every number in them was taken; each warp has its spares.
        let launched = unsafe {
            self.insert.launch(device.compute(), geometry, |arguments| {
                arguments
                    .arg(staged.streams.slice())
                    .arg(staged.work.slice())
                    .arg(&collections)
                    .arg(staged.segments.slice())
                    .arg(trees.roots.slice_mut())
                    .arg(trees.nodes.slice_mut())
                    .arg(trees.strings.slice_mut())
                    .arg(trees.records.slice_mut())
                    .arg(trees.slices.slice_mut())
                    .arg(trees.counters.slice_mut())
                    .arg(trees.spares.slice_mut())
                    .arg(&nodes)
                    .arg(&strings)
                    .arg(&records)
                    .arg(&slices);
            })
        }?;
        staged.read = Some(device.ticket(device.compute(), GpuWork::Kernel(launched))?);
        Ok(launched)
    }

    /// Enqueues the count of what each collection of a range holds.
    ///
    /// # Panics
    /// If there are not so many collections, or `sums` has not three places for each.
    pub(crate) fn measure(
        &self,
        device: &Device,
        trees: &Trees,
        collections: Range<u32>,
        sums: &mut DeviceBuffer<u64>,
    ) -> Result<Launched, GpuError> {
        let (first, count) = (collections.start, collections.len() as u32);
        assert!(collections.end as usize <= TRIE_COLLECTIONS, "no such collections");
        assert!(count as usize * 3 <= sums.len(), "no place for the sums");
        let shared_bytes = self.tuning.walk_shared_bytes();
        let geometry = self.geometry(count.div_ceil(self.tuning.warps).max(1), shared_bytes);
        // SAFETY: roots, nodes and numbers in them are those of the trees; `sums` was checked.
        unsafe {
            self.measure.launch(device.compute(), geometry, |arguments| {
                arguments
                    .arg(trees.roots.slice())
                    .arg(trees.nodes.slice())
                    .arg(trees.strings.slice())
                    .arg(trees.records.slice())
                    .arg(&first)
                    .arg(&count)
                    .arg(sums.slice_mut());
            })
        }
    }

    /// Enqueues the output of a range of collections. `starts` are where each of them begins in the
    /// output, and `all` their sums: what [`terms::starts`] gives for what
    /// [`measure`](Self::measure) counted.
    ///
    /// # Panics
    /// If there are not so many collections, or the output is too small.
    pub(crate) fn collect(
        &self,
        device: &Device,
        trees: &Trees,
        collections: Range<u32>,
        (starts, all): (&DeviceBuffer<u64>, Sums),
        output: &mut Output,
    ) -> Result<Launched, GpuError> {
        let (first, count) = (collections.start, collections.len() as u32);
        assert!(collections.end as usize <= TRIE_COLLECTIONS, "no such collections");
        assert!(count as usize * 3 <= starts.len(), "no starts of collections");
        let room = [output.lengths.len(), output.suffixes.len(), output.lists.len()];
        assert!(room.iter().zip(all).all(|(&room, sum)| room as u64 >= sum), "no room for terms");
        let shared_bytes = self.tuning.walk_shared_bytes();
        let geometry = self.geometry(count.div_ceil(self.tuning.warps).max(1), shared_bytes);
        // SAFETY: roots, nodes and numbers in them are those of the trees. The sums are those of
        // the trees, so that every collection ends where the next one starts, and all that is
        // written lies in the output.
        unsafe {
            self.collect.launch(device.compute(), geometry, |arguments| {
                arguments
                    .arg(trees.roots.slice())
                    .arg(trees.nodes.slice())
                    .arg(trees.strings.slice())
                    .arg(trees.records.slice())
                    .arg(trees.slices.slice())
                    .arg(&first)
                    .arg(&count)
                    .arg(starts.slice())
                    .arg(output.lengths.slice_mut())
                    .arg(output.dfs.slice_mut())
                    .arg(output.lasts.slice_mut())
                    .arg(output.list_bytes.slice_mut())
                    .arg(output.suffixes.slice_mut())
                    .arg(output.lists.slice_mut());
            })
        }
    }
}

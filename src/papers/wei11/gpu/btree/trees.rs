//! A run of an indexer on a device: blocks are inserted, several under way; terms are measured,
//! collected into columns, and brought to the host in parts. No call waits.
//!
//! Device memory is divided once, when the indexer begins: a block, the arenas, and columns that
//! hold all that arenas of this size can, into which a closed run is written.

use super::block::{Most, TokenBlock};
use super::room::{COUNTERS, TreeRoom, TreeUsage};
use super::terms::TermSums;
use super::{TreeArray, TreeTuning};
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::machine::{DeviceWork, Machine, UnderWay};
use crate::gpu::floor::steps::Step;
use crate::gpu::floor::wake::Wake;
use crate::papers::wei11::stream::TokenGroup;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use std::ops::Range;

/// None if no buffer was free.
pub(crate) type TreeTicket = Option<Box<dyn UnderWay>>;

type Up<'a> = Vec<(TreeArray, u64, Vec<&'a [u8]>)>;

const ALL: Range<u32> = 0..TRIE_COLLECTIONS as u32;
const SUMS_BYTES: u64 = (TRIE_COLLECTIONS * size_of::<TermSums>()) as u64;
const COUNTED: (TreeArray, Range<u64>) = (TreeArray::Counters, 0..8 * COUNTERS as u64);

/// Percent of the memory behind a block for arenas: columns take two thirds as much.
const ARENAS_PERCENT: u64 = 60;

/// Upper limit of what a download brings.
const STRETCH_BYTES: usize = 4 << 20;

pub(crate) struct Trees {
    machine: Box<dyn Machine<TreeArray>>,
    tuning: TreeTuning,
    room: TreeRoom,
    most: Most,
    /// Bytes of one download: a multiple of four.
    pub(crate) stretch_bytes: usize,
    /// The kernel that writes the columns, until it is done.
    collecting: TreeTicket,
    wake: Option<Wake>,
}

impl Trees {
    pub(crate) fn new(
        mut machine: Box<dyn Machine<TreeArray>>,
        tuning: TreeTuning,
        room: TreeRoom,
        most: Most,
    ) -> Result<Self, GpuError> {
        reserve(&mut *machine, &tuning, &room, &most)?;
        // Lanes read around a stream, and ignore what is there.
        machine.fill(TreeArray::Streams, 0)?;
        let stretch_bytes = machine.buffer_bytes().min(STRETCH_BYTES) / 4 * 4;
        let (collecting, wake) = Default::default();
        let mut trees = Self { machine, tuning, room, most, stretch_bytes, collecting, wake };
        trees.clear()?;
        Ok(trees)
    }

    /// The largest trees that there is memory for, up to `wanted` bytes of arenas and down to room
    /// for `least`. If the device has less memory than it said, smaller ones are tried.
    pub(crate) fn largest(
        mut machine: Box<dyn Machine<TreeArray>>,
        tuning: TreeTuning,
        wanted: u64,
        least: TreeRoom,
        most: Most,
    ) -> Result<Self, GpuError> {
        let besides = TreeArray::all(&tuning, &TreeRoom::default(), &most);
        let besides: u64 = besides.iter().map(|(_, bytes)| bytes).sum();
        let (_, left) = machine.memory();
        let mut bytes = (left.saturating_sub(besides) / 100 * ARENAS_PERCENT).min(wanted);
        loop {
            let room = TreeRoom::of_bytes(bytes);
            if !room.holds(least) {
                return Err(too_small(&*machine, least));
            }
            match reserve(&mut *machine, &tuning, &room, &most) {
                Err(error) if error.is_out_of_memory() => bytes /= 2,
                Err(error) => return Err(error),
                Ok(()) => return Self::new(machine, tuning, room, most),
            }
            machine.free_all();
        }
    }

    #[cfg(test)]
    pub(crate) fn machine(&mut self) -> &mut dyn Machine<TreeArray> {
        &mut *self.machine
    }

    pub(crate) fn room(&self) -> TreeRoom {
        self.room
    }

    pub(crate) fn warps(&self) -> u32 {
        self.tuning.all_warps()
    }

    pub(crate) fn most(&self) -> Most {
        self.most
    }

    fn give(
        &mut self,
        up: Up<'_>,
        steps: Vec<Step<TreeArray>>,
        down: Vec<(TreeArray, Range<u64>)>,
    ) -> Result<TreeTicket, GpuError> {
        let given = self.machine.give(&DeviceWork { up, steps, down })?;
        if given.is_some() {
            self.machine.wake(self.wake.iter().cloned().collect())?;
        }
        Ok(given)
    }

    /// Inserts a block that was made from `pieces`. None while no buffer is free.
    ///
    /// # Panics
    /// If there is no room for the block.
    pub(crate) fn insert(
        &mut self,
        pieces: &[(&TokenGroup, u32)],
        block: &TokenBlock,
    ) -> Result<TreeTicket, GpuError> {
        assert!(self.most.holds(block), "a block is too large");
        let up = vec![
            (TreeArray::Input, 0, pieces.iter().map(|(group, _)| &group.bytes[..]).collect()),
            (TreeArray::Segments, 0, vec![bytemuck::cast_slice(&block.segments)]),
            (TreeArray::Work, 0, vec![bytemuck::cast_slice(&block.work)]),
        ];
        let steps = vec![self.tuning.regroup(block), self.tuning.insert(block, &self.room)];
        self.give(up, steps, vec![COUNTED])
    }

    /// None while no buffer is free.
    pub(crate) fn measure(&mut self) -> Result<TreeTicket, GpuError> {
        let steps = vec![self.tuning.measure(ALL)];
        self.give(vec![], steps, vec![(TreeArray::Sums, 0..SUMS_BYTES)])
    }

    /// Writes all terms into columns, in the order of the lexicon; all work before is done.
    pub(crate) fn collect(&mut self, starts: &[TermSums], all: TermSums) -> Result<(), GpuError> {
        let room = TreeArray::all(&self.tuning, &self.room, &self.most);
        for (array, bytes) in room.iter().filter(|(array, _)| TreeArray::COLUMNS.contains(array)) {
            assert!(array.of_sums(all) <= *bytes, "no room for {array:?}");
        }
        let up = vec![(TreeArray::Starts, 0, vec![bytemuck::cast_slice(starts)])];
        let steps = vec![self.tuning.collect(ALL)];
        self.collecting = self.give(up, steps, vec![])?;
        assert!(self.collecting.is_some(), "columns are written when all before is done");
        Ok(())
    }

    /// Brings parts of columns, at most [`stretch_bytes`](Self::stretch_bytes) in all. None until
    /// these are written, and while no buffer is free.
    pub(crate) fn download(
        &mut self,
        stretches: Vec<(TreeArray, Range<u64>)>,
    ) -> Result<TreeTicket, GpuError> {
        if let Some(collecting) = &self.collecting {
            if !collecting.is_done()? {
                return Ok(None);
            }
            self.collecting = None;
        }
        self.give(vec![], vec![], stretches)
    }

    pub(crate) fn clear(&mut self) -> Result<(), GpuError> {
        // NONE, which is no node.
        self.machine.fill(TreeArray::Roots, 0xff)?;
        self.machine.fill(TreeArray::Counters, 0)?;
        self.machine.fill(TreeArray::Spares, 0)
    }

    pub(crate) fn too_small(&self, needed: TreeRoom) -> GpuError {
        too_small(&*self.machine, needed)
    }

    /// Calls `wake` from now on when work is done or has failed.
    pub(crate) fn wake_by(&mut self, wake: Wake) {
        self.wake = Some(wake.clone());
        // For what is under way already.
        if self.machine.wake(vec![wake.clone()]).is_err() {
            // A later call gets the error.
            wake();
        }
    }
}

/// The counters after an insertion that is done.
pub(crate) fn usage(inserted: &dyn UnderWay) -> TreeUsage {
    let mut counters = [0u64; COUNTERS];
    bytemuck::bytes_of_mut(&mut counters).copy_from_slice(inserted.bytes());
    counters.into()
}

pub(crate) fn sums(measured: &dyn UnderWay) -> Vec<TermSums> {
    let mut sums = vec![TermSums::default(); TRIE_COLLECTIONS];
    bytemuck::cast_slice_mut(&mut sums).copy_from_slice(measured.bytes());
    sums
}

fn reserve(
    machine: &mut dyn Machine<TreeArray>,
    tuning: &TreeTuning,
    room: &TreeRoom,
    most: &Most,
) -> Result<(), GpuError> {
    let all = TreeArray::all(tuning, room, most);
    all.into_iter().try_for_each(|(array, bytes)| machine.reserve(array, bytes))
}

fn too_small(machine: &dyn Machine<TreeArray>, needed: TreeRoom) -> GpuError {
    let (limit, left) = machine.memory();
    let bytes = needed.bytes();
    GpuError::Budget { device: machine.device(), what: "trees", bytes, left, limit }
}

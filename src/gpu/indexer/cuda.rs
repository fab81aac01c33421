//! How does a CUDA device hold the trees of an indexer?
//!
//! Device memory is cut once, when the indexer begins: two blocks that are on their way (one is
//! copied while the other is inserted), the arenas, and what is left for the columns in which a
//! closed run is written. Arenas take three fifths of the memory. In their proportions
//! ([`TreeRoom::of_bytes`]) they hold at most two thirds of their size in columns: 27 bytes for
//! each record of 32, all strings and all slices. So there is always room to bring back what they
//! hold. No more is taken than a run fills.

use super::{Column, Stretch, TreeDevice, UnderWay, Waiter};
use crate::dictionary::stream::TokenGroup;
use crate::gpu::btree::block::TokenBlock;
use crate::gpu::btree::room::{COUNTERS, Coming, TreeRoom, Usage};
use crate::gpu::btree::staged::{Most, Staged};
use crate::gpu::btree::terms::Sums;
use crate::gpu::btree::{Kernels, Output, TreeTuning, Trees};
use crate::gpu::floor::cache::Origin;
use crate::gpu::floor::device::{Device, Ticket};
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::{GpuError, GpuWork};
use crate::gpu::floor::memory::DeviceBuffer;
use crate::gpu::floor::modules::Toolchain;
use crate::gpu::floor::pinned::{Pinned, PinnedPool, Way};
use crate::gpu::floor::wake::Wake;
use crate::text::trie_collection::TRIE_COLLECTIONS;
use cudarc::driver::CudaStream;

/// Blocks that are on their way or being inserted.
const SLOTS: usize = 2;
const DOWNLOADS: usize = 4;
/// Percent of the memory behind the blocks that arenas take.
const ARENAS_PERCENT: u64 = 60;
/// Arenas are not made larger than this many times the cost of a run.
const ARENAS_BY_RUN: u64 = 4;
/// Bytes of three numbers for each trie collection.
const SUMS_BYTES: usize = TRIE_COLLECTIONS * size_of::<Sums>();

/// What an indexer may take of the host, and what it will be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Pinned host memory, in bytes; no less than [`Sizes::LEAST_HOST_BYTES`] is taken.
    pub host_bytes: usize,
    /// What the indexer's part of a run costs at most (`order::Budget`), as far as that is known.
    /// What does not fit the device after all is brought back in parts.
    pub run_limit: u64,
}

impl Sizes {
    /// The least pinned host memory, in bytes.
    pub(crate) const LEAST_HOST_BYTES: usize = 4 << 20;

    /// Blocks get three quarters of it, downloads the rest.
    fn most(&self) -> Most {
        let host = self.host_bytes.clamp(Self::LEAST_HOST_BYTES, 1 << 30);
        let bytes = host / 4 * 3 / SLOTS;
        // A row of 16 bytes for each segment, of which a piece may have one for each collection.
        let bytes = bytes.saturating_sub(2 * TRIE_COLLECTIONS * 16).next_multiple_of(16);
        Most { bytes: bytes / 5 * 4, segments: (bytes / 80).max(TRIE_COLLECTIONS) }
    }

    fn download_bytes(&self) -> usize {
        let host = self.host_bytes.clamp(Self::LEAST_HOST_BYTES, 64 << 20);
        (host / 4 / DOWNLOADS).next_multiple_of(4)
    }
}

/// What goes to the device together.
struct Slot {
    pinned: Pinned,
    staged: Staged,
    counters: Pinned,
}

pub(crate) struct Inserting {
    slot: Slot,
    kernel: Ticket,
    counters: Ticket,
}

impl UnderWay for Inserting {
    fn is_done(&self) -> Result<bool, GpuError> {
        // The kernel is asked first, so that a failure names it.
        Ok(self.kernel.is_done()? && self.counters.is_done()?)
    }
}

pub(crate) struct Measuring {
    kernel: Ticket,
    sums: Ticket,
}

impl UnderWay for Measuring {
    fn is_done(&self) -> Result<bool, GpuError> {
        Ok(self.kernel.is_done()? && self.sums.is_done()?)
    }
}

pub(crate) struct Downloading {
    pinned: Pinned,
    bytes: usize,
    collected: Option<Ticket>,
    copied: Ticket,
}

impl UnderWay for Downloading {
    fn is_done(&self) -> Result<bool, GpuError> {
        if let Some(collected) = &self.collected
            && !collected.is_done()?
        {
            return Ok(false);
        }
        self.copied.is_done()
    }
}

/// The trees of one indexer on a CUDA device.
pub(crate) struct CudaTrees {
    kernels: Kernels,
    trees: Trees,
    slots: Vec<Slot>,
    downloads: PinnedPool,
    sums: DeviceBuffer<u64>,
    starts: DeviceBuffer<u64>,
    sums_pinned: Pinned,
    starts_pinned: Pinned,
    /// With the terms, bytes of suffixes and bytes of lists that it holds at most.
    output: Option<(Output, Sums)>,
    /// The kernel that writes the columns, for the first download behind it.
    collected: Option<Ticket>,
    most: Most,
    /// Who is woken when something is done.
    wakes: [Option<Wake>; 2],
    // Goes last: all the rest is of its context.
    device: Device,
}

impl CudaTrees {
    /// Opens `device`, which `owners` indexers share. If the device has not as much memory as it
    /// said, smaller arenas are tried.
    ///
    /// # Errors
    /// The device cannot be used or has too little memory, or its kernels do not compile.
    pub(crate) fn open(
        device: &DeviceInfo,
        owners: usize,
        toolchain: &Toolchain,
        sizes: &Sizes,
    ) -> Result<Self, GpuError> {
        let trap_at = crate::fault::trap_at();
        let tuning = TreeTuning { trap_at, ..TreeTuning::of_device(device.multiprocessors) };
        let device = Device::open(device, owners)?;
        let kernels = Kernels::load(toolchain, &device, tuning)?;
        let most = sizes.most();
        let counters_bytes = COUNTERS * size_of::<u64>();
        let mut uploads = PinnedPool::new(&device, Way::Upload, SLOTS, most.pinned_bytes())?;
        let mut counters = PinnedPool::new(&device, Way::Download, SLOTS, counters_bytes)?;
        let mut slots = Vec::new();
        while let (Some(pinned), Some(counters)) = (uploads.take(), counters.take()) {
            slots.push(Slot { pinned, staged: Staged::new(&device, &most)?, counters });
        }
        let downloads = PinnedPool::new(&device, Way::Download, DOWNLOADS, sizes.download_bytes())?;
        let sums = device.alloc_unset("sums of collections", TRIE_COLLECTIONS * 3)?;
        let starts = device.alloc_unset("starts of collections", TRIE_COLLECTIONS * 3)?;
        let sums_pinned = Pinned::new(&device, Way::Download, SUMS_BYTES)?;
        let starts_pinned = Pinned::new(&device, Way::Upload, SUMS_BYTES)?;
        let trees = trees(&device, &tuning, sizes.run_limit)?;
        Ok(Self {
            kernels,
            trees,
            slots,
            downloads,
            sums,
            starts,
            sums_pinned,
            starts_pinned,
            output: None,
            collected: None,
            most,
            wakes: [None, None],
            device,
        })
    }

    /// Has those who wait woken behind what is on a stream.
    fn wake_behind(&self, stream: &CudaStream) -> Result<(), GpuError> {
        self.device.wake_behind(stream, self.wakes.iter().flatten().cloned().collect())
    }

    /// Where the code of its kernels comes from.
    pub(crate) fn origin(&self) -> &Origin {
        self.kernels.origin()
    }
}

/// The least that arenas are to hold at once: a block of a few pieces.
const LEAST: Coming = Coming { tokens: 1 << 16, bytes: 1 << 20, documents: 1 << 16 };

/// The largest trees that there is memory for.
fn trees(device: &Device, tuning: &TreeTuning, run_limit: u64) -> Result<Trees, GpuError> {
    let least = Usage::default().with(&LEAST, tuning.all_warps());
    // Room that a run needs, and chunks that warps hold.
    let wanted = run_limit.saturating_mul(ARENAS_BY_RUN).saturating_add(4 * least.bytes());
    let mut bytes = (device.memory().left() / 100 * ARENAS_PERCENT).min(wanted);
    loop {
        let room = TreeRoom::of_bytes(bytes);
        let made = match room.holds(least) {
            true => Trees::new(device, room, tuning),
            false => Err(too_small(device, least)),
        };
        match made {
            Err(error) if error.is_out_of_memory() && room.holds(least) => bytes /= 2,
            made => return made,
        }
    }
}

fn too_small(device: &Device, needed: TreeRoom) -> GpuError {
    GpuError::Budget {
        device: device.info().to_string(),
        what: "trees",
        bytes: needed.bytes(),
        left: device.memory().left(),
        limit: device.memory().limit(),
    }
}

impl TreeDevice for CudaTrees {
    type Insert = Inserting;
    type Measure = Measuring;
    type Download = Downloading;

    fn room(&self) -> TreeRoom {
        self.trees.room()
    }

    fn warps(&self) -> u32 {
        self.kernels.tuning().all_warps()
    }

    fn most(&self) -> Most {
        self.most
    }

    fn download_bytes(&self) -> usize {
        self.downloads.buffer_bytes()
    }

    fn insert(
        &mut self,
        pieces: &[(&TokenGroup, u32)],
        block: &TokenBlock,
    ) -> Result<Option<Inserting>, GpuError> {
        let Some(mut slot) = self.slots.pop() else { return Ok(None) };
        Staged::fill(block, pieces, &mut slot.pinned)?;
        slot.staged.upload(&self.device, block, &slot.pinned)?;
        let launched = self.kernels.insert(&self.device, &mut self.trees, &mut slot.staged)?;
        let kernel = self.device.ticket(self.device.compute(), GpuWork::Kernel(launched))?;
        // The next insertion changes the counters: the copy stands before it.
        let (from, stream) = (self.trees.counters().slice(), self.device.compute());
        let counters = self.device.copy_down(stream, from, &mut slot.counters, 0)?;
        self.wake_behind(stream)?;
        Ok(Some(Inserting { slot, kernel, counters }))
    }

    fn usage(&mut self, inserted: Inserting) -> Result<Usage, GpuError> {
        let mut counters = [0u64; COUNTERS];
        let bytes = bytemuck::bytes_of_mut(&mut counters);
        let from = inserted.slot.counters.bytes()?;
        bytes.copy_from_slice(&from[..bytes.len()]);
        self.slots.push(inserted.slot);
        Ok(counters.into())
    }

    fn measure(&mut self) -> Result<Measuring, GpuError> {
        let all = 0..TRIE_COLLECTIONS as u32;
        let launched = self.kernels.measure(&self.device, &self.trees, all, &mut self.sums)?;
        let kernel = self.device.ticket(self.device.compute(), GpuWork::Kernel(launched))?;
        let (from, stream) = (self.sums.slice(), self.device.compute());
        let sums = self.device.copy_down(stream, from, &mut self.sums_pinned, 0)?;
        self.wake_behind(stream)?;
        Ok(Measuring { kernel, sums })
    }

    fn sums(&mut self, _: Measuring) -> Result<Vec<Sums>, GpuError> {
        let mut sums = vec![Sums::default(); TRIE_COLLECTIONS];
        let bytes = bytemuck::cast_slice_mut(&mut sums);
        bytes.copy_from_slice(self.sums_pinned.bytes()?);
        Ok(sums)
    }

    fn collect(&mut self, starts: &[Sums], all: Sums) -> Result<(), GpuError> {
        let bytes = bytemuck::cast_slice(starts);
        self.starts_pinned.bytes_mut()?.copy_from_slice(bytes);
        let (compute, download) = (self.device.compute(), self.device.download());
        let to = self.starts.slice_mut();
        self.device.copy_up::<u64>(compute, &self.starts_pinned, 0..SUMS_BYTES, to)?;
        let holds = |most: &Sums| most.iter().zip(all).all(|(&most, sum)| most >= sum);
        let (mut output, most) = match self.output.take() {
            Some((output, most)) if holds(&most) => (output, most),
            old => {
                // Its memory goes into the new one.
                drop(old);
                (Output::new(&self.device, all)?, all)
            }
        };
        let collections = 0..TRIE_COLLECTIONS as u32;
        // Columns are written behind the copies of those before, and copied behind the kernel.
        self.device.order(download, compute)?;
        let launched = self.kernels.collect(
            &self.device,
            &self.trees,
            collections,
            (&self.starts, all),
            &mut output,
        )?;
        self.output = Some((output, most));
        self.collected = Some(self.device.ticket(compute, GpuWork::Kernel(launched))?);
        self.device.order(compute, download)
    }

    fn download(&mut self, stretches: &[Stretch]) -> Result<Option<Downloading>, GpuError> {
        let Some(mut pinned) = self.downloads.take() else { return Ok(None) };
        let (output, _) = self.output.as_ref().expect("columns are written before they are copied");
        let (mut bytes, mut last) = (0, None);
        for (column, range) in stretches {
            let range = range.start as usize..range.end as usize;
            let numbers = range.start / 4..range.end / 4;
            let (device, pinned) = (&self.device, &mut pinned);
            let stream = device.download();
            let words = |from: &DeviceBuffer<u32>, to: &mut Pinned| {
                device.copy_down(stream, &from.slice().slice(numbers.clone()), to, bytes)
            };
            let octets = |from: &DeviceBuffer<u8>, to: &mut Pinned| {
                device.copy_down(stream, &from.slice().slice(range.clone()), to, bytes)
            };
            last = Some(match column {
                Column::Dfs => words(&output.dfs, pinned),
                Column::Lasts => words(&output.lasts, pinned),
                Column::ListBytes => words(&output.list_bytes, pinned),
                Column::Lengths => octets(&output.lengths, pinned),
                Column::Suffixes => octets(&output.suffixes, pinned),
                Column::Lists => octets(&output.lists, pinned),
            }?);
            bytes += range.len();
        }
        let Some(copied) = last else {
            self.downloads.give(pinned);
            return Ok(None);
        };
        let collected = self.collected.take();
        self.wake_behind(self.device.download())?;
        Ok(Some(Downloading { pinned, bytes, collected, copied }))
    }

    fn fetched(&mut self, downloaded: Downloading, to: &mut [u8]) -> Result<(), GpuError> {
        to.copy_from_slice(&downloaded.pinned.bytes()?[..downloaded.bytes]);
        self.downloads.give(downloaded.pinned);
        Ok(())
    }

    fn clear(&mut self) -> Result<(), GpuError> {
        self.trees.clear(&self.device)
    }

    fn too_small(&self, needed: TreeRoom) -> GpuError {
        too_small(&self.device, needed)
    }

    fn wake_by(&mut self, waiter: Waiter, wake: Wake) {
        self.wakes[waiter as usize] = Some(wake.clone());
        // What is under way already has nobody else to wake.
        for stream in [self.device.compute(), self.device.download()] {
            if self.device.wake_behind(stream, vec![wake.clone()]).is_err() {
                // Who asks then is told what is wrong.
                wake();
            }
        }
    }
}

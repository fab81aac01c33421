//! Opens the device of an indexer, with all that it takes of the host and of the device.

use crate::gpu::floor::arrays::CudaArrays;
use crate::gpu::floor::cache::Origin;
use crate::gpu::floor::device::Device;
use crate::gpu::floor::discover::DeviceInfo;
use crate::gpu::floor::error::GpuError;
use crate::gpu::floor::machine::CudaQueue;
use crate::gpu::floor::modules::Toolchain;
use crate::papers::wei11::gpu::btree::TreeTuning;
use crate::papers::wei11::gpu::btree::block::Most;
use crate::papers::wei11::gpu::btree::room::{ComingTokens, TreeUsage};
use crate::papers::wei11::gpu::btree::trees::Trees;
use std::sync::Arc;

/// Blocks under way, or parts of columns that come back.
const BUFFERS: usize = 2;
/// Workers that give blocks have others beside them.
const COPIERS: usize = 1;
/// Arenas are at most this many times the cost of a run.
const ARENAS_BY_RUN: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexerSizes {
    /// Pinned host memory, in bytes; at least [`IndexerSizes::LEAST_HOST_BYTES`] is taken.
    pub host_bytes: usize,
    /// The most that the indexer's part of a run costs (`order::Budget`), as far as known. What
    /// does not fit the device after all is brought back in parts.
    pub run_limit: u64,
}

impl IndexerSizes {
    pub(crate) const LEAST_HOST_BYTES: usize = 4 << 20;

    fn buffer_bytes(&self) -> usize {
        self.host_bytes.clamp(Self::LEAST_HOST_BYTES, 1 << 30) / BUFFERS
    }
}

/// The least that arenas hold at once: a block of a few pieces.
const LEAST: ComingTokens = ComingTokens { tokens: 1 << 16, bytes: 1 << 20, documents: 1 << 16 };

/// Opens `device`, which `owners` indexers share; returns also where its kernels' code came from.
pub(crate) fn open(
    device: &DeviceInfo,
    owners: usize,
    toolchain: &Toolchain,
    sizes: &IndexerSizes,
) -> Result<(Trees, Origin), GpuError> {
    let trap_at = crate::fault::trap_at();
    let tuning = TreeTuning { trap_at, ..TreeTuning::of_device(device.multiprocessors) };
    let device = Device::open(device, owners)?;
    let kernels = tuning.load(toolchain, &device)?;
    let origin = kernels.origin.clone();
    let buffer_bytes = sizes.buffer_bytes();
    let on = CudaArrays::new(Arc::new(device), kernels, None)?;
    let machine = Box::new(CudaQueue::new(on, BUFFERS, buffer_bytes, COPIERS)?);
    let least = TreeUsage::default().with(&LEAST, tuning.all_warps());
    // What a run needs, and chunks that warps hold.
    let wanted = sizes.run_limit.saturating_mul(ARENAS_BY_RUN);
    let wanted = wanted.saturating_add(4 * least.bytes());
    let trees = Trees::largest(machine, tuning, wanted, least, Most::of_buffer(buffer_bytes))?;
    Ok((trees, origin))
}

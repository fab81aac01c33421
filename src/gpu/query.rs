//! Ranked queries on a device, with the scores of the CPU. `kernels/query.cu` says how the best
//! documents of many queries are found at once.
//!
//! Workers hand queries to an [`engine`], whose thread for each device, the `driver`, waits for
//! their lists, which [`bring`] copies to the arena that [`residency`] manages, makes a [`batch`]
//! of [`plan`] records, and launches the [`steps`] on a [`device`]. [`list`] has the layout of
//! lists there; [`load`] and [`unpack`] make them, and a [`parcel`] has several in one copy.
//! [`given`] and [`choose`] read what a user says of devices, and [`worth`] decides without that.
//! `twin` is the kernels in plain Rust.

pub(crate) mod batch;
pub(crate) mod bring;
pub(crate) mod choose;
pub(crate) mod device;
mod driver;
pub(crate) mod engine;
pub(super) mod fetch;
mod gather;
pub mod given;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod parcel;
pub(crate) mod plan;
pub(crate) mod residency;
pub(crate) mod service;
pub(crate) mod steps;
#[cfg(test)]
#[path = "query/tests/twin.rs"]
pub(crate) mod twin;
pub(crate) mod unpack;
pub(crate) mod worth;

use crate::gpu::floor::nvrtc::KernelSource;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueryTuning {
    /// Binary logarithm of a window's documents, at most 16.
    pub window_bits: u32,
    /// Of a block with sums of 8 bits.
    pub threads: u32,
    /// Of a block with sums of 16 bits.
    pub wide_threads: u32,
    /// Blocks with sums of 8 bits.
    pub blocks_per_sm: u32,
    /// Documents that a block finds in a window before it writes them one by one.
    pub found: u32,
    /// Keys that are sorted in shared memory, a power of two.
    pub sorted: u32,
    /// Of a block that selects.
    pub select_threads: u32,
}

impl Default for QueryTuning {
    fn default() -> Self {
        Self {
            window_bits: 16,
            threads: 512,
            wide_threads: 1024,
            blocks_per_sm: 3,
            found: 1024,
            sorted: 4096,
            select_threads: 512,
        }
    }
}

/// Of a window's lists, its bins and all else but the sums and what is found.
const SHARED_BESIDE: u32 = (plan::MOST_TERMS * 32 + 256 * 4 + 24) as u32;

impl QueryTuning {
    pub(crate) const RESCORE_SHARED_BYTES: u32 = 2 * 1024 + 8;

    /// The largest windows for so much shared memory of a block.
    pub(crate) fn of_device(shared_bytes: u32) -> Self {
        let all = [16, 15, 14, 13].map(|window_bits| Self { window_bits, ..Self::default() });
        let fits = |tuning: &Self| tuning.or_shared_bytes(16) <= shared_bytes;
        all.into_iter().find(fits).unwrap_or(all[3])
    }

    pub(crate) fn source(&self) -> KernelSource {
        let sizes = [
            ("WINDOW_BITS", self.window_bits),
            ("THREADS", self.threads),
            ("WIDE_THREADS", self.wide_threads),
            ("BLOCKS_PER_SM", self.blocks_per_sm),
            ("FOUND", self.found),
            ("SORTED", self.sorted),
            ("SELECT_THREADS", self.select_threads),
            ("OR_SHARED_BYTES", self.or_shared_bytes(8)),
            ("WIDE_SHARED_BYTES", self.or_shared_bytes(16)),
            ("SELECT_SHARED_BYTES", self.select_shared_bytes()),
            ("ORDERED_SHARED_BYTES", self.ordered_shared_bytes()),
            ("AND_SHARED_BYTES", self.and_shared_bytes()),
            ("RESCORE_SHARED_BYTES", Self::RESCORE_SHARED_BYTES),
        ];
        let text = concat!(
            include_str!("../../kernels/common.cuh"),
            include_str!("../../kernels/score.cuh"),
            include_str!("../../kernels/query_list.cuh"),
            include_str!("../../kernels/query_or.cuh"),
            include_str!("../../kernels/query_and.cuh"),
            include_str!("../../kernels/query_select.cuh"),
            include_str!("../../kernels/query_ordered.cuh"),
            include_str!("../../kernels/query_unpack.cuh"),
            include_str!("../../kernels/query.cu"),
        );
        KernelSource { name: "query", text, sizes: sizes.into() }
    }

    /// Of a block with sums of so many bits.
    pub(crate) fn or_shared_bytes(&self, bits: u32) -> u32 {
        (1 << self.window_bits) / 8 * bits + 4 * self.found + SHARED_BESIDE
    }

    pub(crate) fn and_shared_bytes(&self) -> u32 {
        const PORTION: u32 = 1024;
        (1 << self.window_bits) / 8 + 4 * PORTION + plan::MOST_TERMS as u32 * 32 + 24
    }

    pub(crate) fn select_shared_bytes(&self) -> u32 {
        8 * self.sorted + 256 * 4 + 16
    }

    pub(crate) fn ordered_shared_bytes(&self) -> u32 {
        (1 << self.window_bits) / 2 * 5
    }
}

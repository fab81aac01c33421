//! Ranked queries on a device, with the scores of the CPU. `kernels/query.cu` says how the best
//! documents of many queries are found at once.
//!
//! Workers hand queries to an [`engine`], whose thread for each device, the `driver`, waits for
//! their lists, which [`bring`] copies to the arena that [`residency`] manages, makes a [`batch`]
//! of [`plan`] records, and launches the [`steps`] on a [`device`]. [`list`] has the layout of
//! lists there; [`load`] and [`unpack`] make them, and a [`parcel`] has several in one copy.
//! Learned weights have lists of their own ([`list::impacts`]), and queries of whole numbers
//! ([`fixed`]); [`method`] says which queries a device can answer.
//! [`given`] and [`choose`] read what a user says of devices, and [`worth`] decides without that.
//! `twin` is the kernels in plain Rust.

pub(crate) mod batch;
pub(crate) mod bring;
pub(crate) mod choose;
pub(crate) mod device;
mod driver;
pub(crate) mod engine;
pub(super) mod fetch;
mod fixed;
mod gather;
pub(crate) mod given;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod method;
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
    /// Binary logarithm of the documents of a window of learned weights, at most 14.
    pub impact_bits: u32,
    /// Of a block with their sums.
    pub impact_threads: u32,
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
            impact_bits: 14,
            impact_threads: 384,
        }
    }
}

/// Of a window's lists, its bins and all else but the sums and what is found.
const SHARED_BESIDE: u32 = (plan::MOST_TERMS * 32 + 256 * 4 + 24) as u32;

impl QueryTuning {
    pub(crate) const RESCORE_SHARED_BYTES: u32 = 2 * 1024 + 8;

    /// The largest windows for so much shared memory of a block.
    pub(crate) fn of_device(shared_bytes: u32) -> Self {
        let usual = Self::default();
        let first = |all: [u32; 4], needs: &dyn Fn(u32) -> u32| {
            all.into_iter().find(|&bits| needs(bits) <= shared_bytes).unwrap_or(all[3])
        };
        let of_windows = |window_bits| Self { window_bits, ..usual }.or_shared_bytes(16);
        let of_impacts = |impact_bits| Self { impact_bits, ..usual }.impact_shared_bytes(true);
        let window_bits = first([16, 15, 14, 13], &of_windows);
        let impact_bits = first([14, 13, 12, 8], &of_impacts);
        Self { window_bits, impact_bits, ..usual }
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
            ("AND_SHARED_BYTES", self.and_shared_bytes()),
            ("RESCORE_SHARED_BYTES", Self::RESCORE_SHARED_BYTES),
            ("IMPACT_BITS", self.impact_bits),
            ("IMPACT_THREADS", self.impact_threads),
            ("IMPACT_SAMPLE_SHARED_BYTES", self.impact_shared_bytes(true)),
            ("IMPACT_SHARED_BYTES", self.impact_shared_bytes(false)),
        ];
        let text = concat!(
            include_str!("../../kernels/common.cuh"),
            include_str!("../../kernels/score.cuh"),
            include_str!("../../kernels/query_list.cuh"),
            include_str!("../../kernels/query_or.cuh"),
            include_str!("../../kernels/query_groups.cuh"),
            include_str!("../../kernels/query_and.cuh"),
            include_str!("../../kernels/query_select.cuh"),
            include_str!("../../kernels/query_unpack.cuh"),
            include_str!("../../kernels/query_impacts.cuh"),
            include_str!("../../kernels/query.cu"),
        );
        KernelSource { name: "query", text, sizes: sizes.into() }
    }

    /// Of a block with sums of this many bits.
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

    /// Of a block that adds up learned weights, of a sample or of all documents.
    pub(crate) fn impact_shared_bytes(&self, samples: bool) -> u32 {
        const RUNS_AND_ITEMS: u32 = 2 * (640 * 8 + 16);
        let bins = if samples { steps::SUM_BINS as u32 } else { 4 };
        (4 << self.impact_bits) + RUNS_AND_ITEMS + 4 * bins
    }
}

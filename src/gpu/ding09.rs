//! How does a device answer queries as Ding, He, Yan and Suel have it (WWW 2009)? Lists of `rice`
//! and `pfor` are on the device as they lie on disk, AND is Parallel Merge Find from the shortest
//! list on, and OR adds up an accumulator for each document: `kernels/ding09.cu`. The answers are
//! those of every other engine.
//!
//! | module | the question that it answers |
//! | --- | --- |
//! | [`batch`] | what a batch of queries says to the kernels, and how much memory it takes |
//! | [`device`] | how a device takes batches and gives results |
//! | [`list`] | how a postings list lies in the device's memory |
//! | [`steps`] | which kernels answer a batch, one after the other |
//! | `turn` | how planned queries become its batches |
//! | `twin` | what they find |

pub(crate) mod batch;
pub(crate) mod device;
pub(crate) mod list;
pub mod steps;
pub(super) mod turn;
#[cfg(test)]
pub(crate) mod twin;

use crate::gpu::floor::nvrtc::Source;

/// The kernels of `ding09.cu`.
pub(crate) const KERNELS: [&str; 13] = [
    "ding_open",
    "ding_decode",
    "ding_merge_find",
    "ding_find",
    "ding_sum_counts",
    "ding_choose",
    "ding_match",
    "ding_compact",
    "ding_scores",
    "ding_clear",
    "ding_accumulate",
    "ding_maxima",
    "ding_extract",
];

/// Levels of splitters that Parallel Merge Find has unless another number is asked for: what the
/// paper chose.
pub(crate) const MERGE_LEVELS: u32 = 3;

/// The most splitters for each of the level before.
pub(crate) const MOST_SPLITTERS: u32 = 1 << 16;

pub const MOST_MERGE_LEVELS: u32 = 4;

/// How Parallel Merge Find is done (section 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Levels of splitters, 0 to [`MOST_MERGE_LEVELS`].
    pub levels: u32,
    /// Splitters for each of the level before, a power of two from 2 to [`MOST_SPLITTERS`]; if none
    /// is given about m^(1 / (levels + 1)) of m elements, so that each level has as many times
    /// those of the one before.
    pub splitters: Option<u32>,
}

impl Default for Merging {
    fn default() -> Self {
        Self { levels: MERGE_LEVELS, splitters: None }
    }
}

impl Merging {
    /// Whether a number of splitters is one that levels can have.
    pub(crate) fn is_number_of_splitters(splitters: u32) -> bool {
        splitters.is_power_of_two() && (2..=MOST_SPLITTERS).contains(&splitters)
    }

    /// The logarithm of the splitters, 0 if none are given.
    fn bits(self) -> u32 {
        self.splitters.map_or(0, u32::trailing_zeros)
    }
}

pub(crate) fn source() -> Source {
    let text = concat!(
        include_str!("../../kernels/common.cuh"),
        include_str!("../../kernels/score.cuh"),
        include_str!("../../kernels/bits.cuh"),
        include_str!("../../kernels/ding09_list.cuh"),
        include_str!("../../kernels/ding09_open.cuh"),
        include_str!("../../kernels/ding09_find.cuh"),
        include_str!("../../kernels/ding09_top.cuh"),
        include_str!("../../kernels/ding09.cu"),
    );
    let sizes = vec![
        ("DECODE_SHARED_BYTES", steps::DECODE_SHARED_BYTES),
        ("SUM_SHARED_BYTES", steps::SUM_SHARED_BYTES),
    ];
    Source { name: "ding09", text, sizes }
}

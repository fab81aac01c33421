//! How does a device answer queries as Wang, Yu, Stones, Ren, Wang, Liu and Ren have it? A block of
//! threads has a query of AND, and looks for documents of the shortest list in the others, by
//! rounds, the best documents first, until no document that is left can be among the best:
//! `kernels/wang.cu`. Lists are on the device for good, whole or their first blocks, or come with
//! the batches. Where such beginnings end before a query does, the CPU goes on
//! ([`query::wang`](crate::query::algorithms::wang)). The answers are those of every other engine.
//!
//! | module | the question that it answers |
//! | --- | --- |
//! | [`batch`] | what a batch of queries says to the kernel, and how much memory it takes |
//! | [`cache`] | which lists are on the device for good |
//! | [`device`] | how a device takes batches and gives results |
//! | `turn` | how planned queries become its batches |
//! | [`list`] | how a postings list lies in the device's memory |
//! | `twin` | what the kernel finds |

pub(crate) mod batch;
pub(crate) mod cache;
pub(crate) mod device;
pub(crate) mod list;
pub(super) mod turn;
#[cfg(test)]
pub(crate) mod twin;

use crate::gpu::floor::nvrtc::Source;

pub(crate) const KERNEL: &str = "wang_and";

/// Documents of a round, each with a thread.
pub const ROUNDS: [u32; 5] = [64, 128, 256, 512, 1024];

/// Documents of a round unless another number is asked for.
pub const DEFAULT_ROUND: u32 = 256;

/// Which lists are on a device for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cached {
    /// Those of the plan in the generation's folder ([`cache_plan`](crate::index::cache_plan)), or
    /// [the longest](Self::Longest) if there is none.
    #[default]
    Planned,
    /// Whole lists, the longest first.
    Longest,
}

/// How a device answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WangTuning {
    pub round: u32,
    pub cached: Cached,
}

impl Default for WangTuning {
    fn default() -> Self {
        Self { round: DEFAULT_ROUND, cached: Cached::default() }
    }
}

pub(crate) fn source() -> Source {
    let text = concat!(
        include_str!("../../kernels/common.cuh"),
        include_str!("../../kernels/score.cuh"),
        include_str!("../../kernels/bits.cuh"),
        include_str!("../../kernels/wang_list.cuh"),
        include_str!("../../kernels/wang_top.cuh"),
        include_str!("../../kernels/wang.cu"),
    );
    Source { name: "wang", text, sizes: Vec::new() }
}

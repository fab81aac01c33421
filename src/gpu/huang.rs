//! How does a device answer queries as Huang, Ren, Zhao, Stones, Zhang, Wang and Liu have it
//! (ICA3PP 2017)? A block of threads has a query, each thread a range of the documents, which it
//! goes through one after another, by AND, OR, WAND or BMW: `kernels/huang.cu`. Lists of `newpfd`
//! are on the device as they lie on disk, the longest ones for good, others come with the batches.
//! The answers are those of every other engine.
//!
//! | module | the question that it answers |
//! | --- | --- |
//! | [`batch`] | what a batch of queries says to the kernels, and how much memory it takes |
//! | [`cache`] | which lists are on the device for good |
//! | [`device`] | how a device takes batches and gives results |
//! | `turn` | how planned queries become its batches |
//! | [`list`] | how a postings list lies in the device's memory |
//! | `twin` | what the kernels find: what those of `ding09` do |

pub(crate) mod batch;
pub(crate) mod cache;
pub(crate) mod device;
pub(crate) mod list;
pub(super) mod turn;

#[cfg(test)]
pub(crate) use super::ding09::twin;

use crate::gpu::floor::nvrtc::Source;
use crate::query::wanted::Algorithm;

pub(crate) const KERNELS: [&str; 4] = ["huang_and", "huang_or", "huang_wand", "huang_bmw"];

/// Threads of a block that the paper has tried.
pub const THREADS: [u32; 6] = [32, 64, 128, 256, 320, 512];

/// Threads of a block unless another number is asked for: the paper's best.
pub const DEFAULT_THREADS: u32 = 64;

/// Queries of a batch: a block of threads has one, a device room for some thousand blocks, and what
/// it takes to answer the longest queries is to be hidden by the others.
pub const BATCH: usize = 16_384;

/// How threads go through lists to find documents with any term; all find the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traversal {
    Exhaustive,
    /// By bounds of the lists.
    Wand,
    /// By bounds of the lists and of their blocks.
    #[default]
    Bmw,
}

impl Traversal {
    pub(crate) const ALL: [Self; 3] = [Self::Exhaustive, Self::Wand, Self::Bmw];

    /// The same on the CPU, which gives it its name.
    pub(crate) fn on_cpu(self) -> Algorithm {
        match self {
            Self::Exhaustive => Algorithm::Exhaustive,
            Self::Wand => Algorithm::Wand,
            Self::Bmw => Algorithm::Bmw,
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|traversal| traversal.on_cpu().name() == name)
    }

    pub fn kernel(self) -> &'static str {
        match self {
            Self::Exhaustive => "huang_or",
            Self::Wand => "huang_wand",
            Self::Bmw => "huang_bmw",
        }
    }
}

pub(crate) fn source() -> Source {
    let text = concat!(
        include_str!("../../kernels/common.cuh"),
        include_str!("../../kernels/score.cuh"),
        include_str!("../../kernels/bits.cuh"),
        include_str!("../../kernels/huang_list.cuh"),
        include_str!("../../kernels/huang_top.cuh"),
        include_str!("../../kernels/huang.cu"),
    );
    Source { name: "huang", text, sizes: Vec::new() }
}

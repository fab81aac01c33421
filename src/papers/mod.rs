//! What belongs to one paper alone, a folder for each. Nothing below knows it: a program hands it
//! in by value, as the tables below or as options of a job. `docs/inside/papers.md` has the command
//! and the verdict of each technique, figure and table.
//!
//! What several use stays in the room where they use it: codecs, orders, scores, and the tasks of a
//! query (`query/searcher/tasks.rs`).

#[cfg(feature = "gpu")]
pub(crate) mod ding09;
pub(crate) mod huang;
#[cfg(feature = "gpu")]
pub(crate) mod methods;
mod tatikonda11;
#[cfg(test)]
mod tests;
pub(crate) mod wang;
pub(crate) mod wei11;

use crate::build::handed::HandedIndexers;
#[cfg(feature = "gpu")]
use crate::gpu::query::method::HandedMethods;
use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::engines::engine::HandedModels;
#[cfg(feature = "rebuild")]
use crate::rebuild::handed::HandedRebuild;
use huang::wand::Wand;
use tatikonda11::shares::Docp;
use tatikonda11::small_adaptive::SmallAdaptive;
use wang::rounds::Rounds;
use wei11::Wei11;

pub const ALGORITHMS: HandedAlgorithms =
    &[&Wand { by_blocks: false }, &Wand { by_blocks: true }, &SmallAdaptive, &Rounds];

/// Methods of devices.
#[cfg(feature = "gpu")]
pub const METHODS: HandedMethods = &[
    &ding09::gpu::DingTuning::USUAL,
    &huang::gpu::HuangTuning::USUAL,
    &wang::gpu::WangTuning::USUAL,
];

/// Indexers that take tokens.
pub const INDEXERS: HandedIndexers = &[Wei11 { make: None }.handed()];

/// Ways to spread queries over workers.
pub const MODELS: HandedModels = &[&Docp { copies: false }, &Docp { copies: true }];

/// What rebuilds take.
#[cfg(feature = "rebuild")]
pub const REBUILD: HandedRebuild =
    HandedRebuild { indexers: INDEXERS, planner: Some(&wang::logs::CachePlanner) };

/// The sources of kernels in folders of papers, with their default tuning.
#[cfg(all(test, feature = "gpu"))]
pub(crate) fn sources() -> Vec<crate::gpu::floor::nvrtc::KernelSource> {
    vec![
        methods::source::<ding09::gpu::DingTuning>(),
        methods::source::<huang::gpu::HuangTuning>(),
        methods::source::<wang::gpu::WangTuning>(),
        wei11::gpu::btree::TreeTuning::default().source(),
    ]
}

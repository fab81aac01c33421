//! What belongs to one paper alone, a folder for each. Nothing below knows it: a program hands it
//! in by value, as the tables below or as options of a job. `docs/papers.md` has the command and
//! the verdict of each technique, figure and table.
//!
//! What several use stays in the room where they use it: codecs, orders, scores, and the tasks of a
//! query (`query/searcher/tasks.rs`).

#[cfg(feature = "gpu")]
pub(crate) mod ding09;
pub(crate) mod huang;
pub(crate) mod tatikonda11;
#[cfg(test)]
mod tests;

use crate::query::algorithms::handed::HandedAlgorithms;
use crate::query::engines::engine::HandedModels;
use huang::wand::Wand;
use tatikonda11::shares::Docp;
use tatikonda11::small_adaptive::SmallAdaptive;

/// Algorithms of the CPU.
pub const ALGORITHMS: HandedAlgorithms =
    &[&Wand { by_blocks: false }, &Wand { by_blocks: true }, &SmallAdaptive];

/// Ways to spread queries over workers.
pub const MODELS: HandedModels = &[&Docp { copies: false }, &Docp { copies: true }];

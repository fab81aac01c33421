//! Algorithms that find the best documents, one a file.

pub mod and;
pub(crate) mod auto;
pub(crate) mod blocks;
pub(crate) mod daat;
pub(crate) mod dense;
pub mod exhaustive;
mod given;
pub(crate) mod handed;
pub mod max_score;
pub(crate) mod ranges;
pub(crate) mod scored;
pub(crate) mod trees;
pub(crate) mod windows;

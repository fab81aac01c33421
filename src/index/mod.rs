//! How does a generation lie on disk, and how is it read, checked, merged and published? The bytes
//! are specified in `docs/index-format.md`; `format.rs` has the constants.

pub mod cache_plan;
pub mod ciff;
pub mod deletions;
pub mod documents;
pub mod error;
pub(crate) mod files;
pub mod format;
pub(crate) mod generations;
pub(crate) mod inspect;
pub mod lexicon;
pub mod list;
pub mod merge;
pub mod order;
pub mod ranks;
pub mod rerank;
pub mod run;
pub mod scores;
#[cfg(test)]
pub(crate) mod testing;
pub mod vectors;

pub use error::IndexError;

//! How does a generation lie on disk, and how is it read, checked, merged and published? The bytes
//! are specified in `docs/index-format.md`; `format.rs` has the constants.

pub(crate) mod cache_plan;
pub mod ciff;
pub(crate) mod deletions;
pub(crate) mod documents;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod generations;
pub(crate) mod inspect;
pub(crate) mod lexicon;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod order;
pub(crate) mod ranks;
pub(crate) mod run;
pub(crate) mod scores;
#[cfg(test)]
pub(crate) mod testing;
pub mod vectors;

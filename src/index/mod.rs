//! How does a generation lie on disk, and how is it read, checked, merged and published? The bytes
//! are specified in `docs/index-format.md`; `format.rs` has the constants.

pub mod browse;
pub mod cache_plan;
pub mod check;
pub mod ciff;
pub mod contents;
mod crc32;
pub mod deletions;
pub mod documents;
pub mod draft;
pub mod dump;
pub mod error;
pub mod find;
pub mod folder;
pub mod format;
pub mod generation;
pub(crate) mod in_use;
pub mod keep;
pub mod lexicon;
pub mod list;
pub mod manifest;
pub mod map;
pub mod merge;
pub mod order;
pub(crate) mod plain;
pub mod publish;
pub mod ranks;
pub mod rerank;
pub mod run;
pub mod scores;
pub mod shards;
pub mod storage;
pub mod summary;
#[cfg(test)]
pub(crate) mod testing;
pub mod vectors;
pub mod watch;
mod window;
mod write_map;

pub use error::IndexError;

//! Generations on disk: written, read, checked, merged and published. `docs/index-format.md`
//! specifies the bytes; `format.rs` has the constants. No byte that is read is believed: what is
//! damaged, cut short, foreign or newer is an error, never a panic or a huge allocation.

pub(crate) mod block_bounds;
pub(crate) mod cache_plan;
pub mod ciff;
pub(crate) mod columns;
pub(crate) mod deletions;
pub(crate) mod documents;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod generations;
pub(crate) mod inputs;
pub(crate) mod inspect;
pub(crate) mod lexicon;
pub(crate) mod list;
pub(crate) mod merge;
pub(crate) mod order;
pub(crate) mod positions;
pub(crate) mod ranks;
pub(crate) mod run;
pub(crate) mod scores;
#[cfg(test)]
#[path = "tests/testing.rs"]
pub(crate) mod testing;
pub(crate) mod texts;

//! Generations: opened, published, kept, and put together of runs.

pub mod draft;
pub mod folder;
pub mod generation;
pub(crate) mod in_use;
pub mod keep;
pub mod manifest;
pub mod publish;
pub mod shards;
pub mod watch;

//! Engines that answer planned queries, and the parts of an index that they search.

pub(crate) mod engine;
pub(crate) mod many;
pub(crate) mod pool;
pub(crate) mod shard;
pub(crate) mod share;
pub mod spreading;

//! Engines: who answers planned queries, and which part of them.

pub(crate) mod copied;
pub(crate) mod engine;
pub(crate) mod many;
pub(crate) mod pool;
pub(crate) mod shard;
pub(crate) mod share;
pub mod spreading;

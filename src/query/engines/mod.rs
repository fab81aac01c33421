//! Engines: who answers planned queries, and which part of them.

pub mod copied;
pub mod engine;
pub mod many;
pub mod pool;
pub mod shard;
pub mod share;
pub mod spreading;

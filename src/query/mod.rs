//! Which documents answer a query best? One algorithm a file; all of them return the same hits in
//! the same order with the same scores.

pub mod again;
pub mod and;
mod auto;
pub mod caching;
pub mod copied;
pub mod cursor;
mod daat;
pub mod docids;
pub mod engine;
pub mod exhaustive;
pub mod expanding;
pub mod explain;
mod frequencies;
mod kernels;
pub mod latencies;
pub mod lines;
pub mod many;
pub mod max_score;
pub mod misfit;
mod norms;
pub mod output;
pub mod plan;
pub mod pool;
mod ranges;
pub mod refusals;
pub mod rm3;
mod scored;
pub mod searcher;
pub mod shard;
pub mod share;
pub mod small_adaptive;
pub mod snapshot;
pub mod snippet;
pub mod spreading;
pub mod talk;
pub mod term_statistics;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod top_k;
pub mod topics;
pub mod wand;
pub mod wang;
pub mod wanted;
mod weighted;
mod windows;

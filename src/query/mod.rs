//! Which documents answer a query best? One algorithm a file; all of them return the same hits in
//! the same order with the same scores.

pub mod again;
pub(crate) mod algorithms;
pub(crate) mod answers;
pub mod caching;
pub mod cursor;
pub(crate) mod engines;
pub mod expanding;
mod frequencies;
mod kernels;
mod norms;
pub mod plan;
pub(crate) mod reading;
pub mod rm3;
pub mod scratch;
pub mod searcher;
pub mod snapshot;
pub mod term_statistics;
#[cfg(test)]
mod tests;
pub mod top_k;
pub mod wanted;

//! Which documents answer a query best? One algorithm a file; all of them return the same hits in
//! the same order with the same scores.

pub mod and;
mod auto;
pub mod cursor;
mod daat;
pub mod exhaustive;
pub mod explain;
mod kernels;
pub mod max_score;
pub mod output;
pub mod pool;
mod ranges;
pub mod searcher;
pub mod share;
pub mod small_adaptive;
#[cfg(test)]
mod tests;
pub mod top_k;
pub mod wand;
mod windows;

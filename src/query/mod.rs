//! Which documents answer a query best? One algorithm a file; all of them return the same hits in
//! the same order with the same scores.

pub mod and;
pub mod cursor;
pub mod exhaustive;
mod kernels;
pub mod max_score;
pub mod output;
pub mod searcher;
#[cfg(test)]
mod tests;
pub mod top_k;
mod windows;

//! How much is a posting worth, and how much can any posting of a block be worth?

pub mod bm25;
pub mod bounds;
pub mod given;
pub mod graph;
pub mod named;
pub mod pagerank;
pub mod scoring;
pub mod wang;
pub mod weight;

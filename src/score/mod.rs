//! How much is a posting worth?

pub mod bm25;

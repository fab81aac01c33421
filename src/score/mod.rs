//! Scores of postings and documents, and bounds on them.

pub(crate) mod block_codes;
pub(crate) mod bm25;
pub(crate) mod bounds;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod named;
pub(crate) mod pagerank;
pub(crate) mod parameters;
pub(crate) mod scoring;
pub(crate) mod static_scale;
pub(crate) mod wang;
pub(crate) mod weight;

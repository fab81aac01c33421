//! Search: the documents that answer a query best. All algorithms return the same hits in the same
//! order with the same scores.

pub(crate) mod algorithms;
pub(crate) mod answers;
pub(crate) mod candidates;
pub(crate) mod cursor;
pub(crate) mod engines;
pub(crate) mod expanding;
pub(crate) mod filter;
pub(crate) mod kernels;
pub(crate) mod listing;
pub(crate) mod norms;
pub(crate) mod open_index;
pub(crate) mod phrase;
pub(crate) mod plan;
pub(crate) mod reading;
pub(crate) mod rm3;
pub(crate) mod scratch;
pub(crate) mod searcher;
pub(crate) mod snapshot;
pub(crate) mod term_statistics;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod top_k;
pub(crate) mod tree;
pub(crate) mod wanted;

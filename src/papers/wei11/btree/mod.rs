//! The B-trees of the paper: a table of 17,613 roots, one for each trie collection, and behind each
//! a B-tree of degree 16 (Wei and JaJa, *A fast algorithm for constructing inverted files on
//! heterogeneous platforms*, IPDPS 2011, section III.B).
//!
//! [`node`] is the 512 bytes of Table II, [`strings`] the pool behind its caches, [`forest`]
//! searches and inserts, [`walk`] goes through the terms in order, and [`run`] is the paper's CPU
//! indexer (section III.D.1). `kernels/wei11/btree.cu` does the same on a device.

mod below;
pub(crate) mod forest;
pub(crate) mod node;
pub(crate) mod run;
pub(crate) mod strings;
pub(crate) mod walk;

/// The number of no node and no string.
pub(crate) const NONE: u32 = u32::MAX;

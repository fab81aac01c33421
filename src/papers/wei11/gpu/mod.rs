//! The indexer on a device: the trees that its kernels fill, and what feeds and empties them.

pub(crate) mod btree;
pub(crate) mod indexer;

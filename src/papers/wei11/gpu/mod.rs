//! The indexer on a device: the trees that its kernels fill, and what feeds and empties them.

#![allow(unsafe_code)]

pub(crate) mod btree;
pub(crate) mod indexer;

//! Names that rooms use still.

pub(crate) use super::memory::Slab;
pub(crate) use super::pinned::Pinned as Staging;

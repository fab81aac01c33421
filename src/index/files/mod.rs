//! The bytes of an index on disk: written, synced, mapped and read in one place.

pub(crate) mod map;
pub(crate) mod packed;
pub(crate) mod pages;
pub(crate) mod plain;
pub(crate) mod storage;
pub(crate) mod window;

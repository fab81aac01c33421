//! Scheduling: [`roles`] assigns the parts of a build to workers, [`placement`] trie collections to
//! indexers, [`claims`] parts of the input to readers.

pub(crate) mod claims;
pub(crate) mod placement;
pub(crate) mod roles;

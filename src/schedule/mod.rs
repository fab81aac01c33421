//! Who does which part of a job? [`roles`] gives workers their parts of a build, [`placement`] gives
//! indexers their trie collections.

pub mod claims;
pub mod placement;
pub mod roles;

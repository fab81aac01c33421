//! Who does which part of a job? [`roles`] gives workers their parts of a build, [`placement`] gives
//! indexers their trie collections, [`queues`] gives queries to the CPU and to devices.

pub mod claims;
pub mod features;
pub mod machine;
pub mod model_tree;
pub mod placement;
pub mod policy;
pub mod queues;
pub mod roles;
pub mod simulate;

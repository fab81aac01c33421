//! Scheduling: [`roles`] assigns the parts of a build to workers, [`placement`] trie collections to
//! indexers, [`queues`] queries to the CPU and to devices.

pub(crate) mod claims;
pub(crate) mod features;
pub(crate) mod machine;
pub(crate) mod model_tree;
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod roles;
pub(crate) mod simulate;

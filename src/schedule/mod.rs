//! Who does which part of a job? [`roles`] gives workers their parts of a build, [`placement`]
//! gives indexers their trie collections, [`queues`] gives queries to the CPU and to devices.

pub(crate) mod claims;
pub(crate) mod features;
pub(crate) mod machine;
pub(crate) mod model_tree;
pub(crate) mod placement;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod roles;
pub(crate) mod simulate;

//! Operators of the rebuild job: what changed, how often it is asked for, what links to it.

pub(crate) mod changes;
pub(crate) mod frequencies;
pub(crate) mod links;
pub(crate) mod pagerank;
pub(crate) mod scan;

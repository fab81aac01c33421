//! Operators of the rebuild job: what changed, how often it is asked for, what links to it.

pub mod changes;
pub mod frequencies;
pub mod links;
pub mod pagerank;
pub mod scan;

//! The reading of queries, in all the forms that they come in.

pub mod docids;
pub mod lines;
pub mod misfit;
pub mod refusals;
pub mod topics;
pub(crate) mod weighted;

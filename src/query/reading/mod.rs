//! The reading of queries, in all the forms that they come in.

pub(crate) mod docids;
pub(crate) mod lines;
pub(crate) mod refusals;
pub(crate) mod topics;
pub(crate) mod weighted;

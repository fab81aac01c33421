//! Reading of queries, in all their forms.

pub(crate) mod docids;
pub(crate) mod lines;
pub(crate) mod refusals;
pub(crate) mod topics;
pub(crate) mod weighted;

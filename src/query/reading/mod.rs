//! Reading of queries, in all their forms.

pub(crate) mod asked;
#[cfg(feature = "serve")]
pub(crate) mod beginning;
mod csv;
pub(crate) mod docids;
pub(crate) mod forms;
pub(crate) mod lines;
pub mod objects;
mod operators;
pub(crate) mod refusals;
mod remarks;
pub(crate) mod syntax;
pub(crate) mod topics;
pub(crate) mod trees;
pub(crate) mod weighted;

//! How is all that spread over workers? Timely operators, one a file, each thin over a plain type
//! of another module.

pub mod build;
pub mod control;
mod cores;
pub mod crossing;
mod data_line;
#[cfg(test)]
mod harness;
pub mod pagerank_iterate;
mod query;
pub(crate) mod rebuild;
mod sole_time;
pub mod timeline;
pub mod together;
pub mod workers;

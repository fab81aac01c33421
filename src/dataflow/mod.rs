//! The jobs as timely operators, one a file, each thin over a plain type of another module.

pub(crate) mod build;
pub(crate) mod control;
mod cores;
pub(crate) mod crossing;
mod data_line;
#[cfg(test)]
#[path = "tests/harness.rs"]
mod harness;
pub(crate) mod query;
pub(crate) mod rebuild;
mod sole_time;
pub(crate) mod timeline;
pub(crate) mod together;
pub mod workers;

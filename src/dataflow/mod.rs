//! The jobs as timely operators, one a file, each thin over a plain type of another module. The
//! head of an operator states records in and out, order, memory and work per activation.
//!
//! - What an operator holds a capability for is not over: the frontier says what is indexed or
//!   written, and nobody keeps a list of what is missing.
//! - The work of one activation is bounded, and what is left is scheduled again. No operator waits
//!   for a device, for input or for another process; only `collect` may wait, for the reader of the
//!   output.
//! - All work goes through a [`Guard`](control::Guard), which counts its time, ends the job at the
//!   first failure, and does nothing in a job that has ended.

pub(crate) mod build;
pub(crate) mod control;
mod cores;
pub(crate) mod crossing;
mod data_line;
#[cfg(test)]
#[path = "tests/harness.rs"]
pub(crate) mod harness;
pub(crate) mod query;
pub(crate) mod rebuild;
mod sole_time;
pub(crate) mod timeline;
pub(crate) mod together;
pub mod workers;

//! millrace builds inverted indexes from very large text collections and answers batches of ranked
//! queries. Both are timely dataflow jobs.
//!
//! ```text
//! build:  read -> decompress -> parse -> regroup -> exchange -> index -> encode -> flush -> merge
//! query:  read -> batch -> exchange -> answer -> collect -> write in order
//! ```
//!
//! Documents that a program has are indexed by one call, and searched by another:
//!
//! ```
//! use millrace::{BuildOptions, OwnedDocument, build};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let index = folder.path();
//! let texts = [("mill", "The mill stands by the river."), ("wind", "Wind turns a mill too.")];
//! let documents = texts.map(|(name, text)| OwnedDocument::new(name, text));
//! let report = build(BuildOptions::of_documents(index, documents))?;
//! assert_eq!((report.documents, report.generation), (2, 1));
//! # Ok(())
//! # }
//! ```
//!
//! What an embedding program needs stands here at the front and in [`build`](mod@build); the other
//! modules are the inside, documented for who works on it. Nothing of the library prints, reads the
//! command line or installs hooks; the binary in `jobs/` does. What happens inside is told by events of `tracing`, of stages and files, never of single documents or
//! queries. Imports run one way: `jobs`, then
//! [`build`](mod@build), then [`dataflow`], then [`query`], [`index`], [`dictionary`], [`input`] and
//! [`text`], then [`codec`] and [`score`].
//!
//! | module | the question that it answers |
//! | --- | --- |
//! | [`order`] | which document gets which docid, where a run ends, what fits the memory |
//! | [`input`] | what the input's files are, how they are cut, where documents begin and end |
//! | [`text`] | what the terms of a text are |
//! | [`dictionary`] | how terms and their postings are kept while a run is built |
//! | [`codec`] | how integers are written in few bits |
//! | [`index`] | how a generation lies on disk, is read, checked, merged and published |
//! | [`score`] | how much a posting is worth |
//! | [`query`] | which documents answer a query best |
//! | [`evaluate`] | how good a ranking is, by what people judged |
//! | [`tune`] | which parameters of a score rank best |
//! | [`rebuild`] | what a job file asks for, and what the rebuilds of an index have done |
//! | [`follow`] | how an index is brought up to date with its sources |
//! | [`schedule`] | who does which part of a job |
//! | [`dataflow`] | how all that is spread over workers, in timely operators |
//! | [`build`](mod@build) | how a program builds an index |
//! | [`cluster`] | how the processes of one job find, know and watch each other |
//! | [`gpu`] | what runs on NVIDIA GPUs, and how |
//! | [`chart`] | how numbers are drawn |
//! | [`shown`] | how numbers, and text that others have written, are shown to people |
//! | [`fault`] | how tests make every step fail |

// A library has no say on standard error.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod build;
pub mod chart;
pub mod cluster;
pub mod codec;
mod cpu;
mod crew;
pub mod dataflow;
pub mod dictionary;
pub mod evaluate;
pub mod fault;
pub mod follow;
pub mod gpu;
pub mod index;
pub mod input;
pub mod log;
pub mod order;
mod pages;
pub mod query;
pub mod rebuild;
pub mod schedule;
pub mod score;
pub mod shown;
pub mod text;
pub mod tune;

pub use build::{BuildError, BuildOptions, BuildReport, OwnedDocument, build};
pub use dataflow::control::Control;
pub use index::IndexError;

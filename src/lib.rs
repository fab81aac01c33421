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
//! All that a program calls stands here at the front: builds, queries one by one and as a service,
//! evaluation, errors. Nothing of the library prints, reads the command line or installs hooks; the
//! binary in `jobs/` does. What happens inside is told by events of `tracing`, of stages and files,
//! never of single documents or queries.
//!
//! The modules are private. What the binary, the Python module and the experiments use beside the
//! interface is in `inside`, which is hidden and may change with any version. Imports run one way,
//! from below in this table to above (`tests/layers.rs`):
//!
//! | module | what it is about |
//! | --- | --- |
//! | `order` | which document gets which docid, where a run ends, what fits the memory |
//! | `fault` | how tests make every step fail |
//! | `cluster` | how the processes of one job find, know and watch each other |
//! | `codec` | how integers are written in few bits |
//! | `score` | how much a posting is worth |
//! | `text` | what the terms of a text are |
//! | `dictionary` | how terms and their postings are kept while a run is built |
//! | `index` | how a generation lies on disk, is read, checked, merged and published |
//! | `schedule` | who does which part of a job |
//! | `input` | what the input's files are, how they are cut, where documents begin and end |
//! | `evaluate` | how good a ranking is, by what people judged |
//! | `query` | which documents answer a query best |
//! | `gpu` | what runs on NVIDIA GPUs, and how |
//! | `tune` | which parameters of a score rank best |
//! | `dataflow` | how all that is spread over workers, in timely operators |
//! | `build` | how a program builds an index |
//! | `rebuild` | how an index is brought up to date with its sources, as a job file asks |

#![allow(rustdoc::private_intra_doc_links)]
// What `inside` alone shows needs no words; the files of the interface ask for them by themselves.
#![allow(missing_docs)]
// A length that somebody needs is public; whether it is zero is another question.
#![allow(clippy::len_without_is_empty)]
// A library has no say on standard error.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

#[cfg(any(test, fuzzing))]
extern crate self as millrace;

mod build;
mod cluster;
mod codec;
mod cpu;
mod crew;
mod dataflow;
mod dictionary;
mod evaluate;
mod fault;
mod gpu;
mod index;
mod input;
mod log;
mod order;
mod pages;
mod query;
mod rebuild;
mod report_page;
mod schedule;
mod score;
mod settings;
mod shown;
mod text;
mod tune;

pub use build::{
    build,
    error::BuildError,
    guards::{Guards, limit::Limit},
    indexer::Indexer,
    memory::give_back_large_buffers,
    note::Note,
    options::{BuildOptions, Input},
    report::BuildReport,
};
pub use dataflow::{
    control::{Control, JobError},
    query::{
        batch::Asker,
        collect::Sink,
        lay_out::QueryAnswer,
        service::{QueryOptions, QueryReport, QueryService},
    },
};
pub use evaluate::{
    Evaluation, compare::Comparison, error::EvaluateError, measure::Measure, qrels::Qrels,
    run::Rankings,
};
pub use index::{error::IndexError, generations::generation::Generation};
pub use input::memory::OwnedDocument;
pub use query::{
    answers::explain::explain,
    engines::many::{ManyHits, search_many},
    reading::lines::{Lines, Query},
    searcher::Searcher,
    snapshot::Snapshot,
    top_k::Hit,
    wanted::{Algorithm, Mode, Wanted},
};
pub use score::{bm25::IdfKind, scoring::Scoring};
pub use settings::SettingError;
pub use tune::{Goal, Grid, Topic, Tried, tune};

#[doc(hidden)]
pub mod inside;

#[cfg(fuzzing)]
#[doc(hidden)]
#[path = "../fuzz/src/mod.rs"]
pub mod fuzzing;
#[cfg(test)]
#[path = "../tests/inside/mod.rs"]
mod inside_tests;

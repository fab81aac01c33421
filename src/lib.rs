//! millrace builds inverted indexes from very large text collections and answers batches of ranked
//! queries. Both are timely dataflow jobs.
//!
//! ```text
//! build:  read -> decompress -> parse -> regroup -> exchange -> index -> encode -> flush -> merge
//! query:  read -> batch -> exchange -> answer -> collect -> write in order
//! ```
//!
//! Build an index, search it, and measure how good the answers are:
//!
//! ```
//! use millrace::{BuildOptions, Evaluation, Index, Measure, OwnedDocument, Qrels, Rankings, build};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let folder = std::env::temp_dir().join("millrace-notes");
//!     let texts = [
//!         ("mill", "The mill stands by the river."),
//!         ("wind", "Wind turns a mill too, far from water."),
//!     ];
//!     let documents = texts.map(|(name, text)| OwnedDocument::new(name, text));
//!     let report = build(BuildOptions::of_documents(&folder, documents))?;
//!     println!("{} documents, {} terms", report.documents, report.terms);
//!
//!     let index = Index::open(&folder)?;
//!     let mut run = Rankings::new("mine");
//!     for hit in index.search("water mill", 10)? {
//!         println!("{} {} {}", hit.name, hit.docid, hit.score);
//!         run.add("q1", hit.name.as_bytes(), hit.score);
//!     }
//!     let judgements = Qrels::of("by hand", [("q1", &b"wind"[..], 1)])?;
//!     let found = Evaluation::new(&mut run, &judgements, &Measure::usual())?;
//!     println!("{}: {:.4}", found.measures[0], found.means[0]);
//!     Ok(())
//! }
//! ```
//!
//! [`Index`] is for searches, and [`Index::refresh`] follows what is published; [`QueryService`] is
//! for streams of queries. The options of a build are fields of [`BuildOptions`]. The library
//! prints nothing, reads no command line and installs no hooks; the binary in `jobs/` does. Events
//! of `tracing` tell of stages and files, never of single documents or queries.
//!
//! The files of an index are mapped into memory. If another program cuts one short while it is
//! open, or its disk fails, the system sends the process SIGBUS, which ends it: a library cannot
//! answer that for the program that it is in. The binary handles the signal, names the file, and
//! ends with status 1; a program of yours may do the same.
//!
//! If bytes change underfoot without that: names of documents are verified again, block by block,
//! when the first one of a block is given, and each page of postings when a list on it is first
//! asked for; all other files are verified when an index is opened. Later changes are not seen as
//! such: every access is checked, so that they end in an error or in other answers, never in a read
//! outside of the files.
//!
//! The modules are private. `inside` is hidden, is for the binary, the Python module and the
//! experiments, and may change with any version. `docs/ARCHITECTURE.md` has their order.

// A file or room that needs unsafe code says so at its head.
#![deny(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links)]
// Files of the interface warn about missing docs by themselves; items of `inside` need none.
#![allow(missing_docs)]
// Parts that a feature left out would use.
#![cfg_attr(
    not(all(feature = "program", feature = "papers", feature = "serve")),
    allow(dead_code, unreachable_pub, unused_imports)
)]
// Lengths are public where they are needed; `is_empty` is not.
#![allow(clippy::len_without_is_empty)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

#[cfg(any(test, fuzzing))]
extern crate self as millrace;

mod buffers;
mod build;
mod cluster;
mod codec;
mod cpu;
mod crew;
mod dataflow;
mod dictionary;
mod evaluate;
mod fault;
#[cfg(feature = "gpu")]
mod gpu;
mod index;
mod input;
#[cfg(feature = "program")]
mod log;
mod order;
mod pages;
#[cfg(feature = "papers")]
mod papers;
mod query;
#[cfg(feature = "rebuild")]
mod rebuild;
#[cfg(any(feature = "program", feature = "rebuild"))]
mod report_page;
mod schedule;
mod score;
#[cfg(feature = "serve")]
mod serve;
mod settings;
mod shown;
mod text;
mod tune;
mod update;

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
        collect::Sink,
        inbox::Asker,
        lay_out::QueryAnswer,
        service::{QueryOptions, QueryReport, QueryService},
    },
};
pub use evaluate::{
    Evaluation, compare::Comparison, error::EvaluateError, measure::Measure, qrels::Qrels,
    run::Rankings,
};
pub use index::{columns::Column, error::IndexError, generations::generation::Generation};
pub use input::memory::OwnedDocument;
pub use query::{
    answers::explain::explain,
    engines::many::{ManyHits, search_many},
    open_index::Index,
    reading::lines::{Lines, Query},
    searcher::Searcher,
    snapshot::Snapshot,
    top_k::{Hit, NamedHit},
    wanted::{Algorithm, Mode, Syntax, Wanted},
};
pub use score::{bm25::IdfKind, fields::FieldScoring, scoring::Scoring, static_scale::StaticScale};
pub use settings::SettingError;
pub use text::fields::IndexFields;
pub use tune::{Goal, Grid, Topic, Tried, tune};
pub use update::{Update, Updated, Writer};

#[cfg(feature = "program")]
#[doc(hidden)]
pub mod inside;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
#[allow(unsafe_code)]
#[path = "../tests/fuzz/src/mod.rs"]
pub mod fuzzing;
#[cfg(test)]
#[allow(unsafe_code)]
#[path = "../tests/gpu/inside/mod.rs"]
mod inside_tests;

//! Builds an index: a program fills in [`BuildOptions`], calls [`build`], and gets a
//! [`BuildReport`].
//!
//! ```
//! use millrace::BuildOptions;
//! use millrace::OwnedDocument;
//! use millrace::build;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let texts = ["The mill stands by the river.", "Rivers and streams", "Wind turns a mill too."];
//! let named = |(text, n)| OwnedDocument::new(format!("{n}"), text);
//! let documents = texts.into_iter().zip(1..).map(named);
//! let report = build(BuildOptions::of_documents(folder.path(), documents))?;
//! assert_eq!(report.documents, 3);
//! # Ok(())
//! # }
//! ```
//!
//! A build lists the input, finds devices if the indexer can use any, places the trie collections
//! by a sample of the input, runs the dataflow ([`dataflow::build`](crate::dataflow::build)) into
//! the folder of a new generation, merges the runs, and publishes by one rename. With
//! [`BuildOptions::peers`] several processes build a shard each, and process 0 publishes.
//!
//! Nothing here prints, reads the command line, handles signals or installs a panic hook: remarks
//! go to [`BuildOptions::notes`], figures to [`BuildOptions::progress`], and
//! [`BuildOptions::control`] ends the build from any thread. Builds of different indexes run side
//! by side in one process; what they share is the allocator, of which [`memory`] tells.

#![warn(missing_docs)]

mod alike;
pub(crate) mod devices;
pub(crate) mod error;
mod generation;
pub(crate) mod guards;
pub(crate) mod handed;
pub(crate) mod indexer;
pub(crate) mod memory;
pub(crate) mod note;
pub(crate) mod options;
mod part;
mod place;
mod placement;
pub(crate) mod prepare;
mod progress;
pub(crate) mod rates;
pub(crate) mod report;
pub(crate) mod run;
mod shard;

pub(crate) use error::BuildError;
#[cfg(feature = "rebuild")]
pub(crate) use generation::finish::accept_duplicates;
pub(crate) use guards::Guards;
pub(crate) use note::Note;
pub(crate) use note::Notes;
pub(crate) use options::{BuildOptions, Input, OnProgress, Peers};
pub(crate) use part::build_part;
#[cfg(feature = "rebuild")]
pub(crate) use part::links;
#[cfg(feature = "rebuild")]
pub(crate) use prepare::accept_passed;
pub(crate) use report::BuildReport;
pub(crate) use run::PreparedBuild;

/// Builds an index, or replaces it by a new generation.
///
/// # Errors
/// See [`BuildError`]. The generation that was live stays live, and what the build has written is
/// removed, by this call or by the next build.
pub fn build(options: BuildOptions) -> Result<BuildReport, BuildError> {
    PreparedBuild::new(options)?.run()
}

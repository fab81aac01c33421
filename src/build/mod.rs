//! How does a program build an index? It fills in [`BuildOptions`], calls [`build`], and gets a
//! [`BuildReport`].
//!
//! ```
//! use millrace::build::{BuildOptions, OwnedDocument, build};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let texts = ["The mill stands by the river.", "Rivers and streams", "Wind turns a mill too."];
//! let documents = texts.into_iter().zip(1..).map(|(text, n)| OwnedDocument::new(format!("{n}"), text));
//! let report = build(BuildOptions::of_documents(folder.path(), documents))?;
//! assert_eq!(report.documents, 3);
//! # Ok(())
//! # }
//! ```
//!
//! What a build does: it lists the input, finds devices if the indexer can use any, places the trie
//! collections by a sample of the input, runs the dataflow ([`dataflow::build`](crate::dataflow::build))
//! into the folder of a new generation, merges the runs, and publishes by one rename. With
//! [`BuildOptions::peers`] several processes build a shard each, and process 0 publishes.
//!
//! Nothing here prints, reads the command line, handles signals or installs a panic hook: remarks go
//! to [`BuildOptions::notes`], figures to [`BuildOptions::progress`], and [`BuildOptions::control`]
//! ends the build from any thread. Builds of different indexes run side by side in one process; what
//! they share is the allocator, of which [`memory`] tells.

mod devices;
mod error;
mod generation;
mod guards;
mod indexer;
mod lost;
pub mod memory;
mod names;
mod note;
mod options;
mod part;
mod place;
mod placement;
mod prepare;
mod progress;
mod rates;
mod ready;
mod report;
mod shard;

pub use crate::input::memory::{Documents, OwnedDocument};
pub use crate::rebuild::values::{Limit, NoLimit};
pub use crate::shown::chain;
pub use devices::usable_gpus;
pub use error::{BuildError, OptionsError};
pub use generation::PhasesReport;
pub use guards::Guards;
pub use indexer::Indexer;
pub use note::Note;
pub use options::{Accept, BuildOptions, Input, Notes, OnProgress, Peers, Pipeline, Snapshot};
pub use part::{build_part, build_unknown, links, scan};
pub use placement::{Placed, Placement, RatesFrom};
pub use prepare::Prepared;
pub use rates::MeasuredRates;
pub use report::{BuildReport, IndexerReport, SplitReport, TokensTaken, WholeReport};

/// Builds an index, or replaces it by a new generation.
///
/// # Errors
/// See [`BuildError`]. The generation that was live stays live, and what the build has written is
/// removed, by this call or by the next build.
pub fn build(options: BuildOptions) -> Result<BuildReport, BuildError> {
    Prepared::new(options)?.run()
}

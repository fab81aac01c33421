//! Builds of a part: of the documents that a rebuild wants, and of no index at all.

use super::error::BuildError;
use super::generation::{build_generation, dataflow_of};
use super::options::BuildOptions;
use super::prepare::Ready;
use crate::dataflow::links::{Take, links as links_of_pages};
use crate::dataflow::scan::{Scanned, scan as scan_documents};
use crate::gpu::discover::Gpus;
use crate::index::manifest::Manifest;
use crate::input::wanted::WantedDocuments;
use std::path::{Path, PathBuf};

/// Finds the documents of the input of `options` and indexes nothing; sorting takes `memory` bytes and leaves
/// files in `folder`.
///
/// # Errors
/// See [`build`](super::build).
pub fn scan(mut options: BuildOptions, folder: &Path, memory: u64) -> Result<Scanned, BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let (build, _) = dataflow_of(&mut options, input, folder.to_path_buf(), None)?;
    Ok(scan_documents(&build, folder, memory)?)
}

/// Finds the links of the pages of the input of `options` and indexes nothing; `take` gets those of each page, whose file
/// is the number of its input. `folder` is for what reading may leave.
///
/// # Errors
/// See [`build`](super::build); what `take` says.
pub fn links(mut options: BuildOptions, folder: &Path, take: Take) -> Result<(), BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let (build, _) = dataflow_of(&mut options, input, folder.to_path_buf(), None)?;
    Ok(links_of_pages(&build, take)?)
}

/// Builds the runs of the documents that are `wanted` into an empty folder that has one for runs, as generation 1,
/// and publishes nothing.
///
/// # Errors
/// See [`build`](super::build).
pub fn build_part(
    mut options: BuildOptions,
    wanted: WantedDocuments,
    folder: PathBuf,
) -> Result<Manifest, BuildError> {
    let input = Ready::new(&mut options, false)?;
    let built = build_generation(&mut options, input, 1, folder, Some(wanted))?;
    // With the inputs, of which the build has written a list and kept none.
    Ok(Manifest::read(&built.build.directory)?)
}

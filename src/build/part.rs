//! Builds for a rebuild: of the documents that it wants, and of no index at all.

use super::error::BuildError;
use super::generation::{Which, build_generation, dataflow_of, describe};
use super::options::BuildOptions;
use super::prepare::Ready;
use crate::crew::lock;
use crate::dataflow::control::JobError;
use crate::dataflow::rebuild::links::{Take, links as links_of_pages};
use crate::dataflow::rebuild::scan::scan as scan_documents;
use crate::dataflow::rebuild::scanned::{Scan, Scanned};
use crate::gpu::floor::discover::Gpus;
use crate::index::generations::manifest::{InputEntry, Manifest};
use crate::input::wanted::{KnownDocuments, Wanted, WantedDocuments};
use std::path::{Path, PathBuf};

/// Finds the documents of the input of `options` for `scan` and indexes nothing; `folder` is for
/// what reading may leave. Returns the inputs too, by their numbers.
pub(crate) fn scan(
    mut options: BuildOptions,
    scan: Scan,
    folder: &Path,
) -> Result<(Scanned, Vec<InputEntry>), BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let which = Which { wanted: None, scan: Some(scan) };
    let (build, _) = dataflow_of(&mut options, input, folder.to_path_buf(), which)?;
    scan_documents(&build)?;
    let mut done = lock(&build.done);
    done.inputs.sort_unstable_by_key(|read| read.input);
    let inputs = done.inputs.iter().map(|read| describe(&build, read)).collect();
    Ok((done.scanned.take().ok_or_else(no_table)?, inputs))
}

fn no_table() -> JobError {
    JobError::Start("the dataflow left no table".into())
}

/// Finds the links of the pages of the input of `options` and indexes nothing; `take` gets those of
/// each page, whose file is the number of its input. `folder` is for what reading may leave.
///
/// # Errors
/// See [`build`](super::build); what `take` says.
pub(crate) fn links(
    mut options: BuildOptions,
    folder: &Path,
    take: Take,
) -> Result<(), BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let (build, _) = dataflow_of(&mut options, input, folder.to_path_buf(), Which::default())?;
    Ok(links_of_pages(&build, take)?)
}

/// Builds the runs of the documents that are `wanted`, or of all, into an empty folder that has one
/// for runs, as generation 1, and publishes nothing.
pub(crate) fn build_part(
    mut options: BuildOptions,
    wanted: Option<WantedDocuments>,
    folder: PathBuf,
) -> Result<Manifest, BuildError> {
    let input = Ready::new(&mut options, wanted.is_none())?;
    let which = Which { wanted: wanted.map(Wanted::At), scan: None };
    let built = build_generation(&mut options, input, 1, folder, which)?;
    // With the inputs, of which the build has written a list and kept none.
    Ok(Manifest::read(&built.build.directory)?)
}

/// The same of the documents that are not `known`, while all are found for `scan`: the input is
/// read once.
pub(crate) fn build_unknown(
    mut options: BuildOptions,
    known: KnownDocuments,
    scan: Scan,
    folder: PathBuf,
) -> Result<(Manifest, Scanned), BuildError> {
    let input = Ready::new(&mut options, false)?;
    let which = Which { wanted: Some(Wanted::Unknown(known)), scan: Some(scan) };
    let built = build_generation(&mut options, input, 1, folder, which)?;
    let scanned = lock(&built.build.done).scanned.take().ok_or_else(no_table)?;
    Ok((Manifest::read(&built.build.directory)?, scanned))
}

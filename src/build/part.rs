//! Builds for a rebuild: of the documents that it wants, or of no index at all.

use super::error::BuildError;
use super::generation::{BuildJob, Which, build_generation, dataflow_of, describe};
use super::options::BuildOptions;
use super::prepare::Ready;
use crate::crew::lock;
use crate::dataflow::rebuild::links::{TakeLinks, links as links_of_pages};
use crate::dataflow::rebuild::scan::scan as scan_documents;
use crate::dataflow::rebuild::scanned::{InputScan, Scanned};
use crate::index::generations::manifest::Manifest;
use crate::index::inputs::{InputEntry, InputsFile};
use crate::input::wanted::WantedInput;
use crate::settings::Gpus;
use std::path::{Path, PathBuf};

/// Finds the documents of the input of `options` for `scan` and indexes nothing; `folder` is for
/// what reading may leave. Returns the inputs too, by their numbers.
pub(crate) fn scan(
    mut options: BuildOptions,
    scan: InputScan,
    folder: &Path,
) -> Result<(Scanned, Vec<InputEntry>), BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let which = Which { wanted: None, scan: Some(scan) };
    let BuildJob { build, .. } = dataflow_of(&mut options, input, folder.to_path_buf(), which)?;
    scan_documents(&build)?;
    let mut done = lock(&build.progress.done);
    done.inputs.sort_unstable_by_key(|read| read.input);
    let inputs = done.inputs.iter().map(|read| describe(&build.plan.input, read)).collect();
    let scanned = done.scanned.take();
    Ok((scanned.ok_or(BuildError::NoTable)?, inputs))
}

/// Finds the links of the pages of the input of `options` and indexes nothing; `take` gets those of
/// each page, whose file is the number of its input. `folder` is for what reading may leave.
pub(crate) fn links(
    mut options: BuildOptions,
    folder: &Path,
    take: TakeLinks,
) -> Result<(), BuildError> {
    options.gpus = Gpus::None;
    options.pipeline.sample = 0;
    let input = Ready::new(&mut options, false)?;
    let BuildJob { build, .. } =
        dataflow_of(&mut options, input, folder.to_path_buf(), Which::default())?;
    Ok(links_of_pages(&build, take)?)
}

/// Builds the runs of the documents that are `wanted`, or of all, into an empty folder that has one
/// for runs, as generation 1, and publishes nothing; `scan` gets all documents.
pub(crate) fn build_part(
    mut options: BuildOptions,
    wanted: Option<WantedInput>,
    scan: Option<InputScan>,
    folder: PathBuf,
) -> Result<(Manifest, Vec<InputEntry>, Option<Scanned>), BuildError> {
    let input = Ready::new(&mut options, wanted.is_none())?;
    let built = build_generation(&mut options, input, 1, folder, Which { wanted, scan })?;
    let scanned = lock(&built.build.progress.done).scanned.take();
    let manifest = built.new.manifest;
    let inputs = InputsFile::open_unverified(&built.build.plan.directory, &manifest)?.all()?;
    Ok((manifest, inputs, scanned))
}

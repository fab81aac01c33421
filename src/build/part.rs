//! Builds for a rebuild: of the documents that it wants, or of links alone.

use super::error::BuildError;
use super::generation::{BuildJob, Which, build_generation, dataflow_of};
use super::options::BuildOptions;
use super::prepare::Ready;
use crate::crew::lock;
#[cfg(feature = "rebuild")]
use crate::dataflow::rebuild::links::{TakeLinks, links as links_of_pages};
use crate::dataflow::rebuild::seen::{SeenDocuments, SeenWriter};
use crate::index::generations::manifest::Manifest;
use crate::index::inputs::{InputEntry, InputsFile};
use crate::input::wanted::WantedInput;
use crate::settings::Gpus;
use std::path::{Path, PathBuf};

/// Finds the links of the pages of the input of `options` and indexes nothing; `take` gets those of
/// each page, whose file is the number of its input. `folder` is for what reading may leave.
#[cfg(feature = "rebuild")]
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
/// for runs, as generation 1, and publishes nothing; `seen` gets all documents.
pub(crate) fn build_part(
    mut options: BuildOptions,
    wanted: Option<WantedInput>,
    seen: Option<SeenWriter>,
    folder: PathBuf,
) -> Result<(Manifest, Vec<InputEntry>, Option<SeenDocuments>), BuildError> {
    let input = Ready::new(&mut options, wanted.is_none())?;
    let built = build_generation(&mut options, input, 1, folder, Which { wanted, seen })?;
    let seen = lock(&built.build.progress.done).seen.take();
    let manifest = built.new.manifest;
    let inputs = InputsFile::open_unverified(&built.build.plan.directory, &manifest)?.all()?;
    Ok((manifest, inputs, seen))
}

//! The live generation of an index, and the places of the documents that were read.

use super::RebuildError;
use crate::index::deletions::Deletions;
use crate::index::documents::{Location, RunDocuments};
use crate::index::format::FileKind;
use crate::index::generations::folder::current;
use crate::index::generations::manifest::sharded::ShardedManifest;
use crate::index::generations::manifest::{Manifest, RunEntry};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) struct Live {
    pub(super) path: PathBuf,
    pub(super) manifest: Manifest,
}

impl Live {
    pub(super) fn has_ranks(&self) -> bool {
        let extension = FileKind::Scores.extension();
        self.manifest.files.iter().any(|file| file.name.ends_with(extension))
    }
}

pub(super) fn deletions(generation: &Path, run: &RunEntry) -> Result<Deletions, RebuildError> {
    Ok(match run.deleted {
        Some(_) => Deletions::open(generation, run, None)?,
        None => Deletions::default(),
    })
}

/// Calls `take` for each document of some runs that is not deleted, in order: with the place of the
/// run, the docid in it, and the name.
pub(super) fn for_each_name(
    generation: &Path,
    runs: &[RunEntry],
    mut take: impl FnMut(usize, u32, &[u8]) -> Result<(), RebuildError>,
) -> Result<(), RebuildError> {
    for (place, run) in runs.iter().enumerate() {
        let documents = RunDocuments::open_unverified(generation, run)?;
        let deleted = deletions(generation, run)?;
        for docid in (0..documents.len()).filter(|&docid| !deleted.contains(docid)) {
            take(place, docid, documents.name(docid).unwrap_or_default())?;
        }
    }
    Ok(())
}

pub(super) fn live(index: &Path) -> Result<Option<Live>, RebuildError> {
    let Some(path) = current(index)? else { return Ok(None) };
    if ShardedManifest::live(index)?.is_some() {
        return Err(RebuildError::Shards);
    }
    let manifest = Manifest::read(&path)?;
    Ok(Some(Live { path, manifest }))
}

pub(super) struct LivePlaces {
    file: File,
    path: PathBuf,
    /// The last block read, and the number of its first: most are asked for in order.
    held: Vec<Location>,
    first: u32,
}

const PLACES: u32 = 4096;

impl LivePlaces {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (held, first) = Default::default();
        Ok(Self { file: File::open(path)?, path: path.to_path_buf(), held, first })
    }

    /// Its input is a number among the files that changed.
    pub(super) fn get(&mut self, number: u32) -> Result<Location, RebuildError> {
        let first = number - number % PLACES;
        if self.held.is_empty() || self.first != first {
            let read = self.read(first);
            read.map_err(RebuildError::io(&self.path))?;
        }
        self.held.get((number - first) as usize).copied().ok_or(RebuildError::Replaced)
    }

    fn read(&mut self, first: u32) -> io::Result<()> {
        let place_bytes = size_of::<Location>() as u64;
        let all = self.file.metadata()?.len() / place_bytes;
        let count = all.saturating_sub(first.into()).min(PLACES.into());
        self.first = first;
        self.held = vec![Location::default(); count as usize];
        let bytes = bytemuck::cast_slice_mut(&mut self.held);
        self.file.read_exact_at(bytes, u64::from(first) * place_bytes)
    }
}

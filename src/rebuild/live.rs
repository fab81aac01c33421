//! The live generation of an index, and whether it is sound.

use super::RebuildError;
use crate::dataflow::rebuild::touched::TouchedDocuments;
use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::packed::on_disk;
use crate::index::format::{FileKind, file_path};
use crate::index::generations::folder::current;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::summary::Summary;
use crate::index::inputs::{InputEntry, InputsFile};
use crate::index::merge::{self, Merging};
use crate::rebuild::files::{read_json, replace_json};
use crate::rebuild::history::FOLDER;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub struct Live {
    pub(crate) path: PathBuf,
    pub(crate) manifest: Manifest,
    /// None of an older format, and of what has just been published.
    pub(super) inputs: Vec<InputEntry>,
}

pub(super) const OLDER: &str = "the index is of an older format, which this program does not read";

impl Live {
    /// How many documents are there that came by call.
    pub(super) fn documents_by_call(&self) -> Result<u64, RebuildError> {
        let by_call = self.inputs.iter().map(|input| input.is_by_call().then_some(0));
        let by_call: Vec<Option<u32>> = by_call.collect();
        if !by_call.contains(&Some(0)) {
            return Ok(0);
        }
        let documents = TouchedDocuments::new(&self.path, &self.manifest, &by_call)?;
        let mut count = 0;
        documents.read(0..documents.len(), |_, _, _| {
            count += 1;
            Ok::<_, RebuildError>(())
        })?;
        Ok(count)
    }

    pub(super) fn has_ranks(&self) -> bool {
        let extension = FileKind::Scores.extension();
        self.manifest.files.iter().any(|file| file.name.ends_with(extension))
    }
}

/// Calls `take` for each document of some runs that is not deleted, in order: with the place of the
/// run, the docid in it, and the name.
pub(super) fn for_each_name(
    generation: &Path,
    runs: &[LiveRun<'_>],
    mut take: impl FnMut(usize, u32, &[u8]) -> Result<(), RebuildError>,
) -> Result<(), RebuildError> {
    for (place, LiveRun { run, deletions }) in runs.iter().enumerate() {
        let documents = RunDocuments::open_mapped(generation, run)?;
        for docid in (0..documents.len()).filter(|&docid| !deletions.contains(docid)) {
            take(place, docid, &documents.name(docid)?)?;
        }
    }
    Ok(())
}

pub(super) fn live(index: &Path) -> Result<Option<Live>, RebuildError> {
    let Some(path) = current(index)? else { return Ok(None) };
    let (manifest, inputs) = match Manifest::read(&path) {
        Err(error) if error.is_older() => {
            let Summary { generation, statistics, .. } = Summary::read(&path)?;
            (Manifest { generation, statistics, ..Manifest::default() }, Vec::new())
        }
        read => {
            let manifest = read?;
            let inputs = InputsFile::open(&path, &manifest)?.all()?;
            (manifest, inputs)
        }
    };
    Ok(Some(Live { path, manifest, inputs }))
}

/// Tells when a file was found good. It is read again when that is long ago, or when its size or
/// the time of its last change is another one; links keep both.
const VERIFIED: &str = "verified.json";

/// Compares the files that were not found good in the last `every` with their checksums, so that a
/// rebuild carries no damage from generation to generation.
///
/// # Errors
/// The first file that is damaged.
pub(super) fn verify(
    index: &Path,
    live: &Live,
    every: Duration,
    merging: &Merging,
) -> Result<(), RebuildError> {
    let path = index.join(FOLDER).join(VERIFIED);
    // By file, in seconds since 1970.
    let before: BTreeMap<String, u64> = read_json(&path);
    let now = Manifest::now();
    let is_recent = |at: &&u64| now.checked_sub(**at).is_some_and(|since| since < every.as_secs());
    let mut known = BTreeMap::new();
    let mut due = Vec::new();
    for file in &live.manifest.files {
        let of_file = file_path(&live.path, &file.name);
        let data = fs::metadata(on_disk(&of_file));
        let data = data.map_err(IndexError::storage("read", &of_file))?;
        let changed = format!("{}.{:09}", data.mtime(), data.mtime_nsec());
        let key = format!("{} {} {changed} {:08x}", data.ino(), data.len(), file.crc32);
        let at = before.get(&key).filter(is_recent);
        due.extend(at.is_none().then_some(file));
        known.insert(key, *at.unwrap_or(&now));
    }
    if !due.is_empty() {
        merge::verify(&live.path, due, merging)?;
        replace_json(&path, &known)?;
    }
    Ok(())
}

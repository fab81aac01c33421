//! A generation that several processes build: each has a part, with runs and inputs of its own,
//! which no index has yet. Process 0 names all runs and writes the manifest; then each process
//! moves its runs to where the manifest has them.
//!
//! ```text
//! INDEX/gen-000005/parts-T/K/runs/000000.lexicon ...   the part of process K, while it is built
//! INDEX/runs/000007.lexicon ...                        its run, once it has a name
//! ```
//!
//! T is a number of this build alone. So a process that finds the folder knows that it is on the
//! disk of one that came before, such as process 0. Another is the first on its disk: it locks the
//! index there, and writes copies of the inputs and the manifest. That disk has no `CURRENT`: what
//! is live only process 0 says.

#[cfg(test)]
mod tests;

use crate::index::error::IndexError;
use crate::index::files::storage::{self, FileEntry};
use crate::index::format::{
    CURRENT, FileKind, INPUTS, MANIFEST, RUNS, VERSION, generation_name, run_name, run_of_file,
};
use crate::index::generations::folder::{IndexLock, generations};
use crate::index::generations::manifest::summary::Summary;
use crate::index::generations::manifest::{Manifest, RunEntry, Statistics, find_file};
use crate::index::generations::run_files::next_run;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What process 0 says of a generation that begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BegunGeneration {
    pub(crate) number: u32,
    /// The number of this build.
    pub(crate) build: u64,
    /// Numbers of the live generation and of those that are kept.
    pub(crate) keep: Vec<u32>,
}

/// Where the part of a process is built.
#[derive(Debug)]
pub(crate) struct PartPlace {
    index: PathBuf,
    generation: PathBuf,
    process: usize,
    /// Of the folders of all parts on this disk, and of this one.
    parts: PathBuf,
    folder: PathBuf,
    /// If this process is the first on its disk, and not process 0.
    lock: Option<IndexLock>,
    keep: Vec<u32>,
}

/// Attempts of a process to find the folder of a process that has locked its disk, and the pause
/// between.
const ATTEMPTS: usize = 500;
const PAUSE: Duration = Duration::from_millis(10);

impl BegunGeneration {
    fn parts(&self, index: &Path) -> PathBuf {
        index.join(generation_name(self.number)).join(format!("parts-{:016x}", self.build))
    }

    /// Makes the folder of the parts on the disk of process 0, which has made that of the
    /// generation.
    pub(crate) fn make_room(&self, index: &Path) -> Result<(), IndexError> {
        storage::create_dir(&self.parts(index))
    }
}

impl PartPlace {
    /// Makes an empty folder for the part of a process. The first on a disk removes there what does
    /// not stay; `Refused` if an index is live there, for it is not that of process 0.
    pub(crate) fn begin(
        index: &Path,
        begun: &BegunGeneration,
        process: usize,
    ) -> Result<Self, IndexError> {
        let parts = begun.parts(index);
        let mut lock = None;
        for attempt in 1.. {
            if parts.is_dir() {
                break;
            }
            match IndexLock::acquire(index) {
                Err(IndexError::Locked { .. }) if attempt < ATTEMPTS => sleep(PAUSE),
                locked => {
                    let first = locked?;
                    first_on_disk(&first, begun, &parts)?;
                    lock = Some(first);
                }
            }
        }
        let folder = parts.join(process.to_string());
        storage::create_dir(&folder)?;
        storage::create_dir(&folder.join(RUNS))?;
        let generation = index.join(generation_name(begun.number));
        let (index, keep) = (index.to_path_buf(), begun.keep.clone());
        Ok(Self { index, generation, process, parts, folder, lock, keep })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether this disk needs copies of what process 0 writes.
    pub(crate) fn needs_copies(&self) -> bool {
        self.lock.is_some()
    }

    /// The first number that no run has which is on this disk, or of a generation that is.
    pub(crate) fn next_run(&self) -> Result<u32, IndexError> {
        let mut next = next_run(&self.generation)?;
        for (_, generation) in generations(&self.index)? {
            // What cannot be read is debris, or names nothing that can be opened.
            let files = Summary::read(&generation).map_or_else(|_| Vec::new(), |known| known.files);
            let runs = files.iter().filter_map(|file| run_of_file(&file.name)?.parse().ok());
            next = runs.map(|run: u32| run.saturating_add(1)).fold(next, u32::max);
        }
        Ok(next)
    }

    /// Moves the runs of the `part` to where the manifest of the whole generation, which has this
    /// text, has them; writes copies of that and of its `inputs` if they are needed. All is synced.
    /// Returns the files of these runs.
    pub(crate) fn settle(
        &self,
        part: &Manifest,
        text: &str,
        inputs: Option<&[u8]>,
    ) -> Result<Vec<FileEntry>, IndexError> {
        let path = self.generation.join(MANIFEST);
        let whole = Manifest::decode(&path, text.as_bytes())?;
        let own = whole.runs.iter().filter(|run| run.holder() == self.process);
        let mut unsynced = vec![self.index.join(RUNS)];
        let mut files = Vec::new();
        for (from, to) in part.runs.iter().zip(own) {
            for kind in kinds_of(part, from) {
                let named = to.path(&self.generation, kind);
                storage::rename(&from.path(&self.folder, kind), &named)?;
                unsynced.push(named);
                files.push(find_file(&whole.files, &self.generation, &to.file(kind))?.clone());
            }
        }
        if let Some(inputs) = inputs {
            let copy = self.generation.join(INPUTS);
            storage::write_whole(&copy, inputs)?;
            storage::write_whole(&path, text.as_bytes())?;
            unsynced.extend([copy, path, self.generation.clone(), self.index.clone()]);
        }
        storage::remove_tree(&self.folder)?;
        storage::sync_all(&unsynced)?;
        Ok(files)
    }

    /// Removes the folder of all parts, once all processes have settled.
    pub(crate) fn clear(&self) -> Result<(), IndexError> {
        storage::remove_tree(&self.parts)
    }

    /// Removes what this process has built; the first on its disk removes all that does not stay.
    /// What cannot be removed now is removed by the next build.
    pub(crate) fn abandon(&self) {
        _ = match &self.lock {
            Some(lock) => lock.retain(&self.keep),
            None => storage::remove_tree(&self.folder),
        };
    }

    /// The new generation is live: removes from a disk of its own all others but those to `keep`.
    pub(crate) fn clean(&self, keep: &[u32]) {
        if let Some(lock) = &self.lock {
            _ = self.clear();
            _ = lock.retain(keep);
        }
    }
}

fn first_on_disk(
    lock: &IndexLock,
    begun: &BegunGeneration,
    parts: &Path,
) -> Result<(), IndexError> {
    let index = lock.index();
    if index.join(CURRENT).exists() {
        let why = "an index is live here that is not the one of process 0: remove it, or give \
                   another folder";
        return Err(IndexError::refused(index, why));
    }
    lock.retain(&begun.keep)?;
    storage::create_dir(&index.join(generation_name(begun.number)))?;
    storage::create_dir(&index.join(RUNS))?;
    storage::create_dir(parts)
}

/// The kinds of files that a run of a manifest has.
fn kinds_of(manifest: &Manifest, run: &RunEntry) -> Vec<FileKind> {
    let kinds = FileKind::OWN.into_iter().chain(FileKind::OPTIONAL);
    let is_there = |kind: &FileKind| {
        let name = run.file(*kind);
        manifest.files.iter().any(|file| file.name == name)
    };
    kinds.filter(is_there).collect()
}

/// The manifest of the parts of all processes, in their order, each with the number of its first
/// input in all; runs get names from `next_run` on. Counts of terms, names and inputs are left
/// open, and so is the file of the inputs.
///
/// # Errors
/// `Refused` if there are more documents than docids.
pub(crate) fn whole_of(
    index: &Path,
    parts: &[(Manifest, u32)],
    mut next_run: u32,
) -> Result<Manifest, IndexError> {
    let mut whole = parts.first().map(|(part, _)| part.clone()).unwrap_or_default();
    let (mut runs, mut files) = (Vec::new(), Vec::new());
    let mut next = 0u32;
    let mut empty_documents = 0;
    for (process, (part, first_input)) in (0u32..).zip(parts) {
        for run in &part.runs {
            let new = RunEntry {
                name: run_name(next_run),
                first_docid: next,
                first_input: run.first_input + first_input,
                process: Some(process),
                ..run.clone()
            };
            next_run += 1;
            next = next.checked_add(run.documents).filter(|next| *next < u32::MAX).ok_or_else(
                || IndexError::refused(index, "there are more documents than docids"),
            )?;
            for kind in kinds_of(part, run) {
                let name = run.file(kind);
                let of_kind = part.files.iter().find(|file| file.name == name);
                let named = |file: &FileEntry| FileEntry { name: new.file(kind), ..file.clone() };
                files.extend(of_kind.map(named));
            }
            runs.push(new);
        }
        empty_documents += part.statistics.empty_documents;
    }
    let mut skipped = BTreeMap::new();
    for (reason, n) in parts.iter().flat_map(|(part, _)| &part.statistics.skipped) {
        *skipped.entry(reason.clone()).or_default() += n;
    }
    whole.format = VERSION;
    whole.created = Manifest::now();
    whole.workers = parts.iter().map(|(part, _)| part.workers).sum();
    whole.statistics = Statistics { empty_documents, skipped, ..Statistics::of_runs(&runs) };
    whole.statistics.field_tokens.resize(whole.settings.fields.len(), 0);
    (whole.runs, whole.files) = (runs, files);
    Ok(whole)
}

//! Completes a draft: its documents are counted, the manifest is written, and it goes live.

use super::{Description, Draft};
use crate::crew::{Crew, cores};
use crate::index::block_bounds::write_missing_bounds;
use crate::index::deletions::write_deletions;
use crate::index::documents::RunDocuments;
use crate::index::documents::duplicates::{Duplicates, SameName, find_duplicates};
use crate::index::documents::lookup::LookupStream;
use crate::index::error::IndexError;
use crate::index::files::packed::on_disk;
use crate::index::format::{MANIFEST, RUNS, VERSION, file_path};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::manifest::{Manifest, RunEntry, Settings, Statistics};
use crate::index::merge::count_distinct_terms;
use crate::index::run::Run;
use std::ops::Range;
use std::path::PathBuf;

/// Threads that count names, and runs that these look at together, at most.
const MOST_COUNTERS: usize = 8;
const MOST_STREAMS: usize = 64;
/// Names for which a thread is worth starting.
const LEAST_NAMES: usize = 1 << 12;

/// A generation whose manifest is written. It lasts once what is `unsynced` is synced, with the
/// folder of the index.
#[derive(Debug)]
pub(crate) struct NewGeneration {
    pub(crate) manifest: Manifest,
    pub(crate) unsynced: Vec<PathBuf>,
}

impl Draft {
    /// What all runs hold together, except for terms; postings as of the deleted documents that are
    /// counted.
    pub(crate) fn statistics(&self, empty_documents: u64, duplicate_names: u64) -> Statistics {
        Statistics { empty_documents, duplicate_names, ..Statistics::of_runs(&self.runs) }
    }

    /// Finds documents of some runs whose name an earlier one of these has, by several threads, and
    /// deletes those that are not wanted.
    pub(crate) fn duplicates(
        &mut self,
        runs: Range<usize>,
        wanted: SameName,
    ) -> Result<Duplicates, IndexError> {
        self.number_documents()?;
        let live = &self.live_runs()[runs.clone()];
        // A thread has a window and two files for each run.
        let names: usize = live.iter().map(|live| live.run.documents as usize).sum();
        let most = MOST_COUNTERS.min(MOST_STREAMS / live.len().max(1)).min(names / LEAST_NAMES);
        let threads = cores().min(most).max(1);
        let count = |(): &mut (), part: usize| {
            let border = |part: usize| ((part as u64) << 32) / threads as u64;
            let hashes = border(part) as u32..=(border(part + 1) - 1) as u32;
            let open = |live| LookupStream::open(&self.folder, live, hashes.clone());
            find_duplicates(&mut live.iter().map(open).collect::<Result<Vec<_>, _>>()?, wanted)
        };
        let parts = Crew::new("names").in_order(threads, threads, count)?;
        let mut found = parts.into_iter().fold(Duplicates::default(), Duplicates::unite);
        found.unwanted.sort_unstable();
        let mut unwanted = &found.unwanted[..];
        for run in runs {
            let RunEntry { first_docid, documents, .. } = self.runs[run];
            let of_run = unwanted.partition_point(|docid| docid - first_docid < documents);
            let docids: Vec<u32> = unwanted[..of_run].iter().map(|d| d - first_docid).collect();
            unwanted = &unwanted[of_run..];
            if !docids.is_empty() {
                self.delete(run, &docids)?;
            }
        }
        Ok(found)
    }

    /// Checks how the lists of all runs are coded.
    fn check_form(&self, settings: &Settings) -> Result<(), IndexError> {
        let check = |run| Run::open_unverified(&self.folder, run)?.check_form(settings);
        self.runs.iter().try_for_each(check)
    }

    /// Counts documents without a token.
    pub(crate) fn empty_documents(&self) -> Result<u64, IndexError> {
        let mut empty = 0;
        for (run, deletions) in self.runs.iter().zip(&self.deletions) {
            let documents = RunDocuments::open_unverified(&self.folder, run)?;
            let lengths = (0..).zip(documents.lengths());
            let live = lengths.filter(|(docid, _)| !deletions.contains(*docid));
            empty += live.filter(|(_, length)| **length == 0).count() as u64;
        }
        Ok(empty)
    }

    /// Writes the manifest, and makes the generation live under the `lock` of its index.
    ///
    /// Memory: about `memory_bytes`, but at least 8 KB for each run, and 4 bytes for each document
    /// of the largest.
    ///
    /// # Errors
    /// `Refused` if there are more documents than docids, or lists that are coded otherwise than
    /// the settings say; as [`IndexLock::publish`].
    pub fn publish(
        self,
        lock: &IndexLock,
        description: Description,
        memory_bytes: u64,
    ) -> Result<Manifest, IndexError> {
        self.publish_if(lock, description, memory_bytes, None, |_, _| Ok(()))
    }

    /// [`publish`](Self::publish), if `accept` has nothing against what all runs hold together and
    /// the names that come twice. Documents are not counted if they were
    /// [counted](Self::recount).
    pub(crate) fn publish_if<E: From<IndexError>>(
        mut self,
        lock: &IndexLock,
        description: Description,
        memory_bytes: u64,
        counted: Option<(u64, u64)>,
        accept: impl FnOnce(&Statistics, &Duplicates) -> Result<(), E>,
    ) -> Result<Manifest, E> {
        self.check_form(&description.settings)?;
        let (empty, duplicates) = match counted {
            Some((empty, count)) => (empty, Duplicates { count, ..Duplicates::default() }),
            None => (self.empty_documents()?, self.duplicates(0..self.runs.len(), SameName::All)?),
        };
        let mut statistics = self.statistics(empty, duplicates.count);
        statistics.skipped.clone_from(&description.skipped);
        accept(&statistics, &duplicates)?;
        Ok(self.finish(description, statistics, memory_bytes)?.publish(lock)?)
    }

    /// Writes what is left to write. `statistics` are those of [`statistics`](Self::statistics).
    pub(crate) fn finish(
        mut self,
        description: Description,
        mut statistics: Statistics,
        memory_bytes: u64,
    ) -> Result<NewGeneration, IndexError> {
        self.number_documents()?;
        let terms = match (&self.runs[..], self.terms) {
            ([run], _) if run.counted() == 0 => run.terms,
            (_, Some(terms)) => terms,
            _ => {
                let live = self.live_runs();
                let runs: Vec<_> = live.into_iter().map(|live| (&*self.folder, live)).collect();
                count_distinct_terms(&runs, memory_bytes, |_| Ok(true))?
            }
        };
        let Description { command, workers, settings, skipped, is_commit } = description;
        // There may be no run.
        statistics.field_tokens.resize(settings.fields.len(), 0);
        let new = self.runs.iter().filter(|run| !self.shared.contains(&run.name));
        write_missing_bounds(&self.folder, new, &mut self.files, &settings, workers as usize)?;
        let inputs = u64::from(self.inputs.next());
        self.files.push(self.inputs.finish()?);
        self.files.extend(write_deletions(&self.folder, &self.runs, &self.deletions)?);
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        let unsynced = self.files.iter().filter(|file| !self.lasting.contains(&file.name));
        let more = [MANIFEST, RUNS, ""];
        let unsynced = unsynced.map(|file| &*file.name).chain(more);
        let paths = unsynced.map(|name| file_path(&self.folder, name));
        let mut unsynced: Vec<PathBuf> = paths.map(|path| on_disk(&path).to_path_buf()).collect();
        unsynced.dedup();
        let manifest = Manifest {
            format: VERSION,
            generation: self.number,
            created: Manifest::now(),
            command,
            is_commit,
            workers,
            settings,
            statistics: Statistics { terms, skipped, ..statistics },
            runs: self.runs,
            order: self.order,
            inputs,
            files: self.files,
        };
        manifest.write(&self.folder)?;
        Ok(NewGeneration { manifest, unsynced })
    }
}

impl NewGeneration {
    /// Makes it live, under the `lock` of its index.
    pub(crate) fn publish(self, lock: &IndexLock) -> Result<Manifest, IndexError> {
        lock.publish(self.manifest.generation, self.unsynced)?;
        Ok(self.manifest)
    }
}

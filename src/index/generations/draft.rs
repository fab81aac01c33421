//! A generation that is put together of runs that are there already and of new ones: a [`Draft`]
//! links the files of old runs, takes new ones, notes deleted documents, and is published like
//! every other generation.

#[cfg(test)]
#[path = "draft/tests/room.rs"]
mod room;
#[cfg(test)]
mod tests;

use crate::dictionary::names::{Duplicates, Names};
use crate::index::block_bounds::write_missing_bounds;
use crate::index::deletions::Deletions;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::storage::{self, Durability, FileEntry};
use crate::index::format::{FileKind, VERSION, run_file, run_name};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::manifest::{
    InputEntry, Manifest, RunEntry, Settings, Statistics, find_file,
};
use crate::index::merge::{
    Merging, RanksFound, count_distinct_terms, merge_runs, renumber_in_place, verify,
};
use crate::index::order::{DocumentOrder, OrderEntry};
use crate::index::run::{Run, write_deletions};
use crate::index::scores::{RunScores, write_scores};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The hashes of names may take one part of so many of the memory.
const NAMES_SHARE: u64 = 4;

/// What the manifest says of the job.
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub command: String,
    pub workers: u32,
    /// The same for all runs.
    pub settings: Settings,
    /// Records of the input that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A generation that is not published yet. Docids follow the runs in the order in which they come.
/// If it is not published, what was written is debris, which [`IndexLock::abandon`] removes.
#[derive(Debug)]
pub struct Draft<'a> {
    lock: &'a IndexLock,
    number: u32,
    folder: PathBuf,
    runs: Vec<RunEntry>,
    next_run: u32,
    files: Vec<FileEntry>,
    inputs: Vec<InputEntry>,
    /// Generations whose inputs are among these, and the number of the first of each.
    sources: Vec<(PathBuf, u32)>,
    /// Runs in order are not in order together.
    order: Option<OrderEntry>,
    /// New runs are given bounds of blocks of documents; linked ones stay as they are.
    linked: HashSet<String>,
}

impl<'a> Draft<'a> {
    /// Makes the folder of the next generation.
    pub fn begin(lock: &'a IndexLock) -> Result<Self, IndexError> {
        let (number, folder) = lock.next_generation()?;
        let (runs, next_run, files, inputs, sources) = Default::default();
        let linked = HashSet::new();
        let order = None;
        Ok(Self { lock, number, folder, runs, next_run, files, inputs, sources, order, linked })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// New runs are written under this number.
    pub(crate) fn next_run(&self) -> u32 {
        self.next_run
    }

    pub(crate) fn runs(&self) -> &[RunEntry] {
        &self.runs
    }

    /// Adds inputs of new runs. Returns the number of the first.
    pub(crate) fn add_inputs(&mut self, inputs: impl IntoIterator<Item = InputEntry>) -> u32 {
        let first = self.inputs.len() as u32;
        self.inputs.extend(inputs);
        first
    }

    /// Takes over run `run` of the published generation in the folder `from`, with its deletions:
    /// its files are linked, or copied where the file system has no links, with their checksums.
    /// All inputs of that generation become inputs of this one. Returns the place of the run.
    ///
    /// # Errors
    /// `Damaged` if the manifest has no such run or file.
    pub fn link(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        run: usize,
    ) -> Result<usize, IndexError> {
        let Some(old) = manifest.runs.get(run) else {
            let expected = format!("run {run}");
            let found = format!("{} runs", manifest.runs.len());
            let path = from.join(crate::index::format::MANIFEST);
            return Err(IndexError::damaged(&path, 0, expected, found));
        };
        let name = run_name(self.next_run());
        for kind in FileKind::OF_RUN.into_iter().chain(FileKind::OPTIONAL) {
            let old_name = run_file(&old.name, kind);
            let name = run_file(&name, kind);
            let entry = find_file(&manifest.files, from, &old_name);
            if entry.is_err() && FileKind::OPTIONAL.contains(&kind) {
                continue;
            }
            let entry = FileEntry { name, ..entry?.clone() };
            storage::link_or_copy(&from.join(old_name), &self.folder.join(&entry.name))?;
            self.files.push(entry);
        }
        let known = self.sources.iter().find(|(source, _)| source == from).map(|(_, at)| *at);
        let first = known.unwrap_or_else(|| {
            let first = self.add_inputs(manifest.inputs.iter().cloned());
            self.sources.push((from.to_path_buf(), first));
            first
        });
        let first_input = first + old.first_input;
        self.linked.insert(name.clone());
        self.runs.push(RunEntry { name, first_input, ..old.clone() });
        self.next_run += 1;
        Ok(self.runs.len() - 1)
    }

    /// Takes a run that was written in the folder under the number [`next_run`](Self::next_run)
    /// with its documents, and its files, which are synced. Returns the place of the run.
    pub(crate) fn add(
        &mut self,
        run: RunEntry,
        files: Vec<FileEntry>,
    ) -> Result<usize, IndexError> {
        let expected = run_name(self.next_run());
        if run.name != expected {
            let reason = format!("run {} comes where {expected} does", run.name);
            return Err(IndexError::refused(&self.folder, reason));
        }
        self.runs.push(run);
        self.next_run += 1;
        self.files.extend(files);
        Ok(self.runs.len() - 1)
    }

    /// Deletes documents of the run at a place, beside those that are deleted already; docids count
    /// from the run's first. `Refused` if there is no such run.
    pub fn delete(&mut self, run: usize, docids: &[u32]) -> Result<(), IndexError> {
        let Some(entry) = self.runs.get_mut(run) else {
            return Err(IndexError::refused(&self.folder, format!("there is no run {run}")));
        };
        let mut docids = docids.to_vec();
        if entry.deleted.is_some() {
            docids.extend(Deletions::open(&self.folder, entry, None)?.docids());
        }
        write_deletions(&self.folder, entry, &mut self.files, &docids)
    }

    /// Replaces the PageRanks of the run at a place. `Refused` if there is no such run, or not as
    /// many ranks as documents.
    pub(crate) fn rank(&mut self, run: usize, ranks: &[f32]) -> Result<(), IndexError> {
        let entry = self.runs.get(run).filter(|entry| entry.documents as usize == ranks.len());
        let Some(entry) = entry else {
            let reason = format!("there is no run {run} with {} documents", ranks.len());
            return Err(IndexError::refused(&self.folder, reason));
        };
        let name = run_file(&entry.name, FileKind::Scores);
        if self.files.iter().any(|file| file.name == name) {
            // The file may be linked from another generation.
            storage::remove_file(&self.folder.join(&name))?;
            self.files.retain(|file| file.name != name);
        }
        let lasting = Durability::Lasting;
        self.files.push(write_scores(&self.folder, &entry.name, ranks, None, lasting)?);
        Ok(())
    }

    /// Merges neighbouring runs to one in their place, without their deleted documents. Their files
    /// are verified first, so that damage does not get a new checksum. Returns whether PageRanks
    /// were lost: those of runs that are merged with others that have none.
    ///
    /// Memory: that of [`Merging`], and 4 bytes for each document of the runs if they have
    /// PageRanks.
    ///
    /// # Errors
    /// `Refused` if there are no such runs; as
    /// [`merge_runs`].
    pub(crate) fn merge(
        &mut self,
        runs: Range<usize>,
        merging: &Merging,
    ) -> Result<bool, IndexError> {
        self.number_documents()?;
        let Some(old) = self.runs.get(runs.clone()).filter(|old| !old.is_empty()) else {
            let reason = format!("there are no runs {} to {}", runs.start, runs.end);
            return Err(IndexError::refused(&self.folder, reason));
        };
        let names = FileKind::OF_RUN.into_iter().chain(FileKind::OPTIONAL);
        let names = old.iter().flat_map(|run| names.clone().map(|kind| run_file(&run.name, kind)));
        let names: HashSet<String> = names.collect();
        let of_old = |file: &&FileEntry| names.contains(&file.name);
        verify(&self.folder, self.files.iter().filter(of_old), merging)?;
        let (ranks, ranked) = self.ranks_left(old)?;
        let lost = ranked > 0 && ranked < old.len();
        let (run, files) = merge_runs(&self.folder, old, &self.folder, self.next_run, merging)?;
        for file in self.files.extract_if(.., |file| names.contains(&file.name)) {
            let kinds = [FileKind::Deletions, FileKind::Scores, FileKind::Bounds];
            if kinds.iter().any(|kind| file.name.ends_with(kind.extension())) {
                storage::remove_file(&self.folder.join(&file.name))?;
            }
        }
        self.files.extend(files);
        self.next_run += 1;
        self.runs.splice(runs.clone(), [run]);
        if ranked > 0 && !lost {
            self.rank(runs.start, &ranks)?;
        }
        Ok(lost)
    }

    /// Says in which order the documents of the only run are, and have been.
    pub(crate) fn keep_order(&mut self, order: Option<OrderEntry>) {
        self.order = order;
    }

    /// Merges all runs to one whose documents are in an order. Returns what became of PageRanks.
    ///
    /// # Errors
    /// As [`merge`](Self::merge); `Lacks` if the memory does not do.
    pub(crate) fn order(
        &mut self,
        order: &DocumentOrder,
        merging: &Merging,
    ) -> Result<RanksFound, IndexError> {
        let lost = match &self.runs[..] {
            [] => return Ok(RanksFound::None),
            [run] if run.deleted.is_none() => {
                verify(&self.folder, &self.files, merging)?;
                false
            }
            runs => self.merge(0..runs.len(), merging)?,
        };
        let (ranks, ranked) = self.ranks_left(&self.runs)?;
        let ranks = (ranked > 0).then_some(ranks);
        let found = match ranks {
            _ if lost => RanksFound::Lost,
            None if matches!(order, DocumentOrder::Global { .. }) => RanksFound::Equal,
            None => RanksFound::None,
            Some(_) => RanksFound::Kept,
        };
        let run = self.runs.remove(0);
        for kind in [FileKind::Scores, FileKind::Bounds] {
            let name = run_file(&run.name, kind);
            if self.files.iter().any(|file| file.name == name) {
                storage::remove_file(&self.folder.join(name))?;
            }
        }
        self.linked.clear();
        let ordered = renumber_in_place(&self.folder, run, order, ranks.as_deref(), merging)?;
        self.runs = vec![ordered.run];
        self.files = ordered.files;
        self.order = Some(ordered.order);
        Ok(found)
    }

    /// The PageRanks of the documents of some runs that are not deleted, and how many of the runs
    /// have any.
    fn ranks_left(&self, runs: &[RunEntry]) -> Result<(Vec<f32>, usize), IndexError> {
        let mut ranks = Vec::new();
        let mut ranked = 0;
        for run in runs {
            let Some(scores) = RunScores::open(&self.folder, run, &self.files)? else { continue };
            ranked += 1;
            let deletions = match run.deleted {
                Some(_) => Deletions::open(&self.folder, run, None)?,
                None => Deletions::default(),
            };
            let left = (0..).zip(scores.ranks()?).filter(|(docid, _)| !deletions.contains(*docid));
            ranks.extend(left.map(|(_, rank)| *rank));
        }
        Ok((ranks, ranked))
    }

    fn number_documents(&mut self) -> Result<(), IndexError> {
        let mut next = 0u32;
        for run in &mut self.runs {
            run.first_docid = next;
            next = next.checked_add(run.documents).filter(|next| *next < u32::MAX).ok_or_else(
                || IndexError::refused(&self.folder, "there are more documents than docids"),
            )?;
        }
        Ok(())
    }

    /// Writes the manifest and makes the generation live.
    ///
    /// Memory: about `memory_bytes`, but at least 8 KB for each run, and 4 bytes for each document
    /// of the largest.
    ///
    /// # Errors
    /// `Refused` if there are more documents than docids, or lists that are coded otherwise than
    /// the settings say; as [`IndexLock::publish`].
    pub fn publish(
        self,
        description: Description,
        memory_bytes: u64,
    ) -> Result<Manifest, IndexError> {
        self.publish_if(description, memory_bytes, |_, _| Ok(()))
    }

    /// [`publish`](Self::publish), if `accept` has nothing against what all runs hold together and
    /// the names that come twice.
    pub(crate) fn publish_if<E: From<IndexError>>(
        mut self,
        description: Description,
        memory_bytes: u64,
        accept: impl FnOnce(&Statistics, &Duplicates) -> Result<(), E>,
    ) -> Result<Manifest, E> {
        let mut statistics = Statistics { skipped: description.skipped, ..Statistics::default() };
        let names = Names::new(&self.folder, memory_bytes / NAMES_SHARE);
        self.number_documents()?;
        let kept = || IndexError::storage("keep hashes of names", &self.folder);
        for run in &self.runs {
            let opened = Run::open_unverified(&self.folder, run)?;
            opened.check_form(&description.settings)?;
            let documents = RunDocuments::open_unverified(&self.folder, run)?;
            for (docid, &length) in (0..).zip(documents.lengths()) {
                if opened.deletions().is_some_and(|deletions| deletions.contains(docid)) {
                    continue;
                }
                statistics.documents += 1;
                statistics.tokens += u64::from(length);
                statistics.empty_documents += u64::from(length == 0);
                let name = documents.name(docid).unwrap_or_default();
                names.push(name, run.first_docid + docid).map_err(kept())?;
            }
            let deleted = run.deleted.unwrap_or_default().postings;
            statistics.postings += run.postings.saturating_sub(deleted);
        }
        let duplicates = names.finish(description.workers as usize).map_err(kept())?;
        statistics.duplicate_names = duplicates.count;
        accept(&statistics, &duplicates)?;
        statistics.terms = match &self.runs[..] {
            [run] if run.deleted.is_none() => run.terms,
            runs => {
                let runs: Vec<_> = runs.iter().map(|run| (&*self.folder, run)).collect();
                count_distinct_terms(&runs, memory_bytes)?
            }
        };
        let Description { ref settings, workers, .. } = description;
        let new = self.runs.iter().filter(|run| !self.linked.contains(&run.name));
        write_missing_bounds(&self.folder, new, &mut self.files, settings, workers as usize)?;
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        let manifest = Manifest {
            format: VERSION,
            generation: self.number,
            created: Manifest::now(),
            command: description.command,
            workers: description.workers,
            settings: description.settings,
            statistics,
            runs: self.runs,
            order: self.order,
            inputs: self.inputs,
            files: self.files,
        };
        manifest.write(&self.folder)?;
        self.lock.publish(self.number)?;
        Ok(manifest)
    }
}

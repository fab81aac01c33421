//! A generation that is not published yet, by whatever job: a build, a merge, an import, a rebuild.
//! A [`Draft`] takes new runs and links the files of old ones, notes deleted documents, merges runs
//! and puts documents in order. What it has written is synced all together when it goes live.

mod finish;
#[cfg(test)]
#[path = "draft/tests/room.rs"]
mod room;
#[cfg(test)]
mod tests;

pub(crate) use finish::NewGeneration;

use crate::index::deletions::{Deletions, LiveRun, read_deletions};
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::storage::{self, FileEntry};
use crate::index::format::{FileKind, MANIFEST, run_file, run_name};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::manifest::{Manifest, RunEntry, Settings, find_file};
use crate::index::inputs::{InputEntry, InputsFile, InputsWriter};
use crate::index::merge::{Merging, Reordered, merge_runs, reorder, verify};
use crate::index::order::{DocumentOrder, OrderEntry};
use crate::index::ranks::{RankCounts, RanksFile, RanksFound, read_ranks};
use crate::index::run::{WrittenRun, delete};
use crate::index::scores::{RunScores, write_scores};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
pub struct Draft {
    number: u32,
    folder: PathBuf,
    runs: Vec<RunEntry>,
    /// What is left out of each run.
    deletions: Vec<Arc<Deletions>>,
    /// The folder that runs were linked from last, and what is left out of each run there.
    linked_from: Option<(PathBuf, Vec<Arc<Deletions>>)>,
    next_run: u32,
    files: Vec<FileEntry>,
    inputs: InputsWriter,
    /// Runs in order are not in order together.
    order: Option<OrderEntry>,
    /// Names of those runs whose files last already. Others get bounds of blocks of documents.
    linked: HashSet<String>,
}

impl Draft {
    /// Makes the folder of the next generation.
    pub fn begin(lock: &IndexLock) -> Result<Self, IndexError> {
        let (number, folder) = lock.next_generation()?;
        Self::at(number, folder)
    }

    /// Generation `number` in its folder, which has one for runs.
    pub(crate) fn at(number: u32, folder: PathBuf) -> Result<Self, IndexError> {
        let inputs = InputsWriter::create(&folder)?;
        let (runs, deletions, linked_from, next_run) = Default::default();
        let (files, order, linked) = Default::default();
        Ok(Self {
            number,
            folder,
            runs,
            deletions,
            linked_from,
            next_run,
            files,
            inputs,
            order,
            linked,
        })
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

    pub(crate) fn live_runs(&self) -> Vec<LiveRun<'_>> {
        let pairs = self.runs.iter().zip(&self.deletions);
        pairs.map(|(run, deletions)| LiveRun { run, deletions: deletions.clone() }).collect()
    }

    /// Adds inputs of runs. Returns the number of the first.
    pub(crate) fn add_inputs<I: Borrow<InputEntry>>(
        &mut self,
        inputs: impl IntoIterator<Item = I>,
    ) -> Result<u32, IndexError> {
        let first = self.inputs.next();
        self.inputs.extend(inputs).map(|()| first)
    }

    /// Adds the inputs of the generation in the folder `from`. Returns the number of the first.
    pub fn take_inputs(&mut self, from: &Path, manifest: &Manifest) -> Result<u32, IndexError> {
        let first = self.inputs.next();
        for input in InputsFile::open(from, manifest)?.iter() {
            self.inputs.extend([input?])?;
        }
        Ok(first)
    }

    /// Takes over all runs of the published generation in the folder `from`, with its inputs.
    ///
    /// # Errors
    /// As [`link`](Self::link).
    pub fn link_all(&mut self, from: &Path, manifest: &Manifest) -> Result<(), IndexError> {
        let first = self.take_inputs(from, manifest)?;
        (0..manifest.runs.len()).try_for_each(|run| self.link(from, manifest, run, first).map(drop))
    }

    /// Takes over run `run` of the published generation in the folder `from`, with its deletions:
    /// its files are linked, or copied where the file system has no links, with their checksums.
    /// The inputs of that generation are among those of this one from `first_input` on. Returns the
    /// place of the run.
    ///
    /// # Errors
    /// `Damaged` if the manifest has no such run or file.
    pub fn link(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        run: usize,
        first_input: u32,
    ) -> Result<usize, IndexError> {
        let Some(old) = manifest.runs.get(run) else {
            let expected = format!("run {run}");
            let found = format!("{} runs", manifest.runs.len());
            let path = from.join(MANIFEST);
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
        let first_input = first_input.saturating_add(old.first_input);
        if self.linked_from.as_ref().is_none_or(|(folder, _)| folder != from) {
            let deletions = read_deletions(from, &manifest.runs, Some(&manifest.files))?;
            self.linked_from = Some((from.to_path_buf(), deletions));
        }
        let deletions = self.linked_from.as_ref().and_then(|(_, of_runs)| of_runs.get(run));
        self.deletions.push(deletions.cloned().unwrap_or_default());
        self.linked.insert(name.clone());
        self.runs.push(RunEntry { name, first_input, ..old.clone() });
        self.next_run += 1;
        Ok(self.runs.len() - 1)
    }

    /// [`link`](Self::link) for a run of a generation that was never published: its files last no
    /// sooner than this one.
    pub(crate) fn take(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        run: usize,
        first_input: u32,
    ) -> Result<usize, IndexError> {
        let place = self.link(from, manifest, run, first_input)?;
        self.linked.remove(&self.runs[place].name);
        Ok(place)
    }

    /// Takes a run that was written in the folder under the number [`next_run`](Self::next_run)
    /// with its documents, and its files. Returns the place of the run.
    pub(crate) fn add(&mut self, (run, files): WrittenRun) -> Result<usize, IndexError> {
        let expected = run_name(self.next_run());
        if run.name != expected {
            let reason = format!("run {} comes where {expected} does", run.name);
            return Err(IndexError::refused(&self.folder, reason));
        }
        self.runs.push(run);
        self.deletions.push(Arc::default());
        self.next_run += 1;
        self.files.extend(files);
        Ok(self.runs.len() - 1)
    }

    /// Deletes documents of the run at a place, beside those that are deleted already; docids count
    /// from the run's first. Lists are read only if more than 1 % of the run's documents are then
    /// not counted by list. `Refused` if there is no such run or document.
    pub fn delete(&mut self, run: usize, docids: &[u32]) -> Result<(), IndexError> {
        let Some(entry) = self.runs.get_mut(run) else {
            return Err(IndexError::refused(&self.folder, format!("there is no run {run}")));
        };
        delete(&self.folder, entry, &mut self.deletions[run], docids)
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
        self.files.push(write_scores(&self.folder, &entry.name, ranks, None)?);
        // Other ranks make another order.
        self.order = self.order.take().filter(|order| order.global.is_none());
        Ok(())
    }

    /// Verifies the files of runs that are about to be merged, so that damage does not get a new
    /// checksum.
    pub(crate) fn verify(&self, runs: Range<usize>, merging: &Merging) -> Result<(), IndexError> {
        let names = names_of(self.runs.get(runs).unwrap_or_default());
        let of_these = self.files.iter().filter(|file| names.contains(&file.name));
        verify(&self.folder, of_these, merging)
    }

    /// Merges neighbouring runs to one in their place, without their deleted documents. Returns
    /// whether PageRanks were lost: those of runs that are merged with others that have none.
    ///
    /// Memory: that of [`Merging`], and 4 bytes for each document of the runs if they have
    /// PageRanks.
    ///
    /// # Errors
    /// `Refused` if there are no such runs; as [`merge_runs`].
    pub(crate) fn merge(
        &mut self,
        runs: Range<usize>,
        merging: &Merging,
    ) -> Result<bool, IndexError> {
        self.number_documents()?;
        let live = self.live_runs();
        let Some(old) = live.get(runs.clone()).filter(|old| !old.is_empty()) else {
            let reason = format!("there are no runs {} to {}", runs.start, runs.end);
            return Err(IndexError::refused(&self.folder, reason));
        };
        let names = names_of(&self.runs[runs.clone()]);
        // A run of a global order has those scores too.
        let is_ordered = self.order.as_ref().is_some_and(|order| order.global.is_some());
        let (ranks, ranked) = if is_ordered { Default::default() } else { self.ranks_left(old)? };
        let lost = ranked > 0 && ranked < old.len();
        let number = self.next_run;
        let (run, files) = merge_runs(&self.folder, old, &self.folder, number, merging)?;
        let gone: Vec<_> = self.files.extract_if(.., |file| names.contains(&file.name)).collect();
        self.files.extend(files);
        for file in gone {
            let is = |kind: FileKind| file.name.ends_with(kind.extension());
            if is(FileKind::Scores) && is_ordered {
                let name = run_file(&run.name, FileKind::Scores);
                storage::rename(&self.folder.join(&file.name), &self.folder.join(&name))?;
                self.files.push(FileEntry { name, ..file });
            } else if [FileKind::Scores, FileKind::Bounds].into_iter().any(is) {
                storage::remove_file(&self.folder.join(&file.name))?;
            }
        }
        self.next_run += 1;
        self.deletions.splice(runs.clone(), [Arc::default()]);
        for gone in self.runs.splice(runs.clone(), [run]) {
            self.linked.remove(&gone.name);
        }
        if ranked > 0 && !lost {
            self.rank(runs.start, &ranks)?;
        }
        Ok(lost)
    }

    /// Says in which order the documents of the only run are, and have been.
    pub(crate) fn keep_order(&mut self, order: Option<OrderEntry>) {
        self.order = order;
    }

    /// Merges all runs to one whose documents are in an order, and have the `given` PageRanks, or
    /// those that they had. Returns what became of PageRanks.
    ///
    /// # Errors
    /// As [`merge`](Self::merge); `Lacks` if the memory does not do.
    pub(crate) fn order(
        &mut self,
        order: &DocumentOrder,
        given: Option<Vec<f32>>,
        merging: &Merging,
    ) -> Result<RanksFound, IndexError> {
        self.order = None;
        let lost = match &self.runs[..] {
            [] => return Ok(RanksFound::None),
            [run] if run.deleted.is_none() => false,
            runs => self.merge(0..runs.len(), merging)?,
        };
        let ranks = match given {
            Some(ranks) => Some(ranks),
            None => {
                let (ranks, ranked) = self.ranks_left(&self.live_runs())?;
                (ranked > 0).then_some(ranks)
            }
        };
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
        let number = self.next_run;
        let ordered = reorder(&self.folder, &run, number, order, ranks.as_deref(), merging)?;
        let Reordered { run, files, order } = ordered;
        self.next_run += 1;
        self.runs = vec![run];
        self.files = files;
        self.order = Some(order);
        Ok(found)
    }

    /// The PageRanks that a file has for the documents that are not deleted; `memory_bytes` as for
    /// [`read_ranks`](crate::index::ranks::read_ranks).
    pub(crate) fn read_ranks(
        &self,
        file: &RanksFile,
        memory_bytes: u64,
    ) -> Result<(Vec<f32>, RankCounts), IndexError> {
        let mut tables = Vec::with_capacity(self.runs.len());
        for (run, deletions) in self.runs.iter().zip(&self.deletions) {
            tables.push((RunDocuments::open_unverified(&self.folder, run)?, deletions));
        }
        let documents = self.runs.iter().map(|run| run.live_documents() as usize).sum();
        let names = tables.iter().flat_map(|(documents, deleted)| {
            let left = (0..documents.len()).filter(|&docid| !deleted.contains(docid));
            left.map(|docid| documents.name(docid).unwrap_or_default())
        });
        read_ranks(file, documents, names, memory_bytes)
    }

    /// The PageRanks of the documents of some runs that are not deleted, and how many of the runs
    /// have any.
    fn ranks_left(&self, runs: &[LiveRun<'_>]) -> Result<(Vec<f32>, usize), IndexError> {
        let mut ranks = Vec::new();
        let mut ranked = 0;
        for LiveRun { run, deletions } in runs {
            let Some(scores) = RunScores::open(&self.folder, run, &self.files)? else { continue };
            ranked += 1;
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

    /// Numbers the runs from 0 on.
    pub(crate) fn number_runs(&mut self) -> Result<(), IndexError> {
        for (number, run) in (0..).zip(&mut self.runs) {
            // The runs before have smaller numbers, and none has this one.
            let old = std::mem::replace(&mut run.name, run_name(number));
            if self.linked.remove(&old) {
                self.linked.insert(run.name.clone());
            }
            for kind in FileKind::OF_RUN.into_iter().chain(FileKind::OPTIONAL) {
                let [from, to] = [&old, &run.name].map(|name| run_file(name, kind));
                for file in self.files.iter_mut().filter(|file| file.name == from && from != to) {
                    storage::rename(&self.folder.join(&from), &self.folder.join(&to))?;
                    file.name.clone_from(&to);
                }
            }
        }
        Ok(())
    }
}

/// The names of all files that runs may have.
fn names_of(runs: &[RunEntry]) -> HashSet<String> {
    let kinds = FileKind::OF_RUN.into_iter().chain(FileKind::OPTIONAL);
    runs.iter().flat_map(|run| kinds.clone().map(|kind| run_file(&run.name, kind))).collect()
}

//! A generation that is not published yet, by whatever job: a build, a merge, an import, a rebuild.
//! A [`Draft`] takes new runs and those of older generations, notes deleted documents, merges runs
//! and puts documents in order. What it has written is synced all together when it goes live.

mod aside;
mod finish;
mod ranks;
mod recount;
#[cfg(test)]
#[path = "draft/tests/room.rs"]
mod room;
#[cfg(test)]
mod tests;
mod tiers;

pub(crate) use aside::{MergedAside, merge_aside};
pub(crate) use finish::NewGeneration;
pub(crate) use tiers::{LOST_RANKS, due};

use crate::index::deletions::{Deletions, LiveRun, read_deletions};
use crate::index::documents::moves::{Move, write_moves};
use crate::index::error::IndexError;
use crate::index::files::packed::{on_disk, write_pack};
use crate::index::files::storage::{self, FileEntry};
use crate::index::format::{FileKind, MANIFEST, file_path, run_name};
use crate::index::generations::folder::IndexLock;
use crate::index::generations::live_names::MappedDocuments;
use crate::index::generations::manifest::{Manifest, RunEntry, Settings, find_file};
use crate::index::generations::run_files::next_run;
use crate::index::inputs::{InputEntry, InputsFile, InputsWriter};
use crate::index::merge::{Merging, Reordered, merge_runs, reorder, verify};
use crate::index::order::{DocumentOrder, OrderEntry};
use crate::index::ranks::RanksFound;
use crate::index::run::{WrittenRun, delete};
use ranks::ranks_left;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run of an update with this many bytes, at most, is packed.
const PACKED_BYTES: u64 = 4 << 20;

/// What the manifest says of the job.
#[derive(Clone, Debug, Default)]
pub struct Description {
    pub command: String,
    pub workers: u32,
    /// The same for all runs.
    pub settings: Settings,
    /// Records of the input that are no documents, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// It is not a point to which one goes back.
    pub is_commit: bool,
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
    /// Names of runs that other generations have too.
    shared: HashSet<String>,
    /// Names of files that last already.
    lasting: HashSet<String>,
    /// By the name of a run, documents that the generation before has and this one does not.
    deleted: BTreeMap<String, Vec<u32>>,
    /// Different terms of all runs, if they are [counted](Self::recount_terms).
    terms: Option<u64>,
    /// Of runs of this index.
    known: MappedDocuments,
}

impl Draft {
    /// Makes the folder of the next generation.
    pub fn begin(lock: &IndexLock) -> Result<Self, IndexError> {
        let (number, folder) = lock.next_generation()?;
        let next_run = next_run(&folder)?;
        Self::at(number, folder, next_run)
    }

    /// Generation `number` in its folder; run `next_run` and those behind it are free.
    pub(crate) fn at(number: u32, folder: PathBuf, next_run: u32) -> Result<Self, IndexError> {
        let inputs = InputsWriter::create(&folder)?;
        let (runs, deletions, deleted, linked_from) = Default::default();
        let (files, order, shared, lasting, terms, known) = Default::default();
        Ok(Self {
            number,
            folder,
            runs,
            deletions,
            deleted,
            linked_from,
            next_run,
            files,
            inputs,
            order,
            shared,
            lasting,
            terms,
            known,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Documents of runs of this index that are open need not be opened again.
    pub(crate) fn know(&mut self, known: MappedDocuments) {
        self.known = known;
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

    /// Takes over run `run` of the published generation in the folder `from`, of this index, with
    /// its deletions. The inputs of that generation are among those of this one from `first_input`
    /// on. Returns the place of the run.
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
        let old = nth_run(from, manifest, run)?;
        for file in files_of(from, manifest, old)? {
            self.lasting.insert(file.name.clone());
            self.files.push(file);
        }
        if self.linked_from.as_ref().is_none_or(|(folder, _)| folder != from) {
            let deletions = read_deletions(from, &manifest.runs, Some(&manifest.files))?;
            self.linked_from = Some((from.to_path_buf(), deletions));
        }
        let deletions = self.linked_from.as_ref().and_then(|(_, of_runs)| of_runs.get(run));
        self.deletions.push(deletions.cloned().unwrap_or_default());
        self.shared.insert(old.name.clone());
        let first_input = first_input.saturating_add(old.first_input);
        self.runs.push(RunEntry { first_input, ..old.clone() });
        Ok(self.runs.len() - 1)
    }

    /// [`link`](Self::link) for a run of a generation that was never published, whose files become
    /// those of this index; those of a small run behind others are packed.
    pub(crate) fn take(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        run: usize,
        first_input: u32,
    ) -> Result<usize, IndexError> {
        let old = nth_run(from, manifest, run)?;
        let mut new = self.adopt(from, old, files_of(from, manifest, old)?)?;
        new.first_input = first_input.saturating_add(old.first_input);
        self.runs.push(new);
        self.deletions.push(Arc::default());
        Ok(self.runs.len() - 1)
    }

    /// Makes files of a run in a folder that no index has those of a new run here.
    fn adopt(
        &mut self,
        from: &Path,
        old: &RunEntry,
        files: Vec<FileEntry>,
    ) -> Result<RunEntry, IndexError> {
        let mut new = RunEntry { name: run_name(self.next_run), ..old.clone() };
        let files = files.into_iter().map(|file| {
            let is = |kind: &FileKind| old.file(*kind) == file.name;
            let kind = kinds().find(is).expect("it is a file of the run");
            (kind, old.path(from, kind), file)
        });
        let (own, others): (Vec<_>, Vec<_>) =
            files.partition(|(kind, ..)| FileKind::OWN.contains(kind));
        let bytes: u64 = own.iter().map(|(_, _, file)| file.bytes).sum();
        // The first run of an index is one of a build.
        let apart = match bytes > PACKED_BYTES || self.runs.is_empty() {
            true => own,
            false => {
                self.files.extend(write_pack(&self.folder, &new.name, &own)?);
                new.packed = true;
                Vec::new()
            }
        };
        for (kind, path, file) in apart.into_iter().chain(others) {
            storage::rename(&path, &new.path(&self.folder, kind))?;
            self.files.push(FileEntry { name: new.file(kind), ..file });
        }
        self.next_run += 1;
        Ok(new)
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
        let docids = delete(&self.folder, entry, &mut self.deletions[run], docids)?;
        self.deleted.entry(entry.name.clone()).or_default().extend(docids);
        Ok(())
    }

    /// Replaces the moves of the run at a place, whose documents lie in this many `inputs` now.
    pub(crate) fn relocate(
        &mut self,
        run: usize,
        inputs: u32,
        moves: &[Move],
    ) -> Result<(), IndexError> {
        self.drop_file(run, FileKind::Moves)?;
        let run = &mut self.runs[run];
        run.inputs = inputs;
        run.moves = Some(self.number).filter(|_| !moves.is_empty());
        if run.moves.is_some() {
            self.files.push(write_moves(&self.folder, run, moves)?);
        }
        Ok(())
    }

    /// Takes a file from a run, if it has one, and removes it if no other generation has it.
    fn drop_file(&mut self, run: usize, kind: FileKind) -> Result<(), IndexError> {
        let name = self.runs[run].file(kind);
        let dropped = self.files.extract_if(.., |file| file.name == name).count();
        match dropped > 0 && !self.lasting.remove(&name) {
            true => storage::remove_file(&self.runs[run].path(&self.folder, kind)),
            false => Ok(()),
        }
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
        // A run of a global order has those scores too.
        let is_ordered = self.order.as_ref().is_some_and(|order| order.global.is_some());
        let (ranks, ranked) = match is_ordered {
            true => Default::default(),
            false => ranks_left(&self.folder, &self.files, old)?,
        };
        let lost = ranked > 0 && ranked < old.len();
        // A merge removes file after file; a pack goes whole, behind it.
        let is_shared = |run: &RunEntry| run.packed || self.shared.contains(&run.name);
        let number = self.next_run;
        let (run, files) = merge_runs(&self.folder, old, is_shared, &self.folder, number, merging)?;
        let ordered = old.iter().find(|_| is_ordered).map(|old| old.run.file(FileKind::Scores));
        self.files.extend(files);
        if let Some(file) = self.files.iter().find(|file| Some(&file.name) == ordered.as_ref()) {
            let name = run.file(FileKind::Scores);
            let [from, to] = [&file.name, &name].map(|name| file_path(&self.folder, name));
            storage::link_or_copy(&from, &to)?;
            self.files.push(FileEntry { name, ..file.clone() });
        }
        self.drop_runs(runs.clone())?;
        self.next_run += 1;
        self.runs.insert(runs.start, run);
        self.deletions.insert(runs.start, Arc::default());
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
                let (ranks, ranked) = ranks_left(&self.folder, &self.files, &self.live_runs())?;
                (ranked > 0).then_some(ranks)
            }
        };
        let found = match ranks {
            _ if lost => RanksFound::Lost,
            None if matches!(order, DocumentOrder::Global { .. }) => RanksFound::Equal,
            None => RanksFound::None,
            Some(_) => RanksFound::Kept,
        };
        let run = &self.runs[0];
        let stays = run.packed || self.shared.contains(&run.name);
        let number = self.next_run;
        let ranks = ranks.as_deref();
        let ordered = reorder(&self.folder, run, stays, number, order, ranks, merging)?;
        let Reordered { run, files, order } = ordered;
        self.next_run += 1;
        self.drop_runs(0..1)?;
        self.runs = vec![run];
        self.deletions = vec![Arc::default()];
        self.files = files;
        self.order = Some(order);
        Ok(found)
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

    /// Takes runs from the generation that were merged, and removes what is left of those files
    /// that no other generation has.
    fn drop_runs(&mut self, runs: Range<usize>) -> Result<(), IndexError> {
        self.terms = None;
        self.deletions.drain(runs.clone());
        for run in self.runs.drain(runs) {
            let is_shared = self.shared.remove(&run.name);
            let merged = FileKind::OWN.map(|kind| run.file(kind));
            let names = names_of(std::slice::from_ref(&run));
            let mut left = HashSet::new();
            for file in self.files.extract_if(.., |file| names.contains(&file.name)) {
                let is_gone = !is_shared && !run.packed && merged.contains(&file.name);
                if !self.lasting.remove(&file.name) && !is_gone {
                    left.insert(on_disk(&file_path(&self.folder, &file.name)).to_path_buf());
                }
            }
            left.iter().try_for_each(|path| storage::remove_file(path))?;
        }
        Ok(())
    }
}

fn kinds() -> impl Iterator<Item = FileKind> {
    FileKind::OWN.into_iter().chain(FileKind::OPTIONAL)
}

fn nth_run<'a>(
    from: &Path,
    manifest: &'a Manifest,
    run: usize,
) -> Result<&'a RunEntry, IndexError> {
    manifest.runs.get(run).ok_or_else(|| {
        let expected = format!("run {run}");
        let found = format!("{} runs", manifest.runs.len());
        IndexError::damaged(&from.join(MANIFEST), 0, expected, found)
    })
}

/// The entries of the files of a run; `Damaged` if one is missing.
fn files_of(
    from: &Path,
    manifest: &Manifest,
    run: &RunEntry,
) -> Result<Vec<FileEntry>, IndexError> {
    let mut files = Vec::new();
    for kind in kinds() {
        match find_file(&manifest.files, from, &run.file(kind)) {
            Err(_) if FileKind::OPTIONAL.contains(&kind) => {}
            Err(_) if kind == FileKind::Positions && !manifest.settings.positions => {}
            Err(_) if kind == FileKind::Fields && manifest.settings.fields.is_empty() => {}
            Err(_) if kind == FileKind::Columns && manifest.settings.columns.is_empty() => {}
            Err(_) if kind == FileKind::Texts && manifest.settings.record_parts() == 0 => {}
            found => files.push(found?.clone()),
        }
    }
    Ok(files)
}

/// The names of all files that runs may have.
fn names_of(runs: &[RunEntry]) -> HashSet<String> {
    runs.iter().flat_map(|run| kinds().map(|kind| run.file(kind))).collect()
}

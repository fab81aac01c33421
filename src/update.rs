//! Documents are added, replaced and deleted by call: one run of what is new, and deletions, in a
//! new generation (`docs/up-to-date.md`).
//!
//! ```text
//! lock -> build a part of the input -> who has these names -> delete -> take the part
//! -> merge some runs -> publish
//! ```
//!
//! An update is a [build](crate::build) of its input, whose runs come behind those of the live
//! generation. A document whose name is there replaces it. Answers are those of an index that was
//! built from nothing of what lives.

mod side;
#[cfg(test)]
mod tests;
mod writer;

pub use writer::Writer;

use crate::build::{BuildError, BuildOptions, Input, Note, Notes, build_part};
use crate::crew;
use crate::index::deletions::live_runs;
use crate::index::documents::RunDocuments;
use crate::index::documents::duplicates::{Duplicates, SameName};
use crate::index::error::IndexError;
use crate::index::files::storage;
use crate::index::format::{HISTORY, RUNS, WRITABLE};
use crate::index::generations::draft::{Description, Draft, LOST_RANKS};
use crate::index::generations::folder::{IndexLock, current};
use crate::index::generations::generation::Generation;
use crate::index::generations::keep::kept;
use crate::index::generations::live_names::{LiveNames, MappedDocuments};
use crate::index::generations::manifest::{Manifest, RunEntry, Settings, Statistics};
use crate::index::inputs::{InputEntry, InputsFile};
use crate::index::merge::Merging;
use crate::input::Format;
use crate::input::list::InputReading;
use crate::input::splits::{MEMORY, STDIN};
use crate::input::wanted::WantedInput;
use crate::query::filter::{FilterError, PassingDocuments};
use crate::settings::{Gpus, SettingError};
use serde::Serialize;
use side::Held;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Runs of an index that is updated, at most; and how many a merge leaves where there are more, so
/// that few commits merge.
const MOST_RUNS: usize = 16;
const FEW_RUNS: usize = 10;

/// Bytes of text for which a worker is worth starting.
const WORKER_BYTES: usize = 1 << 20;

/// A run of which more than one document in this many is deleted is written again.
const WORN_PART: u64 = 5;

/// What is changed, and how.
pub struct Update {
    /// The index, the input of an update and how it is read, memory, workers and more. How text
    /// becomes terms and lists are coded is the index's.
    pub build: BuildOptions,
    /// Waits until no other job holds the index.
    pub wait: bool,
    /// The new generation is one to which `rollback` goes back.
    pub keep_point: bool,
    /// Publishes nothing.
    pub dry_run: bool,
    /// The index may lose more than half of its documents, or all.
    pub allow_shrink: bool,
}

/// What became of an update.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Updated {
    /// Documents whose name was new.
    pub added: u64,
    /// Names whose documents were replaced by another one.
    pub replaced: u64,
    /// Documents that are gone, those that were replaced too.
    pub deleted: u64,
    /// Names to be deleted that no document has.
    pub absent: u64,
    /// Documents of the input of which a later one has the name.
    pub repeated: u64,
    /// Records of the input that are no documents.
    pub skipped: u64,
    /// Documents in the index behind that.
    pub documents: u64,
    /// Runs behind that.
    pub runs: usize,
    /// How many documents each name had that was to be deleted, in the order of the names.
    #[serde(skip)]
    pub(crate) of_names: Vec<u32>,
    /// The new generation; none if nothing was published.
    pub generation: Option<u32>,
    /// What was noticed, in the input and of PageRanks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// From the beginning to the end.
    pub seconds: f64,
}

/// Documents that are to be deleted: those of names, and those that pass filters.
#[derive(Debug, Default)]
struct Gone {
    names: Vec<Vec<u8>>,
    filters: Vec<String>,
}

/// The new documents, as runs that no index has yet.
struct Part {
    folder: PathBuf,
    manifest: Manifest,
    inputs: Vec<InputEntry>,
}

impl Update {
    /// The defaults, for an index and documents that `build` names.
    pub fn new(build: BuildOptions) -> Self {
        Self { build, wait: false, keep_point: false, dry_run: false, allow_shrink: false }
    }

    /// Adds the documents of the input; one whose name is there replaces all of that name.
    ///
    /// # Errors
    /// `Index` if there is none, or it cannot be updated; `KeptByJob`; `Shrinks`; as
    /// [`build`](crate::build()). The index is as it was, unless only the last sync failed.
    pub fn update(self) -> Result<Updated, BuildError> {
        self.change(&Gone::default(), Some(usize::MAX), None)
    }

    /// Deletes all documents of these names.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn delete(self, names: &[Vec<u8>]) -> Result<Updated, BuildError> {
        self.change(&Gone { names: names.to_vec(), ..Gone::default() }, None, None)
    }

    /// Deletes all documents that pass a filter by the columns of the index, as one of queries.
    ///
    /// # Errors
    /// As [`update`](Self::update); `Options` if it is none for this index.
    pub fn delete_passing(self, filter: &str) -> Result<Updated, BuildError> {
        self.change(&Gone { filters: vec![filter.to_string()], ..Gone::default() }, None, None)
    }

    /// Deletes all documents that are wanted gone, and then adds those of the input if it has any,
    /// of at most this many bytes. A writer holds what is open, and merges beside.
    fn change(
        self,
        wanted: &Gone,
        input_bytes: Option<usize>,
        mut held: Option<&mut Held>,
    ) -> Result<Updated, BuildError> {
        let began = Instant::now();
        let Self { mut build, wait, keep_point, dry_run, allow_shrink } = self;
        let index = &build.index;
        // Taking the lock creates the folder, so there has to be an index.
        let none = || IndexError::NoIndex { path: index.clone() };
        current(index)?.ok_or_else(none)?;
        let lock = match wait {
            true => IndexLock::wait(index, build.control.stop())?,
            false => IndexLock::acquire(index)?,
        };
        let lock = lock.keeping(kept(index)?.len().max(1));
        let from = current(index)?.ok_or_else(none)?;
        let open = held.as_mut().map(|held| held.follow(&from)).transpose()?;
        let live = match &open {
            Some(open) => open.manifest().clone(),
            None => Manifest::read(&from)?,
        };
        live.check_here(&from)?;
        accept(index, &live)?;
        let description = Description {
            command: build.command.clone(),
            workers: build.workers as u32,
            settings: Settings { memory_bytes: build.memory, ..live.settings.clone() },
            skipped: live.statistics.skipped.clone(),
            is_commit: !keep_point,
        };
        let control = build.control.clone();
        let merging = Merging {
            memory_bytes: build.memory,
            threads: build.workers,
            form: live.settings.form().unwrap_or_default(),
            columns: live.settings.columns.clone(),
            record_parts: live.settings.record_parts(),
            stop: control.stop().clone(),
        };
        let remarks = Arc::new(Mutex::new(Vec::new()));
        let (told, others) = (remarks.clone(), build.notes.take());
        let notes: Notes = Arc::new(move |note| {
            crew::lock(&told).push(note.to_string());
            others.iter().for_each(|notes| notes(note));
        });
        build.notes = Some(notes.clone());
        let open = open.as_deref();
        let mut change =
            Change { lock: &lock, from: &from, live: &live, open, held, dry_run, allow_shrink };
        if let Some(bytes) = input_bytes {
            build.workers = build.workers.min(1 + bytes / WORKER_BYTES);
        }
        let input = input_bytes.map(|_| build);
        let result = change.make(input, wanted, description, &merging);
        if !matches!(result, Ok((Updated { generation: Some(_), .. }, _))) {
            // What cannot be removed now is removed by the next job.
            _ = lock.abandon(Some(&from));
        }
        let result = result.map_err(|error| control.take_failure().map_or(error, BuildError::from));
        let (updated, of_ranks) = result?;
        of_ranks.into_iter().for_each(|remark| notes(&Note::Ranks(remark)));
        let remarks = std::mem::take(&mut *crew::lock(&remarks));
        Ok(Updated { remarks, seconds: began.elapsed().as_secs_f64(), ..updated })
    }
}

/// Refuses an index that cannot be updated.
fn accept(index: &Path, live: &Manifest) -> Result<(), BuildError> {
    let keeper = index.join(HISTORY);
    if keeper.exists() && !keeper.join(WRITABLE).exists() {
        let instead = "change its sources and rebuild it, or give it `writable = true`".to_string();
        return Err(BuildError::KeptByJob { index: index.to_path_buf(), instead });
    }
    if live.order.as_ref().is_some_and(|order| order.global.is_some()) {
        let why = "its documents are in global order, which holds for all of them together: build \
                   it again, or put it in another order first";
        return Err(IndexError::refused(index, why).into());
    }
    Ok(())
}

/// A change of the live generation in the folder `from`.
struct Change<'a> {
    lock: &'a IndexLock,
    from: &'a Path,
    live: &'a Manifest,
    open: Option<&'a Generation>,
    held: Option<&'a mut Held>,
    dry_run: bool,
    allow_shrink: bool,
}

impl Change<'_> {
    /// Makes and publishes the new generation. Returns also what is remarked of PageRanks.
    fn make(
        &mut self,
        build: Option<BuildOptions>,
        wanted: &Gone,
        mut description: Description,
        merging: &Merging,
    ) -> Result<(Updated, Vec<String>), BuildError> {
        let (lock, from, live) = (self.lock, self.from, self.live);
        let mut draft = Draft::begin(lock)?;
        let folder = draft.folder().join("part");
        let part = build.map(|build| self.part(build, &folder)).transpose()?;
        let mut updated = Updated::default();
        let mut known = self.open.map(Generation::known).unwrap_or_default();
        let gone = self.gone(part.as_ref(), wanted, &mut known, &mut updated)?;
        draft.know(known);
        let first = self.link(&mut draft, &gone)?;
        let mut remarks = Vec::new();
        let mut added = 0;
        if let Some(Part { folder, manifest, inputs }) = &part {
            let first_input = match self.same_input(inputs)? {
                Some(number) => number,
                None => draft.add_inputs(inputs)?,
            };
            for run in 0..manifest.runs.len() {
                draft.take(folder, manifest, run, first_input)?;
            }
            storage::remove_tree(folder)?;
            for (reason, count) in &manifest.statistics.skipped {
                *description.skipped.entry(reason.clone()).or_default() += count;
            }
            updated.skipped = manifest.statistics.skipped.values().sum();
            added = manifest.statistics.documents;
            let new = first..draft.runs().len();
            let Duplicates { unwanted, .. } = draft.duplicates(new.clone(), SameName::Last)?;
            updated.repeated = unwanted.len() as u64;
            let unranked = draft.keep_ranks(from, live, new)?;
            let remark = || format!("{unranked} new documents have PageRank 0");
            remarks.extend((unranked > 0).then(remark));
        }
        let before = live.statistics.documents;
        updated.added = added - updated.repeated - updated.replaced;
        updated.documents = before - updated.deleted + added - updated.repeated;
        let is_small = updated.documents == 0 || 2 * updated.documents < before;
        if updated.documents < before && is_small && !self.allow_shrink {
            return Err(BuildError::Shrinks { before, after: updated.documents });
        }
        updated.runs = draft.runs().len();
        if !self.dry_run && added + updated.deleted > 0 {
            let memory = merging.memory_bytes / 4;
            let counted = draft.recount(live, memory)?;
            remarks.extend(self.merge(&mut draft, merging)?);
            draft.recount_terms(live, memory)?;
            let all = |_: &Statistics, _: &Duplicates| Ok::<_, BuildError>(());
            let manifest = draft.publish_if(lock, description, memory, counted, all)?;
            updated.runs = manifest.runs.len();
            updated.generation = Some(manifest.generation);
        }
        Ok((updated, remarks))
    }

    /// Puts what was merged beside in its place, and merges what has to be merged now: all that is
    /// due, or where a writer merges beside, only what is too much, behind the runs that are being
    /// merged. Returns what is to be told.
    fn merge(&mut self, draft: &mut Draft, merging: &Merging) -> Result<Vec<String>, IndexError> {
        let mut remarks = Vec::new();
        let mut from = 0;
        let held = self.held.as_mut().filter(|held| held.merges_beside);
        let is_beside = held.is_some();
        if let Some(held) = held {
            remarks.extend(held.put(draft)?);
            from = draft.runs().iter().rposition(|run| held.merges(run)).map_or(0, |at| at + 1);
        }
        let is_over = draft.runs().len() > MOST_RUNS;
        if is_over || !is_beside {
            let most = if is_over { FEW_RUNS } else { MOST_RUNS };
            let lost = draft.merge_some(from, most, |documents| documents / WORN_PART, merging)?;
            remarks.extend(lost.then(|| LOST_RANKS.to_string()));
        }
        Ok(remarks)
    }

    /// Builds the new documents as the index was built.
    fn part(&self, mut build: BuildOptions, folder: &Path) -> Result<Part, BuildError> {
        let settings = &self.live.settings;
        build.analysis = self.live.analysis(self.from)?;
        if matches!(build.input, Input::Paths(_)) {
            let was = InputReading::of_files(&InputsFile::open(self.from, self.live)?)?;
            let or = |asked: &mut Vec<String>, was| {
                if asked.is_empty() {
                    *asked = was;
                }
            };
            or(&mut build.fields.names, was.fields.names);
            or(&mut build.fields.texts, was.fields.texts);
            build.encoding = build.encoding.or(was.encoding);
        }
        build.form = settings.form().unwrap_or_default();
        build.index_fields = settings.index_fields();
        build.columns = settings.columns.clone();
        build.store = settings.texts;
        build.store_fields = settings.stored.clone();
        build.max_document = settings.max_document_bytes;
        build.factor = settings.impact_factor.as_ref().and_then(|factor| factor.parse().ok());
        build.gpus = Gpus::None;
        let is_of_vectors = build.format == Some(Format::Vectors);
        if settings.has_impacts() && build.format.is_none() {
            build.format = Some(Format::Vectors);
        } else if settings.has_impacts() != is_of_vectors {
            let why = "vectors are added to an index of vectors, and texts to others";
            return Err(SettingError::value("format", why).into());
        }
        storage::create_dir(folder)?;
        storage::create_dir(&folder.join(RUNS))?;
        let wanted = Some(WantedInput::Named);
        let is_kept = build.index.join(HISTORY).exists();
        let (manifest, mut inputs, _) = build_part(build, wanted, None, folder.to_path_buf())?;
        if is_kept {
            // So that no rebuild takes it for a source.
            inputs.iter_mut().for_each(|input| input.hash.clear());
        }
        Ok(Part { folder: folder.to_path_buf(), manifest, inputs })
    }

    /// The number of an input of the live generation that is none but by name, as a program's
    /// memory, and so stands for that of the part too; else one would come with each commit.
    fn same_input(&self, inputs: &[InputEntry]) -> Result<Option<u32>, IndexError> {
        let [input] = inputs else { return Ok(None) };
        if ![MEMORY, STDIN].iter().any(|name| input.path == Path::new(name)) {
            return Ok(None);
        }
        for (number, other) in (0..).zip(InputsFile::open(self.from, self.live)?.iter()) {
            let other = other?;
            let is_alike = other.is_by_call() == input.is_by_call();
            let other = InputEntry { hash: input.hash.clone(), bytes: input.bytes, ..other };
            if is_alike && other == *input {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Finds the documents that go, by run: those that have names of new ones, and those that are
    /// wanted gone. Counts them.
    fn gone(
        &self,
        part: Option<&Part>,
        Gone { names, filters }: &Gone,
        known: &mut MappedDocuments,
        updated: &mut Updated,
    ) -> Result<Vec<Vec<u32>>, BuildError> {
        let runs = &self.live.runs;
        let mut gone = vec![Vec::new(); runs.len()];
        for filter in filters {
            self.pass(filter, &mut gone)?;
        }
        let all = LiveNames::open(self.from, live_runs(self.from, runs)?, known)?;
        all.expect(
            names.len() + part.map_or(0, |part| part.manifest.statistics.documents as usize),
        )?;
        // Returns the first document of the name, if there is one, and how many there are.
        let mut find = |name: &[u8]| {
            let found = all.of(name)?;
            found.iter().for_each(|&(run, docid)| gone[run].push(docid));
            Ok::<_, IndexError>((found.first().copied(), found.len() as u32))
        };
        for name in names {
            let (_, count) = find(name)?;
            updated.absent += u64::from(count == 0);
            updated.of_names.push(count);
        }
        let mut replaced = Vec::new();
        if let Some(Part { folder, manifest, .. }) = part {
            for run in &manifest.runs {
                let documents = RunDocuments::open_mapped(folder, run)?;
                for docid in 0..documents.len() {
                    replaced.extend(find(&documents.name(docid)?)?.0);
                }
            }
        }
        // A name may come twice.
        replaced.sort_unstable();
        replaced.dedup();
        updated.replaced = replaced.len() as u64;
        for docids in &mut gone {
            docids.sort_unstable();
            docids.dedup();
            updated.deleted += docids.len() as u64;
        }
        Ok(gone)
    }

    /// Adds the documents that pass a filter, by run.
    fn pass(&self, filter: &str, gone: &mut [Vec<u32>]) -> Result<(), BuildError> {
        let opened = self.open.is_none().then(|| Generation::open_folder(self.from)).transpose()?;
        let Some(open) = self.open.or(opened.as_ref()) else { return Ok(()) };
        let passing = PassingDocuments::of(open, filter).map_err(|error| match error {
            FilterError::Refused(why) => {
                SettingError::value("filter", format!("the filter {why}")).into()
            }
            FilterError::Index(error) => BuildError::from(error),
        })?;
        for (number, (run, gone)) in open.runs().iter().zip(gone).enumerate() {
            let passes =
                |docid: &u32| passing.has(number, *docid) && !run.deletions().contains(*docid);
            gone.extend((0..run.documents()).filter(passes));
        }
        Ok(())
    }

    /// Takes over the runs that are left when some documents are `gone`. Returns how many.
    fn link(&self, draft: &mut Draft, gone: &[Vec<u32>]) -> Result<usize, IndexError> {
        let first_input = draft.take_inputs(self.from, self.live)?;
        let runs = || self.live.runs.iter().zip(gone);
        let is_empty =
            |(run, gone): &(&RunEntry, &Vec<u32>)| run.live_documents() as usize == gone.len();
        // There is a run at least.
        let all_empty = runs().all(|run| is_empty(&run));
        for (number, run) in runs().enumerate() {
            // What is being merged has to stay until what comes of that takes its place.
            let is_held = self.held.as_ref().is_some_and(|held| held.merges(run.0));
            if all_empty || is_held || !is_empty(&run) {
                let place = draft.link(self.from, self.live, number, first_input)?;
                draft.delete(place, run.1)?;
            }
        }
        Ok(draft.runs().len())
    }
}

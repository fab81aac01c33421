//! Opens generations. What queries read often is verified first; postings are checked as they are
//! read, or verified whole when asked.

#![warn(missing_docs)]

#[cfg(test)]
mod tests;

use crate::index::columns::{ColumnValue, RunColumns};
use crate::index::deletions::{Deletions, read_deletions};
use crate::index::documents::fields::FieldLengths;
use crate::index::documents::{Documents, RunDocuments};
use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::folder;
use crate::index::generations::in_use::InUse;
use crate::index::generations::live_names::MappedDocuments;
use crate::index::generations::manifest::held::{WhichRuns, WholeGeneration};
use crate::index::generations::manifest::read::read_manifest;
use crate::index::generations::manifest::{Manifest, RunEntry, Statistics, find_file};
use crate::index::inputs::{InputEntry, InputsFile};
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView};
use crate::index::run::Run;
use crate::index::scores::RunScores;
use crate::index::texts::{LastTexts, RunTexts};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tracing::debug;

const ATTEMPTS: usize = 16;

/// One complete version of an index, mapped.
#[derive(Debug)]
pub struct Generation {
    path: PathBuf,
    /// Of the runs that are open.
    manifest: Manifest,
    /// If that are not all.
    whole: Option<WholeGeneration>,
    documents: Documents,
    runs: Vec<Run>,
    inputs: OnceLock<InputsFile>,
    _in_use: InUse,
}

impl Generation {
    /// Opens the live generation of the index in the folder `index`. Verifies the manifest and, by
    /// their checksums, the lexicons and the documents. If a build publishes meanwhile, the new
    /// generation is opened.
    ///
    /// # Errors
    /// `NoIndex` if nothing is published there; `Storage`, `Damaged`, `Newer`.
    pub fn open(index: &Path) -> Result<Self, IndexError> {
        with_live(index, Self::open_folder)
    }

    /// Opens the generation in the folder `path`, live or not. It is not removed until this is
    /// dropped.
    pub fn open_folder(path: &Path) -> Result<Self, IndexError> {
        Self::open_some(path, WhichRuns::All)
    }

    /// Opens some runs of the generation in the folder `path`. Their docids count from 0, and
    /// [`docid_in_whole`](Self::docid_in_whole) tells those of the index.
    pub(crate) fn open_some(path: &Path, which: WhichRuns) -> Result<Self, IndexError> {
        Self::open_with(path, read_manifest(path)?, which, None)
    }

    /// Opens the generation in the folder `path` after this one; none if it is this one. Of runs
    /// that both have, what is open is shared, and neither mapped nor verified again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn next(&self, path: &Path) -> Result<Option<Self>, IndexError> {
        let manifest = read_manifest(path)?;
        let which = self.whole.as_ref().map_or(WhichRuns::All, |whole| whole.which);
        let is_other = manifest != *self.whole_manifest();
        is_other.then(|| Self::open_with(path, manifest, which, Some(self))).transpose()
    }

    fn open_with(
        path: &Path,
        manifest: Manifest,
        which: WhichRuns,
        before: Option<&Self>,
    ) -> Result<Self, IndexError> {
        let in_use = InUse::of(path)?;
        let mut deletions = read_deletions(path, &manifest.runs, Some(&manifest.files))?;
        let (manifest, whole) = which.of(path, manifest);
        if let Some(whole) = &whole {
            let mut open = whole.open.iter();
            deletions.retain(|_| open.next() == Some(&true));
        }
        let files = &manifest.files;
        if whole.is_none() {
            manifest.check_here(path)?;
        }
        let stay = stay(&manifest, before);
        let mut runs = Vec::with_capacity(manifest.runs.len());
        let mut documents = Vec::with_capacity(manifest.runs.len());
        for ((entry, deletions), stays) in manifest.runs.iter().zip(deletions).zip(stay) {
            let (run, of_run) = match stays {
                Some(known) => known.after(path, entry, files, deletions)?,
                None => {
                    let run = Run::open(path, entry, files)?.without(deletions);
                    (run, RunDocuments::open(path, entry, files)?)
                }
            };
            run.check_form(&manifest.settings)?;
            run.open_values(path, entry, &manifest.settings)?;
            // Queries read it when they ask for a field.
            FieldLengths::open(path, entry)?;
            runs.push(run);
            documents.push((entry, of_run));
        }
        let documents = Documents::of(documents);
        debug!(path = %path.display(), runs = runs.len(), documents = documents.len(), "opened");
        let path = path.to_path_buf();
        let inputs = OnceLock::new();
        Ok(Self { path, manifest, whole, documents, runs, inputs, _in_use: in_use })
    }

    /// Verifies all postings by their checksums.
    ///
    /// # Errors
    /// `Damaged`, with the first file whose bytes are not those that were written.
    pub fn verify(&self) -> Result<(), IndexError> {
        let Manifest { runs, files, .. } = &self.manifest;
        for (number, (run, entry)) in self.runs.iter().zip(runs).enumerate() {
            run.verify(&self.path, entry, files)?;
            if let Some(fields) = FieldLengths::open(&self.path, entry)? {
                fields.verify(&self.path, entry, files)?;
            }
            if let Some(columns) = self.columns(number)? {
                let file = find_file(files, &self.path, &entry.file(FileKind::Columns))?;
                columns.verify(file.bytes, file.crc32)?;
            }
            if self.manifest.settings.record_parts() > 0 {
                let file = find_file(files, &self.path, &entry.file(FileKind::Texts))?;
                self.records(number)?.verify(file.bytes, file.crc32)?;
            }
        }
        self.inputs().map(drop)
    }

    /// The folder of the generation.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manifest, of the runs that are open.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest as it was read.
    pub fn whole_manifest(&self) -> &Manifest {
        self.whole.as_ref().map_or(&self.manifest, |whole| &whole.manifest)
    }

    /// What the whole index holds.
    pub(crate) fn whole_statistics(&self) -> &Statistics {
        &self.whole_manifest().statistics
    }

    /// The docid of a document in the whole index.
    pub fn docid_in_whole(&self, docid: u32) -> u32 {
        let Some(whole) = &self.whole else { return docid };
        self.place(docid).map_or(docid, |(run, own)| whole.first_docids[run] + own)
    }

    /// The docids of documents of the whole index, of those that are open.
    pub(crate) fn own_docids(&self, docids: &Range<u32>) -> Range<u32> {
        let Some(whole) = self.whole.as_ref().filter(|_| *docids != (0..u32::MAX)) else {
            return docids.clone();
        };
        let before = |docid: u32| {
            let runs = whole.first_docids.iter().zip(&self.manifest.runs);
            runs.map(|(first, run)| docid.saturating_sub(*first).min(run.documents)).sum()
        };
        before(docids.start)..before(docids.end)
    }

    /// The inputs, which are verified when they are first asked for.
    pub(crate) fn inputs(&self) -> Result<&InputsFile, IndexError> {
        if let Some(inputs) = self.inputs.get() {
            return Ok(inputs);
        }
        let opened = InputsFile::open(&self.path, &self.manifest)?;
        Ok(self.inputs.get_or_init(|| opened))
    }

    /// The input that a document lies in.
    pub(crate) fn input_of(&self, docid: u32) -> Result<InputEntry, IndexError> {
        let number = self.documents.location(docid).map_or(u32::MAX, |place| place.input);
        self.inputs()?.get(number.into())
    }

    /// The documents of all runs.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// The documents of its runs, which need not be opened again.
    pub(crate) fn known(&self) -> MappedDocuments {
        let names = self.manifest.runs.iter().map(|run| run.name.clone());
        names.zip(self.documents.runs().cloned()).collect()
    }

    /// The runs, by docid.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The static scores of a run.
    pub(crate) fn scores(&self, run: usize) -> Result<Option<&RunScores>, IndexError> {
        self.runs[run].scores(&self.path, &self.manifest.runs[run], &self.manifest.files)
    }

    /// The columns of a run, if the index has any.
    pub(crate) fn columns(&self, run: usize) -> Result<Option<&RunColumns>, IndexError> {
        let columns = &self.manifest.settings.columns;
        let open = || self.runs[run].columns(&self.path, &self.manifest.runs[run], columns);
        (!columns.is_empty()).then(open).transpose()
    }

    /// The number of the run that has a document, and its docid there.
    pub(crate) fn place(&self, docid: u32) -> Option<(usize, u32)> {
        let after = self.runs.partition_point(|run| run.first_docid() <= docid);
        let number = after.checked_sub(1)?;
        Some((number, docid - self.runs[number].first_docid()))
    }

    /// What a run keeps of records, if the index keeps any of them.
    fn records(&self, run: usize) -> Result<&RunTexts, IndexError> {
        let parts = self.manifest.settings.record_parts();
        self.runs[run].texts(&self.path, &self.manifest.runs[run], parts)
    }

    /// The text of a document, if the index keeps texts; `last` has the block that was read last.
    pub(crate) fn text<'a>(
        &self,
        docid: u32,
        last: &'a mut LastTexts,
    ) -> Result<Option<&'a [u8]>, IndexError> {
        let Some((run, own)) = self.place(docid).filter(|_| self.manifest.settings.texts) else {
            return Ok(None);
        };
        self.records(run)?.part(run, own, 0, last).map(Some)
    }

    /// The value of a document in a field that the index keeps, by its number among these.
    pub(crate) fn stored_value(
        &self,
        field: usize,
        docid: u32,
        last: &mut LastTexts,
    ) -> Result<Option<ColumnValue>, IndexError> {
        let Some((run, own)) = self.place(docid) else { return Ok(None) };
        let records = self.records(run)?;
        let part = usize::from(self.manifest.settings.texts) + field;
        records.json(run, own, part, last).map(|json| json.map(ColumnValue::Json))
    }

    /// The values of a document in a column of the index, in the order of its record.
    pub(crate) fn values(&self, column: usize, docid: u32) -> Result<Vec<ColumnValue>, IndexError> {
        let Some((number, own)) = self.place(docid) else { return Ok(Vec::new()) };
        let columns = self.columns(number)?;
        columns.map_or(Ok(Vec::new()), |columns| columns.values(column, own))
    }

    /// Calls `take` with the list of a term in each run that has one. Panics if there are not as
    /// many entries as runs.
    pub(crate) fn for_each_list(
        &self,
        entries: &[Option<TermEntry>],
        mut take: impl FnMut(&Run, &ListView<'_>) -> Result<(), ListError>,
    ) -> Result<(), IndexError> {
        assert_eq!(entries.len(), self.runs.len(), "an entry for each run");
        for (run, entry) in self.runs.iter().zip(entries) {
            let Some(entry) = *entry else { continue };
            let list = run.list(entry)?;
            let start = HEADER_BYTES as u64 + entry.offset;
            take(run, &list).map_err(IndexError::list(run.postings_path(), start))?;
        }
        Ok(())
    }

    /// The lengths of all documents in a field, by its number from 1. `Refused` if there is none.
    pub(crate) fn field_lengths(&self, field: u8) -> Result<Vec<u32>, IndexError> {
        let mut all = Vec::new();
        for run in &self.manifest.runs {
            let fields = FieldLengths::open(&self.path, run)?;
            let none = || IndexError::refused(&self.path, format!("there is no field {field}"));
            let fields = fields.filter(|_| usize::from(field) <= run.field_tokens.len());
            all.append(&mut fields.ok_or_else(none)?.of(field)?);
        }
        Ok(all)
    }

    /// Documents that are not deleted. Scores are about these.
    pub fn live_documents(&self) -> u32 {
        // The manifest's reader has compared it with the runs.
        self.manifest.statistics.documents as u32
    }

    /// Whether both have the same documents and leave out the same ones.
    pub(crate) fn has_documents_of(&self, other: &Self) -> bool {
        self.runs.len() == other.runs.len()
            && self.runs.iter().zip(&other.runs).all(|(run, other)| run.is(other))
    }

    pub(crate) fn has_deletions(&self) -> bool {
        self.runs.iter().any(|run| !run.deletions().is_empty())
    }

    pub(crate) fn is_deleted(&self, docid: u32) -> bool {
        let after = self.runs.partition_point(|run| run.first_docid() <= docid);
        let run = after.checked_sub(1).map(|at| &self.runs[at]);
        run.is_some_and(|run| run.deletions().contains(docid - run.first_docid()))
    }

    /// All documents that are not deleted, rising.
    pub(crate) fn live(&self) -> impl Iterator<Item = u32> {
        (0..self.documents.len()).filter(|docid| !self.is_deleted(*docid))
    }

    /// All deleted documents, rising.
    pub fn deleted(&self) -> impl Iterator<Item = u32> {
        self.runs
            .iter()
            .flat_map(|run| run.deletions().docids().map(move |docid| run.first_docid() + docid))
    }

    /// The first document of this name that is not deleted.
    pub(crate) fn find_name(&self, name: &[u8]) -> Result<Option<u32>, IndexError> {
        for (run, documents) in self.runs.iter().zip(self.documents.runs()) {
            let mut of_name = documents.of_name(name)?.into_iter();
            if let Some(docid) = of_name.find(|docid| !run.deletions().contains(*docid)) {
                return Ok(Some(run.first_docid() + docid));
            }
        }
        Ok(None)
    }
}

impl Manifest {
    /// The manifest of the live generation of an index, or `Processes` unless it
    /// [is for](Self::is_for) this many.
    ///
    /// # Errors
    /// `NoIndex`, `Storage`, `Damaged`, `Newer`, `Older`, `Sharded`.
    pub fn live_for(index: &Path, processes: usize) -> Result<Self, IndexError> {
        let live = with_live(index, read_manifest)?;
        if live.is_for(processes) {
            return Ok(live);
        }
        let path = index.to_path_buf();
        Err(IndexError::Processes { path, holders: live.processes(), processes })
    }
}

/// A run that the generation before had too, and whether its documents have other places and static
/// scores now.
struct Stays<'a> {
    run: &'a Run,
    documents: &'a RunDocuments,
    moved: bool,
    rescored: bool,
}

impl Stays<'_> {
    fn after(
        &self,
        path: &Path,
        entry: &RunEntry,
        files: &[FileEntry],
        deletions: Arc<Deletions>,
    ) -> Result<(Run, RunDocuments), IndexError> {
        let run = self.run.after(entry.first_docid, deletions);
        let documents = match self.moved {
            true => self.documents.relocated(path, entry, files)?,
            false => self.documents.clone(),
        };
        Ok((if self.rescored { run.rescored() } else { run }, documents))
    }
}

/// Of each run of a manifest what is open already. A name is not enough: an index that was removed
/// and built again has the same ones.
fn stay<'a>(manifest: &Manifest, before: Option<&'a Generation>) -> Vec<Option<Stays<'a>>> {
    let Some(before) = before else { return manifest.runs.iter().map(|_| None).collect() };
    let old = &before.manifest;
    let files = [manifest, old].map(|manifest| {
        let named = manifest.files.iter().map(|file| (&*file.name, file));
        named.collect::<HashMap<_, _>>()
    });
    let open = before.runs.iter().zip(before.documents.runs());
    let open: HashMap<_, _> = old.runs.iter().zip(open).map(|of| (&*of.0.name, of)).collect();
    let stays = |run: &RunEntry| {
        let &(was, (open, documents)) = open.get(&*run.name)?;
        let is_same = |kind| files[0].get(&*run.file(kind)) == files[1].get(&*was.file(kind));
        let mut kinds = FileKind::OWN.into_iter().chain(FileKind::OPTIONAL);
        let may_change = |kind| matches!(kind, FileKind::Moves | FileKind::Scores);
        let are_same = kinds.all(|kind| may_change(kind) || is_same(kind));
        let numbers = |run: &RunEntry| (run.documents, run.terms, run.postings, run.tokens);
        let [moved, rescored] = [FileKind::Moves, FileKind::Scores].map(|kind| !is_same(kind));
        let stays = Stays { run: open, documents, moved, rescored };
        (are_same && numbers(run) == numbers(was)).then_some(stays)
    };
    manifest.runs.iter().map(stays).collect()
}

/// Calls `work` with the folder of the live generation, again if that was replaced and a file of it
/// is gone.
pub(crate) fn with_live<T>(
    index: &Path,
    mut work: impl FnMut(&Path) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let live =
        || folder::current(index)?.ok_or_else(|| IndexError::NoIndex { path: index.to_path_buf() });
    let mut path = live()?;
    for _ in 1..ATTEMPTS {
        let done = work(&path);
        if !done.as_ref().is_err_and(IndexError::is_not_found) {
            return done;
        }
        let now = live()?;
        if now == path {
            return done;
        }
        path = now;
    }
    work(&path)
}

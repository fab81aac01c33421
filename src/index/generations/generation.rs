//! Opens generations. What queries read often is verified first; postings are checked as they are
//! read, or verified whole when asked.

#![warn(missing_docs)]
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
use crate::index::generations::manifest::read::read_manifest;
use crate::index::generations::manifest::{Manifest, RunEntry, find_file};
use crate::index::inputs::{InputEntry, InputsFile};
use crate::index::lexicon::TermEntry;
use crate::index::list::{ListError, ListView};
use crate::index::run::Run;
use crate::index::scores::RunScores;
use crate::index::texts::{LastTexts, RunTexts};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tracing::debug;

const ATTEMPTS: usize = 16;

/// One complete version of an index, mapped.
#[derive(Debug)]
pub struct Generation {
    path: PathBuf,
    manifest: Manifest,
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
        Self::open_with(path, read_manifest(path)?, None)
    }

    /// Opens the generation in the folder `path` after this one; none if it is this one. Of runs
    /// that both have, what is open is shared, and neither mapped nor verified again.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn next(&self, path: &Path) -> Result<Option<Self>, IndexError> {
        let manifest = read_manifest(path)?;
        let is_other = manifest != self.manifest;
        is_other.then(|| Self::open_with(path, manifest, Some(self))).transpose()
    }

    fn open_with(
        path: &Path,
        manifest: Manifest,
        before: Option<&Self>,
    ) -> Result<Self, IndexError> {
        let in_use = InUse::of(path)?;
        let files = &manifest.files;
        let deletions = read_deletions(path, &manifest.runs, Some(files))?;
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
        Ok(Self { path, manifest, documents, runs, inputs, _in_use: in_use })
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

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::error::IndexError::{Damaged, NoIndex, Storage};
    use crate::index::format::{INPUTS, MANIFEST, file_path};
    use crate::index::testing::{build, collection};
    use crate::text::trie_collection::{implied_prefix_len, trie_collection};
    use std::collections::BTreeMap;
    use std::fs;

    #[test]
    fn everything_that_was_built_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let collection = collection(8, 400, 200);
        build(folder.path(), &collection, &[0, 130, 400]);
        let generation = Generation::open(folder.path()).unwrap();
        generation.verify().unwrap();
        let mut found = vec![BTreeMap::new(); collection.len()];
        let terms: std::collections::BTreeSet<_> =
            collection.iter().flat_map(|d| d.keys()).collect();
        for term in terms {
            let trie_collection = trie_collection(term);
            let suffix = &term.as_bytes()[implied_prefix_len(trie_collection)..];
            for run in generation.runs() {
                let Some(list) = run.find(trie_collection, suffix).unwrap() else { continue };
                list.check(run.documents(), None, |docids, tfs| {
                    for (docid, tf) in docids.iter().zip(tfs) {
                        let document = &mut found[(run.first_docid() + docid) as usize];
                        document.insert(term.clone(), *tf);
                    }
                })
                .unwrap();
            }
        }
        assert!(found == collection);
        assert_eq!(generation.documents().name(399).unwrap(), b"doc-399");
    }

    #[test]
    fn where_there_is_no_index_the_message_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        for path in [folder.path(), &missing] {
            let error = Generation::open(path).unwrap_err();
            assert!(matches!(error, NoIndex { .. }), "{error}");
            assert!(error.to_string().starts_with(path.to_str().unwrap()));
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = build(folder.path(), &collection(1, 10, 10), &[5]);
        let generation = folder.path().join("gen-000001");
        let read = manifest.files.iter().filter(|file| file.name != INPUTS);
        for name in read.map(|file| file.name.as_str()).chain([MANIFEST]) {
            let path = file_path(&generation, name);
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let error = Generation::open(folder.path()).unwrap_err();
            assert!(matches!(&error, Storage { path: named, .. } if *named == path), "{error}");
            fs::write(&path, bytes).unwrap();
        }
        // Inputs are read when they are asked for.
        let path = generation.join(INPUTS);
        fs::remove_file(&path).unwrap();
        let error = Generation::open(folder.path()).unwrap().input_of(0).unwrap_err();
        assert!(matches!(&error, Storage { path: named, .. } if *named == path), "{error}");
        fs::write(folder.path().join("CURRENT"), "gen-000009\n").unwrap();
        let error = Generation::open(folder.path()).unwrap_err();
        assert!(matches!(&error, Damaged { path, offset: 4, .. } if path.ends_with("CURRENT")));
    }

    #[test]
    fn files_of_another_generation_are_refused() {
        let a = tempfile::tempdir().unwrap();
        let b = tempfile::tempdir().unwrap();
        build(a.path(), &collection(1, 10, 10), &[]);
        build(b.path(), &collection(2, 10, 10), &[]);
        for name in ["runs/000000.lengths", "runs/000000.lexicon", "runs/000000.postings"] {
            let path = a.path().join(name);
            let bytes = fs::read(&path).unwrap();
            fs::copy(b.path().join(name), &path).unwrap();
            Generation::open(a.path()).and_then(|generation| generation.verify()).unwrap_err();
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        fs::rename(a.path().join("gen-000001"), a.path().join("gen-000002")).unwrap();
        fs::write(a.path().join("CURRENT"), "gen-000002\n").unwrap();
        let error = Generation::open(a.path()).unwrap_err();
        assert!(matches!(error, Damaged { .. }), "{error}");
    }

    #[test]
    fn readers_move_over_to_what_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path();
        build(index, &collection(0, 10, 10), &[3, 6]);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for seed in 1..30 {
                    build(index, &collection(seed, 10, 10), &[3, 6]);
                }
            });
            let mut last = 0;
            while !writer.is_finished() {
                let generation = Generation::open(index).unwrap();
                generation.verify().unwrap();
                assert!(generation.manifest().generation >= last);
                last = generation.manifest().generation;
            }
            writer.join().unwrap();
        });
        assert_eq!(Generation::open(index).unwrap().manifest().generation, 30);
    }
}

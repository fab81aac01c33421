//! The documents that the live generation has of some files: those that changed or are gone. They
//! are found by the places of the documents, and read where they lie.

use crate::index::deletions::{Deletions, read_deletions};
use crate::index::documents::moves::Moves;
use crate::index::documents::names::NamesWindow;
use crate::index::documents::ramps::RampWindow;
#[cfg(test)]
use crate::index::documents::{DocumentsEntry, DocumentsWriter};
use crate::index::documents::{Location, RunDocuments};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
#[cfg(test)]
use crate::index::format::run_name;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::{Manifest, RunEntry};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct TouchedDocuments {
    generation: PathBuf,
    runs: Vec<TouchedRun>,
    stretches: Vec<TouchedStretch>,
    /// The stretches once more, by file.
    by_file: Vec<usize>,
    count: u64,
}

struct TouchedRun {
    entry: RunEntry,
    deletions: Arc<Deletions>,
    moves: Arc<Moves>,
}

/// Neighbouring documents of a run in one file, behind this many others, deleted ones too.
pub(super) struct TouchedStretch {
    before: u64,
    run: usize,
    file: u32,
    docids: Range<u32>,
}

/// The number of all files that are gone.
pub(crate) const GONE: u32 = u32::MAX;

pub(super) struct TouchedDocument<'a> {
    /// In the generation.
    pub docid: u32,
    pub name: &'a [u8],
    pub content: u64,
    /// Where its run has it, and where it lies in the live generation; inputs are the run's.
    pub was: Location,
    pub lies: Location,
}

/// Holds the files of one run open.
#[derive(Default)]
pub(super) struct TouchedFiles(Option<TouchedRunFiles>);

struct TouchedRunFiles {
    run: usize,
    names: NamesWindow,
    hashes: FileWindow,
    places: RampWindow,
}

/// Bytes of the windows on names, and on what else is read of documents.
const NAMES_BYTES: usize = 128 << 10;
const WINDOW_BYTES: usize = 32 << 10;

impl TouchedDocuments {
    /// Those of the inputs of the generation in a folder that have a number in `files`: that of the
    /// file among those that are read, or [`GONE`]. What is read is verified.
    pub(crate) fn new(
        generation: &Path,
        manifest: &Manifest,
        files: &[Option<u32>],
    ) -> Result<Self, IndexError> {
        let (runs, stretches, by_file, count) = Default::default();
        let generation = generation.to_path_buf();
        let mut all = Self { generation, runs, stretches, by_file, count };
        let generation = &all.generation;
        let deletions = read_deletions(generation, &manifest.runs, None)?;
        for (number, (run, deletions)) in manifest.runs.iter().zip(deletions).enumerate() {
            let documents = RunDocuments::open_mapped(generation, run)?;
            let file_of = |input: u32| {
                let input = run.first_input.saturating_add(input);
                files.get(input as usize).copied().flatten()
            };
            for (docids, file) in documents.of_inputs(file_of)? {
                let before = all.count;
                all.count += docids.len() as u64;
                all.stretches.push(TouchedStretch { before, run: number, file, docids });
            }
            let moves = documents.moves().clone();
            all.runs.push(TouchedRun { entry: run.clone(), deletions, moves });
        }
        all.by_file.extend(0..all.stretches.len());
        all.by_file.sort_by_key(|stretch| all.stretches[*stretch].file);
        Ok(all)
    }

    /// All documents of runs with these names, contents and places.
    #[cfg(test)]
    pub(crate) fn of_runs(
        folder: &Path,
        runs: &[Vec<(String, u64, Location)>],
        files: &[Option<u32>],
    ) -> Self {
        let generation = folder.join("gen-000001");
        std::fs::create_dir_all(generation.join("../runs")).unwrap();
        let mut manifest = Manifest::default();
        let mut first_docid = 0;
        for (number, all) in (0..).zip(runs) {
            let mut writer = DocumentsWriter::create(&generation, number, 0).unwrap();
            for (name, content, place) in all {
                writer.push(name, 1, *place, *content).unwrap();
            }
            let DocumentsEntry { documents, tokens, inputs, .. } = writer.finish().unwrap();
            let name = run_name(number);
            let run =
                RunEntry { name, documents, tokens, inputs, first_docid, ..RunEntry::default() };
            manifest.runs.push(run);
            first_docid += documents;
        }
        Self::new(&generation, &manifest, files).unwrap()
    }

    /// With deleted documents.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Calls `take` for some of the documents, counted with deleted ones, which are left out: with
    /// the number of the document, the name, and the hash of the content.
    pub(crate) fn read<E: From<IndexError>>(
        &self,
        wanted: Range<u64>,
        mut take: impl FnMut(u64, &[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = |stretch: &TouchedStretch| stretch.before + stretch.docids.len() as u64;
        let first = self.stretches.partition_point(|stretch| end(stretch) <= wanted.start);
        let mut files = TouchedFiles::default();
        for stretch in &self.stretches[first..] {
            let TouchedStretch { before, run, docids, .. } = stretch;
            if *before >= wanted.end {
                break;
            }
            let deletions = &self.runs[*run].deletions;
            let TouchedRunFiles { names, hashes, .. } = self.open(&mut files, *run)?;
            let at = |number: u64| docids.start + (number - before) as u32;
            let docids = at(wanted.start.max(*before))..at(wanted.end.min(end(stretch)));
            for docid in docids.filter(|docid| !deletions.contains(*docid)) {
                let number = before + u64::from(docid - stretch.docids.start);
                take(number, names.name(docid)?, hash(hashes, docid)?)?;
            }
        }
        Ok(())
    }

    /// How many files, that are not gone, have documents or lie before others that have.
    pub(super) fn files(&self) -> u32 {
        let files = self.stretches.iter().map(|stretch| stretch.file);
        files.filter(|file| *file != GONE).max().map_or(0, |last| last + 1)
    }

    /// What lies in a file, as far as it is neighbouring documents of a run each.
    pub(super) fn of_file(&self, file: u32) -> impl Iterator<Item = &TouchedStretch> {
        let stretch = |at: &usize| &self.stretches[*at];
        let first = self.by_file.partition_point(|at| stretch(at).file < file);
        self.by_file[first..].iter().map(stretch).take_while(move |stretch| stretch.file == file)
    }

    /// Calls `take` for the documents of a stretch that are not deleted.
    pub(super) fn of_stretch(
        &self,
        files: &mut TouchedFiles,
        stretch: &TouchedStretch,
        mut take: impl FnMut(TouchedDocument<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let TouchedStretch { run, docids, .. } = stretch;
        let TouchedRun { entry, deletions, moves } = &self.runs[*run];
        let TouchedRunFiles { names, hashes, places, .. } = self.open(files, *run)?;
        let mut next = moves.first_behind(docids.start);
        for docid in docids.clone().filter(|docid| !deletions.contains(*docid)) {
            let was = places.location(docid)?;
            let lies = moves.next_of(&mut next, docid, was);
            let (name, content) = (names.name(docid)?, hash(hashes, docid)?);
            take(TouchedDocument { docid: entry.first_docid + docid, name, content, was, lies })?;
        }
        Ok(())
    }

    fn open<'f>(
        &self,
        files: &'f mut TouchedFiles,
        run: usize,
    ) -> Result<&'f mut TouchedRunFiles, IndexError> {
        if files.0.as_ref().is_none_or(|open| open.run != run) {
            let entry = &self.runs[run].entry;
            let bytes = [NAMES_BYTES, WINDOW_BYTES];
            let names = NamesWindow::open(&self.generation, entry, bytes, FileWindow::checked)?;
            let hashes =
                FileWindow::checked(&entry.path(&self.generation, FileKind::Hashes), WINDOW_BYTES)?;
            let locations = FileKind::Locations;
            let open = FileWindow::checked;
            let places = RampWindow::open(&self.generation, entry, locations, WINDOW_BYTES, open)?;
            files.0 = Some(TouchedRunFiles { run, names, hashes, places });
        }
        Ok(files.0.as_mut().expect("it is open"))
    }
}

/// The hash of a document's content.
fn hash(file: &mut FileWindow, docid: u32) -> Result<u64, IndexError> {
    let bytes = size_of::<u64>();
    let at = HEADER_BYTES as u64 + bytes as u64 * u64::from(docid);
    Ok(bytemuck::pod_read_unaligned(file.read(at, bytes)?))
}

//! The documents that the live generation has of some of its inputs: those that changed or are
//! gone. They are found by the places of the documents, and read where they lie.

use crate::index::deletions::{Deletions, read_deletions};
use crate::index::documents::RunDocuments;
use crate::index::documents::names::NamesWindow;
#[cfg(test)]
use crate::index::documents::{DocumentsEntry, DocumentsWriter, Location};
use crate::index::error::IndexError;
use crate::index::files::window::FileWindow;
use crate::index::format::{FileKind, HEADER_BYTES};
use crate::index::generations::manifest::{Manifest, RunEntry};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) struct TouchedDocuments {
    generation: PathBuf,
    runs: Vec<TouchedRun>,
    stretches: Vec<TouchedStretch>,
    count: u64,
}

struct TouchedRun {
    entry: RunEntry,
    deletions: Arc<Deletions>,
}

/// Neighbouring documents of a run, behind this many others, deleted ones too.
struct TouchedStretch {
    before: u64,
    run: usize,
    docids: Range<u32>,
}

/// Bytes of the windows on names, and on what else is read of documents.
const NAMES_BYTES: usize = 128 << 10;
const WINDOW_BYTES: usize = 32 << 10;

impl TouchedDocuments {
    /// Those of the inputs that are `touched`, by their numbers in the generation in a folder.
    /// What is read is verified.
    pub(crate) fn new(
        generation: &Path,
        manifest: &Manifest,
        touched: &[bool],
    ) -> Result<Self, IndexError> {
        let (runs, stretches, count) = Default::default();
        let mut all = Self { generation: generation.to_path_buf(), runs, stretches, count };
        let deletions = read_deletions(generation, &manifest.runs, None)?;
        for (number, (run, deletions)) in manifest.runs.iter().zip(deletions).enumerate() {
            let documents = RunDocuments::open_mapped(generation, run)?;
            let is_touched = |input: u32| {
                let input = run.first_input.saturating_add(input);
                touched.get(input as usize).is_some_and(|is| *is)
            };
            for docids in documents.of_inputs(is_touched)? {
                let before = all.count;
                all.count += docids.len() as u64;
                all.stretches.push(TouchedStretch { before, run: number, docids });
            }
            all.runs.push(TouchedRun { entry: run.clone(), deletions });
        }
        Ok(all)
    }

    /// All documents of a run with these names and contents.
    #[cfg(test)]
    pub(crate) fn of_run(folder: &Path, documents: Vec<(Vec<u8>, u64)>) -> Self {
        let generation = folder.join("gen-000001");
        std::fs::create_dir_all(generation.join("../runs")).unwrap();
        let mut writer = DocumentsWriter::create(&generation, 0, 0).unwrap();
        for (name, content) in documents {
            let name = String::from_utf8(name).unwrap();
            writer.push(&name, 1, Location::default(), content).unwrap();
        }
        let DocumentsEntry { documents, tokens, inputs, .. } = writer.finish().unwrap();
        let run =
            RunEntry { name: "000000".into(), documents, tokens, inputs, ..RunEntry::default() };
        Self::new(&generation, &Manifest { runs: vec![run], ..Manifest::default() }, &[true])
            .unwrap()
    }

    /// With deleted documents.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Calls `take` for some of the documents, counted with deleted ones, which are left out: with
    /// the docid in the generation, the name, and the hash of the content.
    pub(crate) fn read<E: From<IndexError>>(
        &self,
        wanted: Range<u64>,
        mut take: impl FnMut(u32, &[u8], u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = |stretch: &TouchedStretch| stretch.before + stretch.docids.len() as u64;
        let first = self.stretches.partition_point(|stretch| end(stretch) <= wanted.start);
        let mut open: Option<(usize, NamesWindow, FileWindow)> = None;
        for stretch in &self.stretches[first..] {
            let TouchedStretch { before, run, docids } = stretch;
            if *before >= wanted.end {
                break;
            }
            let TouchedRun { entry, deletions } = &self.runs[*run];
            let (_, names, hashes) = match &mut open {
                Some(open) if open.0 == *run => open,
                open => {
                    let bytes = [NAMES_BYTES, WINDOW_BYTES];
                    let checked = FileWindow::checked;
                    let names = NamesWindow::open(&self.generation, entry, bytes, checked)?;
                    let hashes = entry.path(&self.generation, FileKind::Hashes);
                    open.insert((*run, names, checked(&hashes, WINDOW_BYTES)?))
                }
            };
            let at = |number: u64| docids.start + (number - before) as u32;
            let docids = at(wanted.start.max(*before))..at(wanted.end.min(end(stretch)));
            for docid in docids.filter(|docid| !deletions.contains(*docid)) {
                let hash = hashes.read(HEADER_BYTES as u64 + 8 * u64::from(docid), 8)?;
                let content = u64::from_le_bytes(*hash.first_chunk().expect("so many were read"));
                take(entry.first_docid + docid, names.name(docid)?, content)?;
            }
        }
        Ok(())
    }
}

//! The documents that the live generation has of some of its inputs: those that changed or are
//! gone. They are found by the places of the documents, and read where they lie.

use crate::index::deletions::{Deletions, read_deletions};
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::generations::manifest::Manifest;
#[cfg(test)]
use crate::index::{
    documents::{DocumentsEntry, DocumentsWriter, Location},
    generations::manifest::RunEntry,
};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct TouchedDocuments {
    runs: Vec<TouchedRun>,
    /// Rising.
    stretches: Vec<TouchedStretch>,
    count: u64,
}

struct TouchedRun {
    first_docid: u32,
    documents: RunDocuments,
    deletions: Arc<Deletions>,
}

/// Neighbouring documents of a run, behind so many others, deleted ones too.
struct TouchedStretch {
    before: u64,
    run: usize,
    docids: Range<u32>,
}

pub(crate) struct TouchedDocument<'a> {
    /// In the generation.
    pub docid: u32,
    pub name: &'a [u8],
    pub content: u64,
}

impl TouchedDocuments {
    /// Those of the inputs that are `touched`, by their numbers in the generation in a folder.
    /// What the generation has is not verified.
    pub(crate) fn new(
        generation: &Path,
        manifest: &Manifest,
        touched: &[bool],
    ) -> Result<Self, IndexError> {
        let mut all = Self { runs: Vec::new(), stretches: Vec::new(), count: 0 };
        let deletions = read_deletions(generation, &manifest.runs, None)?;
        for (number, (run, deletions)) in manifest.runs.iter().zip(deletions).enumerate() {
            let documents = RunDocuments::open_mapped(generation, run)?;
            let is_touched = |input: u32| {
                let input = run.first_input.saturating_add(input);
                touched.get(input as usize).is_some_and(|is| *is)
            };
            for docids in documents.of_inputs(is_touched) {
                let before = all.count;
                all.count += docids.len() as u64;
                all.stretches.push(TouchedStretch { before, run: number, docids });
            }
            all.runs.push(TouchedRun { first_docid: run.first_docid, documents, deletions });
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

    /// Some of the documents, counted with deleted ones, which are left out.
    pub(crate) fn some(&self, wanted: Range<u64>) -> impl Iterator<Item = TouchedDocument<'_>> {
        let is_before =
            |stretch: &TouchedStretch| stretch.before + stretch.docids.len() as u64 <= wanted.start;
        let first = self.stretches.partition_point(is_before);
        let stretches = self.stretches[first..].iter();
        let stretches = stretches.take_while(move |stretch| stretch.before < wanted.end);
        stretches.flat_map(move |TouchedStretch { before, run, docids }| {
            let TouchedRun { first_docid, documents, deletions } = &self.runs[*run];
            let at = |number: u64| docids.start + (number - before) as u32;
            let start = at(wanted.start.max(*before));
            let end = at(wanted.end.min(before + docids.len() as u64));
            let live = (start..end).filter(|docid| !deletions.contains(*docid));
            let hashes = documents.hashes();
            live.map(move |docid| TouchedDocument {
                docid: first_docid + docid,
                name: documents.name(docid).unwrap_or_default(),
                content: hashes.get(docid as usize).copied().unwrap_or_default(),
            })
        })
    }
}

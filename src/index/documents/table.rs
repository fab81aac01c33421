//! The documents of a generation: those of its runs, one run behind the other.

use super::{Location, RunDocuments};
use crate::index::error::IndexError;
use crate::index::generations::manifest::RunEntry;
use std::borrow::Cow;
use std::cell::OnceCell;

/// The documents of all runs.
#[derive(Debug)]
pub struct Documents {
    runs: Vec<PlacedRun>,
    documents: u32,
}

#[derive(Debug)]
struct PlacedRun {
    first_docid: u32,
    first_input: u32,
    documents: RunDocuments,
}

impl Documents {
    /// Those of a generation, of each of its runs.
    pub(crate) fn of<'r>(runs: impl IntoIterator<Item = (&'r RunEntry, RunDocuments)>) -> Self {
        let place = |(run, documents): (&RunEntry, RunDocuments)| {
            let RunEntry { first_docid, first_input, .. } = *run;
            PlacedRun { first_docid, first_input, documents }
        };
        let runs: Vec<PlacedRun> = runs.into_iter().map(place).collect();
        // The manifest's reader has compared the runs with the docids.
        let documents = runs.iter().map(|run| run.documents.len()).sum();
        Self { runs, documents }
    }

    /// Documents, deleted ones too: docids are below this.
    pub fn len(&self) -> u32 {
        self.documents
    }

    pub(crate) fn runs(&self) -> impl ExactSizeIterator<Item = &RunDocuments> {
        self.runs.iter().map(|run| &run.documents)
    }

    fn place(&self, docid: u32) -> Option<(&PlacedRun, u32)> {
        if docid >= self.documents {
            return None;
        }
        // Runs without documents begin where the next one does.
        let after = self.runs.partition_point(|run| run.first_docid <= docid);
        let run = &self.runs[after.checked_sub(1)?];
        Some((run, docid - run.first_docid))
    }

    #[inline]
    pub(crate) fn length(&self, docid: u32) -> Option<u32> {
        let (run, docid) = self.place(docid)?;
        run.documents.lengths().get(docid as usize).copied()
    }

    /// The name of a document, in UTF-8; empty where there is no such document. All names that
    /// leave the index come from here.
    ///
    /// # Errors
    /// `Damaged`.
    #[inline]
    pub fn name(&self, docid: u32) -> Result<&[u8], IndexError> {
        self.place(docid).map_or(Ok(&[]), |(run, docid)| run.documents.name(docid))
    }

    /// The names at the places of a list of docids, quick if asked for one place after the other: a
    /// name is two memory accesses that wait for each other, so both are begun some places before.
    /// Of one that is damaged since it was opened `failed` gets the error.
    pub fn names<'a>(
        &'a self,
        docids: impl Fn(usize) -> Option<u32>,
        failed: &OnceCell<IndexError>,
    ) -> impl Fn(usize) -> Cow<'a, str> {
        const AHEAD: usize = 8;
        move |at| {
            if let Some((run, docid)) = docids(at + 2 * AHEAD).and_then(|docid| self.place(docid)) {
                run.documents.prefetch_end(docid);
            }
            if let Some((run, docid)) = docids(at + AHEAD).and_then(|docid| self.place(docid)) {
                run.documents.prefetch_name(docid);
            }
            let name = docids(at).map_or(Ok(&[][..]), |docid| self.name(docid));
            let name = name.unwrap_or_else(|error| {
                // The first one is enough.
                _ = failed.set(error);
                &[]
            });
            // Nearly all are UTF-8, and this looks at many bytes at a time.
            match std::str::from_utf8(name) {
                Ok(name) => Cow::Borrowed(name),
                Err(_) => String::from_utf8_lossy(name),
            }
        }
    }

    /// The input is numbered in the manifest.
    pub(crate) fn location(&self, docid: u32) -> Option<Location> {
        let (run, docid) = self.place(docid)?;
        let location = run.documents.location(docid)?;
        Some(Location { input: location.input.saturating_add(run.first_input), ..location })
    }

    /// Of the text as it was indexed.
    pub(crate) fn hash(&self, docid: u32) -> Option<u64> {
        let (run, docid) = self.place(docid)?;
        run.documents.hashes().get(docid as usize).copied()
    }
}

//! Who has a name, among the documents of a generation that are not deleted.

use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use std::collections::HashMap;
use std::path::Path;

/// Documents of runs that are open, by the name of the run.
pub(crate) type MappedDocuments = HashMap<String, RunDocuments>;

/// The documents of some runs, mapped; not verified unless they were known.
pub(crate) struct LiveNames<'a> {
    runs: Vec<(LiveRun<'a>, RunDocuments)>,
}

impl<'a> LiveNames<'a> {
    /// Opens those that are not known; they are known then.
    pub(crate) fn open(
        generation: &Path,
        runs: Vec<LiveRun<'a>>,
        known: &mut MappedDocuments,
    ) -> Result<Self, IndexError> {
        let open = |live: LiveRun<'a>| {
            if let Some(documents) = known.get(&live.run.name) {
                return Ok((live, documents.clone()));
            }
            let documents = RunDocuments::open_mapped(generation, live.run)?;
            known.insert(live.run.name.clone(), documents.clone());
            Ok((live, documents))
        };
        Ok(Self { runs: runs.into_iter().map(open).collect::<Result<_, IndexError>>()? })
    }

    pub(crate) fn runs(&self) -> &[(LiveRun<'a>, RunDocuments)] {
        &self.runs
    }

    /// The documents of a name: the places of their runs, and their docids there, rising.
    pub(crate) fn of<'b>(&'b self, name: &'b [u8]) -> impl Iterator<Item = (usize, u32)> + 'b {
        self.runs.iter().enumerate().flat_map(move |(at, (live, documents))| {
            let is_it = move |docid: &u32| {
                documents.name(*docid) == Some(name) && !live.deletions.contains(*docid)
            };
            documents.candidates(name).filter(is_it).map(move |docid| (at, docid))
        })
    }
}

//! Who has a name, among the documents of a generation that are not deleted.

use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use std::path::Path;

/// The documents of some runs, mapped and not verified.
pub(crate) struct LiveNames<'a> {
    runs: Vec<(LiveRun<'a>, RunDocuments)>,
}

impl<'a> LiveNames<'a> {
    pub(crate) fn open(generation: &Path, runs: Vec<LiveRun<'a>>) -> Result<Self, IndexError> {
        let open = |live: LiveRun<'a>| {
            Ok((live.clone(), RunDocuments::open_mapped(generation, live.run)?))
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

//! Who has a name, among the documents of a generation that are not deleted.

use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use std::path::Path;

/// The documents of some runs, mapped; what is looked at is verified.
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
    pub(crate) fn of(&self, name: &[u8]) -> Result<Vec<(usize, u32)>, IndexError> {
        let mut found = Vec::new();
        for (at, (live, documents)) in self.runs.iter().enumerate() {
            let of_name = documents.of_name(name)?.into_iter();
            let left = of_name.filter(|docid| !live.deletions.contains(*docid));
            found.extend(left.map(|docid| (at, docid)));
        }
        Ok(found)
    }
}

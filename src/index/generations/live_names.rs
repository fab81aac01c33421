//! Who has a name, among the documents of a generation that are not deleted.

use crate::index::deletions::LiveRun;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use std::collections::HashMap;
use std::path::Path;

/// Documents of runs that are open, by the name of the run.
pub(crate) type MappedDocuments = HashMap<String, RunDocuments>;

/// The documents of some runs, mapped; what is looked at is verified.
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

    /// This many names will be looked up, at least.
    pub(crate) fn expect(&self, names: usize) -> Result<(), IndexError> {
        self.runs.iter().try_for_each(|(_, documents)| documents.expect(names as u64))
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

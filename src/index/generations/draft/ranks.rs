//! PageRanks of documents that come behind others.

use super::Draft;
use crate::index::deletions::live_runs;
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::generations::live_names::LiveNames;
use crate::index::generations::manifest::Manifest;
use crate::index::scores::ranks_of;
use std::ops::Range;
use std::path::Path;

impl Draft {
    /// Gives the documents of `new` runs the PageRanks that their names have in the generation in
    /// the folder `from`, if it has any; unknown names get 0, as where a file of ranks does not
    /// name them. Returns how many are unknown.
    pub(crate) fn keep_ranks(
        &mut self,
        from: &Path,
        manifest: &Manifest,
        new: Range<usize>,
    ) -> Result<u64, IndexError> {
        let ranks = match ranks_of(from, manifest) {
            Ok(Some(ranks)) => ranks,
            // Where only some runs have ranks there is nothing that could be kept whole.
            Ok(None) | Err(IndexError::Lacks { .. }) => return Ok(0),
            Err(error) => return Err(error),
        };
        let old = LiveNames::open(from, live_runs(from, &manifest.runs)?)?;
        let mut unknown = 0;
        for run in new {
            let documents = RunDocuments::open_mapped(&self.folder, &self.runs[run])?;
            let rank = |docid| {
                // The first document of a name counts.
                let first = old.of(documents.name(docid).unwrap_or_default()).next();
                unknown += u64::from(first.is_none());
                let docid = |(run, docid): (usize, u32)| manifest.runs[run].first_docid + docid;
                first.map_or(0.0, |first| ranks[docid(first) as usize])
            };
            let ranks: Vec<f32> = (0..documents.len()).map(rank).collect();
            self.rank(run, &ranks)?;
        }
        Ok(unknown)
    }
}

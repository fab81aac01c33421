//! The PageRanks of a draft's documents.

use super::Draft;
use crate::index::deletions::{LiveRun, live_runs};
use crate::index::documents::RunDocuments;
use crate::index::error::IndexError;
use crate::index::files::storage::FileEntry;
use crate::index::format::FileKind;
use crate::index::generations::live_names::LiveNames;
use crate::index::generations::manifest::Manifest;
use crate::index::ranks::{RankCounts, RanksFile, read_ranks};
use crate::index::scores::{RunScores, ranks_of, write_scores};
use std::ops::Range;
use std::path::Path;

impl Draft {
    /// Replaces the PageRanks of the run at a place. `Refused` if there is no such run, or not as
    /// many ranks as documents.
    pub(crate) fn rank(&mut self, run: usize, ranks: &[f32]) -> Result<(), IndexError> {
        let entry = self.runs.get(run).filter(|entry| entry.documents as usize == ranks.len());
        let Some(entry) = entry else {
            let reason = format!("there is no run {run} with {} documents", ranks.len());
            return Err(IndexError::refused(&self.folder, reason));
        };
        let number = Some(self.number).filter(|_| self.shared.contains(&entry.name));
        self.drop_file(run, FileKind::Scores)?;
        let entry = &mut self.runs[run];
        entry.scores = number;
        self.files.push(write_scores(&self.folder, &entry.file(FileKind::Scores), ranks, None)?);
        // Other ranks make another order.
        self.order = self.order.take().filter(|order| order.global.is_none());
        Ok(())
    }

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
        let old = live_runs(from, &manifest.runs)?;
        let old = LiveNames::open(from, old, &mut self.known)?;
        let mut unknown = 0;
        for run in new {
            let documents = RunDocuments::open_mapped(&self.folder, &self.runs[run])?;
            let rank = |docid| {
                // The first document of a name counts.
                let first = old.of(&documents.name(docid)?)?.first().copied();
                unknown += u64::from(first.is_none());
                let docid = |(run, docid): (usize, u32)| manifest.runs[run].first_docid + docid;
                Ok::<_, IndexError>(first.map_or(0.0, |first| ranks[docid(first) as usize]))
            };
            let ranks = (0..documents.len()).map(rank).collect::<Result<Vec<f32>, _>>()?;
            self.rank(run, &ranks)?;
        }
        Ok(unknown)
    }

    /// The PageRanks that a file has for the documents that are not deleted; `memory_bytes` as for
    /// [`read_ranks`](crate::index::ranks::read_ranks).
    pub(crate) fn read_ranks(
        &self,
        file: &RanksFile,
        memory_bytes: u64,
    ) -> Result<(Vec<f32>, RankCounts), IndexError> {
        let mut tables = Vec::with_capacity(self.runs.len());
        for (run, deletions) in self.runs.iter().zip(&self.deletions) {
            tables.push((RunDocuments::open_mapped(&self.folder, run)?, deletions));
        }
        let documents = self.runs.iter().map(|run| run.live_documents() as usize).sum();
        let names = tables.iter().flat_map(|(documents, deleted)| {
            let left = (0..documents.len()).filter(|&docid| !deleted.contains(docid));
            left.map(|docid| documents.name(docid))
        });
        read_ranks(file, documents, names, memory_bytes)
    }
}

/// The PageRanks of the documents of some runs of a generation that are not deleted, and how many
/// of the runs have any.
pub(super) fn ranks_left(
    generation: &Path,
    files: &[FileEntry],
    runs: &[LiveRun<'_>],
) -> Result<(Vec<f32>, usize), IndexError> {
    let mut ranks = Vec::new();
    let mut ranked = 0;
    for LiveRun { run, deletions } in runs {
        let Some(scores) = RunScores::open(generation, run, files)? else { continue };
        ranked += 1;
        let left = (0..).zip(scores.ranks()?).filter(|(docid, _)| !deletions.contains(*docid));
        ranks.extend(left.map(|(_, rank)| *rank));
    }
    Ok((ranks, ranked))
}

//! What a generation leaves out of its runs. A run never changes, so a file of the generation names
//! its deleted documents, and says of some of them by how much they make document frequencies and
//! totals too great (`docs/index-format.md`, Deletions); of those deleted since, that is found when
//! a query first asks for a list (`index/run/live.rs`). Scores are then those of an index without
//! these documents, to the bit.

mod file;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use file::{read_deletions, write_deletions};
pub(crate) use set::{DocidSet, ones};

use crate::index::error::IndexError;
use crate::index::generations::manifest::RunEntry;
use crate::index::lexicon::TermEntry;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The deleted documents of a run, with docids from the run's first. Memory: that of the two sets,
/// and 12 bytes for each list with a posting of a counted document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletions {
    /// The documents that `counts` is about.
    pub counted: DocidSet,
    /// The others.
    pub since: DocidSet,
    /// Offsets of the lists with postings of counted documents, and how many those are.
    pub lists: Vec<u64>,
    /// See `lists`.
    pub counts: Vec<u32>,
}

impl Deletions {
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.len() + self.since.len() == 0
    }

    #[inline]
    pub(crate) fn contains(&self, docid: u32) -> bool {
        self.counted.contains(docid) || self.since.contains(docid)
    }

    /// Rising.
    pub(crate) fn docids(&self) -> impl Iterator<Item = u32> {
        self.docids_in(0..u32::MAX)
    }

    /// Those in a range whose start is a multiple of 64, rising.
    pub(crate) fn docids_in(&self, docids: Range<u32>) -> impl Iterator<Item = u32> {
        let words = docids.start as usize / 64..self.words().min(docids.end.div_ceil(64) as usize);
        words.flat_map(|at| ones(at, self.word(at))).take_while(move |docid| *docid < docids.end)
    }

    /// The documents that were not deleted `before`, rising; none if one was that is not now.
    pub(crate) fn more_than(&self, before: &Self) -> Option<Vec<u32>> {
        let mut more = Vec::new();
        for at in 0..self.words().max(before.words()) {
            let [now, then] = [self, before].map(|deletions| deletions.word(at));
            if then & !now != 0 {
                return None;
            }
            more.extend(ones(at, now & !then));
        }
        Some(more)
    }

    fn words(&self) -> usize {
        self.counted.words().len().max(self.since.words().len())
    }

    fn word(&self, at: usize) -> u64 {
        self.counted.word(at) | self.since.word(at)
    }

    /// Deleted documents before `docid`.
    #[inline]
    pub(crate) fn before(&self, docid: u32) -> u32 {
        self.counted.before(docid) + self.since.before(docid)
    }

    /// Postings of a list that are of counted documents.
    pub(crate) fn counted_in(&self, list: &TermEntry) -> u32 {
        self.lists.binary_search(&list.offset).map_or(0, |at| self.counts[at])
    }
}

/// A run and what is deleted of it.
#[derive(Clone, Debug)]
pub(crate) struct LiveRun<'a> {
    pub run: &'a RunEntry,
    pub deletions: Arc<Deletions>,
}

/// Reads the deletions of all runs of the generation in a folder, and does not verify them.
///
/// # Errors
/// As [`read_deletions`].
pub(crate) fn live_runs<'a>(
    generation: &Path,
    runs: &'a [RunEntry],
) -> Result<Vec<LiveRun<'a>>, IndexError> {
    let deletions = read_deletions(generation, runs, None)?;
    let pairs = runs.iter().zip(deletions);
    Ok(pairs.map(|(run, deletions)| LiveRun { run, deletions }).collect())
}

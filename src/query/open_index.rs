//! An index that is open for searches from any threads: the short way to hits with names.
//!
//! What is behind it can be had one by one: a [`Snapshot`], a [`Searcher`] for each thread, and the
//! [query service](crate::QueryService) for streams of queries.

#![warn(missing_docs)]

use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::generations::generation::Generation;
use crate::index::generations::watch::Watch;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::top_k::{Hit, NamedHit};
use crate::query::wanted::{Mode, Wanted};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An open index. Searches answer from the generation that was live when it was opened or
/// [refreshed](Self::refresh), whatever is published meanwhile.
///
/// ```
/// use millrace::{BuildOptions, Index, OwnedDocument, build};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// build(BuildOptions::of_documents(folder, [OwnedDocument::new("mill", "A water mill.")]))?;
/// let index = Index::open(folder)?;
/// let hits = index.search("water mill", 10)?;
/// assert_eq!((&*hits[0].name, hits[0].docid), ("mill", 0));
/// # Ok(())
/// # }
/// ```
pub struct Index {
    folder: PathBuf,
    wanted: Wanted,
    state: Mutex<IndexState>,
    /// Locked while it moves to another generation; searches go on meanwhile.
    watch: Mutex<Watch>,
}

struct IndexState {
    snapshot: Arc<Snapshot>,
    /// Of searches that have ended.
    idle: Vec<Searcher>,
}

impl Index {
    /// Opens the live generation of the index in `folder`, for BM25 and documents with any of a
    /// query's terms.
    ///
    /// # Errors
    /// As [`Generation::open`](crate::Generation::open).
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, IndexError> {
        let folder = folder.as_ref().to_path_buf();
        let snapshot = Snapshot::open(&folder, Scoring::default())?;
        let watch = Mutex::new(Watch::new(&folder));
        let state = Mutex::new(IndexState { snapshot, idle: Vec::new() });
        Ok(Self { folder, wanted: Wanted::default(), state, watch })
    }

    /// The same generation with another score.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with_scoring(self, scoring: Scoring) -> Result<Self, IndexError> {
        let snapshot = self.snapshot().scored_by(scoring)?;
        lock(&self.state).snapshot = snapshot;
        Ok(self)
    }

    /// The same for documents that match otherwise.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.wanted.mode = mode;
        self
    }

    /// The best `k` documents for `text`, best first; equal scores by docid.
    ///
    /// # Errors
    /// If the index is damaged, or the text has more than 65,536 different terms.
    pub fn search(&self, text: &str, k: usize) -> Result<Vec<NamedHit>, IndexError> {
        let snapshot = self.snapshot();
        let mut searcher = lock(&self.state).idle.pop().unwrap_or_default();
        let wanted = Wanted { k, ..self.wanted };
        let (hits, _) = searcher.search(&snapshot, &wanted, text)?;
        let documents = snapshot.generation().documents();
        let named = |hit: &Hit| {
            let name = documents.name(hit.docid)?;
            Ok(NamedHit::new(*hit, String::from_utf8_lossy(&name).into_owned()))
        };
        let hits = hits.iter().map(named).collect();
        lock(&self.state).idle.push(searcher);
        hits
    }

    /// Moves to the live generation; returns whether it is another one.
    ///
    /// # Errors
    /// As [`open`](Self::open). Searches go on with the old one then.
    pub fn refresh(&self) -> Result<bool, IndexError> {
        let mut watch = lock(&self.watch);
        let open = self.snapshot();
        let is_other = watch.is_other(open.generation().manifest(), false)?;
        if is_other {
            let next = open.follow(&self.folder)?;
            lock(&self.state).snapshot = next;
        }
        Ok(is_other)
    }

    /// Moves to a generation of this index that is open, such as that of a
    /// [`Writer`](crate::Writer::generation), if its number is greater than that of what is
    /// searched.
    ///
    /// # Errors
    /// As [`Snapshot::new`]. Searches go on with the old one then.
    pub fn move_to(&self, generation: Arc<Generation>) -> Result<(), IndexError> {
        let _moving = lock(&self.watch);
        let open = self.snapshot();
        if generation.manifest().generation > open.generation().manifest().generation {
            let next = open.after(generation)?;
            lock(&self.state).snapshot = next;
        }
        Ok(())
    }

    /// What is searched.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        lock(&self.state).snapshot.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::{build, collection};

    #[test]
    fn threads_search_and_a_refresh_moves_on() {
        let folder = tempfile::tempdir().unwrap();
        build(folder.path(), &collection(1, 50, 20), &[]);
        let index = Index::open(folder.path()).unwrap();
        let first = index.search("abc1 q3", 5).unwrap();
        assert!(!first.is_empty() && first.is_sorted_by(|a, b| a.score >= b.score));
        assert_eq!(first[0].name, format!("doc-{}", first[0].docid));
        std::thread::scope(|scope| {
            let search = || scope.spawn(|| index.search("abc1 q3", 5).unwrap());
            let searches: Vec<_> = (0..4).map(|_| search()).collect();
            searches.into_iter().for_each(|found| assert_eq!(found.join().unwrap(), first));
        });
        assert!(!index.refresh().unwrap());
        build(folder.path(), &collection(2, 70, 20), &[]);
        assert_eq!(index.search("abc1 q3", 5).unwrap(), first);
        assert!(index.refresh().unwrap());
        assert_eq!(index.snapshot().generation().documents().len(), 70);
        let all = index.with_mode(Mode::And);
        assert!(all.search("abc1 nowhere", 5).unwrap().is_empty());
        let ranked = all
            .with_scoring(Scoring { score: crate::score::named::Score::Dph, ..Scoring::default() });
        assert!(ranked.unwrap().search("abc1", 3).unwrap().len() <= 3);
        assert!(Index::open(folder.path().join("none")).is_err());
    }
}

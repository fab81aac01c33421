//! An index that is open for searches from any threads: the short way to hits with names.
//!
//! What is behind it can be had one by one: a [`Snapshot`], a [`Searcher`] for each thread, and the
//! [query service](crate::QueryService) for streams of queries.

#![warn(missing_docs)]

use crate::crew::lock;
use crate::index::error::IndexError;
use crate::index::generations::watch::Watch;
use crate::query::searcher::Searcher;
use crate::query::snapshot::{Scoring, Snapshot};
use crate::query::top_k::{Hit, NamedHit};
use crate::query::wanted::{Mode, Wanted};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
}

struct IndexState {
    snapshot: Arc<Snapshot>,
    watch: Watch,
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
        let watch = Watch::new(&folder);
        let state = Mutex::new(IndexState { snapshot, watch, idle: Vec::new() });
        Ok(Self { folder, wanted: Wanted::default(), state })
    }

    /// The same generation with another score.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn with_scoring(self, scoring: Scoring) -> Result<Self, IndexError> {
        let Self { folder, wanted, state, .. } = self;
        let IndexState { snapshot, watch, idle } =
            state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let snapshot = snapshot.scored_by(scoring)?;
        let state = Mutex::new(IndexState { snapshot, watch, idle });
        Ok(Self { folder, wanted, state })
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
            Ok(NamedHit::new(*hit, String::from_utf8_lossy(name).into_owned()))
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
        let mut state = lock(&self.state);
        let open = state.snapshot.clone();
        let is_other = state.watch.is_other(open.generation().manifest(), false)?;
        if is_other {
            state.snapshot = open.follow(&self.folder)?;
        }
        Ok(is_other)
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

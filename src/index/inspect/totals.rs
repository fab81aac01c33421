//! Totals of a live generation, and its lists by length, for reports.

use crate::index::error::IndexError;
use crate::index::generations::folder::current;
use crate::index::generations::manifest::Manifest;
use crate::index::generations::manifest::held::WhichRuns;
use crate::index::generations::manifest::read::read_manifest;
use serde::Serialize;
use std::path::Path;

/// The totals of a generation, or of some of its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub generation: u32,
    pub documents: u64,
    pub terms: u64,
    pub postings: u64,
    pub tokens: u64,
    /// Bytes of all files but the manifest.
    pub index_bytes: u64,
}

impl Totals {
    pub fn of(manifest: &Manifest) -> Self {
        let statistics = &manifest.statistics;
        Self {
            generation: manifest.generation,
            documents: statistics.documents,
            terms: statistics.terms,
            postings: statistics.postings,
            tokens: statistics.tokens,
            index_bytes: manifest.files.iter().map(|file| file.bytes).sum(),
        }
    }
}

/// Reads the totals of the live generation of the index in the folder `index`; with a `process`,
/// those of the runs that it holds. None if there is no such generation.
///
/// # Errors
/// `Storage`, `Damaged`, `Newer`.
pub fn totals(index: &Path, process: Option<usize>) -> Result<Option<Totals>, IndexError> {
    let Some(folder) = current(index)? else { return Ok(None) };
    let which = process.map_or(WhichRuns::All, WhichRuns::Of);
    match read_manifest(&folder) {
        Err(error) if error.is_older() => Ok(None),
        manifest => Ok(Some(Totals::of(&which.of(&folder, manifest?).0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing;

    #[test]
    fn totals_are_those_of_the_manifest() {
        let scratch = tempfile::tempdir().unwrap();
        let index = scratch.path();
        assert_eq!(totals(index, None).unwrap(), None);
        let manifest = testing::build(index, &testing::collection(3, 500, 80), &[200]);
        let totals = totals(index, None).unwrap().unwrap();
        assert_eq!(totals.generation, manifest.generation);
        assert_eq!((totals.documents, totals.postings), (500, manifest.statistics.postings));
        // It is held by one process.
        let of = |process| super::totals(index, Some(process)).unwrap().unwrap().documents;
        assert_eq!([of(0), of(1)], [500, 0]);
    }
}

//! How is the live generation of an index opened? Everything that a query reads often is verified
//! first; the postings are checked as they are read, or verified whole when asked.

#![forbid(unsafe_code)]

use crate::index::documents::Documents;
use crate::index::error::IndexError;
use crate::index::format::{LENGTHS, MANIFEST};
use crate::index::manifest::Manifest;
use crate::index::publish;
use crate::index::run::Run;
use std::path::{Path, PathBuf};

/// How often a generation may be replaced while it is opened.
const ATTEMPTS: usize = 16;

/// One complete version of an index, mapped.
#[derive(Debug)]
pub struct Generation {
    path: PathBuf,
    manifest: Manifest,
    documents: Documents,
    runs: Vec<Run>,
}

impl Generation {
    /// Opens the live generation of the index in the folder `index`. Verifies the manifest and, by
    /// its checksums, the lexicons and the documents; with `verify` the postings too.
    ///
    /// A build may publish meanwhile and remove what is being opened: then the new generation is
    /// opened.
    ///
    /// # Errors
    /// `NoIndex` if nothing is published there; `Storage`, `Damaged`, `Newer`.
    pub fn open(index: &Path, verify: bool) -> Result<Self, IndexError> {
        with_live(index, |path| Self::open_folder(path, verify))
    }

    /// Opens the generation in the folder `path`, live or not.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open_folder(path: &Path, verify: bool) -> Result<Self, IndexError> {
        let manifest = read_manifest(path)?;
        let files = &manifest.files;
        let documents = Documents::open(path, files)?;
        let statistics = &manifest.statistics;
        for (at, expected, found) in [
            (16, statistics.documents, u64::from(documents.len())),
            (24, statistics.tokens, documents.tokens()),
        ] {
            if expected != found {
                return Err(IndexError::damaged(&path.join(LENGTHS), at, expected, found));
            }
        }
        let open = |entry| Run::open(path, entry, files, verify);
        let runs = manifest.runs.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { path: path.to_path_buf(), manifest, documents, runs })
    }

    /// Returns the folder of the generation.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the documents' table.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Returns the runs, by docid.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
}

/// Reads the manifest of the generation in the folder `path`, which has to be named for it.
pub(crate) fn read_manifest(path: &Path) -> Result<Manifest, IndexError> {
    let manifest = Manifest::read(path)?;
    if publish::number_of(path) != Some(manifest.generation) {
        let expected = "the number of the generation's folder";
        return Err(IndexError::damaged(&path.join(MANIFEST), 0, expected, manifest.generation));
    }
    Ok(manifest)
}

/// Calls `work` with the folder of the live generation, again if that was replaced and a file of it
/// is gone.
pub(crate) fn with_live<T>(
    index: &Path,
    mut work: impl FnMut(&Path) -> Result<T, IndexError>,
) -> Result<T, IndexError> {
    let live = || {
        publish::current(index)?.ok_or_else(|| IndexError::NoIndex { path: index.to_path_buf() })
    };
    let mut path = live()?;
    for _ in 1..ATTEMPTS {
        let done = work(&path);
        if !done.as_ref().is_err_and(IndexError::is_not_found) {
            return done;
        }
        let now = live()?;
        if now == path {
            return done;
        }
        path = now;
    }
    work(&path)
}

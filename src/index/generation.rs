//! How is the live generation of an index opened?

#![forbid(unsafe_code)]

use crate::index::documents::Documents;
use crate::index::error::IndexError;
use crate::index::format::{MANIFEST, lexicon_name, postings_name};
use crate::index::manifest::Manifest;
use crate::index::publish::current;
use crate::index::run::Run;
use std::path::{Path, PathBuf};

/// A complete, immutable version of an index, opened for reading.
#[derive(Debug)]
pub struct Generation {
    directory: PathBuf,
    manifest: Manifest,
    documents: Documents,
    runs: Vec<Run>,
}

/// A generation that vanishes while it is opened was replaced by a newer one; more often than this
/// in a row something else is wrong.
const ATTEMPTS: usize = 5;

impl Generation {
    /// Opens the live generation of the index in the folder `index`. Manifest, headers, lexicons and
    /// the documents' table are verified, and with `verify` the postings too.
    ///
    /// # Errors
    /// `NoIndex`, `Storage`, `Damaged`, `Newer`.
    pub fn open(index: &Path, verify: bool) -> Result<Self, IndexError> {
        let mut attempt = 1;
        loop {
            let Some(directory) = current(index)? else {
                return Err(IndexError::NoIndex { path: index.to_path_buf() });
            };
            match Self::open_directory(&directory, verify) {
                Err(error) if error.is_not_found() && attempt < ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    /// Opens the generation in the folder `directory`.
    ///
    /// # Errors
    /// `Storage`, `Damaged`, `Newer`.
    pub fn open_directory(directory: &Path, verify: bool) -> Result<Self, IndexError> {
        let manifest = Manifest::read(directory)?;
        let entry = |name: &str| manifest.file(directory, name);
        let documents = Documents::open(directory, entry)?;
        let mut runs = Vec::with_capacity(manifest.runs.len());
        let mut next = 0u64;
        for run in &manifest.runs {
            let (lexicon, postings) =
                (entry(&lexicon_name(&run.name))?, entry(&postings_name(&run.name))?);
            let found = u64::from(run.first_docid);
            if found != next {
                let expected = format!("run {} from docid {next} on", run.name);
                let path = directory.join(MANIFEST);
                return Err(IndexError::damaged(&path, 0, expected, found));
            }
            next += u64::from(run.documents);
            runs.push(Run::open(directory, run, lexicon, postings, verify)?);
        }
        let statistics = &manifest.statistics;
        let found = (u64::from(documents.len()), documents.tokens());
        for (what, expected, found) in [
            ("documents in all runs", found.0, next),
            ("documents", found.0, statistics.documents),
            ("tokens", found.1, statistics.tokens),
        ] {
            if expected != found {
                let expected = format!("{expected} {what}");
                return Err(IndexError::damaged(&directory.join(MANIFEST), 0, expected, found));
            }
        }
        Ok(Self { directory: directory.to_path_buf(), manifest, documents, runs })
    }

    /// Its folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its documents.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Its runs, in the order of docids.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
}

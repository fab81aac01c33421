//! The errors of a build.

#![expect(missing_docs, reason = "the message of a variant says what it is about")]

use super::guards::limit::Limit;
use crate::dataflow::control::{Cause, JobError};
use crate::index::error::IndexError;
use crate::input::error::InputError;
use crate::settings::SettingError;
use crate::shown::number_of;
use std::collections::BTreeMap;
use std::io;
use thiserror::Error;

/// Why there is no new generation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error(transparent)]
    Options(#[from] SettingError),
    #[error("cannot read the input")]
    Input(#[from] InputError),
    /// There are fewer devices than were asked for, or none where one is needed.
    #[error(transparent)]
    Devices(SettingError),
    #[error("no document in {bytes} bytes of {place}: {}", show_reasons(.skipped))]
    NoDocuments {
        bytes: u64,
        place: String,
        skipped: BTreeMap<String, u64>,
        /// The first of them: place and reason.
        first_skipped: Vec<String>,
    },
    #[error("{}: these rates of the machine cannot be used; measure them again, or remove the file", path.display())]
    Rates {
        path: std::path::PathBuf,
        #[source]
        source: io::Error,
    },
    /// Folders hold what cannot be read, and the build is strict.
    #[error("{} cannot be read, the first of them {first}", number_of(*.count, "file", "files"))]
    Unreadable {
        count: u64,
        /// Path and reason.
        first: String,
    },
    #[error("no text in any of {documents} documents: {seen}")]
    NoText {
        documents: u64,
        /// What the input looks like.
        seen: String,
    },
    #[error("{broken} of {records} records are broken, more than {limit}: nothing was published")]
    TooManySkipped {
        broken: u64,
        /// Broken ones and documents.
        records: u64,
        limit: Limit,
    },
    #[error(
        "{found} {what}, fewer than {least}{}: nothing was published", show_share(*.limit, *.before)
    )]
    TooFew {
        /// Documents or tokens.
        what: &'static str,
        found: u64,
        least: u64,
        limit: Limit,
        /// Those of the generation before, if there is one.
        before: Option<u64>,
    },
    /// A document has the name of another one, which the build refuses.
    #[error(
        "{count} documents have the name of an earlier one; the first is document {docid}, named as document {earlier}"
    )]
    DuplicateNames {
        /// Documents whose name an earlier one has.
        count: u64,
        docid: u32,
        earlier: u32,
    },
    /// What is in the index is decided by rebuilds alone.
    #[error("{}: a job file keeps this index: {instead}", index.display())]
    KeptByJob {
        /// The folder of the index.
        index: std::path::PathBuf,
        /// What to do.
        instead: String,
    },
    /// Too many documents would go.
    #[error(
        "{after} of {before} documents would be left: nothing was published, since that may be a mistake"
    )]
    Shrinks {
        /// Documents before.
        before: u64,
        /// Documents behind the change.
        after: u64,
    },
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The dataflow failed, or the build was told to end.
    #[error(transparent)]
    Job(JobError),
    #[error("process {process} sent {bytes} bytes that are not what it was asked for")]
    Sent { process: usize, bytes: usize },
    /// [`BuildOptions::accept`](super::BuildOptions::accept) does not want what came out.
    #[error("not published")]
    Refused(#[source] Cause),
    #[error("starting a thread")]
    Thread(#[source] io::Error),
    #[error("the dataflow left no documents' table (this is a bug: please report it)")]
    NoTable,
}

fn show_share(limit: Limit, before: Option<u64>) -> String {
    let before = before.filter(|_| matches!(limit, Limit::Percent(_)));
    before.map_or(String::new(), |n| format!(" ({limit} of the {n} before)"))
}

fn show_reasons(skipped: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    if reasons.is_empty() {
        "it is blank, or has only what no document is made of (WARC records that are no pages, redirects of a wiki)".to_string()
    } else {
        reasons.join(", ")
    }
}

impl From<JobError> for BuildError {
    /// Which worker meets an error of the build or of its input first says nothing of it.
    fn from(error: JobError) -> Self {
        let JobError::Operator { operator, worker, source } = error else {
            return Self::Job(error);
        };
        let input = |source: Cause| source.downcast().map(|error| Self::Input(*error));
        let own = source.downcast().map(|error| *error).or_else(input);
        own.unwrap_or_else(|source| Self::Job(JobError::Operator { operator, worker, source }))
    }
}

impl BuildError {
    pub(crate) fn job(&self) -> Option<&JobError> {
        match self {
            Self::Job(error) => Some(error),
            _ => None,
        }
    }
}

//! Why does a build fail?

#![warn(missing_docs)]

use super::guards::limit::Limit;
use super::indexer::Indexer;
use crate::dataflow::control::{Cause, JobError};
use crate::dataflow::together::TogetherError;
use crate::gpu::floor::discover::NotEnough;
use crate::index::error::IndexError;
use crate::input::error::InputError;
use crate::order::TooLittleMemory;
use crate::schedule::roles::RolesError;
use std::collections::BTreeMap;
use std::io;
use thiserror::Error;

/// Why there is no new generation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The options cannot be.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The input cannot be listed.
    #[error("cannot read the input")]
    Input(#[from] InputError),
    /// There are fewer devices than were asked for.
    #[error(transparent)]
    Devices(#[from] NotEnough),
    /// Indexers on devices were asked for, and there is no device.
    #[error("{asked} indexers on GPUs: no GPU can be used ({})", reasons.join("; "))]
    NoGpu {
        /// The indexers.
        asked: usize,
        /// Why there is no device.
        reasons: Vec<String>,
    },
    /// The indexer works on a GPU, and there is none.
    #[error("the indexer {indexer} needs a GPU, and none can be used ({})", reasons.join("; "))]
    NeedsGpu {
        /// The indexer.
        indexer: Indexer,
        /// Why there is no device.
        reasons: Vec<String>,
    },
    /// The input has no document.
    #[error("no document in {bytes} bytes of {place}: {}", show_reasons(.skipped))]
    NoDocuments {
        /// Bytes of the input.
        bytes: u64,
        /// What they are of.
        place: String,
        /// Records that were skipped, by reason.
        skipped: BTreeMap<String, u64>,
        /// The first of them: place and reason.
        first_skipped: Vec<String>,
    },
    /// The rates that are kept of this machine cannot be read.
    #[error("{}: the rates of this machine; measure them again, or remove the file", path.display())]
    Rates {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Folders hold what cannot be read, and the build is strict.
    #[error("{count} cannot be read; the first: {first}")]
    Unreadable {
        /// Files, folders and links.
        count: u64,
        /// The first: path and reason.
        first: String,
    },
    /// There are documents, and none of them has an indexed term.
    #[error("no text in any of {documents} documents: {seen}")]
    NoText {
        /// The documents.
        documents: u32,
        /// What the input looks like.
        seen: String,
    },
    /// More records are broken than may be.
    #[error("{broken} of {records} records are broken, more than {limit}: nothing was published")]
    TooManySkipped {
        /// Broken records.
        broken: u64,
        /// Those and the documents.
        records: u64,
        /// How many may be.
        limit: Limit,
    },
    /// There are fewer documents than there have to be.
    #[error(
        "{documents} documents, fewer than {least} ({limit} of {}): nothing was published", show_before(*.before)
    )]
    TooFewDocuments {
        /// Documents that were found.
        documents: u64,
        /// How many there have to be.
        least: u64,
        /// The limit.
        limit: Limit,
        /// Documents of the generation before, if there is one.
        before: Option<u64>,
    },
    /// A document has the name of another one, and the build is strict.
    #[error(
        "{count} documents have the name of an earlier one; the first is document {docid}, named as document {earlier}"
    )]
    DuplicateNames {
        /// Documents whose name an earlier one has.
        count: u64,
        /// The first of them.
        docid: u32,
        /// The earlier document.
        earlier: u32,
    },
    /// The index cannot be written.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The dataflow failed, or the build was told to end.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The processes of the build do not work together.
    #[error(transparent)]
    Together(#[from] TogetherError),
    /// Names cannot be kept until they are counted.
    #[error("counting duplicate names")]
    Names(#[source] Cause),
    /// A process has sent other hashes of names than it was asked for.
    #[error("process {process} sent {bytes} bytes of {expected} names")]
    NamesSent {
        /// The process.
        process: usize,
        /// What it sent.
        bytes: usize,
        /// Names that were asked for.
        expected: u32,
    },
    /// The one who asked for the build does not want what came out.
    #[error("not published")]
    Refused(#[source] Cause),
    /// The system gives no thread.
    #[error("starting a thread")]
    Thread(#[source] io::Error),
    /// The dataflow ended without a failure and without a result: a bug.
    #[error("the dataflow left no documents' table (this is a bug: please report it)")]
    NoTable,
}

/// Why a build cannot begin as it was asked for.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum OptionsError {
    /// The memory is too little.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// The longest document is too long.
    #[error("documents of {got} bytes: give less than 4 GiB")]
    MaxDocument {
        /// What was asked for.
        got: u64,
    },
    /// No file may be read.
    #[error("0 readers: nobody would read")]
    Readers,
    /// Parsers and indexers cannot be.
    #[error(transparent)]
    Roles(#[from] RolesError),
    /// Indexers of tokens were asked for, and nobody makes tokens.
    #[error("the indexer {indexer} takes no tokens, so that it has no {side} indexers to choose")]
    NoTokens {
        /// The indexer.
        indexer: Indexer,
        /// `CPU` or `GPU`.
        side: &'static str,
    },
    /// The longest document is too long for a device.
    #[error("documents of {got} bytes: the indexer {indexer} takes at most {most}")]
    MaxDocumentOfDevice {
        /// What was asked for.
        got: u64,
        /// The most.
        most: u64,
        /// The indexer.
        indexer: Indexer,
    },
    /// Devices were asked for, and the indexer uses none.
    #[error("the indexer {indexer} uses no GPU, and {asked} were asked for")]
    NoDevices {
        /// The indexer.
        indexer: Indexer,
        /// What was asked for.
        asked: u32,
    },
    /// Several devices were asked for, and the indexer that uses a device for texts uses one.
    #[error("the indexer {} uses one GPU, and {asked} were asked for", Indexer::Gpu)]
    OneDevice {
        /// What was asked for.
        asked: u32,
    },
    /// The memory has no room for so many indexers on devices.
    #[error("{asked} indexers on GPUs: the memory has room for {room}")]
    PinnedMemory {
        /// What was asked for.
        asked: usize,
        /// How many it has room for.
        room: usize,
    },
    /// Documents of runs or shards that stay apart cannot be put in order, nor be given PageRanks.
    #[error(
        "an order of documents and PageRanks are for an index of one run, built by one process: merge its runs, or leave them out"
    )]
    OrderOfMany,
    /// What can be read once cannot be shared among processes.
    #[error(
        "standard input and documents in memory cannot be shared among processes: give files, or build in one process"
    )]
    ReadOnce,
}

fn show_before(before: Option<u64>) -> String {
    before.map_or("no generation before".to_string(), |n| format!("the {n} before"))
}

fn show_reasons(skipped: &BTreeMap<String, u64>) -> String {
    let reasons: Vec<String> = skipped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    if reasons.is_empty() {
        "it is blank, or has only what no document is made of (WARC records that are no pages, redirects of a wiki)".to_string()
    } else {
        reasons.join(", ")
    }
}

impl BuildError {
    /// What a part of the dataflow has found out that would have been said before it began, if
    /// anybody had known.
    pub(super) fn of_beginning(self) -> Self {
        match self {
            Self::Job(JobError::Operator { operator, worker, source }) => {
                match source.downcast::<Self>() {
                    Ok(error) => *error,
                    Err(source) => JobError::Operator { operator, worker, source }.into(),
                }
            }
            error => error,
        }
    }

    /// The end of the dataflow that this error is, if it is one.
    pub(crate) fn job(&self) -> Option<&JobError> {
        match self {
            Self::Job(error) | Self::Together(TogetherError::Job(error)) => Some(error),
            _ => None,
        }
    }
}

//! The errors of indexes and of queries on them, one enum for both: each names the file, and the
//! byte where there is one.

use crate::index::list::{ListCodec, ListError};
use crate::shown::number_of;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    #[error("the job was asked to end")]
    Stopped,
    #[error("{}: cannot {operation}", .path.display())]
    Storage {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// What was to be published is live, and only what follows was not done.
    #[error("generation {generation} is live, but a step after that failed")]
    Live {
        generation: u32,
        #[source]
        source: Box<Self>,
    },
    /// The bytes of a file break the format.
    #[error("{}: byte {offset}: expected {expected}, found {found}", .path.display())]
    Damaged {
        path: PathBuf,
        /// Bytes from the start of the file.
        offset: u64,
        expected: String,
        found: String,
    },
    /// A postings list breaks the format.
    #[error("{}: list at byte {start}", .path.display())]
    List {
        path: PathBuf,
        /// Bytes from the start of the file.
        start: u64,
        #[source]
        source: ListError,
    },
    #[error(
        "{}: format version {found} is newer than {supported}, the last that this program reads: \
         use a newer millrace, or build the index again",
        .path.display()
    )]
    Newer {
        path: PathBuf,
        found: u64,
        /// The newest version that can be read.
        supported: u32,
    },
    #[error(
        "{}: format version {found} is older than {supported}, the only one that this program reads: \
         build the index again, or rebuild it by its job file",
        .path.display()
    )]
    Older {
        path: PathBuf,
        found: u64,
        /// The only version that can be read.
        supported: u32,
    },
    #[error("{}: another job{} holds this index: wait until it ends", .path.display(), of_process(*.process))]
    Locked {
        path: PathBuf,
        /// Its number, if it is known.
        process: Option<u32>,
    },
    /// Earlier programs wrote an index of several processes so.
    #[error("{}: this index has the shards of an earlier program: build it again", .path.display())]
    Sharded { path: PathBuf },
    /// The runs of the index are held by more processes, or by one alone.
    #[error("{}: this index was built by {} and this job runs in {processes} processes: start as many as built it, or build it again", .path.display(), number_of(*.holders as u64, "process", "processes"))]
    Processes {
        path: PathBuf,
        /// The fewest that hold all runs.
        holders: usize,
        processes: usize,
    },
    /// A run of the index lies on another disk.
    #[error("{}: process {process} holds this run, on another disk: start as many processes as built the index", .path.display())]
    Elsewhere { path: PathBuf, process: u32 },
    #[error("{}: there is no index in this folder: build one first", .path.display())]
    NoIndex { path: PathBuf },
    #[error("{}: {}; {}", .path.display(), not_kept(*.wanted, *.live), kept_are(.kept))]
    NotKept {
        path: PathBuf,
        live: u32,
        /// The one that was asked for, or the latest before the live one.
        wanted: Option<u32>,
        kept: Vec<u32>,
    },
    #[error("{}: there are {documents} documents, no docid {docid}", .path.display())]
    NoDocid { path: PathBuf, docid: u32, documents: u64 },
    #[error("{}: document {docid} is deleted", .path.display())]
    Deleted { path: PathBuf, docid: u32 },
    #[error("{}: no document is named `{name}`{}", .path.display(), not_here(.elsewhere))]
    NoName {
        path: PathBuf,
        name: String,
        /// Processes whose runs are not on this disk, and may have it.
        elsewhere: Vec<String>,
    },
    #[error("{} has no blocks of {block_len}: its block sizes are {}", .codec.name(), sizes(*.codec))]
    NoForm {
        codec: ListCodec,
        /// Postings of a block.
        block_len: usize,
    },
    /// The index lacks what a request needs.
    #[error("{}: {reason}", .path.display())]
    Lacks {
        path: PathBuf,
        /// What is missing, and the remedy.
        reason: String,
    },
    /// The text of a document cannot be had, or has changed.
    #[error("{0}")]
    NoText(String),
    /// What was being done with another file than those of an index.
    #[error("{doing}")]
    Io {
        doing: String,
        #[source]
        source: io::Error,
    },
    /// A query that cannot be answered, as long as others can.
    #[error("a query {why}")]
    Query { why: String },
    /// What was to be written breaks a rule of the format.
    #[error("{}: not written: {reason}", .path.display())]
    Refused { path: PathBuf, reason: String },
}

fn sizes(codec: ListCodec) -> String {
    let sizes: Vec<String> = codec.block_lens().iter().map(ToString::to_string).collect();
    sizes.join(", ")
}

fn not_kept(wanted: Option<u32>, live: u32) -> String {
    match wanted {
        Some(wanted) if wanted == live => format!("generation {wanted} is live already"),
        Some(wanted) => format!("generation {wanted} is not kept"),
        None => format!("no generation before {live} is kept"),
    }
}

fn kept_are(kept: &[u32]) -> String {
    match kept {
        [] => "no other generation is".to_string(),
        kept => {
            let numbers: Vec<String> = kept.iter().map(ToString::to_string).collect();
            format!("kept are {}", numbers.join(", "))
        }
    }
}

fn not_here(elsewhere: &[String]) -> String {
    match elsewhere {
        [] => String::new(),
        names => format!(" on this disk; not here: the runs of {}", names.join(", ")),
    }
}

fn of_process(process: Option<u32>) -> String {
    process.map_or(String::new(), |process| format!(" (process {process})"))
}

impl IndexError {
    /// For `map_err`.
    pub(crate) fn storage<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Storage { operation, path: path.to_path_buf(), source }
    }

    /// For `map_err`.
    pub(crate) fn io(doing: impl Display) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing: doing.to_string(), source }
    }

    /// For `map_err`; `start` is the list's place in the file.
    pub(crate) fn list(path: &Path, start: u64) -> impl FnOnce(ListError) -> Self + '_ {
        move |source| Self::List { path: path.to_path_buf(), start, source }
    }

    pub(crate) fn damaged(
        path: &Path,
        offset: u64,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            offset,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// For `map_err` of what follows the change of `CURRENT`.
    pub(crate) fn live(generation: u32) -> impl FnOnce(Self) -> Self {
        move |source| Self::Live { generation, source: Box::new(source) }
    }

    pub(crate) fn refused(path: &Path, reason: impl ToString) -> Self {
        Self::Refused { path: path.to_path_buf(), reason: reason.to_string() }
    }

    pub(crate) fn lacks(path: &Path, reason: impl ToString) -> Self {
        Self::Lacks { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// Whether it is an index of an earlier program.
    pub(crate) fn is_older(&self) -> bool {
        matches!(self, Self::Older { .. } | Self::Sharded { .. })
    }

    pub(crate) fn is_not_found(&self) -> bool {
        match self {
            Self::Storage { source, .. } => source.kind() == io::ErrorKind::NotFound,
            Self::Elsewhere { .. } => true,
            _ => false,
        }
    }
}

/// For those who write what an index holds.
impl From<IndexError> for io::Error {
    fn from(error: IndexError) -> Self {
        Self::other(error)
    }
}

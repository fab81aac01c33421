//! What can go wrong with an index? One enum for the whole layer: every error names the file, and
//! the byte where there is one.

#![forbid(unsafe_code)]

use crate::index::list::{ListCodec, ListError};
use std::io;
use std::path::{Path, PathBuf};

/// An index that cannot be written, read or published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The job was asked to end.
    #[error("the job was asked to end")]
    Stopped,
    /// The operating system refused an operation.
    #[error("{}: cannot {operation}", .path.display())]
    Storage {
        /// What was tried, such as `write`.
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The bytes of a file are not what the format asks for.
    #[error("{}: byte {offset}: expected {expected}, found {found}", .path.display())]
    Damaged {
        path: PathBuf,
        /// Where in the file, in bytes from its start.
        offset: u64,
        /// What the format asks for at this place.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A postings list is not what the format asks for.
    #[error("{}: list at byte {start}", .path.display())]
    List {
        path: PathBuf,
        /// Where the list begins, in bytes from the start of the file.
        start: u64,
        /// What is wrong, counted from there.
        #[source]
        source: ListError,
    },
    /// The file was written by a later program.
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
    /// The file was written by an earlier program.
    #[error(
        "{}: format version {found} is older than {supported}, the only one that this program reads: \
         build the index again",
        .path.display()
    )]
    Older {
        path: PathBuf,
        found: u64,
        /// The version that can be read.
        supported: u32,
    },
    /// Another process writes this index.
    #[error("{}: another build or merge holds this index: wait until it ends", .path.display())]
    Locked { path: PathBuf },
    /// The index has shards, and the job asks for one that is whole.
    #[error("{}: this index has {shards} shards and this job runs in 1 process: start {shards} processes (-n {shards})", .path.display())]
    Sharded { path: PathBuf, shards: usize },
    /// The index does not have a shard for each process.
    #[error("{}: this index has {shards} and this job runs in {processes} processes: start as many as it has shards (-n), or build it again", .path.display(), shards = shards_in_words(*.shards))]
    Shards {
        path: PathBuf,
        /// Its shards; 1 if it is whole.
        shards: usize,
        /// Processes of the job.
        processes: usize,
    },
    /// The folder holds no live generation.
    #[error("{}: there is no index in this folder: make one with `millrace build`", .path.display())]
    NoIndex { path: PathBuf },
    /// There is no such generation to go back to.
    #[error("{}: {}; {}", .path.display(), not_kept(*.wanted, *.live), kept_are(.kept))]
    NotKept {
        path: PathBuf,
        live: u32,
        /// The one that was asked for, or the latest before the live one.
        wanted: Option<u32>,
        kept: Vec<u32>,
    },
    /// The index has shards, and what was asked is of one that has none.
    #[error("{}: this index has {shards} shards; this works on an index of one", .path.display())]
    HasShards { path: PathBuf, shards: usize },
    /// The index has deleted documents, and what was asked is of one that has none.
    #[error("{}: this index has deleted documents, which this does not know", .path.display())]
    HasDeletions { path: PathBuf },
    /// There is no such docid.
    #[error("{}: there are {documents} documents, no docid {docid}", .path.display())]
    NoDocid { path: PathBuf, docid: u32, documents: u64 },
    /// The document is deleted.
    #[error("{}: document {docid} is deleted", .path.display())]
    Deleted { path: PathBuf, docid: u32 },
    /// No document has this name.
    #[error("{}: no document is named `{name}`{}", .path.display(), not_here(.elsewhere))]
    NoName {
        path: PathBuf,
        name: String,
        /// Shards that are not on this disk and may have it.
        elsewhere: Vec<String>,
    },
    /// A codec has no blocks of the size that was asked for.
    #[error("{} has no blocks of {block_len}: its block sizes are {}", .codec.name(), sizes(*.codec))]
    NoForm {
        codec: ListCodec,
        /// Postings of a block.
        block_len: usize,
    },
    /// The index has not what was asked for needs.
    #[error("{}: {reason}", .path.display())]
    Lacks {
        path: PathBuf,
        /// What is missing, and what helps.
        reason: String,
    },
    /// What was handed over for writing breaks a rule of the format.
    #[error("{}: not written: {reason}", .path.display())]
    Refused { path: PathBuf, reason: String },
}

fn sizes(codec: ListCodec) -> String {
    let sizes: Vec<String> = codec.block_lens().iter().map(ToString::to_string).collect();
    sizes.join(", ")
}

fn not_kept(wanted: Option<u32>, live: u32) -> String {
    match wanted {
        Some(wanted) => format!("generation {wanted} is not kept"),
        None => format!("no generation before {live} is kept"),
    }
}

fn kept_are(kept: &[u32]) -> String {
    match kept {
        [] => "no other is".to_string(),
        kept => {
            let numbers: Vec<String> = kept.iter().map(ToString::to_string).collect();
            format!("kept are {}", numbers.join(", "))
        }
    }
}

fn not_here(elsewhere: &[String]) -> String {
    match elsewhere {
        [] => String::new(),
        names => format!(" in the shards on this disk; not here: {}", names.join(", ")),
    }
}

fn shards_in_words(shards: usize) -> String {
    match shards {
        1 => "1 shard".to_string(),
        n => format!("{n} shards"),
    }
}

impl IndexError {
    /// Makes a function for `map_err` that names the operation and the path.
    pub(crate) fn storage<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Storage { operation, path: path.to_path_buf(), source }
    }

    /// Makes a function for `map_err` that names the file and the place of the list in it.
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

    pub(crate) fn refused(path: &Path, reason: impl ToString) -> Self {
        Self::Refused { path: path.to_path_buf(), reason: reason.to_string() }
    }

    pub(crate) fn lacks(path: &Path, reason: impl ToString) -> Self {
        Self::Lacks { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// Tells whether a file or folder was not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Storage { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

//! What files a collection is written to, what was written, and why it was not.

use crate::Format;
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Bytes before compression, of all files. A file has an equal share and ends with the document
    /// whose end is nearest to it; it has one document at least.
    Bytes(u64),
    /// Documents, of all files; a file has an equal share of them.
    Documents(u64),
}

/// How files are compressed, and the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// They are not.
    None,
    /// gzip, from 0 to 9: a member for each record of WARC, for each block of other formats.
    Gzip(u32),
    /// Zstandard, from 1 to 22: frames in the place of members.
    Zstd(i32),
}

/// What files are written.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The folder of the files; made if it is not there.
    pub folder: PathBuf,
    /// Where the only file goes in place of the folder, byte after byte, such as a pipe.
    pub stream: Option<Arc<File>>,
    /// How much.
    pub amount: Amount,
    /// Files.
    pub files: NonZeroU32,
    /// Their format.
    pub format: Format,
    /// Their compression.
    pub compression: Compression,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Documents of each file.
    pub documents: Vec<u64>,
    /// Bytes before compression.
    pub text_bytes: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Tokens, without those of names and marks.
    pub tokens: u64,
}

/// Why a collection was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The folder has something in it, which would mix with the collection.
    #[error("{folder}: expected an empty folder or none")]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// The caller asked to stop.
    #[error("stopped before the collection was complete")]
    Stopped,
    /// A file or folder could not be made, written or compressed.
    #[error("{path}: {action}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What failed.
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Layout {
    /// The path of a file; errors of a stream have it too.
    pub fn path(&self, file: u32) -> PathBuf {
        if self.stream.is_some() {
            return "the stream".into();
        }
        let end = match self.compression {
            Compression::None => "",
            Compression::Gzip(_) => ".gz",
            Compression::Zstd(_) => ".zst",
        };
        self.folder.join(format!("part-{file:05}.{}{end}", self.format))
    }
}

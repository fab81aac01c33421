//! The errors of reading input.

use super::Unknown;
use super::streams::decoder::DecodeError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    #[error("{path}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
    /// No format was given, and neither the name nor the content tells it.
    #[error("{path}: {unknown}")]
    UnknownFormat { path: String, unknown: Unknown },
    /// The format of a pipe or a device would have to be found from bytes that can be read once.
    #[error("{path}: this is not a plain file, so that its format has to be named")]
    NotAFile { path: String },
    #[error(
        "{path}: no file here has an ending that millrace reads (.jsonl .json .ndjson .csv .tsv .plaintext .txt .text .md .markdown .html .htm .warc .wet .trec .xml, also with .gz, .zst, .bz2 or .xz), but {found}; a format that is named reads all files"
    )]
    NothingInFolder { path: String, found: String },
    #[error("{path}: this folder has no files, or hidden ones alone")]
    EmptyFolder { path: String },
    #[error(
        "{path}: this is an index, or lies in the one that is to be written; it cannot be input"
    )]
    IsIndex { path: String },
    #[error("{path}: nothing here can be read; the first: {first}")]
    NothingReadable {
        path: String,
        /// A file and what is wrong with it.
        first: String,
    },
    #[error(
        "{path}: byte {offset}: this document has bytes that are not UTF-8; if it is in another encoding, that has to be named"
    )]
    NotUtf8 {
        path: String,
        /// Of the document, in the uncompressed input.
        offset: u64,
    },
    #[error(
        "{path}: {reason} after byte {offset} of its content ({fault}): nothing was published; allow cut input to take what comes before"
    )]
    Broken {
        path: String,
        reason: &'static str,
        /// Of its content, before the damage.
        offset: u64,
        fault: DecodeError,
    },
    #[error("{path}: this input is empty: nothing was published; allow empty input to take it")]
    Empty { path: String },
    #[error(
        "{path}: byte {offset}: the document{name} has {bytes} bytes, which the memory cannot hold: nothing was published; give the build a memory of {least}M or more, or skip documents of such a length by a lower limit for documents"
    )]
    Large {
        path: String,
        /// Of its record, in its content.
        offset: u64,
        /// Its name behind a blank, if it is known.
        name: String,
        bytes: u64,
        /// The memory that holds it, in MiB.
        least: u64,
    },
    #[error("standard input (-) can be read only once")]
    StdinTwice,
    #[error("{vectors} has learned vectors and {other} has texts: index them apart")]
    VectorsAndTexts { vectors: String, other: String },
}

impl From<(PathBuf, io::Error)> for InputError {
    fn from((path, source): (PathBuf, io::Error)) -> Self {
        io_error(path.display().to_string(), source)
    }
}

pub(super) fn io_error(path: impl Into<String>, source: io::Error) -> InputError {
    InputError::Io { path: path.into(), source }
}

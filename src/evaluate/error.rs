//! Errors in judgements and runs.

#![expect(missing_docs, reason = "the message of a variant says what it is about")]

use crate::index::error::IndexError;
use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EvaluateError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("{path}")]
    Io {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("{path}: line {line}: expected {expected}, found `{found}`")]
    Line {
        path: String,
        line: u64,
        expected: &'static str,
        /// The head of the line.
        found: String,
    },
    #[error(
        "{path}: line {line}: query {query} has document {document} judged before as {before}, now as {now}"
    )]
    Contradiction {
        path: String,
        line: u64,
        query: String,
        document: String,
        before: i32,
        now: i32,
    },
    #[error("{path}: query {query} has document {document} more than once")]
    Twice { path: String, query: String, document: String },
    #[error("{path}: no lines, or only comments and blank lines")]
    Empty { path: String },
    /// Run and judgements have no query in common.
    #[error(
        "{run}: no query of this run has judgements in {qrels}; are the query numbers the same?"
    )]
    NothingInCommon { run: String, qrels: String },
    /// The name of a measure is unknown, or its cutoff or level is wrong.
    #[error("`{found}` is not a measure: {expected}")]
    Measure { found: String, expected: &'static str },
}

pub(super) fn head(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut head: String = text.trim_end().chars().take(60).collect();
    if text.trim_end().chars().count() > 60 {
        head += "...";
    }
    head
}

/// Calls `take` with each line that is not blank, without its end, and its number from 1.
pub(super) fn each_line(
    path: &str,
    stream: io::Result<impl io::Read>,
    mut take: impl FnMut(&[u8], u64) -> Result<(), EvaluateError>,
) -> Result<(), EvaluateError> {
    use io::BufRead;
    let failed = |source| EvaluateError::Io { path: path.to_string(), source };
    let mut lines = io::BufReader::with_capacity(1 << 18, stream.map_err(failed)?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        let text = line.trim_ascii_end();
        let text = text.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(text);
        if !text.trim_ascii_start().is_empty() {
            take(text, number)?;
        }
    }
}

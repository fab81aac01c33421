//! Errors of queries.

use crate::index::error::IndexError;
use std::fmt::Display;
use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The text of a document cannot be had, or has changed.
    #[error("{0}")]
    NoText(String),
    #[error("{doing}")]
    Io {
        doing: String,
        #[source]
        source: io::Error,
    },
}

impl QueryError {
    pub(crate) fn io(doing: impl Display) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing: doing.to_string(), source }
    }
}

//! Errors of queries.

use crate::index::error::IndexError;
use std::error::Error;
use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The engine has failed, for example its device.
    #[error("{engine}")]
    Engine {
        engine: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
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
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |source| Self::Io { doing, source }
    }
}

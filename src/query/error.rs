//! Why queries cannot be answered.

use crate::index::error::IndexError;
use std::error::Error;
use std::io;

/// Why queries cannot be answered, or none any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The index is damaged, or a file of it is gone.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What answers them has failed, such as a device.
    #[error("{engine}")]
    Engine {
        engine: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The text of a document cannot be had, or has become another one.
    #[error("{0}")]
    NoText(String),
    /// The system refused what was to be done.
    #[error("{doing}")]
    Io {
        doing: String,
        #[source]
        source: io::Error,
    },
}

impl QueryError {
    /// The system refused something.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |source| Self::Io { doing, source }
    }
}

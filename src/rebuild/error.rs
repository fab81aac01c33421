//! The errors that end a rebuild and leave the live generation in place.

use crate::build::BuildError;
use crate::dataflow::control::JobError;
use crate::index::error::IndexError;
use crate::input::error::InputError;
use crate::settings::SettingError;
use crate::shown::chain;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RebuildError {
    #[error("{}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}:{line}:{column}: {message}", path.display())]
    Wrong {
        path: PathBuf,
        /// Both from 1.
        line: usize,
        column: usize,
        message: String,
    },
    #[error("cannot read the sources")]
    Input(#[from] InputError),
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Another rebuild of this index is under way.
    #[error("{}: another rebuild is under way", folder.display())]
    Busy {
        /// The folder that it has locked.
        folder: PathBuf,
    },
    #[error(
        "another job replaced the index meanwhile; the next rebuild compares with what it has published"
    )]
    Replaced,
    #[error("the index has shards: as many processes rebuild it together as built it")]
    Shards,
    #[error(
        "several processes rebuild shards without [pagerank], [logs] and `order`: leave them out of the job file, or rebuild in one process"
    )]
    OneProcess,
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error("{}: the schedule has no more times", path.display())]
    NoMoreTimes { path: PathBuf },
}

impl RebuildError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy + '_ {
        |source| Self::Io { path: path.to_path_buf(), source }
    }

    pub(crate) fn chain(&self) -> String {
        chain(self).replace('\n', " ")
    }

    pub fn job(&self) -> Option<&JobError> {
        match self {
            Self::Job(error) => Some(error),
            Self::Build(error) => error.job(),
            _ => None,
        }
    }
}

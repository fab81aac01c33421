//! Why does the live generation stay?

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
    /// A file or folder cannot be read or written.
    #[error("{}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Something in a job file, or in a history, cannot be.
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
    /// A setting of the job file cannot be.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Another rebuild of this index is under way.
    #[error("{}: another rebuild is under way", folder.display())]
    Busy {
        /// The folder that it has locked.
        folder: PathBuf,
    },
    /// Another job published a generation while this one compared with the one before.
    #[error(
        "another job replaced the index meanwhile; the next rebuild compares with what it has published"
    )]
    Replaced,
    /// The index is one of several processes.
    #[error("the index has shards: as many processes rebuild it together as built it")]
    Shards,
    /// The job file asks for something that several processes do not do.
    #[error(
        "several processes rebuild shards without [pagerank], [logs] and `order`: leave them out of the job file, or rebuild in one process"
    )]
    OneProcess,
    /// The index cannot be read or written.
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A dataflow failed, or the rebuild was told to end.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The schedule is to be followed, and there is none or no time of it is left.
    #[error("{}: the schedule has no more times", path.display())]
    NoMoreTimes { path: PathBuf },
}

impl RebuildError {
    /// What a file or folder does when it cannot be read or written.
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy + '_ {
        |source| Self::Io { path: path.to_path_buf(), source }
    }

    /// The message with those of all causes, on one line.
    pub(crate) fn chain(&self) -> String {
        chain(self).replace('\n', " ")
    }

    /// The end of the job that this error is, if it is one.
    pub fn job(&self) -> Option<&JobError> {
        match self {
            Self::Job(error) => Some(error),
            Self::Build(error) => error.job(),
            _ => None,
        }
    }
}

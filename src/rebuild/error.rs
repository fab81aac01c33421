//! The errors that end a rebuild and leave the live generation in place.

use crate::build::BuildError;
use crate::dataflow::control::JobError;
use crate::index::error::IndexError;
use crate::input::error::InputError;
use crate::settings::SettingError;
use crate::shown::{chain, visible};
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
    Busy { folder: PathBuf },
    #[error(
        "another job replaced the index meanwhile; the next rebuild compares with what it has published"
    )]
    Replaced,
    #[error(
        "{documents} documents came by call and would be lost, since everything is to be built again ({reason}): undo that, or take --from-nothing and add them again"
    )]
    ByCall { documents: u64, reason: &'static str },
    #[error(
        "several processes rebuild an index without [pagerank], [logs] and `order`: leave them out of the job file, or rebuild in one process"
    )]
    OneProcess,
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("generation {generation} is live, but a step after that failed")]
    Live {
        generation: u32,
        #[source]
        source: Box<Self>,
    },
    #[error("the index is damaged; a rebuild from nothing makes it again from its sources")]
    Damaged(#[source] IndexError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error("{}: the schedule has no more times", path.display())]
    NoMoreTimes { path: PathBuf },
}

impl RebuildError {
    pub(crate) fn io(path: &Path) -> impl Fn(io::Error) -> Self + Copy + '_ {
        |source| Self::Io { path: path.to_path_buf(), source }
    }

    /// Tells damage of the index in this folder from other errors.
    pub(super) fn of_index(self, index: &Path) -> Self {
        let is_damage = |error: &IndexError| match error {
            IndexError::Damaged { path, .. } | IndexError::List { path, .. } => {
                path.starts_with(index)
            }
            IndexError::Storage { path, .. } => error.is_not_found() && path.starts_with(index),
            _ => false,
        };
        match self {
            Self::Index(error) | Self::Build(BuildError::Index(error)) if is_damage(&error) => {
                Self::Damaged(error)
            }
            other => other,
        }
    }

    pub(crate) fn chain(&self) -> String {
        visible(&chain(self).replace('\n', " "))
    }

    pub fn job(&self) -> Option<&JobError> {
        match self {
            Self::Job(error) => Some(error),
            Self::Build(error) => error.job(),
            Self::Live { source, .. } => source.job(),
            _ => None,
        }
    }
}

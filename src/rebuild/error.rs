//! Why does the live generation stay?

use crate::build::BuildError;
use crate::dataflow::control::JobError;
use crate::dataflow::rebuild::scanned::ScanError;
use crate::dataflow::rebuild::table::TableError;
use crate::index::error::IndexError;
use crate::input::error::InputError;
use crate::rebuild::files::FileError;
use crate::rebuild::history::HistoryError;
use crate::rebuild::job_file::JobFileError;
use crate::text::stop_words::StopWordsError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FollowError {
    /// A pattern of the job file matches nothing any more.
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    #[error("cannot read the sources")]
    Input(#[from] InputError),
    /// A file of the sources cannot be read.
    #[error("cannot read the sources")]
    File(#[from] FileError),
    /// The list of stop words cannot be read.
    #[error(transparent)]
    StopWords(#[from] StopWordsError),
    /// A scratch file cannot be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The documents of the sources cannot be noted.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// There is no place for scratch files.
    #[error("making a folder for scratch files")]
    Scratch(#[source] io::Error),
    /// A folder or file cannot be used.
    #[error("{}", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
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
    /// The history cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// A file that shows how the index stands cannot be replaced.
    #[error("cannot replace the file")]
    Shown(#[source] io::Error),
    /// The job file has no schedule to follow.
    #[error("{}: no [schedule]", path.display())]
    NoSchedule { path: PathBuf },
    /// No time of the schedule is left.
    #[error("the schedule has no more times")]
    NoMoreTimes,
}

impl FollowError {
    pub(super) fn folder(path: &Path, source: io::Error) -> Self {
        Self::Folder { path: path.to_path_buf(), source }
    }

    /// The message with those of all causes, on one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.ends_with(&more) {
                text = format!("{text}: {more}");
            }
            cause = error.source();
        }
        text.replace('\n', " ")
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

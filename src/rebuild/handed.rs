//! What a program hands in to rebuilds.

use super::live::Live;
use super::{Rebuild, RebuildError};
use crate::build::handed::HandedIndexers;
use crate::rebuild::history::LogCounts;
use crate::rebuild::job_file::keys::LogKeys;
use std::fmt::Debug;

/// Plans by the logs of queries of a job file, for the generation that a rebuild has made live.
pub trait LogPlanner: Debug + Sync {
    /// What the plan was made of; `None` if there is one already of the same logs.
    ///
    /// # Errors
    /// If logs or the index cannot be read, or the plan cannot be written; the generation stays.
    fn plan(
        &self,
        rebuild: &Rebuild<'_>,
        live: &Live,
        keys: &LogKeys,
    ) -> Result<Option<LogCounts>, RebuildError>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct HandedRebuild {
    pub indexers: HandedIndexers,
    /// Without one no job file has logs.
    pub planner: Option<&'static dyn LogPlanner>,
}

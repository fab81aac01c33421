//! What the patterns of a job file match now.

use super::error;
use super::{JobFile, Pattern};
use crate::rebuild::counted_log::day_of;
use crate::rebuild::error::RebuildError;
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::path::PathBuf;

impl JobFile {
    /// Looks whether every pattern matches something now.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check_paths(&self) -> Result<(), RebuildError> {
        for pattern in self.inputs.iter().flat_map(|input| &input.paths) {
            self.matches(pattern)?;
        }
        self.log_files().map(drop)
    }

    /// The logs that the patterns of `[logs]` match now, each with its day, sorted by day and path;
    /// none without that section.
    ///
    /// # Errors
    /// When a pattern matches nothing, or something in whose name there is no date.
    pub(crate) fn log_files(&self) -> Result<Vec<(Date, PathBuf)>, RebuildError> {
        let mut found = BTreeSet::new();
        for pattern in self.logs.iter().flat_map(|logs| &logs.queries) {
            for path in self.matches(pattern)? {
                let day = path.file_name().and_then(|name| day_of(&name.to_string_lossy()));
                let day = day.ok_or_else(|| {
                    let path = path.display();
                    let message = format!(
                        "{path}: there is no date such as 2026-11-22 in the name of this log"
                    );
                    RebuildError::wrong(&self.path, pattern.place, message)
                })?;
                found.insert((day, path));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// The files and folders that the patterns of input number `input` match now, in the order of
    /// the patterns, those of one pattern sorted.
    pub(crate) fn expand(&self, input: usize) -> Result<Vec<PathBuf>, RebuildError> {
        let mut found = Vec::new();
        for pattern in &self.inputs[input].paths {
            found.extend(self.matches(pattern)?);
        }
        Ok(found)
    }

    /// What a pattern matches now, sorted.
    pub(crate) fn matches(&self, pattern: &Pattern) -> Result<Vec<PathBuf>, RebuildError> {
        let found = error::expand(pattern);
        found.map_err(|message| RebuildError::wrong(&self.path, pattern.place, message))
    }
}

//! The history of an index's rebuilds: a line of JSON for each, in `INDEX/rebuild/history.jsonl`.
//!
//! A line is written at once and synced. A job that is killed meanwhile leaves a part of a line,
//! which the next line ends and readers skip.

use super::error::RebuildError;
use crate::fault;
use crate::shown::{count, number_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The folder below that of the index for what outlives a rebuild.
pub(crate) use crate::index::format::HISTORY as FOLDER;

pub(crate) const HISTORY: &str = "history.jsonl";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RebuildOutcome {
    Published,
    /// The live generation stays.
    Unchanged,
    /// Something went wrong or a guard objects: the live generation stays.
    #[default]
    Failed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputCounts {
    /// Files that were not read again.
    pub unchanged: u64,
    pub changed: u64,
    pub added: u64,
    pub removed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentCounts {
    /// In the live generation after the rebuild.
    pub live: u64,
    pub added: u64,
    pub changed: u64,
    pub removed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankHistory {
    pub documents: u64,
    pub links: u64,
    /// Lines of the file of links that name no two documents.
    pub passed_over: u64,
    /// Rounds of power iteration.
    pub rounds: u32,
}

/// Query logs, and the plan of a cache that was made by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogCounts {
    /// The first and the last day of the window.
    pub days: [String; 2],
    pub logs: u64,
    /// Those that were read: they are new or have changed.
    pub read: u64,
    /// Logs whose queries were searched for: those that were read, and those that do not know this
    /// index.
    pub searched: u64,
    pub queries: u64,
    pub distinct: u64,
    /// Distinct queries of another frequency than in the window of the day before.
    pub changed: u64,
    /// Lines of the read logs that are no queries.
    pub refused: u64,
    /// Queries of the window that find no document, and do not count.
    pub without_answer: u64,
    /// Lists of which something is to be cached.
    pub lists: u64,
    /// As on disk.
    pub cached_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRecord {
    /// In UTC.
    pub started: String,
    pub seconds: f64,
    /// From 1.
    pub attempt: u32,
    pub outcome: RebuildOutcome,
    pub reason: Option<String>,
    /// What went wrong with the command that was told of it.
    pub notify: Option<String>,
    /// Live behind the rebuild.
    pub generation: Option<u32>,
    /// Only what changed was indexed.
    pub incremental: bool,
    pub inputs: InputCounts,
    pub documents: DocumentCounts,
    /// In the files that were read.
    pub skipped: u64,
    /// Of the sources, parsed.
    pub read_bytes: u64,
    /// Of the live generation.
    pub index_bytes: u64,
    pub runs: u32,
    pub ranks: Option<RankHistory>,
    pub logs: Option<LogCounts>,
    /// Seconds by stage.
    pub stages: BTreeMap<String, f64>,
}

impl HistoryRecord {
    pub(super) fn time<T>(&mut self, stage: &str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        *self.stages.entry(stage.to_string()).or_default() += began.elapsed().as_secs_f64();
        done
    }
}

impl fmt::Display for HistoryRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match (self.outcome, self.incremental) {
            (RebuildOutcome::Failed, _) => "failed",
            (RebuildOutcome::Unchanged, _) => "unchanged",
            (RebuildOutcome::Published, true) => "added to",
            (RebuildOutcome::Published, false) => "built",
        };
        let started = self.started.split('.').next().unwrap_or_default();
        write!(f, "{started} {:>9.2} s  {outcome:<9}  ", self.seconds)?;
        if self.outcome == RebuildOutcome::Failed {
            let reason = self.reason.as_deref().unwrap_or("for no known reason");
            write!(f, "{reason}; {}", stays(self.generation))?;
            return self.notify.iter().try_for_each(|why| write!(f, "  {why}"));
        }
        let generation = self.generation.map_or("-".into(), |number| number.to_string());
        let DocumentCounts { live, added, changed, removed } = self.documents;
        let live = number_of(live, "document", "documents");
        write!(f, "generation {generation}  {live} ")?;
        match (self.outcome, self.incremental) {
            (RebuildOutcome::Published, false) => write!(f, "(all built anew)")?,
            _ => {
                let [added, changed, removed] = [added, changed, removed].map(count);
                write!(f, "(+{added} ~{changed} -{removed})")?;
            }
        }
        let InputCounts { added, changed, removed, .. } = self.inputs;
        write!(f, "  files +{added} ~{changed} -{removed}")?;
        if let Some(LogCounts { days: [first, last], lists, .. }) = &self.logs {
            let lists = number_of(*lists, "list", "lists");
            write!(f, "  a cache of {lists} by the queries of {first} to {last}")?;
        }
        [&self.reason, &self.notify].into_iter().flatten().try_for_each(|why| write!(f, "  {why}"))
    }
}

/// What a failed rebuild leaves.
pub(super) fn stays(generation: Option<u32>) -> String {
    generation.map_or("there is no generation yet".into(), |n| format!("generation {n} stays live"))
}

pub(crate) fn path(index: &Path) -> PathBuf {
    index.join(FOLDER).join(HISTORY)
}

pub(crate) fn append(index: &Path, record: &HistoryRecord) -> Result<(), RebuildError> {
    let path = path(index);
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        let mut line = serde_json::to_string(record)?;
        if fs::read(&path)?.last().is_some_and(|&last| last != b'\n') {
            line.insert(0, '\n');
        }
        line.push('\n');
        fault::storage()?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    };
    write().map_err(RebuildError::io(&path))
}

/// Says of the last record that its command went wrong, in another record of the same rebuild.
pub(super) fn add_trouble(index: &Path, trouble: String) -> Result<(), RebuildError> {
    let Some(record) = read(index)?.pop() else { return Ok(()) };
    append(index, &HistoryRecord { notify: Some(trouble), ..record })
}

/// The records of an index, the oldest first; none without a history. Of two with one beginning the
/// last counts.
///
/// # Errors
/// When the file cannot be read, or a whole line of it is not a record.
pub fn read(index: &Path) -> Result<Vec<HistoryRecord>, RebuildError> {
    let path = path(index);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(RebuildError::io(&path))?,
    };
    let mut records: Vec<HistoryRecord> = Vec::new();
    for (line, text) in (1..).zip(bytes.split_inclusive(|&byte| byte == b'\n')) {
        match serde_json::from_slice(text) {
            Ok(record) => {
                let record: HistoryRecord = record;
                records.pop_if(|last| last.started == record.started);
                records.push(record);
            }
            // The part of a line that a killed job left is no JSON.
            Err(source) if !source.is_data() => {}
            Err(error) => {
                let column = error.column();
                let message = "this is not a record of a rebuild";
                let message = format!("{message}: {error}");
                return Err(RebuildError::Wrong { path, line, column, message });
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_parts_of_lines_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), []);
        let record = |n: u32| HistoryRecord {
            started: n.to_string(),
            generation: Some(n),
            ..HistoryRecord::default()
        };
        append(folder.path(), &record(1)).unwrap();
        let mut file = OpenOptions::new().append(true).open(path(folder.path())).unwrap();
        file.write_all(b"{\"started\": \"2026").unwrap();
        assert_eq!(read(folder.path()).unwrap(), [record(1)]);
        append(folder.path(), &record(2)).unwrap();
        assert_eq!(read(folder.path()).unwrap(), [record(1), record(2)]);
        add_trouble(folder.path(), "late".into()).unwrap();
        let told = HistoryRecord { notify: Some("late".into()), ..record(2) };
        assert_eq!(read(folder.path()).unwrap(), [record(1), told]);
        file.write_all(b"{\"started\": 5}\n").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("history.jsonl:5:13: this is not a record"), "{error}");
    }
}

//! The state of the rebuilds of an index for those who watch it, as JSON and in Prometheus' text
//! format.

use super::error::RebuildError;
use super::history::{FOLDER, HistoryRecord, RebuildOutcome};
use crate::index::generations::folder::{current, is_being_written};
use crate::index::generations::manifest::summary::Summary;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub index: String,
    pub running: bool,
    /// In UTC, by the schedule.
    pub next: Option<String>,
    pub generation: Option<u32>,
    /// Since the last rebuild that did not fail.
    pub failures: u64,
    pub last: Option<HistoryRecord>,
    pub last_published: Option<HistoryRecord>,
    /// Published or unchanged.
    pub last_good: Option<HistoryRecord>,
}

impl Status {
    /// Looks at a history, the oldest record first, and at the index.
    pub(crate) fn new(
        index: &Path,
        history: &[HistoryRecord],
        next: Option<String>,
    ) -> Result<Self, RebuildError> {
        let live = current(index)?.map(|path| Summary::read(&path)).transpose()?;
        let newest =
            |want: fn(&HistoryRecord) -> bool| history.iter().rev().find(|r| want(r)).cloned();
        let failed = |record: &&HistoryRecord| record.outcome == RebuildOutcome::Failed;
        Ok(Self {
            index: index.display().to_string(),
            running: is_being_written(&index.join(FOLDER)),
            next,
            generation: live.map(|live| live.generation),
            failures: history.iter().rev().take_while(failed).count() as u64,
            last: history.last().cloned(),
            last_published: newest(|record| record.outcome == RebuildOutcome::Published),
            last_good: newest(|record| record.outcome != RebuildOutcome::Failed),
        })
    }

    pub(crate) fn prometheus(&self) -> String {
        let label = self.index.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, value: Option<f64>| {
            if let Some(value) = value {
                let name = format!("millrace_rebuild_{name}");
                // Writing to a string never fails.
                _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
                _ = writeln!(text, "{name}{{index=\"{label}\"}} {value}");
            }
        };
        let ended = |record: &HistoryRecord| {
            let started: jiff::Timestamp = record.started.parse().ok()?;
            Some(started.as_millisecond() as f64 / 1000.0 + record.seconds)
        };
        let last = self.last.as_ref();
        let good = self.last_good.as_ref();
        let live = good.filter(|record| record.generation == self.generation);
        gauge(
            "running",
            "Whether a rebuild is under way.",
            Some(f64::from(u8::from(self.running))),
        );
        gauge(
            "failures",
            "Rebuilds that failed since the last good one.",
            Some(self.failures as f64),
        );
        gauge("last_end_seconds", "When the last rebuild ended.", last.and_then(ended));
        gauge("last_good_end_seconds", "When the last good rebuild ended.", good.and_then(ended));
        gauge("last_duration_seconds", "How long the last rebuild took.", last.map(|r| r.seconds));
        gauge("generation", "The live generation.", self.generation.map(f64::from));
        gauge(
            "documents",
            "Documents of the live generation.",
            live.map(|r| r.documents.live as f64),
        );
        gauge("index_bytes", "Bytes of the live generation.", live.map(|r| r.index_bytes as f64));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: RebuildOutcome, generation: u32, seconds: f64) -> HistoryRecord {
        let started = "2026-11-22T03:00:00Z".to_string();
        HistoryRecord {
            started,
            outcome,
            seconds,
            generation: Some(generation),
            ..HistoryRecord::default()
        }
    }

    #[test]
    fn the_last_records_tell_how_it_stands() {
        let history = [
            record(RebuildOutcome::Published, 1, 4.0),
            record(RebuildOutcome::Unchanged, 1, 0.5),
            record(RebuildOutcome::Failed, 1, 1.0),
            record(RebuildOutcome::Failed, 1, 2.0),
        ];
        let status = Status::new(Path::new("a \"b\""), &history, None).unwrap();
        assert_eq!(status.failures, 2);
        assert_eq!(status.last_good.as_ref().unwrap().seconds, 0.5);
        assert_eq!(status.last_published.as_ref().unwrap().seconds, 4.0);
        let text = status.prometheus();
        assert!(text.contains("millrace_rebuild_failures{index=\"a \\\"b\\\"\"} 2\n"), "{text}");
        assert!(text.contains("millrace_rebuild_last_duration_seconds{index=\"a \\\"b\\\"\"} 2\n"));
        let ended = 1_795_316_400.5f64;
        assert!(
            text.contains(&format!("last_good_end_seconds{{index=\"a \\\"b\\\"\"}} {ended}\n")),
            "{text}"
        );
        for line in text.lines() {
            assert!(line.starts_with("# ") || line.starts_with("millrace_rebuild_"), "{line}");
        }
    }

    #[test]
    fn an_index_without_a_history() {
        let status = Status::new(Path::new("idx"), &[], None).unwrap();
        assert!(
            status.last.is_none() && status.prometheus().contains("running{index=\"idx\"} 0\n")
        );
        serde_json::to_string(&status).unwrap();
    }
}

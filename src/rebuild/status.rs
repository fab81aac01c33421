//! The state of the rebuilds of an index for those who watch it, as JSON and in Prometheus' text
//! format.

use super::error::RebuildError;
use super::history::{FOLDER, HistoryRecord, RebuildOutcome};
use crate::index::generations::folder::{current, is_being_written};
use crate::index::generations::held::{Hold, held};
use crate::index::generations::manifest::summary::Summary;
use crate::shown::visible;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use std::fmt::{self, Write};
use std::path::Path;

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub index: String,
    pub running: bool,
    /// In UTC, by the schedule; none if no service runs that follows it.
    pub next: Option<String>,
    pub generation: Option<u32>,
    /// When the live generation was made, in UTC.
    pub generation_made: Option<String>,
    /// A rollback that holds: rebuilds change nothing.
    pub held: Option<Hold>,
    /// Since the last rebuild that did not fail.
    pub failures: u64,
    pub last: Option<HistoryRecord>,
    pub last_published: Option<HistoryRecord>,
    /// Published or unchanged.
    pub last_good: Option<HistoryRecord>,
    pub last_failed: Option<HistoryRecord>,
    /// How many failed in all.
    pub failed: u64,
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
            generation: live.as_ref().map(|live| live.generation),
            generation_made: live.and_then(|live| made(live.created)),
            held: held(index)?,
            failures: history.iter().rev().take_while(failed).count() as u64,
            last: history.last().cloned(),
            last_published: newest(|record| record.outcome == RebuildOutcome::Published),
            last_good: newest(|record| record.outcome != RebuildOutcome::Failed),
            last_failed: newest(|record| record.outcome == RebuildOutcome::Failed),
            failed: history.iter().filter(failed).count() as u64,
        })
    }

    /// Why all is not well: the last rebuild failed, or, with `most`, the live generation is older
    /// or held by a rollback.
    pub fn trouble(&self, most: Option<SignedDuration>, now: Timestamp) -> Option<String> {
        let index = &self.index;
        let failed = self.last.as_ref().filter(|last| last.outcome == RebuildOutcome::Failed);
        if let Some(last) = failed {
            let reason = last.reason.as_deref().unwrap_or("for no known reason");
            return Some(format!("{index}: the last rebuild failed: {reason}"));
        }
        let most = most?;
        let made = self.generation_made.as_ref().and_then(|made| made.parse::<Timestamp>().ok());
        let Some(made) = made else {
            return Some(format!("{index}: there is no generation yet"));
        };
        let age = now.duration_since(made);
        let shown = SignedDuration::from_secs(age.as_secs());
        if let Some(hold) = &self.held {
            return Some(format!("{index}: the live generation is {shown:#} old and {hold}"));
        }
        let old = || format!("{index}: the live generation is {shown:#} old, more than {most:#}");
        (age > most).then(old)
    }

    /// Times of day end in `_timestamp_seconds`, counters in `_total`.
    pub(crate) fn prometheus(&self) -> String {
        let label = |text: &str| {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("\"{text}\"")
        };
        let index = format!("index={}", label(&self.index));
        let ended = |record: &HistoryRecord| {
            let started: Timestamp = record.started.parse().ok()?;
            Some(started.as_millisecond() as f64 / 1000.0 + record.seconds)
        };
        let last = self.last.as_ref();
        let good = self.last_good.as_ref();
        let live = good.filter(|record| record.generation == self.generation);
        let since = self.held.as_ref().and_then(|hold| hold.since.parse::<Timestamp>().ok());
        let reason = self.last_failed.as_ref().and_then(|record| record.reason.as_deref());
        let why = format!("{index},reason={}", label(reason.unwrap_or_default()));
        let bit = |is: bool| Some(f64::from(u8::from(is)));
        let mut text = String::new();
        for (name, help, value) in [
            ("running", "Whether a rebuild is under way.", bit(self.running)),
            ("failures_total", "Rebuilds that failed.", Some(self.failed as f64)),
            ("consecutive_failures", "Those since the last good one.", Some(self.failures as f64)),
            ("last_failure_info", "Why the last of them failed.", reason.and(Some(1.0))),
            ("last_end_timestamp_seconds", "When the last rebuild ended.", last.and_then(ended)),
            (
                "last_good_end_timestamp_seconds",
                "When the last good one ended.",
                good.and_then(ended),
            ),
            ("last_duration_seconds", "How long the last one took.", last.map(|r| r.seconds)),
            ("held", "Whether a rollback holds.", bit(self.held.is_some())),
            ("held_since_timestamp_seconds", "Since when.", since.map(|s| s.as_second() as f64)),
            ("generation", "The live generation.", self.generation.map(f64::from)),
            ("documents", "Its documents.", live.map(|r| r.documents.live as f64)),
            ("index_bytes", "Its bytes.", live.map(|r| r.index_bytes as f64)),
        ] {
            let Some(value) = value else { continue };
            let labels = if name.ends_with("_info") { &why } else { &index };
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            let name = format!("millrace_rebuild_{name}");
            // Writing to a string never fails.
            _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            _ = writeln!(text, "{name}{{{labels}}} {value}");
        }
        text
    }
}

fn made(seconds: u64) -> Option<String> {
    let seconds = i64::try_from(seconds).ok()?;
    Timestamp::from_second(seconds).ok().map(|made| made.to_string())
}

impl fmt::Display for Status {
    /// A row for each field.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: String| writeln!(f, "{name:<15} {value}");
        let record = |record: &Option<HistoryRecord>| {
            record.as_ref().map_or("none".to_string(), ToString::to_string)
        };
        let made =
            self.generation_made.as_ref().map(|made| format!(", made {made}")).unwrap_or_default();
        let live = self.generation.map(|number| format!("{number}{made}"));
        row("index", visible(&self.index))?;
        row("live generation", live.unwrap_or("none".to_string()))?;
        if let Some(hold) = &self.held {
            row("rebuilds", hold.to_string())?;
        }
        row("running", if self.running { "yes" } else { "no" }.to_string())?;
        row("next", self.next.clone().unwrap_or("no service runs".to_string()))?;
        row("last", record(&self.last))?;
        row("last published", record(&self.last_published))?;
        row("last good", record(&self.last_good))?;
        row("failures since", self.failures.to_string())
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
    fn what_is_not_well_is_named() {
        let now: Timestamp = "2026-11-24T03:00:00Z".parse().unwrap();
        let status = |outcome, made: Option<&str>| {
            let last =
                HistoryRecord { reason: Some("a guard".to_string()), ..record(outcome, 2, 1.0) };
            let mut status = Status::new(Path::new("idx"), &[last], None).unwrap();
            status.generation_made = made.map(str::to_string);
            status
        };
        let trouble = |outcome, made, hours: Option<i64>| {
            status(outcome, made).trouble(hours.map(SignedDuration::from_hours), now)
        };
        let good = RebuildOutcome::Unchanged;
        let made = Some("2026-11-22T02:00:00Z");
        assert_eq!(trouble(good, None, None), None);
        assert_eq!(trouble(good, made, None), None);
        assert_eq!(trouble(good, made, Some(49)), None);
        let old = "idx: the live generation is 49h old, more than 48h".to_string();
        assert_eq!(trouble(good, made, Some(48)), Some(old));
        let none = "idx: there is no generation yet".to_string();
        assert_eq!(trouble(good, None, Some(48)), Some(none));
        let failed = "idx: the last rebuild failed: a guard".to_string();
        assert_eq!(trouble(RebuildOutcome::Failed, made, Some(49)), Some(failed));
        let form = status(good, made).to_string();
        assert!(
            form.starts_with("index           idx\nlive generation none\nrunning         no\n")
        );
        assert!(form.contains("\nlast            2026-11-22T03:00:00Z"), "{form}");
        assert_eq!(form.lines().count(), 8);
    }

    #[test]
    fn the_last_records_tell_how_it_stands() {
        let history = [
            record(RebuildOutcome::Published, 1, 4.0),
            record(RebuildOutcome::Unchanged, 1, 0.5),
            record(RebuildOutcome::Failed, 1, 1.0),
            HistoryRecord {
                reason: Some("a \"guard\"".to_string()),
                ..record(RebuildOutcome::Failed, 1, 2.0)
            },
        ];
        let status = Status::new(Path::new("a \"b\""), &history, None).unwrap();
        assert_eq!(status.failures, 2);
        assert_eq!(status.last_good.as_ref().unwrap().seconds, 0.5);
        assert_eq!(status.last_published.as_ref().unwrap().seconds, 4.0);
        let text = status.prometheus();
        assert!(text.contains("millrace_rebuild_last_duration_seconds{index=\"a \\\"b\\\"\"} 2\n"));
        let ended = 1_795_316_400.5f64;
        assert!(
            text.contains(&format!(
                "last_good_end_timestamp_seconds{{index=\"a \\\"b\\\"\"}} {ended}\n"
            )),
            "{text}"
        );
        for line in [
            "# TYPE millrace_rebuild_failures_total counter",
            "millrace_rebuild_failures_total{index=\"a \\\"b\\\"\"} 2",
            "millrace_rebuild_consecutive_failures{index=\"a \\\"b\\\"\"} 2",
            "millrace_rebuild_last_failure_info{index=\"a \\\"b\\\"\",reason=\"a \\\"guard\\\"\"} 1",
            "millrace_rebuild_held{index=\"a \\\"b\\\"\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("_last_good_end_timestamp_seconds{"), "{text}");
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

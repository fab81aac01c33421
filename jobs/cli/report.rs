//! The report for `--report`.

use anyhow::Context;
use jiff::SignedDuration;
use millrace::inside::dataflow::{Busy, OperatorShare, OperatorTime};
use millrace::inside::shown::now;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The version of what a report's fields mean (docs/operate.md); it grows when one changes or goes.
const SCHEMA: u32 = 2;

/// The job has written its report itself, which may tell more of a failure.
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// When the job began, and the file for its report.
static ASKED: OnceLock<(Instant, Option<PathBuf>)> = OnceLock::new();

pub(crate) fn begin(path: Option<PathBuf>) {
    ASKED.set((Instant::now(), path)).expect("a process has one job");
}

fn path() -> Option<&'static Path> {
    ASKED.get()?.1.as_deref()
}

pub(crate) fn is_asked() -> bool {
    path().is_some()
}

/// Writes the report of a job that failed: which, why, and what it took.
pub(crate) fn failed(job: &str, error: &anyhow::Error) {
    if WRITTEN.load(Ordering::Relaxed) {
        return;
    }
    let totals = json!({"job": job, "failed": true, "error": format!("{error:#}")});
    if let Err(error) = write(totals, 0) {
        say!("millrace: {error:#}");
    }
}

/// Prints what a job found: with `--json` as one object, else as text.
pub(crate) fn print(
    is_json: bool,
    object: &Value,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let text = if is_json { format!("{object}\n") } else { text() };
    std::io::stdout().write_all(text.as_bytes()).context("writing to standard output")
}

/// Writes the totals of a job without operators, which ends now.
pub(crate) fn write(totals: Value, workers: usize) -> anyhow::Result<()> {
    let seconds = ASKED.get().map_or(0.0, |(began, _)| began.elapsed().as_secs_f64());
    write_of(totals, seconds, workers, &[])
}

/// Adds time, memory and each operator's share to a job's totals, and writes them to a file.
pub(crate) fn write_of(
    mut totals: Value,
    seconds: f64,
    workers: usize,
    shares: &[OperatorTime],
) -> anyhow::Result<()> {
    let Some(path) = path() else { return Ok(()) };
    WRITTEN.store(true, Ordering::Relaxed);
    let ended = now();
    let began = ended.saturating_sub(SignedDuration::from_secs_f64(seconds))?;
    totals["schema"] = json!(SCHEMA);
    totals["began"] = json!(began.to_string());
    totals["ended"] = json!(ended.to_string());
    // Not every system tells.
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    totals["host"] = json!(host.trim());
    totals["command"] = json!(crate::cli::args::command());
    totals["version"] = json!(env!("CARGO_PKG_VERSION"));
    totals["commit"] = json!(crate::cli::help::COMMIT);
    totals["seconds"] = json!(seconds);
    totals["workers"] = json!(workers);
    totals["peak_memory_bytes"] = json!(millrace::inside::build::peak_resident());
    totals["operators"] = json!(OperatorShare::of(shares));
    let busy = shares.iter().map(|time| (time.operator, time.worker, time.timeline));
    totals["timeline"] = json!((!shares.is_empty()).then(|| Busy::of(busy)));
    let is_page = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    let text = match is_page {
        true => millrace::inside::report_page::page(&totals),
        false => serde_json::to_string_pretty(&totals)? + "\n",
    };
    let written = std::fs::write(path, text);
    if written.is_err() && path.is_file() {
        // A part of a report, or an empty file, would be taken for one.
        _ = std::fs::remove_file(path);
    }
    written.with_context(|| {
        let publishes = ["build", "merge", "import"].iter().any(|job| totals["job"] == *job);
        let live = totals["generation"].as_u64().filter(|_| publishes);
        let live = live.map(|number| format!("generation {number} is live, but failed: "));
        format!("{}writing the report {}", live.unwrap_or_default(), path.display())
    })
}

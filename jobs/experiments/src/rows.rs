//! What an experiment has found, row by row: as JSON lines on standard output, and all of it in the
//! report, which may be a page.

use anyhow::Context;
use millrace::inside::report_page::page;
use millrace::inside::shown::now;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// What is drawn of the rows of experiment `e` that have the values `of`, the fields `has` and none
/// of `lacks`: `y` over `x` as curves, or as bars where there is no x. `by` are the fields that
/// tell curves and bars apart, `paper` what the paper has beside them: points of curves, or values
/// of bars. Fields of objects have a `/` in their names, and an array is a curve.
const FIGURES: &str = include_str!("../figures.json");

/// The rows that this process has found.
static ROWS: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Which experiment this process runs.
static EXPERIMENT: OnceLock<String> = OnceLock::new();

/// Says which experiment the rows are of.
pub(crate) fn begin(experiment: &str) {
    EXPERIMENT.get_or_init(|| experiment.to_string());
}

/// Prints a row, and keeps it for the report.
pub(crate) fn print(mut row: Value) -> anyhow::Result<()> {
    row["experiment"] = json!(EXPERIMENT.get());
    writeln!(std::io::stdout(), "{row}")?;
    ROWS.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    Ok(())
}

/// Takes the rows of files, be they lines or reports, as if this process had found them.
pub(crate) fn take(files: &[PathBuf]) -> anyhow::Result<()> {
    for path in files {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let report: Option<Value> = serde_json::from_str(&text).ok();
        let whole = report.as_ref().and_then(|report| report["rows"].as_array());
        let lines = || text.lines().filter(|line| line.starts_with('{')).map(serde_json::from_str);
        let found = match whole {
            Some(rows) => rows.clone(),
            None => lines()
                .collect::<Result<Vec<Value>, _>>()
                .with_context(|| path.display().to_string())?,
        };
        ROWS.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
    }
    Ok(())
}

/// Writes all rows that there are so far, with what the experiment failed by: as JSON, or as a page
/// that draws the figures of the papers.
pub(crate) fn report(
    path: &Path,
    took: Duration,
    result: &anyhow::Result<()>,
) -> anyhow::Result<()> {
    let rows = std::mem::take(&mut *ROWS.lock().unwrap_or_else(PoisonError::into_inner));
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut all = json!({
        "job": EXPERIMENT.get(),
        "rows": rows,
        "command": words.collect::<Vec<_>>().join(" "),
        "ended": now().to_string(),
        "seconds": took.as_secs_f64(),
    });
    if let Err(error) = result {
        all["error"] = format!("{error:#}").into();
    }
    let text = match path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html")) {
        true => {
            all["figures"] = serde_json::from_str(FIGURES).context("figures.json")?;
            page(&all)
        }
        false => format!("{all:#}\n"),
    };
    std::fs::write(path, text).with_context(|| format!("writing the report {}", path.display()))
}

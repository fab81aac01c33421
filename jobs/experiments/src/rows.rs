//! What an experiment has found, row by row: as JSON lines on standard output, and all of it in the
//! report.

use anyhow::Context;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

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

/// Writes all rows that there are so far, with what the experiment failed by.
pub(crate) fn report(path: &Path, result: &anyhow::Result<()>) -> anyhow::Result<()> {
    let rows = std::mem::take(&mut *ROWS.lock().unwrap_or_else(PoisonError::into_inner));
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut all = json!({"job": EXPERIMENT.get(), "rows": rows, "command": words.collect::<Vec<_>>().join(" ")});
    if let Err(error) = result {
        all["error"] = format!("{error:#}").into();
    }
    std::fs::write(path, format!("{all:#}\n"))
        .with_context(|| format!("writing the report {}", path.display()))
}

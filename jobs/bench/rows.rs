//! What a measurement has found, row by row: as JSON lines on standard output, and all of it in the report.

use serde_json::Value;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// The rows of the measurement that this process makes.
static ROWS: Mutex<Vec<Value>> = Mutex::new(Vec::new());

/// Prints a row, and keeps it for the report.
pub(super) fn print(row: Value) -> anyhow::Result<()> {
    print_if(true, row)
}

/// Keeps a row for the report, and prints it where rows are asked for rather than tables.
pub(super) fn print_if(rows: bool, row: Value) -> anyhow::Result<()> {
    if rows {
        writeln!(std::io::stdout(), "{row}")?;
    }
    ROWS.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    Ok(())
}

/// All rows that there are so far.
pub(super) fn taken() -> Vec<Value> {
    std::mem::take(&mut ROWS.lock().unwrap_or_else(PoisonError::into_inner))
}

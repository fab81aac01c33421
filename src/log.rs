//! Prints events of a job to standard error, if `MILLRACE_LOG` is set.

use std::io::{self, Write};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::prelude::*;

/// A level, or levels of modules, as `info,millrace::index=debug`.
const VARIABLE: &str = "MILLRACE_LOG";

/// Standard error, which may be closed.
struct Unfailing;

impl Write for Unfailing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Begins to print events if the variable is set. Once in a process. The error says which values
/// there are.
pub fn start() -> Result<(), String> {
    let Some(given) = std::env::var_os(VARIABLE).filter(|given| !given.is_empty()) else {
        return Ok(());
    };
    let given = given.to_string_lossy();
    let wrong = |error: &dyn std::fmt::Display| {
        format!(
            "{VARIABLE}={given}: give off, error, warn, info, debug or trace, or levels of modules, as info,millrace::index=debug: {error}"
        )
    };
    let targets: Targets = given.parse().map_err(|error| wrong(&error))?;
    // A word that is no level would be taken for the name of a module.
    if let Some((module, _)) = targets.iter().find(|(name, _)| !name.starts_with("millrace")) {
        return Err(wrong(&format!("`{module}` is neither")));
    }
    let lines = layer().with_writer(|| Unfailing).with_ansi(false).with_thread_names(true);
    tracing_subscriber::registry().with(lines.with_filter(targets)).init();
    Ok(())
}

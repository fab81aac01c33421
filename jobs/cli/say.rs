//! How do jobs speak to people? On standard error, and whether anybody can hear it never matters: a
//! log whose disk is full, or whose reader has gone, must not end a job that took hours.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line on standard error, as `eprintln!` does, but never fails.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::say::line(format_args!($($text)*)) };
}

/// Writes the line at once, so that lines of several threads and processes stay whole.
pub(crate) fn line(text: Arguments<'_>) {
    let line = format!("{text}\n");
    crate::cli::progress::aside(|| {
        // Nobody is left to tell.
        _ = std::io::stderr().write_all(line.as_bytes());
    });
}

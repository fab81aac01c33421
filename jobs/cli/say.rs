//! Messages on standard error. Writing them never fails: a log whose disk is full, or whose reader
//! has gone, must not end a job that took hours.

use std::fmt::Arguments;
use std::io::Write;

/// As `eprintln!`, but never fails.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::say::line(format_args!($($text)*)) };
}

/// Writes the line at once, so that lines of several threads and processes stay whole.
pub(crate) fn line(text: Arguments<'_>) {
    let line = format!("{text}\n");
    crate::cli::progress::aside(|| {
        // There is no place to report this.
        _ = std::io::stderr().write_all(line.as_bytes());
    });
}

//! Messages on standard error. Writing them never fails: a log whose disk is full, or whose reader
//! has gone, must not end a job that took hours.

use millrace::inside::log::{IS_JSON, json};
use millrace::inside::shown::visible;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// The job is to end: what cannot be written at once is left.
static ENDING: AtomicBool = AtomicBool::new(false);

/// A pipe whose reader is slow takes this many bytes whenever it takes any.
const AT_ONCE: usize = 512;

/// From now on no message waits for its reader.
pub(crate) fn wait_no_more() {
    ENDING.store(true, Ordering::Relaxed);
}

/// As `eprintln!`, but never fails.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::say::line("warn", format_args!($($text)*)) };
}

/// As `say!`, unless only results and errors are wanted.
macro_rules! tell {
    ($($text:tt)*) => {
        if !$crate::cli::progress::is_quiet() {
            $crate::cli::say::line("info", format_args!($($text)*));
        }
    };
}

/// Writes the lines, or one of JSON, at once, so that those of several threads and processes stay
/// whole. Names cannot steer a terminal. A reader that does not read is waited for until the job is
/// to end.
pub(crate) fn line(level: &str, text: Arguments<'_>) {
    let text = text.to_string();
    let shown: String = match IS_JSON.load(Ordering::Relaxed) {
        true => json(level, text.strip_prefix("millrace: ").unwrap_or(&text), Default::default()),
        false => text.split('\n').map(|line| visible(line) + "\n").collect(),
    };
    crate::cli::progress::aside(|| {
        let mut err = std::io::stderr().lock();
        for part in shown.as_bytes().chunks(AT_ONCE) {
            while !is_ready(&err) {
                if ENDING.load(Ordering::Relaxed) {
                    return;
                }
            }
            // There is no place to report this.
            _ = err.write_all(part);
        }
    });
}

/// Whether a part can be written without waiting; waits for a moment.
fn is_ready(err: &std::io::StderrLock<'_>) -> bool {
    const MOMENT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let mut wanted = [PollFd::new(err, PollFlags::OUT)];
    // What is closed or cannot be asked fails or succeeds at once.
    poll(&mut wanted, Some(&MOMENT)).is_err() || !wanted[0].revents().is_empty()
}

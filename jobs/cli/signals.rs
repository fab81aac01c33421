//! Ctrl-C and SIGTERM end a job cleanly; SIGHUP lets a query job look for a new generation. A file
//! that is cut short under its map ends the process with its name.

use anyhow::Context;
use millrace::inside::shown::visible;
use millrace::{Control, JobError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Ends the job at the first signal, and the process at a second one or when the job has not ended
/// after its `grace`; without one it takes the time that it needs.
pub(crate) fn watch(control: &Arc<Control>, grace: Option<Duration>) -> anyhow::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let control = control.clone();
    let thread = std::thread::Builder::new().name("signals".into());
    let started = thread.spawn(move || {
        let mut seen = false;
        for signal in signals.forever() {
            if seen {
                std::process::exit(128 + signal);
            }
            seen = true;
            crate::cli::say::wait_no_more();
            control.fail(JobError::Signal(signal));
            if let Some(grace) = grace {
                std::thread::sleep(grace);
                say!("millrace: {}", JobError::Signal(signal));
                std::process::exit(128 + signal);
            }
        }
    });
    started.map(drop).context("cannot start a thread that hears signals")
}

/// Calls `end` at the first signal that ends a job, and ends the process at a second one.
#[cfg(feature = "serve")]
pub(crate) fn on_end(end: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(move || {
        for (signal, seen) in signals.forever().zip(0..) {
            match seen {
                0 => end(),
                _ => std::process::exit(128 + signal),
            }
        }
    })?;
    Ok(())
}

/// Calls `work` at each SIGHUP, which no longer ends the process.
pub(crate) fn on_hangup(work: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP])?;
    let thread = std::thread::Builder::new().name("hangup".into());
    thread.spawn(move || signals.forever().for_each(|_| work()))?;
    Ok(())
}

/// Turns a write beyond the greatest file size that is allowed (`ulimit -f`) into an error of that
/// write, as on a full disk; by default the signal ends the process.
pub(crate) fn refuse_no_file_size() {
    let seen = Arc::new(AtomicBool::new(false));
    // Without the handler the job runs all the same.
    _ = signal_hook::flag::register(libc::SIGXFSZ, seen);
}

/// Names the file whose map cannot be read any more, because it was cut short or its disk fails,
/// and ends the process with status 1; by default the signal ends it without a word.
#[allow(unsafe_code)]
pub(crate) fn name_cut_files() {
    // SAFETY: the handler takes no lock but that of memory, which no reader of a map holds.
    _ = unsafe {
        signal_hook_registry::register_sigaction(libc::SIGBUS, |info| {
            let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
            let maps = String::from_utf8_lossy(&maps);
            let address = info.si_addr() as usize;
            if let Some(path) = maps.lines().find_map(|line| mapped_at(line, address)) {
                let path = visible(path);
                let why = "the file was cut short, or cannot be read any more, while it was open";
                let text = format!("millrace: {path}: {why}\n");
                libc::write(2, text.as_ptr().cast(), text.len());
                libc::_exit(1);
            }
            // It is no file that failed.
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        })
    };
}

/// The path in a line of the system's list of maps, if the address is in this one:
/// `55d0-55f0 r--p 0000 08:01 7   /path`.
fn mapped_at(line: &str, address: usize) -> Option<&str> {
    let number = |hex| usize::from_str_radix(hex, 16).ok();
    let (from, to) = line.split_once(' ')?.0.split_once('-')?;
    (number(from)?..number(to)?).contains(&address).then(|| line.find('/').map(|at| &line[at..]))?
}

pub(crate) fn of(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(JobError::Signal(signal)) => Some(*signal),
        _ => None,
    }
}

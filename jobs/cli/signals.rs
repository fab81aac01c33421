//! Ctrl-C and SIGTERM end a job cleanly; SIGHUP lets a query job look for a new generation.

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
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut seen = false;
        for signal in signals.forever() {
            if seen {
                std::process::exit(128 + signal);
            }
            seen = true;
            control.fail(JobError::Signal(signal));
            if let Some(grace) = grace {
                std::thread::sleep(grace);
                say!("millrace: {}", JobError::Signal(signal));
                std::process::exit(128 + signal);
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

pub(crate) fn of(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(JobError::Signal(signal)) => Some(*signal),
        _ => None,
    }
}

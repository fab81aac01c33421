//! Ctrl-C and SIGTERM end a job cleanly.

use millrace::dataflow::control::{Control, JobError};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;

/// Lets the job end when a signal comes; a second one ends the process at once.
pub(crate) fn watch(control: &Arc<Control>) -> anyhow::Result<()> {
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
        }
    })?;
    Ok(())
}

/// The signal that ended a job.
pub(crate) fn of(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(JobError::Signal(signal)) => Some(*signal),
        _ => None,
    }
}

//! Runs a command of a job file that is told of a rebuild, in a process group of its own, for a
//! bounded time.

use crate::dataflow::control::Control;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How often a running command and the signals of the job are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What a command that was asked to end has to end in.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the command; a request to end the job, and the end of `timeout`, end its whole group.
///
/// # Errors
/// What went wrong, as a sentence.
pub(super) fn run(command: &mut Command, timeout: Duration, job: &Control) -> Result<(), String> {
    let name = command.get_program().display().to_string();
    let cannot = |error| format!("the command `{name}` cannot be run: {error}");
    let mut child = command.process_group(0).spawn().map_err(cannot)?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(cannot)? {
            let wrong = || format!("the command `{name}` ended with {status}");
            return if status.success() { Ok(()) } else { Err(wrong()) };
        }
        let asked = job.is_asked();
        if asked || began.elapsed() >= timeout {
            let signal = job.signal().unwrap_or(Signal::TERM.as_raw());
            let status = end(&mut child, signal).map_err(cannot)?;
            let why = match asked {
                true => "since the job was asked to end".to_string(),
                false => format!("after {} s", timeout.as_secs()),
            };
            return Err(format!("the command `{name}` was ended {why}: {status}"));
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends a signal to the command's group, and kills what of it has not ended in time.
fn end(child: &mut Child, signal: i32) -> std::io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    // A group whose last process has ended is not there any more.
    _ = kill_process_group(group, Signal::from_named_raw(signal).unwrap_or(Signal::TERM));
    let began = Instant::now();
    let is_there = || test_kill_process_group(group).is_ok();
    while began.elapsed() < GRACE && (child.try_wait()?.is_none() || is_there()) {
        std::thread::sleep(LOOK);
    }
    if is_there() {
        _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()
}

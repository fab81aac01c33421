//! Ctrl-C and SIGTERM end a job cleanly; SIGHUP lets a query job look for a new generation. A file
//! that is cut short under its map ends the process with its name.

use anyhow::Context;
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
    let handler: extern "C" fn(libc::c_int, *const libc::siginfo_t, *mut libc::c_void) = cut_file;
    // SAFETY: all bytes 0 are an action without flags and masks; the handler has the form that
    // SA_SIGINFO asks for, and calls only what a handler of signals may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// It takes no memory and no lock, so that it works wherever the thread stands.
#[allow(unsafe_code)]
extern "C" fn cut_file(_: libc::c_int, info: *const libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system gives what it says; all pointers lead to arrays of the lengths beside.
    unsafe {
        let address = (*info).si_addr() as usize;
        let maps = libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let mut line = [0u8; 4096 + 128];
        let mut length = 0;
        let mut byte = 0u8;
        while libc::read(maps, (&raw mut byte).cast(), 1) == 1 {
            if byte != b'\n' {
                line[length] = if byte.is_ascii_control() { b'?' } else { byte };
                length = (length + 1).min(line.len() - 1);
                continue;
            }
            if let Some(path) = mapped_at(&line[..length], address) {
                let why =
                    b": the file was cut short, or cannot be read any more, while it was open\n";
                for part in [b"millrace: ", path, why] {
                    libc::write(2, part.as_ptr().cast(), part.len());
                }
                libc::_exit(1);
            }
            length = 0;
        }
        // It is no file that failed.
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
    }
}

/// The path in a line of the system's list of maps, if the address is in this one:
/// `55d0-55f0 r--p 0000 08:01 7   /path`.
fn mapped_at(line: &[u8], address: usize) -> Option<&[u8]> {
    let number = |from: &[u8]| {
        let digits = from.iter().map_while(|byte| char::from(*byte).to_digit(16));
        digits.fold(0, |number, digit| number << 4 | digit as usize)
    };
    let end = line.iter().position(|byte| *byte == b'-')? + 1;
    let path = line.iter().position(|byte| *byte == b'/')?;
    (number(line)..number(&line[end..])).contains(&address).then_some(&line[path..])
}

pub(crate) fn of(error: &anyhow::Error) -> Option<i32> {
    match error.downcast_ref() {
        Some(JobError::Signal(signal)) => Some(*signal),
        _ => None,
    }
}

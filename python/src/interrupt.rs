//! Lets Ctrl-C end what takes long. The work has a thread of its own; the thread that called looks
//! for signals meanwhile, tells the work to stop when there is one, and waits until it has. It also
//! does what only it may do: call Python.

use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often signals are looked for.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// What wakes the thread that called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The work has room for more input.
    Wanted,
    /// Nothing has, for so long.
    Pause,
    /// The work has ended.
    Ended,
}

/// Does `work` without the interpreter's lock. A signal whose handler raises calls `stop` once;
/// when the work has ended its exception is returned.
///
/// # Panics
/// If the work does.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: impl Fn() + Send + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    serving(py, channel(), |_, _| Ok(()), stop, work)
}

/// As [`interruptible`], and calls `serve` with each turn that the channel has, and with a pause as
/// often as it looks for signals. What that raises is as what the handler of a signal raises, and
/// ends the calls.
pub(crate) fn serving<T: Send>(
    py: Python<'_>,
    (wake, turns): (Sender<Turn>, Receiver<Turn>),
    serve: impl FnMut(Python<'_>, Turn) -> PyResult<()> + Send,
    stop: impl Fn() + Send + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(move || {
        std::thread::scope(move |scope| {
            let worker = scope.spawn(move || {
                let result = work();
                // Who waits for it is below.
                _ = wake.send(Turn::Ended);
                result
            });
            let mut serve = Some(serve);
            let mut raised = None;
            let mut looked = Instant::now();
            loop {
                let turn = match turns.recv_timeout(PAUSE) {
                    Ok(Turn::Ended) | Err(RecvTimeoutError::Disconnected) => break,
                    Ok(turn) => turn,
                    // It panicked.
                    Err(RecvTimeoutError::Timeout) if worker.is_finished() => break,
                    Err(RecvTimeoutError::Timeout) => Turn::Pause,
                };
                let is_pause = turn == Turn::Pause || looked.elapsed() >= PAUSE;
                let served = serve.as_mut().map_or(Ok(()), |serve| {
                    Python::attach(|py| {
                        if is_pause {
                            py.check_signals()?;
                            serve(py, Turn::Pause)?;
                        }
                        if turn == Turn::Pause { Ok(()) } else { serve(py, turn) }
                    })
                });
                if is_pause {
                    looked = Instant::now();
                }
                if let Err(exception) = served {
                    raised = Some(exception);
                    serve = None;
                    stop();
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}

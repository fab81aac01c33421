//! Lets Ctrl-C end what takes long. The work has a thread of its own; the thread that called looks
//! for signals meanwhile, tells the work to stop when there is one, and waits until it has.

use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked for.
const PAUSE: Duration = Duration::from_millis(50);

/// Does `work` without the interpreter's lock. A signal whose handler raises calls `stop` once;
/// when the work has ended its exception is returned.
///
/// # Panics
/// If the work does.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    telling(py, |_| Ok(()), stop, work)
}

/// As [`interruptible`], and calls `tell` as often as it looks for signals. What that raises is as
/// what the handler of a signal raises.
pub(crate) fn telling<T: Send>(
    py: Python<'_>,
    tell: impl Fn(Python<'_>) -> PyResult<()> + Sync,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.detach(|| {
        let (sender, done) = channel();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let result = work();
                // Who waits for it is below.
                _ = sender.send(());
                result
            });
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = done.recv_timeout(PAUSE) {
                if raised.is_none()
                    && let Err(exception) =
                        Python::attach(|py| py.check_signals().and_then(|()| tell(py)))
                {
                    raised = Some(exception);
                    stop();
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            raised.map_or(Ok(result), Err)
        })
    })
}

//! Tells how far a build is, ten times a second, from a thread of its own.

use super::error::BuildError;
use super::options::{BuildProgress, OnProgress};
use crate::crew::spawn;
use crate::dataflow::build::context::Build;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn snapshot(build: &Build) -> BuildProgress {
    let progress = &build.progress;
    BuildProgress {
        total_bytes: build.plan.input.bytes(),
        read_bytes: progress.read_bytes.load(Ordering::Relaxed),
        parsed_bytes: progress.parsed_bytes.load(Ordering::Relaxed),
        documents: progress.documents.load(Ordering::Relaxed),
        runs: progress.runs.load(Ordering::Relaxed),
        merged: build.wiring.control.stop().how_far(),
    }
}

const PAUSE: Duration = Duration::from_millis(100);

/// The thread; it ends when this is dropped, and the callback is dropped with it.
pub(super) struct ProgressThread {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressThread {
    /// Starts the thread if anybody wants to know. The last snapshot is of the end.
    pub(super) fn start(tell: Option<OnProgress>, build: &Build) -> Result<Self, BuildError> {
        let over = Arc::new(AtomicBool::new(false));
        let Some(mut tell) = tell else { return Ok(Self { over, thread: None }) };
        let build = build.clone();
        let ended = over.clone();
        let watch = move || loop {
            let last = ended.load(Ordering::Acquire);
            tell(&snapshot(&build));
            if last {
                return;
            }
            std::thread::park_timeout(PAUSE);
        };
        let thread = Some(spawn("progress", watch).map_err(BuildError::Thread)?);
        Ok(Self { over, thread })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only tells; if the callback panicked, what was built is still right.
            _ = thread.join();
        }
    }
}

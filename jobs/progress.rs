//! The progress bar of a build, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millrace::dataflow::build::Build;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that draws; it ends when this is dropped.
pub(crate) struct Progress {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Draws bytes, documents, rate, time left and stage, if standard error is a terminal.
    pub(crate) fn start(build: &Arc<Build>, quiet: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        if quiet || !std::io::stderr().is_terminal() {
            return Self { stop, thread: None };
        }
        let (build, stopped) = (build.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let bar = ProgressBar::with_draw_target(
                Some(build.plan.bytes()),
                ProgressDrawTarget::stderr_with_hz(10),
            );
            let template = "{spinner} {msg}  [{bar:24}] {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left";
            let style =
                ProgressStyle::with_template(template).expect("the template is well-formed");
            bar.set_style(style.progress_chars("=> "));
            while !stopped.load(Ordering::Relaxed) {
                let progress = &build.progress;
                let read = progress.read_bytes.load(Ordering::Relaxed);
                let documents = progress.documents.load(Ordering::Relaxed);
                let runs = progress.runs.load(Ordering::Relaxed);
                let stage = if read < build.plan.bytes() { "indexing" } else { "finishing" };
                bar.set_position(read);
                bar.set_message(format!(
                    "{stage}: {} documents, {runs} runs written",
                    indicatif::HumanCount(documents)
                ));
                std::thread::park_timeout(Duration::from_millis(100));
            }
            bar.finish_and_clear();
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread only draws; if it panicked, the job's result is still right.
            _ = thread.join();
        }
    }
}

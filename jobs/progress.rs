//! The progress bar of a build, on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millrace::build::OnProgress;
use std::io::IsTerminal;

/// A bar that goes when it is dropped.
struct Bar(ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Draws bytes, documents, rate, time left and stage, if standard error is a terminal.
pub(crate) fn bar() -> Option<OnProgress> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    let template =
        "{spinner} {msg}  [{bar:24}] {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    let bar = Bar(bar.with_style(style.progress_chars("=> ")));
    Some(Box::new(move |progress| {
        let Bar(bar) = &bar;
        let stage =
            if progress.read_bytes < progress.total_bytes { "indexing" } else { "finishing" };
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.read_bytes);
        bar.set_message(format!(
            "{stage}: {} documents, {} runs written",
            indicatif::HumanCount(progress.documents),
            progress.runs
        ));
    }))
}

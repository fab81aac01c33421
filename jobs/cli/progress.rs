//! The progress of a job: a line on a terminal, drawn again ten times a second, never wider than
//! the terminal, and gone when the job ends.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use millrace::inside::build::{BuildProgress, OnProgress};
use millrace::inside::index::Stop;
use millrace::inside::log::IS_JSON;
use millrace::inside::shown::{bytes, count, number_of};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(100);
/// A rate is shown when so much time has passed.
const SETTLED: Duration = Duration::from_secs(1);

/// All lines of this process; messages take their place for a moment.
static LINES: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10)));

/// Calls `write`, which writes to standard error, without a line in its way.
pub(crate) fn aside(write: impl FnOnce()) {
    LINES.suspend(write);
}

/// A line that goes when it is dropped.
struct ProgressLine(ProgressBar);

impl ProgressLine {
    fn new() -> Self {
        let style =
            ProgressStyle::with_template("{wide_msg}").expect("the template is well-formed");
        Self(LINES.add(ProgressBar::no_length().with_style(style)))
    }

    fn draw(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Only results and errors are wanted.
static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

fn is_drawn() -> bool {
    !is_quiet() && !IS_JSON.load(Ordering::Relaxed) && std::io::stderr().is_terminal()
}

/// None unless lines are drawn.
pub(crate) fn of_build() -> Option<OnProgress> {
    let line = is_drawn().then(ProgressLine::new)?;
    let began = Instant::now();
    Some(Box::new(move |progress| line.draw(build_line(progress, began.elapsed()))))
}

fn build_line(progress: &BuildProgress, took: Duration) -> String {
    let &BuildProgress { total_bytes, read_bytes, documents, runs, merged, .. } = progress;
    if let Some((done, of)) = merged {
        // When the merge began is not known.
        let how_far = how_far("merging", done, of, Duration::ZERO);
        return format!("{how_far}: {} of {}", count(done), number_of(of, "posting", "postings"));
    }
    let what = format!(
        "{}, {}",
        number_of(documents, "document", "documents"),
        number_of(runs, "run", "runs")
    );
    match (read_bytes, total_bytes) {
        // The length of standard input is unknown.
        (read, 0) => {
            format!("indexing: {}{}, {what}", bytes(read), rate(read, took))
        }
        (read, total) if read < total => {
            format!("{}, {what}", in_bytes("indexing")(read, total, took))
        }
        _ => format!("writing: {what}"),
    }
}

/// What is done, its percentage, and the time that is left.
fn how_far(doing: &str, done: u64, of: u64, took: Duration) -> String {
    let percent = u128::from(done.min(of)) * 100 / u128::from(of.max(1));
    format!("{doing} {percent} %{}", left(done, of, took))
}

/// Empty before it has settled.
fn rate(done: u64, took: Duration) -> String {
    match took >= SETTLED {
        true => format!(" ({}/s)", bytes((done as f64 / took.as_secs_f64()) as u64)),
        false => String::new(),
    }
}

/// Empty when it cannot be told.
fn left(done: u64, of: u64, took: Duration) -> String {
    if took < SETTLED || done == 0 {
        return String::new();
    }
    let seconds = took.as_secs_f64() * (of as f64 / done as f64 - 1.0);
    match seconds as u64 {
        s @ ..100 => format!(", {s} s left"),
        s @ ..6000 => format!(", {} min left", s.div_ceil(60)),
        s => format!(", {} h left", s.div_ceil(3600)),
    }
}

/// Draws the progress of a job on files until it is dropped, if standard error is a terminal and
/// the job is not quiet.
pub(crate) struct DrawnProgress {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl DrawnProgress {
    /// Of a job that counts in what is returned.
    pub(crate) fn begin(
        line: impl Fn(u64, u64, Duration) -> String + Send + 'static,
    ) -> (Stop, Self) {
        let progress = Stop::default();
        let drawn = Self::start(&progress, line);
        (progress, drawn)
    }

    /// `line` makes the text of what is done, of how much, and for how long.
    pub(crate) fn start(
        stop: &Stop,
        line: impl Fn(u64, u64, Duration) -> String + Send + 'static,
    ) -> Self {
        let nothing = Self { over: None, thread: None };
        if !is_drawn() {
            return nothing;
        }
        let stop = stop.clone();
        let began = Instant::now();
        let (over, ends) = channel();
        let watch = move || {
            let drawn = ProgressLine::new();
            while let Err(RecvTimeoutError::Timeout) = ends.recv_timeout(PAUSE) {
                if let Some((done, of)) = stop.how_far() {
                    drawn.draw(line(done, of, began.elapsed()));
                }
            }
        };
        // A job goes on without.
        let thread = std::thread::Builder::new().name("progress".into()).spawn(watch);
        thread.map_or(nothing, |thread| Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for DrawnProgress {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // It only draws.
            _ = thread.join();
        }
    }
}

/// The line of work that is counted in bytes.
pub(crate) fn in_bytes(doing: &'static str) -> impl Fn(u64, u64, Duration) -> String {
    move |done, of, took| {
        let how_far = how_far(doing, done, of, took);
        format!("{how_far}: {} of {}{}", bytes(done), bytes(of), rate(done, took))
    }
}

/// The line of queries of a file, whose bytes say how far they are.
pub(crate) fn in_queries(read: Arc<AtomicU64>) -> impl Fn(u64, u64, Duration) -> String {
    move |done, of, took| {
        let queries = read.load(Ordering::Relaxed);
        let rate = count((queries as f64 / took.as_secs_f64().max(1e-3)) as u64);
        let how_far = how_far("answering", done, of, took);
        format!("{how_far}: {}, {rate} a second", number_of(queries, "query", "queries"))
    }
}

/// The line of work on things that have a name.
pub(crate) fn in_things(
    doing: &'static str,
    one: &'static str,
    many: &'static str,
) -> impl Fn(u64, u64, Duration) -> String {
    move |done, of, took| {
        let how_far = how_far(doing, done, of, took);
        let rate = count((done as f64 / took.as_secs_f64().max(1e-3)) as u64);
        format!("{how_far}: {} of {}, {rate} a second", count(done), number_of(of, one, many))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: impl Fn(&mut BuildProgress), seconds: u64) -> String {
        let mut snapshot = BuildProgress::default();
        change(&mut snapshot);
        build_line(&snapshot, Duration::from_secs(seconds))
    }

    #[test]
    fn lines_say_the_stage_and_fit_a_terminal() {
        let half = |snapshot: &mut BuildProgress| {
            snapshot.read_bytes = 5 << 30;
            snapshot.total_bytes = 10 << 30;
            snapshot.documents = 123_456;
            snapshot.runs = 1;
        };
        let expected = |left: &str, rate: &str| {
            format!("indexing 50 %{left}: 5.00 GiB of 10.00 GiB{rate}, 123,456 documents, 1 run")
        };
        assert_eq!(line(half, 10), expected(", 10 s left", " (512.00 MiB/s)"));
        assert_eq!(line(half, 0), expected("", ""));
        assert_eq!(line(half, 300), expected(", 5 min left", " (17.07 MiB/s)"));
        assert_eq!(line(half, 30_000), expected(", 9 h left", " (174.76 KiB/s)"));
        let stdin = |snapshot: &mut BuildProgress| snapshot.read_bytes = 3 << 20;
        assert_eq!(line(stdin, 0), "indexing: 3.00 MiB, 0 documents, 0 runs");
        assert_eq!(line(stdin, 3), "indexing: 3.00 MiB (1.00 MiB/s), 0 documents, 0 runs");
        let read =
            |snapshot: &mut BuildProgress| (snapshot.read_bytes, snapshot.total_bytes) = (7, 7);
        assert_eq!(line(read, 3), "writing: 0 documents, 0 runs");
        let merging = |snapshot: &mut BuildProgress| snapshot.merged = Some((500, 2000));
        assert_eq!(line(merging, 3), "merging 25 %: 500 of 2,000 postings");
        let took = Duration::from_secs(2);
        let queries = "answering 50 %, 2 s left: 500 of 1,000 queries, 250 a second";
        assert_eq!(in_things("answering", "query", "queries")(500, 1000, took), queries);
        let queries = in_queries(Arc::new(AtomicU64::new(500)));
        assert_eq!(queries(1, 2, took), "answering 50 %, 2 s left: 500 queries, 250 a second");
        assert_eq!(in_bytes("reading")(1, 2, took), "reading 50 %, 2 s left: 1 B of 2 B (0 B/s)");
        assert_eq!(in_bytes("checking")(0, 2048, took), "checking 0 %: 0 B of 2.00 KiB (0 B/s)");
    }
}

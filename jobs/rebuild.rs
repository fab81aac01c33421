//! `millrace rebuild`.

use crate::{Usage, signals};
use anyhow::{Context, Error, anyhow};
use jiff::{SignedDuration, Timestamp};
use millrace::build::memory::give_back_large_buffers;
use millrace::dataflow::control::{Control, JobError};
use millrace::follow::{FollowError, Rebuild, is_running};
use millrace::index::manifest::Manifest;
use millrace::index::publish::current;
use millrace::rebuild::history::{self, Outcome, Record};
use millrace::rebuild::job_file::{JobFile, JobFileError};
use millrace::rebuild::page::page;
use millrace::rebuild::schedule::{Due, Turn};
use millrace::rebuild::status::{Status, replace};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Arguments of the job.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// The job file: docs/rebuild.md.
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Rebuild now, if the sources have changed, and end.
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    once: bool,
    /// Say what a rebuild would do now, as JSON, and end.
    #[arg(long, conflicts_with = "status")]
    dry_run: bool,
    /// Say how the index stands, as JSON, and end.
    #[arg(long)]
    status: bool,
    /// Print nothing but errors and results.
    #[arg(long)]
    quiet: bool,
}

/// Runs the job.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = std::path::absolute(&args.job).with_context(|| args.job.display().to_string())?;
    let job = JobFile::read(&path).map_err(|error| match error {
        JobFileError::Io { .. } => Error::from(error),
        error => Usage(error.to_string()).into(),
    })?;
    let daemon = Daemon { job, quiet: args.quiet };
    if args.status {
        return print(&daemon.status(None)?);
    }
    give_back_large_buffers(daemon.job.build.memory);
    if args.dry_run {
        let control = Arc::new(Control::default());
        let plan = daemon.rebuild(&control).plan().map_err(|error| explain(error, &control))?;
        return print(&plan);
    }
    if args.once {
        let control = Arc::new(Control::default());
        signals::watch(&control, None)?;
        return daemon.attempt(&control, 1, None).map(drop);
    }
    daemon.follow()
}

/// Prints a value as JSON.
fn print(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// The signal that ended a rebuild is its reason, and decides the exit status.
fn explain(error: FollowError, control: &Control) -> Error {
    if let Some(failure) = control.take_failure() {
        return failure.into();
    }
    match error.job() {
        Some(&JobError::Signal(signal)) => JobError::Signal(signal).into(),
        _ => error.into(),
    }
}

/// Rebuilds one index.
struct Daemon {
    job: JobFile,
    quiet: bool,
}

/// How often a waiting job looks whether it is to end, and at the clock, which may have been set.
const LOOK: Duration = Duration::from_millis(500);

impl Daemon {
    fn say(&self, text: &str) {
        if !self.quiet {
            say!("millrace: {text}");
        }
    }

    fn rebuild(&self, control: &Arc<Control>) -> Rebuild<'_> {
        let notes: Option<millrace::build::Notes> = match self.quiet {
            true => None,
            false => Some(Arc::new(|note| say!("millrace: {note}"))),
        };
        let command = crate::args::command();
        Rebuild { job: &self.job, control: control.clone(), command, notes }
    }

    /// Rebuilds on the schedule until a signal comes.
    fn follow(&self) -> anyhow::Result<()> {
        let Some(schedule) = self.job.schedule.clone() else {
            let path = self.job.path.display();
            return Err(Usage(format!("{path}: no [schedule]: give --once")).into());
        };
        self.job.check_paths().map_err(|error| Usage(error.to_string()))?;
        let stop = Arc::new(Control::default());
        signals::watch(&stop, None)?;
        let mut due = Due::new(schedule.clone(), Timestamp::now());
        let mut said = None;
        loop {
            match due.look(Timestamp::now()) {
                Turn::Never => return Err(anyhow!("the schedule has no more times")),
                Turn::Wait(next) => {
                    if said != Some(next) {
                        self.say(&format!("the next rebuild is due {}", schedule.show(next)));
                        self.show(Some(next));
                        said = Some(next);
                    }
                    sleep(LOOK, &stop)?;
                }
                Turn::Now(_) => self.turn(&stop, schedule.after(Timestamp::now()))?,
            }
        }
    }

    /// Rebuilds, again and again if it fails.
    fn turn(&self, stop: &Arc<Control>, next: Option<Timestamp>) -> anyhow::Result<()> {
        for attempt in 1.. {
            // A control serves one attempt; what ends the job ends the attempt.
            let control = Arc::new(Control::default());
            let done = std::thread::scope(|scope| {
                let (watched, stop) = (control.clone(), stop.clone());
                let over = Arc::new(std::sync::atomic::AtomicBool::new(false));
                let seen = over.clone();
                scope.spawn(move || {
                    while !seen.load(std::sync::atomic::Ordering::Relaxed) {
                        if stop.stopped() {
                            watched.fail(JobError::Signal(signal_hook::consts::SIGTERM));
                            return;
                        }
                        std::thread::sleep(LOOK / 10);
                    }
                });
                let done = self.attempt(&control, attempt, next);
                over.store(true, std::sync::atomic::Ordering::Relaxed);
                done
            });
            if let Some(failure) = stop.take_failure() {
                return Err(failure.into());
            }
            let Err(error) = done else { return Ok(()) };
            say!("millrace: {error:#}");
            let Some(wait) = self.job.retry.before(attempt + 1) else { return Ok(()) };
            self.say(&format!("attempt {} follows in {} s", attempt + 1, wait.as_secs()));
            let until = Timestamp::now() + SignedDuration::try_from(wait)?;
            while Timestamp::now() < until {
                sleep(LOOK, stop)?;
            }
        }
        Ok(())
    }

    /// Rebuilds once, and tells everybody.
    fn attempt(
        &self,
        control: &Arc<Control>,
        attempt: u32,
        next: Option<Timestamp>,
    ) -> anyhow::Result<Record> {
        let result = self.rebuild(control).run(attempt);
        self.show(next);
        match result {
            Ok(record) => {
                self.tell(&record);
                if record.outcome == Outcome::Published {
                    self.call(&self.job.notify.on_success, record.generation, "");
                }
                Ok(record)
            }
            Err(error) => {
                let last = next.is_none() || self.job.retry.before(attempt + 1).is_none();
                let signalled = matches!(error.job(), Some(JobError::Signal(_)));
                if last && !signalled {
                    self.call(&self.job.notify.on_failure, None, &error.chain());
                }
                Err(explain(error, control))
            }
        }
    }

    /// One line of totals.
    fn tell(&self, record: &Record) {
        let index = self.job.index.display();
        let generation = record.generation.unwrap_or(0);
        let (documents, inputs) = (record.documents, record.inputs);
        self.say(&match record.outcome {
            Outcome::Unchanged => format!(
                "{index}: the sources have not changed; generation {generation}, {} documents, in {:.2} s",
                documents.live, record.seconds
            ),
            _ => format!(
                "{index}: generation {generation}, {} documents; files: {} new, {} changed, {} gone, {} as they were; in {:.2} s",
                documents.live, inputs.added, inputs.changed, inputs.removed, inputs.unchanged, record.seconds
            ),
        });
    }

    /// Runs a command of the job file; that it fails is told and changes nothing.
    fn call(&self, words: &[String], generation: Option<u32>, reason: &str) {
        let Some((program, arguments)) = words.split_first() else { return };
        let folder = self.job.path.parent().map(PathBuf::from).unwrap_or_default();
        let status = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env("MILLRACE_INDEX", &self.job.index)
            .env("MILLRACE_GENERATION", generation.map(|n| n.to_string()).unwrap_or_default())
            .env("MILLRACE_REASON", reason)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => say!("millrace: the command `{program}` ended with {status}"),
            Err(error) => say!("millrace: the command `{program}` cannot be run: {error}"),
        }
    }

    fn status(&self, next: Option<Timestamp>) -> anyhow::Result<Status> {
        let index = &self.job.index;
        let history = history::read(index)?;
        let generation = match current(index)? {
            Some(path) => Some(Manifest::read(&path)?.generation),
            None => None,
        };
        let due = || self.job.schedule.as_ref()?.after(Timestamp::now());
        let next = next.or_else(due).map(|next| next.to_string());
        Ok(Status::new(index, &history, generation, next, is_running(index)))
    }

    /// Replaces the file of metrics and the page, if the job has them; that it fails is told and changes
    /// nothing.
    fn show(&self, next: Option<Timestamp>) {
        let metrics = || Ok(self.status(next)?.prometheus());
        let page = || {
            let index = &self.job.index;
            Ok(page(&index.display().to_string(), &history::read(index)?))
        };
        let files: [(_, &dyn Fn() -> anyhow::Result<String>); 2] =
            [(&self.job.prometheus, &metrics), (&self.job.html, &page)];
        for (path, text) in files {
            let Some(path) = path else { continue };
            if let Err(error) = text().and_then(|text| Ok(replace(path, &text)?)) {
                say!("millrace: {}: {error:#}", path.display());
            }
        }
    }
}

/// Sleeps, unless the job is to end.
fn sleep(time: Duration, stop: &Control) -> anyhow::Result<()> {
    std::thread::sleep(time);
    match stop.take_failure() {
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

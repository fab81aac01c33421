//! The daemon: it rebuilds an index when the schedule says so, again after a failure, and tells a
//! command, a file of metrics and a page of each rebuild.

mod notify;

use super::files::replace;
use super::{Rebuild, RebuildError};
use crate::build::{Notes, OnProgress, Peers};
use crate::dataflow::control::{Control, JobError};
use crate::rebuild::history::{self, HistoryRecord, RebuildOutcome};
use crate::rebuild::job_file::JobFile;
use crate::rebuild::job_file::keys::{GuardKeys, StatusKeys};
use crate::rebuild::schedule::{Due, NextRebuild};
use crate::rebuild::status::Status;
use crate::report_page::page;
use crate::shown::now;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a waiting daemon looks at its end and at the clock, which may have been set.
const LOOK: Duration = Duration::from_millis(500);

/// Rebuilds that the page lists.
const SHOWN: usize = 60;

/// Receives a line about what a daemon does, and whether something has gone wrong.
pub(crate) type TellLine = Box<dyn Fn(&str, bool) + Send + Sync>;

pub struct Daemon {
    pub job: JobFile,
    /// What started it, for the manifests.
    pub command: String,
    pub notes: Option<Notes>,
    /// Makes what shows how far each build is.
    pub progress: fn() -> Option<OnProgress>,
    pub tell: TellLine,
    /// The other processes that rebuild shards of the index, if it has some. Process 0 tells, keeps
    /// the history and runs commands.
    pub peers: Option<Peers>,
    /// Rebuilds do not look at what the index holds.
    pub from_nothing: bool,
}

impl Daemon {
    /// One rebuild, which ends early when `control` says so.
    pub fn rebuild(&self, control: &Arc<Control>) -> Rebuild<'_> {
        Rebuild { job: &self.job, daemon: self, control: control.clone() }
    }

    fn leads(&self) -> bool {
        self.peers.as_ref().is_none_or(|peers| peers.hosts.process() == 0)
    }

    /// Rebuilds once, now, if the sources have changed.
    ///
    /// # Errors
    /// Why the live generation stays; or a request to end that came behind the rebuild.
    pub fn once(&self, control: &Arc<Control>) -> Result<HistoryRecord, RebuildError> {
        let record = self.attempt(control, 1, None)?;
        control.take_failure().map_or(Ok(record), |failure| Err(failure.into()))
    }

    /// Rebuilds on the job file's schedule until `stop` ends it; a failure of a rebuild is reported
    /// and ends nothing.
    ///
    /// # Errors
    /// What ended it: `NoMoreTimes`, or what `stop` was told.
    pub fn run(&self, stop: &Arc<Control>) -> Result<Infallible, RebuildError> {
        let none = || RebuildError::NoMoreTimes { path: self.job.path.clone() };
        let schedule = self.job.schedule.clone().ok_or_else(none)?;
        // Its lock tells `status` that a service runs.
        let _locked = File::open(&self.job.path).inspect(|file| _ = file.lock_shared());
        let mut due = Due::new(schedule.clone(), now());
        let mut told = None;
        loop {
            match due.look(now()) {
                NextRebuild::Never => return Err(none()),
                NextRebuild::Wait(next) => {
                    if told != Some(next) {
                        let next_time = schedule.show(next);
                        (self.tell)(&format!("the next rebuild is due {next_time}"), false);
                        self.show(Some(next));
                        told = Some(next);
                    }
                    sleep(LOOK, stop)?;
                }
                NextRebuild::Now(_) => self.turn(stop, schedule.after(now()))?,
            }
        }
    }

    fn turn(&self, stop: &Arc<Control>, next: Option<Timestamp>) -> Result<(), RebuildError> {
        for attempt in 1.. {
            let done = self.attempt(stop, attempt, next);
            // A failure ends the attempt alone, a request to end also the daemon.
            if !stop.revive() {
                let asked = || stop.take_failure().unwrap_or(JobError::Cancelled).into();
                return Err(done.err().unwrap_or_else(asked));
            }
            let Err(error) = done else { return Ok(()) };
            (self.tell)(&error.chain(), true);
            let next_attempt = attempt + 1;
            let Some(wait) = self.job.retry.before(next_attempt) else { return Ok(()) };
            (self.tell)(&format!("attempt {next_attempt} follows in {} s", wait.as_secs()), false);
            let began = Instant::now();
            while began.elapsed() < wait {
                sleep(LOOK, stop)?;
            }
        }
        Ok(())
    }

    /// Rebuilds once and tells of it; without a `next` time no other attempt follows.
    fn attempt(
        &self,
        control: &Arc<Control>,
        attempt: u32,
        next: Option<Timestamp>,
    ) -> Result<HistoryRecord, RebuildError> {
        let result = self.rebuild(control).run(attempt);
        if !self.leads() {
            return result;
        }
        self.show(next);
        match &result {
            Ok(record) => {
                (self.tell)(&format!("{}: {record}", self.job.index.display()), false);
                if record.outcome == RebuildOutcome::Published {
                    self.call(&self.job.notify.on_success, record.generation, "", control);
                }
            }
            Err(error) => {
                let last = next.is_none() || self.job.retry.before(attempt + 1).is_none();
                let live = self.status(None).ok().and_then(|status| status.generation);
                if !matches!(error, RebuildError::Busy { .. }) {
                    let index = self.job.index.display();
                    (self.tell)(&format!("{index}: {}", history::stays(live)), false);
                }
                if last && !control.is_asked() {
                    self.call(&self.job.notify.on_failure, live, &error.chain(), control);
                }
            }
        }
        result
    }

    /// Runs a command of the job file in the file's folder; a failure is reported, also in the
    /// history, and changes nothing.
    fn call(&self, words: &[String], generation: Option<u32>, reason: &str, job: &Control) {
        let Some((program, arguments)) = words.split_first() else { return };
        let folder = self.job.path.parent().map(PathBuf::from).unwrap_or_default();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(folder)
            .env("MILLRACE_INDEX", &self.job.index)
            .env("MILLRACE_GENERATION", generation.map(|n| n.to_string()).unwrap_or_default())
            .env("MILLRACE_REASON", reason)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let Err(trouble) = notify::run(&mut command, self.job.notify.timeout, job) else { return };
        (self.tell)(&trouble, true);
        if let Err(error) = history::add_trouble(&self.job.index, trouble) {
            (self.tell)(&error.chain(), true);
        }
    }

    /// How the index stands; the next rebuild is by default that of a service that runs.
    pub fn status(&self, next: Option<Timestamp>) -> Result<Status, RebuildError> {
        let runs = || File::open(&self.job.path).is_ok_and(|file| file.try_lock().is_err());
        let due = || self.job.schedule.as_ref().filter(|_| runs())?.after(now());
        let next = next.or_else(due).map(|next| next.to_string());
        Status::new(&self.job.index, &history::read(&self.job.index)?, next)
    }

    /// What the page shows; docs/operate.md.
    pub fn report(&self, next: Option<Timestamp>) -> Result<Value, RebuildError> {
        let Status { index, generation, held, next, failures, .. } = self.status(next)?;
        let mut nights = history::read(&self.job.index)?;
        nights.drain(..nights.len().saturating_sub(SHOWN));
        let GuardKeys { min_documents, min_tokens, max_skipped, .. } = self.job.guard;
        Ok(json!({
            "job": "rebuild",
            "index": index,
            "generation": generation,
            "held": held,
            "next": next,
            "failures": failures,
            "guards": {
                "max_skipped": max_skipped.to_string(),
                "min_documents": min_documents.to_string(),
                "min_tokens": min_tokens.to_string(),
            },
            "history": nights,
        }))
    }

    /// Replaces the file of metrics and the page, if any; a failure is reported and changes
    /// nothing.
    fn show(&self, next: Option<Timestamp>) {
        if !self.leads() {
            return;
        }
        let StatusKeys { prometheus, html } = &self.job.status;
        let metrics = prometheus
            .as_ref()
            .map(|path| replace(path.get_ref(), self.status(next)?.prometheus().as_bytes()));
        let page =
            html.as_ref().map(|path| replace(path.get_ref(), page(&self.report(next)?).as_bytes()));
        for error in [metrics, page].into_iter().flatten().filter_map(Result::err) {
            (self.tell)(&error.chain(), true);
        }
    }
}

fn sleep(time: Duration, stop: &Control) -> Result<(), RebuildError> {
    std::thread::sleep(time);
    stop.take_failure().map_or(Ok(()), |failure| Err(failure.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rebuild::handed::HandedRebuild;
    use std::fs;
    use std::path::Path;
    use std::sync::Mutex;

    /// A daemon of a job file with so much `more`, in the folder, and the lines that it tells.
    fn daemon(folder: &Path, more: &str) -> (Daemon, Arc<Mutex<Vec<String>>>) {
        fs::write(folder.join("a.jsonl"), "{\"id\":\"a\",\"contents\":\"water mill\"}\n").unwrap();
        let text = format!(
            "index = \"idx\"\n[[input]]\npaths = [\"*.jsonl\"]\n[build]\nworkers = 1\nmemory = \"64M\"\n{more}"
        );
        let job =
            JobFile::parse(&folder.join("job.toml"), &text, HandedRebuild::default()).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let lines = told.clone();
        let tell = Box::new(move |line: &str, is_trouble: bool| {
            let sign = if is_trouble { "!" } else { "" };
            lines.lock().unwrap().push(format!("{sign}{line}"));
        });
        let command = "test".to_string();
        (
            Daemon {
                job,
                command,
                notes: None,
                progress: || None,
                tell,
                peers: None,
                from_nothing: false,
            },
            told,
        )
    }

    #[test]
    fn one_that_fails_is_tried_again_and_then_told() {
        let folder = tempfile::tempdir().unwrap();
        let more = "[retry]\nattempts = 2\nwait = \"0s\"\n[notify]\non_failure = [\"false\"]\non_success = [\"true\"]\n";
        let (daemon, told) = daemon(folder.path(), more);
        let source = folder.path().join("a.jsonl");
        let sound = fs::read(&source).unwrap();
        fs::write(&source, "").unwrap();
        let stop = Arc::new(Control::default());
        daemon.turn(&stop, Some(Timestamp::now())).unwrap();
        let lines = std::mem::take(&mut *told.lock().unwrap());
        let begin: Vec<&str> = lines.iter().map(|line| &line[..line.len().min(12)]).collect();
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert!(lines[0].ends_with("idx: there is no generation yet"), "{lines:?}");
        assert_eq!(lines[2], "attempt 2 follows in 0 s");
        // The command hears of the last attempt alone.
        assert!(begin[4].starts_with("!the command"), "{lines:?}");
        assert_eq!(lines[..2], [&*lines[3], &*lines[5]], "{lines:?}");
        assert_eq!(daemon.status(None).unwrap().failures, 2);

        fs::write(&source, sound).unwrap();
        daemon.turn(&stop, Some(Timestamp::now())).unwrap();
        let lines = told.lock().unwrap();
        assert!(
            lines.len() == 1 && lines[0].contains("built      generation 1  1 document "),
            "{lines:?}"
        );
    }

    #[test]
    fn what_ends_the_daemon_is_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (daemon, told) = daemon(folder.path(), "[schedule]\ncron = \"0 0 1 1 *\"\n");
        let stop = Arc::new(Control::default());
        stop.fail(JobError::Signal(15));
        let Err(ended) = daemon.run(&stop);
        assert!(matches!(ended.job(), Some(JobError::Signal(15))), "{ended:?}");
        assert!(told.lock().unwrap()[0].starts_with("the next rebuild is due "));
        // A rebuild that is under way ends with the same reason, and the history has it.
        let stop = Arc::new(Control::default());
        stop.fail(JobError::Signal(15));
        let ended = daemon.turn(&stop, Some(Timestamp::now())).unwrap_err();
        assert!(matches!(ended.job(), Some(JobError::Signal(15))), "{ended:?}");
        let mut other = daemon;
        other.job.schedule = None;
        let Err(ended) = other.run(&Arc::new(Control::default()));
        assert!(matches!(ended, RebuildError::NoMoreTimes { .. }), "{ended:?}");
    }
}

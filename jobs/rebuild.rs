//! `millrace rebuild`.

use crate::Usage;
use crate::cli::args::{Together, workers_of};
use crate::cli::{progress, report, signals};
use crate::papers;
use anyhow::{Context, Error, anyhow, bail};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use millrace::inside::build::Notes;
use millrace::inside::rebuild::{Daemon, JobFile, RebuildError, Status};
use millrace::inside::shown::{bytes, now, number_of};
use millrace::{Control, JobError, give_back_large_buffers};
use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Job file. See docs/up-to-date.md.
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Rebuild now if the sources have changed, then exit.
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    once: bool,
    /// Print as JSON what a rebuild would do now, then exit.
    #[arg(long, conflicts_with = "status")]
    dry_run: bool,
    /// Rebuild everything from the sources now, whatever the index holds and however damaged it is,
    /// then exit. With --dry-run: print what that would do.
    #[arg(long, conflicts_with = "status")]
    from_nothing: bool,
    /// Print the state of the index and its rebuilds, then exit: to a terminal as a form, else as
    /// JSON. The exit status is 1 if the last rebuild failed.
    #[arg(long)]
    status: bool,
    /// With --status: the exit status is also 1 if the live generation was made longer ago, such as
    /// 36h or 2d, or is held by a rollback.
    #[arg(long, requires = "status", conflicts_with_all = ["once", "dry_run"])]
    #[arg(value_parser = age, value_name = "AGE")]
    max_age: Option<SignedDuration>,
    /// Number of worker threads [default: that of the job file, or else one for each core].
    #[arg(short, long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    #[command(flatten)]
    together: Together,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = std::path::absolute(&args.job).with_context(|| args.job.display().to_string())?;
    let mut job = JobFile::read(&path, papers::REBUILD).map_err(|error| match error {
        RebuildError::Wrong { .. } => Usage(error.to_string()).into(),
        error => Error::from(error),
    })?;
    let of_file = job.build.workers.and_then(|n| NonZeroUsize::new(n as usize));
    let threads = workers_of(args.workers.or(of_file))?;
    job.build.workers = Some(threads as u32);
    let tell = |line: &str, is_trouble: bool| match is_trouble {
        true => say!("millrace: {line}"),
        false => tell!("millrace: {line}"),
    };
    let notes: Option<Notes> = Some(Arc::new(|note| tell!("millrace: {note}")));
    let command = crate::cli::args::command();
    let peers = args.together.peers()?;
    let tell = Box::new(tell);
    let progress = progress::of_build;
    let from_nothing = args.from_nothing;
    let daemon = Daemon { job, command, notes, progress, tell, peers, from_nothing };
    let result = carry_out(args, &daemon);
    let told = report::is_asked().then(|| {
        let mut totals = daemon.report(None)?;
        if let Err(error) = &result {
            totals["failed"] = true.into();
            totals["error"] = format!("{error:#}").into();
        }
        report::write(totals, threads)
    });
    result.and(told.unwrap_or(Ok(())))
}

fn carry_out(args: &Args, daemon: &Daemon) -> anyhow::Result<()> {
    if args.status {
        return status(args, &daemon.status(None)?);
    }
    give_back_large_buffers(daemon.job.build.memory);
    let control = Arc::new(Control::default());
    if args.dry_run {
        let planned = daemon.rebuild(&control).plan();
        let (plan, accepted) = planned.map_err(|error| explain(error, args))?;
        let mut shown = serde_json::to_value(&plan)?;
        if !shown["how"]["whole"].is_null() {
            // Nothing was read that could be counted.
            shown["documents"] = serde_json::Value::Null;
            let files = plan.inputs.unchanged + plan.inputs.changed + plan.inputs.added;
            tell!(
                "millrace: all would be built anew, from {} of {}; how many documents they have is \
                 known when they are read",
                number_of(files, "file", "files"),
                bytes(plan.read_bytes)
            );
        }
        print(&shown)?;
        return accepted.map_err(|error| explain(error, args));
    }
    let once = args.once || args.from_nothing;
    if !once {
        if daemon.job.schedule.is_none() {
            let path = daemon.job.path.display();
            return Err(Usage(format!("{path}: no [schedule]: give --once")).into());
        }
        daemon.job.check_paths().map_err(|error| Usage(error.to_string()))?;
    }
    signals::watch(&control, None)?;
    if once {
        return daemon.once(&control).map(drop).map_err(|error| explain(error, args));
    }
    let Err(ended) = daemon.run(&control);
    Err(explain(ended, args))
}

/// Reads `36h`, `2d` or `1d 12h`; a day has 24 hours.
fn age(text: &str) -> Result<SignedDuration, String> {
    let days = SpanRelativeTo::days_are_24_hours();
    let age = text.parse::<Span>().and_then(|span| span.to_duration(days));
    age.ok()
        .filter(SignedDuration::is_positive)
        .ok_or(format!("`{text}` is not an age; write 36h or 2d"))
}

/// Prints the state; a failure if it is not well.
fn status(args: &Args, status: &Status) -> anyhow::Result<()> {
    match std::io::stdout().is_terminal() {
        true => write!(std::io::stdout(), "{status}")?,
        false => print(status)?,
    }
    status.trouble(args.max_age, now()).map_or(Ok(()), |trouble| bail!(trouble))
}

fn print(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// A signal that ended a rebuild decides the exit status. Of damage it is said how to heal it.
fn explain(error: RebuildError, args: &Args) -> Error {
    if matches!(error, RebuildError::Damaged(_)) {
        let job = args.job.display();
        return anyhow!(
            "{:#}. To heal it: millrace rebuild {job} --from-nothing",
            Error::from(error)
        );
    }
    match error.job() {
        Some(&JobError::Signal(signal)) => JobError::Signal(signal).into(),
        _ => error.into(),
    }
}

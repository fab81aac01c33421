//! `millrace rebuild`.

use crate::Usage;
use crate::cli::args::Together;
use crate::cli::signals;
use anyhow::{Context, Error};
use millrace::inside::build::Notes;
use millrace::inside::rebuild::{Daemon, JobFile, RebuildError};
use millrace::{Control, JobError, give_back_large_buffers};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Job file. See docs/rebuild.md.
    #[arg(value_name = "JOB.toml")]
    job: PathBuf,
    /// Rebuild now if the sources have changed, then exit.
    #[arg(long, conflicts_with_all = ["dry_run", "status"])]
    once: bool,
    /// Print as JSON what a rebuild would do now, then exit.
    #[arg(long, conflicts_with = "status")]
    dry_run: bool,
    /// Print as JSON the state of the index and its rebuilds, then exit.
    #[arg(long)]
    status: bool,
    /// Print only results and errors.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    together: Together,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = std::path::absolute(&args.job).with_context(|| args.job.display().to_string())?;
    let job = JobFile::read(&path).map_err(|error| match error {
        RebuildError::Wrong { .. } => Usage(error.to_string()).into(),
        error => Error::from(error),
    })?;
    let quiet = args.quiet;
    let tell = move |line: &str, is_trouble: bool| {
        if is_trouble || !quiet {
            say!("millrace: {line}");
        }
    };
    let notes: Option<Notes> = match quiet {
        true => None,
        false => Some(Arc::new(|note| say!("millrace: {note}"))),
    };
    let command = crate::cli::args::command();
    let peers = args.together.peers()?;
    let daemon = Daemon { job, command, notes, tell: Box::new(tell), peers };
    if args.status {
        return print(&daemon.status(None)?);
    }
    give_back_large_buffers(daemon.job.build.memory);
    let control = Arc::new(Control::default());
    if args.dry_run {
        return print(&daemon.rebuild(&control).plan().map_err(explain)?);
    }
    if !args.once {
        if daemon.job.schedule.is_none() {
            let path = daemon.job.path.display();
            return Err(Usage(format!("{path}: no [schedule]: give --once")).into());
        }
        daemon.job.check_paths().map_err(|error| Usage(error.to_string()))?;
    }
    signals::watch(&control, None)?;
    if args.once {
        return daemon.once(&control).map(drop).map_err(explain);
    }
    let Err(ended) = daemon.run(&control);
    Err(explain(ended))
}

fn print(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)? + "\n";
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// A signal that ended a rebuild decides the exit status.
fn explain(error: RebuildError) -> Error {
    match error.job() {
        Some(&JobError::Signal(signal)) => JobError::Signal(signal).into(),
        _ => error.into(),
    }
}

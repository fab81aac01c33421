//! Options that several jobs have.

use crate::Usage;
use millrace::inside::build::Peers;
use millrace::inside::cluster::{Hosts, Secret};
#[cfg(feature = "serve")]
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use millrace::inside::rebuild::size;
pub(crate) use millrace::inside::shown::{bytes as show_bytes, count as show_count};

const MOST_PROCESSES: usize = 256;

/// Options of every job that runs a dataflow.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Workers {
    /// Number of worker threads [default: one for each core].
    #[arg(short, long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) together: Together,
}

/// Options of every job of several processes.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Together {
    /// Number of processes that run this job together, each with one shard of the index. See
    /// docs/inside/cluster.md.
    #[arg(short = 'n', long, value_name = "N", default_value = "1")]
    processes: NonZeroUsize,
    /// Number of this process, counted from 0.
    #[arg(short = 'p', long, value_name = "I", default_value = "0")]
    process: usize,
    /// File that names `host:port` of each process, one on each line [default: localhost, ports
    /// from 2101].
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// Seconds to wait for the other processes to connect.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    wait: u64,
    /// File with a secret that all processes of the job share. Messages are encrypted with it, and
    /// others are refused.
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
}

impl Together {
    /// None if there is only this process.
    pub(crate) fn hosts(&self) -> anyhow::Result<Option<Hosts>> {
        let n = self.processes.get();
        let process = self.process;
        if process >= n {
            return Err(Usage(format!("--process {process} is not below --processes {n}")).into());
        }
        if n > MOST_PROCESSES {
            return Err(Usage(format!(
                "--processes {n}: the most is {MOST_PROCESSES} (the number of hits is -k)"
            ))
            .into());
        }
        match &self.hostfile {
            Some(_) if n == 1 => {
                Err(Usage("--hostfile goes with two --processes or more".into()).into())
            }
            _ if n == 1 && self.secret.is_some() => {
                Err(Usage("--secret goes with two --processes or more".into()).into())
            }
            _ if n == 1 => Ok(None),
            Some(path) => Ok(Some(Hosts::read(path, n, process)?)),
            None => Ok(Some(Hosts::local(n, process))),
        }
    }

    /// None if there is only this process.
    pub(crate) fn peers(&self) -> anyhow::Result<Option<Peers>> {
        let hosts = self.hosts()?;
        let secret = self.secret()?;
        Ok(hosts.map(|hosts| Peers { hosts, wait: self.wait(), secret }))
    }

    pub(crate) fn secret(&self) -> anyhow::Result<Secret> {
        let Some(path) = self.secret.as_deref() else { return Ok(Secret::none()) };
        warn_of_readers(path, "secret");
        Ok(Secret::read(path)?)
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

impl Workers {
    pub(crate) fn count(&self) -> Result<usize, Usage> {
        workers_of(self.workers)
    }
}

/// Says so if others may read a file of which nobody else is to know.
pub(crate) fn warn_of_readers(path: &Path, what: &str) {
    if path.metadata().is_ok_and(|file| file.mode() & 0o004 != 0) {
        let path = path.display();
        say!("millrace: {path}: every user of this machine may read this {what}: chmod o-r");
    }
}

/// The options of a job as if these words were given, for a job that is a part of another one.
#[cfg(feature = "serve")]
pub(crate) fn as_given<A: clap::Args>(words: &[OsString]) -> anyhow::Result<A> {
    let command = A::augment_args(clap::Command::new("job").no_binary_name(true));
    Ok(A::from_arg_matches(&command.try_get_matches_from(words)?)?)
}

/// The default is one for each core.
pub(crate) fn workers_of(asked: Option<NonZeroUsize>) -> Result<usize, Usage> {
    Ok(match asked {
        Some(n) if n.get() > 1024 => return Err(Usage(format!("--workers {n}: the most is 1024"))),
        Some(n) => n.get(),
        None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    })
}

/// Refuses files of which two are standard input.
pub(crate) fn stdin_once<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Usage> {
    let dash = Path::new(millrace::inside::input::STDIN);
    match files.into_iter().filter(|path| *path == dash).count() {
        0 | 1 => Ok(()),
        _ => Err(Usage("standard input (-) can be read only once".into())),
    }
}

/// For the manifest.
pub(crate) fn command() -> String {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

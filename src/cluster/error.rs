//! Errors between the processes of a job.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    #[error("reading the host file {}", .path.display())]
    HostFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: line {line}: expected host:port, found `{found}`", .path.display())]
    HostLine { path: PathBuf, line: usize, found: String },
    #[error("{}: there are {expected} processes and only {found} lines with an address", .path.display())]
    TooFewHosts { path: PathBuf, expected: usize, found: usize },
    #[error("cannot listen on {address}, the address of this process")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("preparing a connection to another process")]
    Line(#[source] io::Error),
    /// The executable, whose hash is the build id.
    #[error("reading the executable of this process")]
    Executable(#[source] io::Error),
    #[error("reading the secret in {}", .path.display())]
    SecretFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: expected {least} bytes or more, found {found}; make a secret with: head -c 32 /dev/urandom", .path.display())]
    ShortSecret {
        path: PathBuf,
        /// At least 16 bytes.
        least: usize,
        found: usize,
    },
    #[error("{address} does not know the secret of this job: give all processes the same secret")]
    WrongSecret { address: String },
    #[error(
        "{absent} did not come within {seconds} s: start every process, each with its own -p, and check the addresses"
    )]
    Absent {
        /// Their numbers, addresses and last troubles.
        absent: String,
        seconds: u64,
    },
    #[error("process {process} ({address}) has {what} {theirs}, this process {ours}: {remedy}")]
    Mismatch {
        /// As it says itself.
        process: usize,
        address: String,
        what: &'static str,
        theirs: String,
        ours: String,
        remedy: &'static str,
    },
    #[error("two processes were started as process {process}")]
    Twice { process: usize },
    #[error("the job ended while it waited for other processes")]
    Stopped,
    #[error("preparing the connections to the other processes")]
    Start(#[source] io::Error),
    #[error("{process} has {name} {theirs}, process 0 {ours}: start all processes of a job alike")]
    Different {
        process: String,
        name: String,
        theirs: String,
        /// Of process 0.
        ours: String,
    },
    #[error(
        "{process} has the settings {theirs}, process 0 {ours}: install the same build of millrace everywhere"
    )]
    Settings { process: String, theirs: String, ours: String },
    /// A process has sent a message that is not awaited.
    #[error("{process} sent a message that was not expected")]
    OutOfTurn { process: String },
    /// A message cannot be read.
    #[error("a message of {process}")]
    Message {
        process: String,
        #[source]
        source: serde_json::Error,
    },
    /// A message cannot be written: a bug.
    #[error("writing a message to another process")]
    Unsayable(#[source] serde_json::Error),
    /// The others have ended well, and this process still waits for them.
    #[error("the other processes ended before this one")]
    Left,
}

/// Why this process ends although it could go on: another failed or has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerFailure {
    pub process: usize,
    pub address: String,
    /// Its own message, or what was seen of it.
    pub message: String,
}

impl fmt::Display for PeerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, address, message } = self;
        write!(f, "process {process} ({address}): {message}")
    }
}

//! What can go wrong between processes?

use std::io;
use std::path::PathBuf;

/// Why the processes of a job do not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The host file cannot be read.
    #[error("reading the host file {}", .path.display())]
    HostFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A line of the host file is no address.
    #[error("{}: line {line}: expected host:port, found `{found}`", .path.display())]
    HostLine { path: PathBuf, line: usize, found: String },
    /// The host file names fewer processes than there are.
    #[error("{}: there are {expected} processes and only {found} lines with an address", .path.display())]
    TooFewHosts { path: PathBuf, expected: usize, found: usize },
    /// This process cannot listen on its address.
    #[error("cannot listen on {address}, the address of this process")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("preparing a connection to another process")]
    Line {
        #[source]
        source: io::Error,
    },
    /// The executable, whose hash is the build id, cannot be read.
    #[error("reading the executable of this process")]
    Executable {
        #[source]
        source: io::Error,
    },
    /// The file with the secret cannot be read.
    #[error("reading the secret in {}", .path.display())]
    SecretFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: expected {least} bytes or more, found {found}; make a secret with: head -c 32 /dev/urandom", .path.display())]
    ShortSecret {
        path: PathBuf,
        /// The least length of a secret.
        least: usize,
        found: usize,
    },
    /// Who answers does not know the secret.
    #[error("{address} does not know the secret of this job: give all processes the same secret")]
    WrongSecret { address: String },
    /// A process did not come in time.
    #[error(
        "{absent} did not come within {seconds} s: start every process, each with its own -p, and look at the addresses"
    )]
    Absent {
        /// Their numbers, addresses and last troubles.
        absent: String,
        /// How long this process has waited, in seconds.
        seconds: u64,
    },
    /// A process does not belong to this job.
    #[error("process {process} ({address}) has {what} {theirs}, this process {ours}: {remedy}")]
    Mismatch {
        /// Its number, as it says itself.
        process: usize,
        address: String,
        what: &'static str,
        theirs: String,
        ours: String,
        remedy: &'static str,
    },
    /// Two processes have the same number.
    #[error("two processes were started as process {process}")]
    Twice { process: usize },
    /// The job was asked to end meanwhile.
    #[error("the job ended while it waited for other processes")]
    Stopped,
}

/// Why this process ends although it could go on: another one failed or has gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("process {process} ({address}): {message}")]
pub struct PeerFailure {
    pub process: usize,
    pub address: String,
    /// What it said, or what was seen of it.
    pub message: String,
}

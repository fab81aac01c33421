//! What the tests stand on: scratch folders, runs of the binary, collections made from a seed, the
//! comparison of two indexes file by file, and devices that are emulated.

// Each module of tests uses its own part.
#![allow(dead_code)]

pub(crate) mod browser;
mod compared;
pub(crate) mod fixture;
mod generated;
pub(crate) mod http;
pub(crate) mod pretended;
mod scratch;
pub(crate) mod sealed;
// Only debug builds have what makes jobs fail.
#[cfg(debug_assertions)]
pub(crate) mod sound;

pub(crate) use compared::{assert_same_index, file_path, files, generation, run_path};
pub(crate) use generated::{Collection, Doc, Random, jsonl, tsv};
pub(crate) use scratch::{Scratch, shared};

use serde_json::Value;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A job that takes longer hangs: it is killed and the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run of the binary.
pub(crate) struct Job {
    command: Command,
    stdin: Vec<u8>,
    patience: Duration,
}

/// What a run of the binary left.
pub(crate) struct Outcome {
    command: String,
    /// Exit status; none if a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Prepares a run of the binary with these arguments and nothing on standard input.
pub(crate) fn millrace<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Job {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millrace"));
    command.args(args).env_remove("MILLRACE_FAULT").env_remove("MILLRACE_RUN_LIMIT");
    Job { command, stdin: Vec::new(), patience: PATIENCE }
}

/// Makes a list of arguments out of strings and paths.
macro_rules! args {
    ($($arg:expr),* $(,)?) => { [$(std::ffi::OsString::from(&$arg)),*] };
}
pub(crate) use args;

impl Job {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs the job in no more than this many KiB of address space.
    pub(crate) fn limited(mut self, kib: u64) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {kib}; exec \"$@\""), "sh"]);
        command.arg(self.command.get_program()).args(self.command.get_args());
        command.env_remove("MILLRACE_FAULT").env_remove("MILLRACE_RUN_LIMIT");
        self.command = command;
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Lets the job take longer than others before it is killed.
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The command, for messages.
    pub(crate) fn command(&self) -> &Command {
        &self.command
    }

    /// Starts the job with pipes at all three streams.
    pub(crate) fn spawn(&mut self) -> Child {
        let piped = self.command.stdin(Stdio::piped()).stdout(Stdio::piped());
        piped.stderr(Stdio::piped()).spawn().expect("the binary starts")
    }

    /// Runs the job to its end.
    pub(crate) fn run(mut self) -> Outcome {
        let command = format!("{:?}", self.command);
        let mut child = self.spawn();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = self.stdin;
        // A job need not read what it is given.
        let writing = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        let status = wait_within(&mut child, &command, self.patience);
        writing.join().unwrap();
        let stderr = String::from_utf8_lossy(&stderr.join().unwrap()).into_owned();
        Outcome { command, status, stdout: stdout.join().unwrap(), stderr }
    }

    /// Runs the job, which has to succeed.
    pub(crate) fn ok(self) -> Outcome {
        self.run().expect_status(0)
    }

    /// Runs the job, which has to fail with this exit status, a message, and no results.
    pub(crate) fn fails(self, status: i32) -> Outcome {
        let outcome = self.run().expect_status(status);
        assert!(outcome.stdout.is_empty(), "results of a failed job\n{outcome:?}");
        assert!(!outcome.stderr.trim().is_empty(), "no message\n{outcome:?}");
        outcome
    }
}

/// Copies a folder and all that is below it; nothing if it is not there.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    let Ok(entries) = std::fs::read_dir(from) else { return };
    std::fs::create_dir_all(to).unwrap();
    for entry in entries {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &there),
            false => _ = std::fs::copy(entry.path(), there).unwrap(),
        }
    }
}

/// Waits for a child, and kills it when it takes too long.
pub(crate) fn wait(child: &mut Child, what: &str) -> Option<i32> {
    wait_within(child, what, PATIENCE)
}

/// As [`wait`], with a limit of its own.
fn wait_within(child: &mut Child, what: &str, patience: Duration) -> Option<i32> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if start.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("killed after {patience:?}: {what}");
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// A terminal of 100 columns: what is written to its second end is read from its first.
#[cfg(target_os = "linux")]
pub(crate) fn terminal() -> (std::fs::File, std::os::fd::OwnedFd) {
    use std::os::fd::{FromRawFd, OwnedFd};
    let mut ends = [0; 2];
    let [main, side] = &mut ends;
    let none = std::ptr::null_mut();
    let mut size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both places are good for a number, and the size is one.
    let opened = unsafe { libc::openpty(main, side, none, none.cast(), &raw mut size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both were just opened, and nobody else has them.
    let [main, side] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    (main.into(), side)
}

/// Reads all that a child writes, on a thread.
pub(crate) fn drain(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

impl Outcome {
    /// What a run that was started by [`Job::spawn`] left.
    pub(crate) fn new(
        command: String,
        status: Option<i32>,
        stdout: Vec<u8>,
        stderr: String,
    ) -> Self {
        Self { command, status, stdout, stderr }
    }

    #[track_caller]
    pub(crate) fn expect_status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }

    /// Checks that standard error says `what`.
    #[track_caller]
    pub(crate) fn says(self, what: impl AsRef<str>) -> Self {
        let what = what.as_ref();
        assert!(self.stderr.contains(what), "`{what}` is not in the messages of\n{self:?}");
        self
    }

    /// Standard output, which is UTF-8.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("the output is UTF-8")
    }

    /// Standard output as one JSON object a line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let head = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
            text + if bytes.len() > 2000 { " ..." } else { "" }
        };
        writeln!(f, "{}\nexit status {:?}", self.command, self.status)?;
        writeln!(f, "--- standard output\n{}", head(&self.stdout))?;
        writeln!(f, "--- standard error\n{}---", head(self.stderr.as_bytes()))
    }
}

/// The number of the day: a test that does a part of what `make campaign` does takes another part
/// each day. Its messages say which.
pub(crate) fn today() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() / (24 * 60 * 60))
}

/// Builds an index, quietly.
pub(crate) fn build<A: AsRef<OsStr>>(index: &Path, more: impl IntoIterator<Item = A>) -> Outcome {
    millrace(args!["build", "--quiet", "--index", index]).args(more).ok()
}

/// What `info --json` says about an index.
pub(crate) fn info(index: &Path) -> Value {
    let outcome = millrace(args!["info", "--json", "--index", index]).ok();
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// Compresses as gzip, in this many members.
pub(crate) fn gzip(bytes: &[u8], members: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(bytes.len().div_ceil(members).max(1)) {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).unwrap();
        out.extend_from_slice(&encoder.finish().unwrap());
    }
    out
}

/// Compresses as Zstandard, in this many frames.
pub(crate) fn zstd(bytes: &[u8], frames: usize) -> Vec<u8> {
    let size = bytes.len().div_ceil(frames).max(1);
    bytes.chunks(size).flat_map(|part| zstd::encode_all(part, 1).unwrap()).collect()
}

/// A text in every compression, with its name.
pub(crate) fn packed(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(text.as_bytes()).unwrap();
    vec![
        ("gzip", gzip(text.as_bytes(), 1)),
        ("bzip2", bzip2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("zstd", zstd(text.as_bytes(), 1)),
    ]
}

/// Cuts text into parts of about the same size at line ends.
pub(crate) fn cut_lines(bytes: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut cut = Vec::new();
    let mut rest = bytes;
    for left in (1..=parts).rev() {
        let at = rest.len() / left;
        let end = match left {
            1 => rest.len(),
            _ => rest[at..].iter().position(|&b| b == b'\n').map_or(rest.len(), |n| at + n + 1),
        };
        let (part, tail) = rest.split_at(end);
        cut.push(part);
        rest = tail;
    }
    cut
}

/// Lines of learned vectors with three terms each. The documents of a topic stand together, so that
/// bounds of blocks pay.
pub(crate) fn vectors_by_topics(documents: usize) -> String {
    let line = |docid: usize| {
        let weight = |topic| match docid * 2 / documents == topic {
            true => 200 + docid % 100,
            false => 1,
        };
        let (first, second) = (weight(0), weight(1));
        let often = 1 + docid % 7;
        format!(
            "{{\"id\": \"d{docid}\", \"vector\": {{\"often\": {often}, \"topic0\": {first}, \"topic1\": {second}}}}}\n"
        )
    };
    (0..documents).map(line).collect()
}
